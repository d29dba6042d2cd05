//! Transcript lines of a stream whose reasoning is not saved: the reasoning is replaced by its length before a line is
//! written. What the adapter shows as reasoning counts, whatever field it came in (also within `<think>`), and so do
//! the fields in which the wire formats send reasoning back.

use std::collections::BTreeSet;

use serde_json::Value;

use super::redact::hide;
use crate::provider::{BlockStart, Position, ProviderEvent};

/// Fields that hold reasoning in an event or in a request, in every wire format.
const FIELDS: [&str; 4] = ["thinking", "reasoning", "reasoning_content", "reasoning_text"];

/// A piece this short may stand in any text by chance.
const SHORTEST: usize = 16;

/// What a stream has shown as reasoning.
#[derive(Debug, Default)]
pub(super) struct UnsavedReasoning {
    positions: BTreeSet<Position>,
    text: String,
}

impl UnsavedReasoning {
    /// Takes in the events of one item and hides in its line what they show as reasoning.
    pub(super) fn hide_in(&mut self, line: &mut Value, events: &[ProviderEvent]) {
        let mut pieces = Vec::new();
        for event in events {
            match event {
                ProviderEvent::BlockStart {
                    position,
                    kind: BlockStart::Reasoning,
                } => {
                    self.positions.insert(*position);
                }
                ProviderEvent::Delta { position, text } | ProviderEvent::Contradiction { position, text }
                    if self.positions.contains(position) =>
                {
                    self.text.push_str(text);
                    if !text.is_empty() {
                        pieces.push(text.as_str());
                    }
                }
                _ => {}
            }
        }
        self.hide(line, &pieces);
    }

    /// Hides reasoning in the body of a request, which sends earlier rounds back.
    pub(super) fn hide_in_request(&self, body: &mut Value) {
        self.hide(body, &[]);
    }

    fn hide(&self, value: &mut Value, pieces: &[&str]) {
        match value {
            Value::Object(object) => {
                let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
                let is_reasoning = kind.starts_with("reasoning") || kind.starts_with("summary_text");
                for (key, inner) in object.iter_mut() {
                    let is_field = FIELDS.contains(&key.as_str()) && inner.is_string();
                    if is_field
                        || is_reasoning && matches!(key.as_str(), "text" | "summary") && inner.is_string()
                    {
                        hide(inner);
                    } else {
                        self.hide(inner, pieces);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.hide(item, pieces);
                }
            }
            Value::String(text) => {
                let holds_new = pieces.iter().any(|piece| text.contains(piece));
                let is_known = text.len() >= SHORTEST && self.text.contains(text.as_str());
                if holds_new || is_known {
                    hide(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reasoning(text: &str) -> Vec<ProviderEvent> {
        vec![
            ProviderEvent::BlockStart {
                position: 0,
                kind: BlockStart::Reasoning,
            },
            ProviderEvent::Delta {
                position: 0,
                text: text.to_owned(),
            },
        ]
    }

    #[test]
    fn what_is_shown_as_reasoning_is_hidden_in_whatever_field_it_came() {
        let mut unsaved = UnsavedReasoning::default();
        let mut line = json!({"choices":[{"delta":{"content":"<think>a secret thought"}}], "id": "chat_1"});
        unsaved.hide_in(&mut line, &reasoning("a secret thought"));
        assert_eq!(line["choices"][0]["delta"]["content"], "[23 bytes]");
        assert_eq!(line["id"], "chat_1");
        let mut whole = json!({"type":"done","item":{"content":"a secret thought"}, "output": "an answer"});
        unsaved.hide_in(&mut whole, &[]);
        assert_eq!(whole["item"]["content"], "[16 bytes]");
        assert_eq!(whole["output"], "an answer");
    }

    #[test]
    fn reasoning_that_is_sent_back_is_hidden_and_nothing_else_is() {
        let mut body = json!({"messages":[
            {"role":"user","content":"What is thinking?"},
            {"role":"assistant","content":[{"type":"thinking","thinking":"secret","signature":"s"},{"type":"text","text":"open"}]},
            {"role":"assistant","reasoning_content":"secret","reasoning_details":[{"type":"reasoning.text","text":"secret"}]},
        ], "thinking": {"type": "enabled"}});
        UnsavedReasoning::default().hide_in_request(&mut body);
        let text = body.to_string();
        assert!(!text.contains("secret"), "{text}");
        assert!(
            text.contains("What is thinking?") && text.contains("open") && text.contains("enabled"),
            "{text}"
        );
    }
}
