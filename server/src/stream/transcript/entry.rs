//! The lines of a transcript.

use serde_json::{Map, Value, json};

use crate::provider::client::{address_for_display, text_without_secret};
use crate::provider::{Secret, SseEvent, SseItem, WireRequest};

/// What a line says; times and the attempt are added when it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptEntry {
    kind: &'static str,
    fields: Map<String, Value>,
}

impl TranscriptEntry {
    /// The request that begins an attempt or a round: the address without its query, headers without the key, the body.
    pub fn request(provider_id: &str, request: &WireRequest) -> Self {
        Self::new(
            "request",
            json!({
                "provider": provider_id,
                "url": address_for_display(&request.url),
                "headers": request.headers,
                "body": request.body,
            }),
        )
    }

    /// A raw item of the stream: the event's name and data as received; pings and comments are `ping`.
    pub fn item(item: &SseItem) -> Self {
        match item {
            SseItem::Event(event) => Self::event(event),
            SseItem::Comment { text } => Self::new("ping", json!({ "comment": text })),
            SseItem::TooLarge { limit } => Self::guard("too_large", json!({ "limit_bytes": limit })),
        }
    }

    /// A whole event.
    pub fn event(event: &SseEvent) -> Self {
        let kind = if event.event.as_deref() == Some("ping") {
            "ping"
        } else {
            "event"
        };
        Self::new(kind, json!({ "event": event.event, "data": event.data }))
    }

    /// What came of the last event before the bytes ended.
    pub fn cut_event(data: &str) -> Self {
        Self::new("event", json!({ "cut": true, "data": data }))
    }

    /// A decision of the guard.
    pub fn guard(decision: &str, detail: Value) -> Self {
        Self::new("guard", json!({ "decision": decision, "detail": detail }))
    }

    /// What the dispatcher did with a call.
    pub fn tool(fields: Value) -> Self {
        Self::new("tool", fields)
    }

    /// The end of a request: its outcome (`complete`, `interrupted` or `cancelled`) and the error, if there was one.
    pub fn end(outcome: &str, error: Option<Value>) -> Self {
        Self::new("end", json!({ "outcome": outcome, "error": error }))
    }

    /// The same without a key that a provider repeats in what it sends.
    pub(in crate::stream) fn without_secret(mut self, secret: Option<&Secret>) -> Self {
        for key in ["data", "comment"] {
            if let (Some(secret), Some(Value::String(text))) = (secret, self.fields.get_mut(key))
                && let Some(clean) = text_without_secret(text, secret)
            {
                *text = clean;
            }
        }
        self
    }

    /// The same with something hidden in what it tells of an event or a request. Data that is no JSON shows nothing.
    pub(in crate::stream) fn hiding(mut self, hide: impl FnOnce(&mut Value)) -> Self {
        if let Some(body) = self.fields.get_mut("body") {
            hide(body);
        } else if let Some(Value::String(data)) = self.fields.get_mut("data")
            && let Ok(mut value) = serde_json::from_str::<Value>(data)
        {
            let before = value.clone();
            hide(&mut value);
            // Data with nothing to hide stays byte for byte.
            if value != before {
                *data = value.to_string();
            }
        }
        self
    }

    fn new(kind: &'static str, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self { kind, fields }
    }

    pub(super) fn line(self, at: i64, attempt: &str) -> Vec<u8> {
        let mut object = Map::from_iter([
            ("at".to_owned(), json!(at)),
            ("attempt".to_owned(), json!(attempt)),
            ("kind".to_owned(), json!(self.kind)),
        ]);
        // The three fields of every line are ours; a field of the same name is left out.
        for (key, value) in self.fields {
            object.entry(key).or_insert(value);
        }
        let mut line = Value::Object(object).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}
