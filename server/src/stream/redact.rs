//! Hides opaque values in transcript lines when they are read. On disk they stay as they came, since a retry and a
//! replay need them.

use serde_json::Value;

/// Names of fields whose values only the provider can read, in every wire format.
const OPAQUE: [&str; 13] = [
    "signature",
    "thought_signature",
    "thoughtSignature",
    "reasoning_opaque",
    "reasoning_encrypted",
    "fallback_credit",
    "obfuscation",
    "failed_generation",
    "authorization",
    "authorization_token",
    "encrypted_content",
    "encrypted_index",
    "encrypted_stdout",
];

/// The line with each opaque value replaced by its length. A line that is no JSON object is replaced as a whole.
pub fn redact_line(line: &str) -> String {
    let Ok(Value::Object(mut object)) = serde_json::from_str::<Value>(line) else {
        return Value::from(length_of(line.len())).to_string();
    };
    let is_cut = object.get("cut").and_then(Value::as_bool) == Some(true);
    for (key, value) in &mut object {
        match value {
            // The event's data as received: JSON in a string.
            Value::String(data) if key == "data" => *data = redact_data(data, is_cut),
            other => redact(other),
        }
    }
    Value::Object(object).to_string()
}

fn redact_data(data: &str, is_cut: bool) -> String {
    match serde_json::from_str::<Value>(data) {
        Ok(mut value) => {
            let before = value.clone();
            redact(&mut value);
            // Data with nothing to hide is shown byte for byte.
            if value == before {
                data.to_owned()
            } else {
                value.to_string()
            }
        }
        // Half a JSON value may hold half a signature.
        Err(_) if is_cut || data.contains("encrypted") || OPAQUE.iter().any(|name| data.contains(name)) => {
            length_of(data.len())
        }
        Err(_) => data.to_owned(),
    }
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let kind = object
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let hides_data = kind.contains("redacted") || kind.contains("encrypted");
            let hides_content = kind.starts_with("compaction");
            for (key, inner) in object {
                let opaque = OPAQUE.contains(&key.as_str())
                    || key.starts_with("encrypted_")
                    || hides_data && key == "data"
                    || hides_content && key == "content";
                if opaque {
                    hide(inner);
                } else if key == "container" {
                    if let Some(id) = inner.get_mut("id") {
                        hide(id);
                    }
                } else {
                    redact(inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn hide(value: &mut Value) {
    let length = match value {
        Value::Null => return,
        Value::String(text) if text.is_empty() => return,
        Value::String(text) => text.len(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string().len(),
    };
    *value = Value::from(length_of(length));
}

fn length_of(bytes: usize) -> String {
    format!("[{bytes} bytes]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn opaque_values_are_replaced_by_their_length_wherever_they_stand() {
        let hidden = [
            json!({"type":"content_block_delta","delta":{"type":"signature_delta","signature":"SECRETSECRET"}}),
            json!({"content_block":{"type":"redacted_thinking","data":"SECRETSECRET"}}),
            json!({"content":[{"encrypted_content":"SECRETSECRET"}, {"encrypted_index":"SECRETSECRET"}]}),
            json!({"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"SECRETSECRET"}]}}]}),
            json!({"tool_calls":[{"extra_content":{"google":{"thought_signature":"SECRETSECRET"}}}]}),
            json!({"delta":{"reasoning_opaque":"SECRETSECRET"}}),
            json!({"container":{"id":"SECRETSECRET"}}),
        ];
        for data in hidden {
            let line = json!({"at":1,"attempt":"att_1","kind":"event","event":null,"data":data.to_string()})
                .to_string();
            let shown = redact_line(&line);
            assert!(
                !shown.contains("SECRET") && shown.contains("[12 bytes]"),
                "{shown}"
            );
            let request = json!({"at":1,"kind":"request","body":{"messages":[data]}}).to_string();
            assert!(!redact_line(&request).contains("SECRET"), "{request}");
        }
        let cut = json!({"kind":"event","cut":true,"data":"{\"delta\":{\"signature\":\"SECRET"}).to_string();
        assert!(!redact_line(&cut).contains("SECRET"));
        assert!(!redact_line("{\"kind\":\"event\",\"data\":\"SEC").contains("SEC"));
    }

    #[test]
    fn what_is_not_opaque_is_shown_byte_for_byte() {
        let line =
            json!({"at":1,"kind":"event","data":"{\"b\": 1,  \"a\": {\"data\": \"text\"}}"}).to_string();
        assert_eq!(redact_line(&line), line);
        let done = json!({"at":1,"kind":"event","data":"[DONE]"}).to_string();
        assert_eq!(redact_line(&done), done);
    }
}
