//! The parts of an answer for the next request: signatures stay with exactly the part that they came with.

use serde_json::{Map, Value, json};

/// The parts, as they came; plain text that was cut into many parts is one again.
#[derive(Debug, Default)]
pub(super) struct Record(Vec<Map<String, Value>>);

impl Record {
    pub(super) fn take(&mut self, part: &Map<String, Value>) {
        if let Some(last) = self.0.last_mut()
            && is_plain(last)
            && is_plain(part)
            && last.get("thought") == part.get("thought")
            && let Some(Value::String(held)) = last.get_mut("text")
            && let Some(Value::String(more)) = part.get("text")
        {
            held.push_str(more);
            return;
        }
        self.0.push(part.clone());
    }

    /// A call whose arguments came in pieces is whole: it takes the place of the last part, which began it.
    pub(super) fn take_arguments(&mut self, arguments: &Value) {
        let begun = self.0.iter_mut().rev().find_map(|part| {
            let call = part.get_mut("functionCall")?.as_object_mut()?;
            call.contains_key("name").then_some(call)
        });
        if let Some(call) = begun {
            call.shift_remove("willContinue");
            call.insert("args".to_owned(), arguments.clone());
        }
        // The pieces themselves say nothing more.
        self.0.retain(|part| {
            part.get("functionCall")
                .is_none_or(|call| call.get("name").is_some() || part.contains_key("thoughtSignature"))
        });
    }

    /// The message, or nothing when there is nothing to send back. A part that is empty is refused, unless it carries
    /// a signature.
    pub(super) fn replay(&self) -> Option<Value> {
        let parts: Vec<&Map<String, Value>> = self
            .0
            .iter()
            .filter(|part| {
                part.contains_key("thoughtSignature")
                    || part.get("text").and_then(Value::as_str) != Some("") && !part.is_empty()
            })
            .collect();
        (!parts.is_empty()).then(|| json!({ "role": "model", "parts": parts }))
    }
}

/// Whether a part is text and nothing else.
fn is_plain(part: &Map<String, Value>) -> bool {
    part.contains_key("text") && part.keys().all(|key| matches!(key.as_str(), "text" | "thought"))
}
