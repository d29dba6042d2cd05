//! Values of other formats: their ids, times and data.

use protocol::model::Timestamp;
use serde_json::Value;
use uuid::Uuid;

/// The namespace of ids that are made of the ids of other programs.
fn namespace() -> Uuid {
    Uuid::new_v5(&Uuid::nil(), b"runloom.import")
}

/// An id that follows from these words.
pub(super) fn uuid(words: &[&str]) -> Uuid {
    Uuid::new_v5(&namespace(), words.join("\u{1f}").as_bytes())
}

/// A time as it is written in other formats: text of RFC 3339, or a number of seconds or milliseconds.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => {
            let time: jiff::Timestamp = text.trim().parse().ok()?;
            Some(time.as_millisecond())
        }
        Value::Number(number) => {
            let number = number.as_f64()?;
            // Until the year 5138 seconds have fewer digits than milliseconds have now.
            let ms = if number.abs() < 1e11 {
                number * 1000.0
            } else {
                number
            };
            (ms.abs() < 1e16).then_some(ms as Timestamp)
        }
        _ => None,
    }
}

/// Data as the text of an argument or a result.
pub(super) fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
