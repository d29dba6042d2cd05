//! Puts tool calls together from the pieces in which compatible servers send them.
//!
//! Indexes may be missing, all 0, or not begin at 0; ids may be missing, empty, repeated or come with each piece;
//! names may be repeated; arguments may be strings, an object, or `null`. One algorithm covers what was recorded.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::message::merge_unknown;
use crate::provider::history::is_cut;
use crate::provider::{BlockStart, Position, ProviderEvent, StopReason};

/// One call on its way.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    index: Option<i64>,
    /// The provider's id.
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    /// Where it is shown, once its name is known, and the id under which it is.
    shown: Option<(Position, String)>,
    /// Fields of the entry that only the provider understands.
    extra: Map<String, Value>,
    /// The same of its `function` object.
    function_extra: Map<String, Value>,
}

/// All calls of one answer, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

impl Calls {
    /// Takes one entry of `tool_calls`.
    pub(super) fn take(
        &mut self,
        entry: &Map<String, Value>,
        positions: &mut Position,
        out: &mut Vec<ProviderEvent>,
    ) {
        let function = entry.get("function").and_then(Value::as_object);
        let text = |value: Option<&Value>| {
            value
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let id = text(entry.get("id"));
        let name = text(function.and_then(|function| function.get("name")));
        let arguments = match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(text)) => text.clone(),
            Some(object @ (Value::Object(_) | Value::Array(_))) => object.to_string(),
            _ => String::new(),
        };
        let index = entry.get("index").and_then(Value::as_i64);
        let slot = self.slot(index, id.as_deref(), name.as_deref(), &arguments);
        let Some(call) = self.0.get_mut(slot) else { return };
        if call.shown.is_none() {
            call.id = call.id.take().or(id);
        }
        call.name = call.name.take().or(name);
        call.arguments.push_str(&arguments);
        for (key, value) in entry {
            if !matches!(key.as_str(), "index" | "id" | "type" | "function") {
                merge_unknown(&mut call.extra, key, value);
            }
        }
        for (key, value) in function.into_iter().flatten() {
            if !matches!(key.as_str(), "name" | "arguments") {
                merge_unknown(&mut call.function_extra, key, value);
            }
        }
        call.show(&arguments, positions, out);
    }

    /// The call that an entry belongs to; a new one where it belongs to none.
    fn slot(&mut self, index: Option<i64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> usize {
        let candidate = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index),
            None => self.0.len().checked_sub(1),
        };
        let continued = candidate.filter(|slot| {
            self.0.get(*slot).is_some_and(|call| {
                // A name with another object after whole arguments is the next call, whatever its id says.
                if name.is_some() && arguments.trim_start().starts_with('{') && is_object(&call.arguments) {
                    return false;
                }
                match (id, &call.id, name) {
                    (Some(id), Some(held), _) => id == held,
                    (_, _, Some(name)) => {
                        let same = call.name.as_deref().is_none_or(|held| held == name);
                        same && !(index.is_none() && is_object(&call.arguments))
                    }
                    (_, _, None) => true,
                }
            })
        });
        continued.unwrap_or_else(|| {
            self.0.push(Call {
                index,
                ..Call::default()
            });
            self.0.len() - 1
        })
    }

    /// The stream has ended well: ends the calls that are whole. One whose arguments stop before their end was cut
    /// by the output limit and stays open, whatever the stop reason says.
    pub(super) fn close(
        &self,
        stop: Option<StopReason>,
        positions: &mut Position,
        out: &mut Vec<ProviderEvent>,
    ) {
        let limited = matches!(stop, Some(StopReason::Length | StopReason::ContentFilter));
        let last = self.0.len().saturating_sub(1);
        for (slot, call) in self.0.iter().enumerate() {
            let Some((position, _)) = call.shown else {
                let position = next(positions);
                let kind = BlockStart::Unsupported {
                    raw_kind: "tool call without a name".to_owned(),
                    bytes: call.arguments.len() as u64,
                };
                out.push(ProviderEvent::BlockStart { position, kind });
                out.push(ProviderEvent::BlockEnd { position });
                continue;
            };
            let whole = match call.arguments.trim() {
                "" => !(limited && slot == last),
                text => !is_cut(text),
            };
            if whole {
                out.push(ProviderEvent::BlockEnd { position });
            }
        }
    }

    /// The entries for the next request.
    pub(super) fn replay(&self) -> Vec<Value> {
        self.0
            .iter()
            .filter_map(|call| {
                let (_, id) = call.shown.as_ref()?;
                let arguments = if is_object(&call.arguments) {
                    call.arguments.as_str()
                } else {
                    "{}"
                };
                let mut function = Map::new();
                function.insert(
                    "name".to_owned(),
                    Value::String(call.name.clone().unwrap_or_default()),
                );
                function.insert("arguments".to_owned(), Value::String(arguments.to_owned()));
                function.extend(call.function_extra.clone());
                let mut entry = Map::new();
                entry.insert("id".to_owned(), Value::String(id.clone()));
                entry.insert("type".to_owned(), Value::String("function".to_owned()));
                entry.insert("function".to_owned(), Value::Object(function));
                entry.extend(call.extra.clone());
                Some(Value::Object(entry))
            })
            .collect()
    }

    /// Whether any call came.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Call {
    fn show(&mut self, arguments: &str, positions: &mut Position, out: &mut Vec<ProviderEvent>) {
        let Some(name) = &self.name else { return };
        let (position, json) = match &self.shown {
            Some((position, _)) => (*position, arguments.to_owned()),
            None => {
                let position = next(positions);
                // Without an id of its own the call gets one; a later one would come too late for the record.
                let id = self.id.clone().unwrap_or_else(|| format!("call_{position}"));
                let kind = BlockStart::ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                };
                out.push(ProviderEvent::BlockStart { position, kind });
                self.shown = Some((position, id));
                (position, self.arguments.clone())
            }
        };
        if !json.is_empty() {
            out.push(ProviderEvent::ArgumentsDelta { position, json });
        }
    }
}

/// Gives the next position.
pub(super) fn next(positions: &mut Position) -> Position {
    let position = *positions;
    *positions += 1;
    position
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
