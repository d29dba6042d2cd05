//! Halves of characters. JSON can write a character beyond U+FFFF as two escapes (RFC 8259 §7), and providers cut their
//! text between them. The halves of one character that come in two deltas are joined; a half that stays alone becomes
//! U+FFFD. Transcripts keep what came.
//!
//! No Rust string can hold a half. Until its other half comes, each is a stand-in: one of the 2048 private characters
//! from U+10F800 on, which no provider sends.

use std::collections::BTreeMap;

use memchr::memmem;
use serde_json::Value;

use super::wire::StreamDecoder;
use super::{Position, ProviderError, ProviderEvent, Replay, SseEvent};

/// The stand-in of the half U+D800.
const STAND_INS: u32 = 0x10_f800;

/// A decoder of events in which half characters may stand.
pub(super) struct Joining<D> {
    inner: D,
    /// Whether any half ever came; before, everything passes as it is.
    any: bool,
    /// First halves at the end of what was given on, by block.
    pending: BTreeMap<Position, u32>,
}

impl<D: StreamDecoder> Joining<D> {
    pub(super) fn new(inner: D) -> Self {
        Self {
            inner,
            any: false,
            pending: BTreeMap::new(),
        }
    }

    fn join(&mut self, events: Vec<ProviderEvent>) -> Vec<ProviderEvent> {
        if !self.any {
            return events;
        }
        let mut joined = Vec::with_capacity(events.len());
        for event in events {
            match event {
                ProviderEvent::Delta { position, text } => {
                    let (text, half) = joined_text(self.pending.remove(&position), &text);
                    if let Some(half) = half {
                        self.pending.insert(position, half);
                    }
                    if !text.is_empty() {
                        joined.push(ProviderEvent::Delta { position, text });
                    }
                }
                ProviderEvent::BlockEnd { position } => {
                    self.give_up(Some(position), &mut joined);
                    joined.push(ProviderEvent::BlockEnd { position });
                }
                ProviderEvent::End(_) => {
                    self.give_up(None, &mut joined);
                    joined.push(event);
                }
                ProviderEvent::ArgumentsDelta { position, json } => {
                    joined.push(ProviderEvent::ArgumentsDelta {
                        position,
                        json: settled(&json),
                    });
                }
                ProviderEvent::ServerToolResult {
                    position,
                    tool_call_id,
                    text,
                    is_error,
                } => joined.push(ProviderEvent::ServerToolResult {
                    position,
                    tool_call_id,
                    text: settled(&text),
                    is_error,
                }),
                ProviderEvent::Contradiction { position, text } => {
                    joined.push(ProviderEvent::Contradiction {
                        position,
                        text: settled(&text),
                    });
                }
                other => joined.push(other),
            }
        }
        joined
    }

    /// Halves whose other half will not come: of one block, or of all.
    fn give_up(&mut self, of: Option<Position>, joined: &mut Vec<ProviderEvent>) {
        let ended: Vec<Position> = self
            .pending
            .keys()
            .copied()
            .filter(|position| of.is_none_or(|of| of == *position))
            .collect();
        for position in ended {
            self.pending.remove(&position);
            let text = char::REPLACEMENT_CHARACTER.to_string();
            joined.push(ProviderEvent::Delta { position, text });
        }
    }
}

impl<D: StreamDecoder> StreamDecoder for Joining<D> {
    fn push(&mut self, event: &SseEvent) -> Vec<ProviderEvent> {
        let events = match with_stand_ins(&event.data) {
            None => self.inner.push(event),
            Some(data) => {
                self.any = true;
                self.inner.push(&SseEvent {
                    data,
                    ..event.clone()
                })
            }
        };
        self.join(events)
    }

    fn finish(&mut self) -> Vec<ProviderEvent> {
        let events = self.inner.finish();
        self.join(events)
    }

    fn abort(&mut self, error: Option<ProviderError>) -> Vec<ProviderEvent> {
        let events = self.inner.abort(error);
        self.join(events)
    }

    fn is_ended(&self) -> bool {
        self.inner.is_ended()
    }

    fn has_stopped(&self) -> bool {
        self.inner.has_stopped()
    }

    fn replay(&self) -> Option<Replay> {
        let mut replay = self.inner.replay()?;
        if self.any {
            settle(&mut replay.message);
        }
        Some(replay)
    }
}

/// JSON text in which each escape of a half that stands alone is its stand-in; none when there is no such escape.
fn with_stand_ins(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    if memmem::find(bytes, b"\\ud").is_none() && memmem::find(bytes, b"\\uD").is_none() {
        return None;
    }
    let (mut text, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..)?) {
        let start = at + found;
        let Some(half) = escaped(bytes, start).filter(|unit| is_first(*unit) || is_second(*unit)) else {
            // The character behind a backslash begins no escape of its own.
            at = start + 2;
            continue;
        };
        if is_first(half) && escaped(bytes, start + 6).is_some_and(is_second) {
            at = start + 12;
            continue;
        }
        text.push_str(json.get(copied..start)?);
        text.extend(char::from_u32(STAND_INS + (half - 0xd800)));
        at = start + 6;
        copied = at;
    }
    if copied == 0 {
        return None;
    }
    text.push_str(json.get(copied..)?);
    Some(text)
}

/// The UTF-16 unit that `\uXXXX` at this place stands for.
fn escaped(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

fn is_first(unit: u32) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_second(unit: u32) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

/// The half that a character stands for.
fn half_of(character: char) -> Option<u32> {
    u32::from(character)
        .checked_sub(STAND_INS)
        .map(|half| half + 0xd800)
}

/// Text with its halves joined, the first of them perhaps the end of the text before, and a half that is left at the end.
fn joined_text(before: Option<u32>, text: &str) -> (String, Option<u32>) {
    let (mut joined, mut first) = (String::with_capacity(text.len()), before);
    for character in text.chars() {
        match (first.take(), half_of(character)) {
            (Some(high), Some(low)) if is_second(low) => {
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                joined.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (alone, half) => {
                joined.extend(alone.map(|_| char::REPLACEMENT_CHARACTER));
                match half {
                    Some(half) if is_first(half) => first = Some(half),
                    Some(_) => joined.push(char::REPLACEMENT_CHARACTER),
                    None => joined.push(character),
                }
            }
        }
    }
    (joined, first)
}

/// The same for a text after which nothing comes.
fn settled(text: &str) -> String {
    let (mut joined, half) = joined_text(None, text);
    joined.extend(half.map(|_| char::REPLACEMENT_CHARACTER));
    joined
}

fn settle(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(|character| half_of(character).is_some()) => {
            *text = settled(text);
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(object) => object.values_mut().for_each(settle),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{DecoderOptions, Endpoint, ProviderKind, stream_decoder};

    #[test]
    fn only_a_half_that_stands_alone_is_replaced() {
        for whole in [
            r#"{"a":"\ud83d\ude00 \u00e9 😀"}"#,
            r#"{"a":"\\ud83d"}"#,
            r#"{"a":"\ud83"}"#,
            r#"{"a":"plain"}"#,
        ] {
            assert_eq!(with_stand_ins(whole), None, "{whole}");
        }
        for (json, expected) in [
            (r#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (r#"{"a":"\uDE00x"}"#, "\u{fffd}x"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
            (r#"{"a":"\\\ud83d\n"}"#, "\\\u{fffd}\n"),
        ] {
            let mut value: Value = serde_json::from_str(&with_stand_ins(json).unwrap()).unwrap();
            settle(&mut value);
            assert_eq!(value["a"], expected, "{json}");
        }
    }

    /// What an answer in these deltas, as JSON writes them, shows.
    fn shown(deltas: &[&str]) -> String {
        let endpoint = Endpoint {
            provider_id: "main".to_owned(),
            kind: ProviderKind::OpenaiChat,
            base_url: "http://x".to_owned(),
            api_key: None,
        };
        let mut decoder = stream_decoder(&endpoint, "m", DecoderOptions::default());
        let mut events = Vec::new();
        let chunks = deltas
            .iter()
            .map(|delta| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{delta}"}}}}]}}"#))
            .chain([
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned(),
                "[DONE]".to_owned(),
            ]);
        for data in chunks {
            events.extend(decoder.push(&SseEvent {
                data,
                ..SseEvent::default()
            }));
        }
        assert!(decoder.is_ended());
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, ProviderEvent::Error(_))),
            "{events:?}"
        );
        let texts = events.into_iter().filter_map(|event| match event {
            ProviderEvent::Delta { text, .. } => {
                assert!(!text.is_empty());
                Some(text)
            }
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn a_character_that_two_deltas_share_is_whole_and_a_lone_half_is_replaced() {
        assert_eq!(shown(&["a\\ud83d", "\\ude00b"]), "a😀b");
        assert_eq!(shown(&["\\ud83d", "\\ude00"]), "😀");
        assert_eq!(shown(&["a\\ud83d", "b"]), "a\u{fffd}b");
        assert_eq!(shown(&["a\\ud83d"]), "a\u{fffd}");
        assert_eq!(
            shown(&["\\ude00", "\\ud83d", "\\ud83d\\ude00"]),
            "\u{fffd}\u{fffd}😀"
        );
    }
}
