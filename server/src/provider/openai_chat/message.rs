//! The assistant message as it is put together for the replay record.

use serde_json::{Map, Value, json};

/// Fields of a delta that are not sent back: what is read otherwise, what repeats it, and noise.
const NOT_SENT_BACK: [&str; 14] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "reasoning",
    "thinking",
    "obfuscation",
    "annotations",
    "audio",
    "executed_tools",
    "channel",
    "logprobs",
    "index",
];

/// Everything of the answer that the next request may need.
#[derive(Debug, Default)]
pub(super) struct MessageRecord {
    content: String,
    /// The content's parts, where the server sends parts (Mistral's thinking).
    parts: Vec<Value>,
    refusal: String,
    /// `reasoning_details`, `reasoning_content`, and every field that is not known.
    other: Map<String, Value>,
}

impl MessageRecord {
    /// Takes a delta.
    pub(super) fn take(&mut self, delta: &Map<String, Value>) {
        match delta.get("content") {
            Some(Value::String(text)) => {
                self.content.push_str(text);
                if !self.parts.is_empty() && !text.is_empty() {
                    self.take_part(&json!({ "type": "text", "text": text }));
                }
            }
            Some(Value::Array(parts)) => {
                if self.parts.is_empty() && !self.content.is_empty() {
                    self.parts.push(json!({ "type": "text", "text": self.content }));
                }
                for part in parts {
                    self.take_part(part);
                }
            }
            _ => {}
        }
        if let Some(Value::String(text)) = delta.get("refusal") {
            self.refusal.push_str(text);
        }
        for (key, value) in delta
            .iter()
            .filter(|(key, _)| !NOT_SENT_BACK.contains(&key.as_str()))
        {
            match (key.as_str(), value) {
                ("reasoning_details", Value::Array(details)) => {
                    let held = self
                        .other
                        .entry(key.clone())
                        .or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(held) = held {
                        for detail in details {
                            take_detail(held, detail);
                        }
                    }
                }
                _ => merge_unknown(&mut self.other, key, value),
            }
        }
    }

    /// Joins a part to the one before when it goes on with it.
    fn take_part(&mut self, part: &Value) {
        if let (Some(Value::Object(held)), Value::Object(more)) = (self.parts.last_mut(), part)
            && held.get("type") == more.get("type")
        {
            for (key, value) in more.iter().filter(|(key, _)| *key != "type") {
                match (held.get_mut(key), value) {
                    (Some(Value::Array(held)), Value::Array(more)) => {
                        for inner in more {
                            take_detail(held, inner);
                        }
                    }
                    _ => merge_unknown(held, key, value),
                }
            }
            return;
        }
        self.parts.push(part.clone());
    }

    /// The message, or nothing when it would be empty: strict servers refuse one without content and calls.
    pub(super) fn replay(&self, tool_calls: Vec<Value>) -> Option<Value> {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        let content = if self.parts.is_empty() {
            json!(self.content)
        } else {
            json!(self.parts)
        };
        let has_content = !self.content.is_empty() || !self.parts.is_empty();
        if !has_content && tool_calls.is_empty() && self.refusal.is_empty() {
            return None;
        }
        message.insert(
            "content".to_owned(),
            if has_content { content } else { Value::Null },
        );
        if !self.refusal.is_empty() {
            message.insert("refusal".to_owned(), json!(self.refusal));
        }
        if !tool_calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(tool_calls));
        }
        message.extend(self.other.clone());
        Some(Value::Object(message))
    }
}

/// Joins a piece of a list of details to the one that it goes on with (same `type` and `index`), else appends it.
fn take_detail(held: &mut Vec<Value>, detail: &Value) {
    if let (Some(Value::Object(last)), Value::Object(more)) = (held.last_mut(), detail)
        && last.get("type") == more.get("type")
        && last.get("index") == more.get("index")
        && (last.get("id") == more.get("id") || !last.contains_key("id") || !more.contains_key("id"))
    {
        for (key, value) in more {
            match (last.get_mut(key), value) {
                (Some(Value::String(text)), Value::String(piece))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    text.push_str(piece);
                }
                (_, Value::Null) => {}
                _ => {
                    last.insert(key.clone(), value.clone());
                }
            }
        }
        return;
    }
    held.push(detail.clone());
}

/// Adds a field that is not known: strings and lists grow, all else is replaced, `null` says nothing.
pub(super) fn merge_unknown(held: &mut Map<String, Value>, key: &str, value: &Value) {
    match (held.get_mut(key), value) {
        (_, Value::Null) => {}
        (Some(Value::String(text)), Value::String(piece)) => text.push_str(piece),
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more.iter().cloned()),
        (Some(Value::Object(object)), Value::Object(more)) => {
            for (key, value) in more {
                merge_unknown(object, key, value);
            }
        }
        _ => {
            held.insert(key.to_owned(), value.clone());
        }
    }
}
