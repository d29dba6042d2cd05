//! Server-sent events, decoded from bytes as they come.
//!
//! Lines end in LF, CRLF or a lone CR, a byte order mark may stand first, and a chunk border may be anywhere. Comments
//! are handed on, since they show that a connection lives. The items that come out are the same for every way of
//! cutting the bytes; each byte is scanned once. Format: WHATWG HTML, “Server-sent events”, with one leniency: an
//! event that the stream leaves without its blank line is kept when its data is whole.

use serde::de::IgnoredAny;

#[cfg(test)]
mod tests;

/// The most bytes that one event may have: providers repeat whole answers and images in one event.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The name in its `event:` field.
    pub event: Option<String>,
    /// Its `data:` lines, joined by LF. Bytes that are no UTF-8 are U+FFFD.
    pub data: String,
    /// Its size on the wire, line ends included. The LF of a closing CRLF counts to what follows, because it may
    /// come in a later chunk.
    pub bytes: u64,
}

/// What a stream is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// A whole event.
    Event(SseEvent),
    /// A comment: a sign of life without content.
    Comment {
        /// What stands after the colon, without one leading space.
        text: String,
    },
    /// An event is larger than the limit; nothing after it is decoded.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// What was left when the bytes ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseTail {
    /// The last event was whole.
    Clean,
    /// The last event lacked its blank line, but its data is whole.
    Event(SseEvent),
    /// The last event is cut.
    Cut {
        /// What came of its data.
        data: String,
        /// How many bytes came of it.
        bytes: u64,
    },
}

/// Decodes one stream.
#[derive(Debug)]
pub struct SseDecoder {
    /// The line that the last chunk left open.
    line: Vec<u8>,
    event: Option<String>,
    data: Vec<u8>,
    has_data: bool,
    bytes: u64,
    /// How many bytes of the byte order mark were seen; `None` once the first line has begun.
    mark: Option<usize>,
    /// The last byte was a CR that ended a line: an LF now is its other half.
    after_carriage_return: bool,
    limit: usize,
    stopped: bool,
}

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder that takes events of up to `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: None,
            data: Vec::new(),
            has_data: false,
            bytes: 0,
            mark: Some(0),
            after_carriage_return: false,
            limit,
            stopped: false,
        }
    }

    /// Takes a chunk and gives what it completes.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<SseItem> {
        let mut items = Vec::new();
        let mut rest = self.skip_byte_order_mark(chunk);
        while !rest.is_empty() && !self.stopped {
            if self.after_carriage_return {
                self.after_carriage_return = false;
                if let Some(after) = rest.strip_prefix(b"\n") {
                    self.bytes += 1;
                    rest = after;
                    continue;
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.bytes += rest.len() as u64;
                self.line.extend_from_slice(rest);
                self.check_limit(0, &mut items);
                break;
            };
            let (line, terminated) = rest.split_at(end);
            self.bytes += end as u64 + 1;
            self.after_carriage_return = terminated.starts_with(b"\r");
            rest = terminated.get(1..).unwrap_or_default();
            if !self.check_limit(line.len(), &mut items) {
                break;
            }
            if self.line.is_empty() {
                self.take_line(line, &mut items);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take_line(&whole, &mut items);
                whole.clear();
                self.line = whole;
            }
        }
        items
    }

    /// The bytes are over.
    pub fn finish(&mut self) -> SseTail {
        if self.stopped {
            return SseTail::Clean;
        }
        self.stopped = true;
        if let Some(seen) = self.mark.take() {
            let held = BYTE_ORDER_MARK.get(..seen).unwrap_or_default();
            self.line.extend_from_slice(held);
            self.bytes += seen as u64;
        }
        let line = std::mem::take(&mut self.line);
        let mut items = Vec::new();
        if !line.is_empty() {
            self.take_line(&line, &mut items);
        }
        if !self.has_data {
            let blank = self.event.is_none() && (line.is_empty() || line.starts_with(b":"));
            return if blank { SseTail::Clean } else { self.cut(line) };
        }
        if is_whole(&self.data) {
            self.dispatch().map_or(SseTail::Clean, SseTail::Event)
        } else {
            self.cut(Vec::new())
        }
    }

    fn cut(&mut self, line: Vec<u8>) -> SseTail {
        let data = if self.has_data {
            std::mem::take(&mut self.data)
        } else {
            line
        };
        SseTail::Cut {
            data: String::from_utf8_lossy(&data).into_owned(),
            bytes: self.bytes,
        }
    }

    fn skip_byte_order_mark<'chunk>(&mut self, chunk: &'chunk [u8]) -> &'chunk [u8] {
        let mut rest = chunk;
        while let Some(seen) = self.mark {
            let Some(byte) = rest.first() else { break };
            if BYTE_ORDER_MARK.get(seen) == Some(byte) {
                rest = rest.get(1..).unwrap_or_default();
                self.mark = if seen + 1 == BYTE_ORDER_MARK.len() {
                    None
                } else {
                    Some(seen + 1)
                };
            } else {
                // It only looked like a mark: what was held back belongs to the first line.
                self.line
                    .extend_from_slice(BYTE_ORDER_MARK.get(..seen).unwrap_or_default());
                self.bytes += seen as u64;
                self.mark = None;
            }
        }
        rest
    }

    /// Whether the event is within the limit with `more` bytes; otherwise says so and stops.
    fn check_limit(&mut self, more: usize, items: &mut Vec<SseItem>) -> bool {
        if self.line.len() + self.data.len() + more <= self.limit {
            return true;
        }
        self.stopped = true;
        self.line = Vec::new();
        self.data = Vec::new();
        items.push(SseItem::TooLarge { limit: self.limit });
        false
    }

    fn take_line(&mut self, line: &[u8], items: &mut Vec<SseItem>) {
        if line.is_empty() {
            if let Some(event) = self.dispatch() {
                items.push(SseItem::Event(event));
            }
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = line.get(colon + 1..).unwrap_or_default();
                (
                    line.get(..colon).unwrap_or_default(),
                    value.strip_prefix(b" ").unwrap_or(value),
                )
            }
            None => (line, &[][..]),
        };
        match field {
            b"" => items.push(SseItem::Comment {
                text: String::from_utf8_lossy(value).into_owned(),
            }),
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.event = Some(String::from_utf8_lossy(value).into_owned()),
            // `id` and `retry` serve reconnection, which would ask for a paid request again; others are unknown.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = self.event.take();
        let bytes = std::mem::take(&mut self.bytes);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let data = match String::from_utf8(std::mem::take(&mut self.data)) {
            Ok(data) => data,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        Some(SseEvent { event, data, bytes })
    }
}

/// Whether data that lacks its blank line is nevertheless whole: a JSON value or the `[DONE]` mark.
fn is_whole(data: &[u8]) -> bool {
    let trimmed = data.trim_ascii();
    trimmed == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(trimmed).is_ok()
}
