//! One content block as the provider sends it, kept verbatim for the replay record.

use serde_json::{Map, Value};

use crate::provider::Position;
use crate::provider::history::arguments_object;

/// What a wire block is on the display side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Part of a run of text.
    Text,
    /// Thinking, shown where it has text.
    Thinking,
    /// A call, ours or the provider's.
    Call,
    /// Kept for the replay record only.
    Other,
}

/// A content block on its way.
#[derive(Debug, Clone)]
pub(super) struct WireBlock {
    /// The `index` under which its deltas come.
    pub(super) index: Option<i64>,
    /// What it is on the display side.
    pub(super) role: Role,
    /// Where a call or thinking is shown, once it is.
    pub(super) position: Option<Position>,
    /// The block of `content_block_start`; what deltas add is put in when it is read.
    value: Map<String, Value>,
    /// Text, thinking or the arguments of a call so far.
    pub(super) content: String,
    /// Whether `content_block_stop` came.
    pub(super) stopped: bool,
    /// A later block repeats this one with its signature.
    pub(super) superseded: bool,
}

impl WireBlock {
    pub(super) fn new(index: Option<i64>, value: Map<String, Value>) -> Self {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        let role = match kind {
            "text" => Role::Text,
            "thinking" => Role::Thinking,
            "tool_use" | "server_tool_use" | "mcp_tool_use" => Role::Call,
            _ => Role::Other,
        };
        let initial = match role {
            Role::Text => value.get("text"),
            Role::Thinking => value.get("thinking"),
            Role::Call | Role::Other => None,
        };
        let content = initial.and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            index,
            role,
            position: None,
            value,
            content,
            stopped: false,
            superseded: false,
        }
    }

    pub(super) fn kind(&self) -> &str {
        self.text_field("type")
    }

    pub(super) fn text_field(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Gives a call without an id the one under which it is known here.
    pub(super) fn set_id(&mut self, id: &str) {
        self.value.insert("id".to_owned(), Value::String(id.to_owned()));
    }

    pub(super) fn field(&self, key: &str) -> Option<&Value> {
        self.value.get(key)
    }

    /// The arguments that came whole in the start event, when there are any.
    pub(super) fn start_input(&self) -> Option<String> {
        let input = self.value.get("input")?;
        match input {
            Value::Object(object) if object.is_empty() => None,
            Value::Object(_) => Some(input.to_string()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// Takes the parts of a delta that are not shown.
    pub(super) fn take_hidden(&mut self, kind: &str, delta: &Map<String, Value>) {
        match kind {
            "signature_delta" => {
                if let Some(signature) = delta.get("signature") {
                    self.value.insert("signature".to_owned(), signature.clone());
                }
            }
            "citations_delta" => {
                if let Some(citation) = delta.get("citation") {
                    match self
                        .value
                        .entry("citations")
                        .or_insert_with(|| Value::Array(Vec::new()))
                    {
                        Value::Array(citations) => citations.push(citation.clone()),
                        other => *other = Value::Array(vec![citation.clone()]),
                    }
                }
            }
            _ => {
                for (key, value) in delta.iter().filter(|(key, _)| *key != "type") {
                    match (self.value.get_mut(key), value) {
                        (Some(Value::String(held)), Value::String(more)) => held.push_str(more),
                        (_, Value::Null) => {}
                        _ => {
                            self.value.insert(key.clone(), value.clone());
                        }
                    }
                }
            }
        }
    }

    /// The block for the next request, or nothing where it may not be sent back: thinking that was cut before its
    /// signature, and text without anything to read, which is refused.
    pub(super) fn replay(&self) -> Option<Value> {
        let mut value = self.value.clone();
        match self.role {
            Role::Text => {
                let cited = value
                    .get("citations")
                    .and_then(Value::as_array)
                    .is_some_and(|list| !list.is_empty());
                if self.content.trim().is_empty() && !cited {
                    return None;
                }
                value.insert("text".to_owned(), Value::String(self.content.clone()));
            }
            Role::Thinking => {
                if !self.stopped || self.superseded {
                    return None;
                }
                value.insert("thinking".to_owned(), Value::String(self.content.clone()));
                if value.get("signature").and_then(Value::as_str) == Some("") {
                    value.remove("signature");
                }
            }
            Role::Call => {
                if !self.content.is_empty() {
                    value.insert("input".to_owned(), arguments_object(&self.content));
                } else if !value.get("input").is_some_and(Value::is_object) {
                    value.insert("input".to_owned(), arguments_object(""));
                }
            }
            Role::Other => {}
        }
        Some(Value::Object(value))
    }
}
