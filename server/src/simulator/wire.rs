//! The wire formats as a provider speaks them: what is sent for each piece of content, and how it is framed.
//!
//! The encoders are pure: they turn steps into [`Frame`]s and know no socket and no time.

mod anthropic;
mod openai_chat;
mod openai_responses;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::scenario::{ErrorEventStep, LineEnd, StopWord, WireOptions};

pub(super) use anthropic::{AnthropicEncoder, signature};
pub(super) use openai_chat::OpenaiChatEncoder;
pub(super) use openai_responses::OpenaiResponsesEncoder;

/// Which wire format a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
}

/// One event or comment of a server-sent stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// An event; Chat Completions names none.
    Event {
        /// The `event:` line.
        name: Option<&'static str>,
        /// The `data:` line.
        data: String,
    },
    /// A comment line.
    Comment(String),
}

impl Frame {
    /// An event named after the `type` in its data.
    fn typed(name: &'static str, data: &Value) -> Self {
        Self::Event {
            name: Some(name),
            data: data.to_string(),
        }
    }

    /// An event without a name.
    fn data(data: &Value) -> Self {
        Self::Event {
            name: None,
            data: data.to_string(),
        }
    }
}

/// What is known about a tool call when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolStart {
    /// The id; `None` leaves it out.
    pub(super) id: Option<String>,
    /// The tool's name.
    pub(super) name: String,
    /// The index in Chat Completions; `None` counts.
    pub(super) index: Option<u32>,
}

/// Token counts as they are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UsageCounts {
    /// Input tokens.
    pub(super) input: u64,
    /// Output tokens, reasoning included.
    pub(super) output: u64,
    /// Output tokens spent on reasoning.
    pub(super) reasoning: u64,
}

/// An encoder of one stream. Content methods open and close the format's blocks as needed; the stream's first event
/// is sent with the first content, so that a turn can stay silent or fail before it.
pub(super) trait Encode: Send {
    /// More reasoning.
    fn reasoning(&mut self, text: &str, out: &mut Vec<Frame>);
    /// More text.
    fn text(&mut self, text: &str, out: &mut Vec<Frame>);
    /// More of a refusal.
    fn refusal(&mut self, text: &str, out: &mut Vec<Frame>);
    /// A tool call begins.
    fn tool_start(&mut self, start: &ToolStart, out: &mut Vec<Frame>);
    /// More arguments of the call that began last.
    fn tool_arguments(&mut self, json: &str, out: &mut Vec<Frame>);
    /// Text while the call that began last is still open.
    fn text_on_open_tool(&mut self, text: &str, out: &mut Vec<Frame>);
    /// The piece of content is whole.
    fn close(&mut self, out: &mut Vec<Frame>);
    /// A sign of life without content.
    fn ping(&mut self, out: &mut Vec<Frame>);
    /// An error inside the stream.
    fn error(&mut self, error: &ErrorEventStep, out: &mut Vec<Frame>);
    /// Why the turn ends, and what it used.
    fn stop(&mut self, reason: StopWord, usage: UsageCounts, out: &mut Vec<Frame>);
    /// The format's end marker.
    fn terminal(&mut self, out: &mut Vec<Frame>);
}

/// Turns frames into bytes in the way that a scenario asks for.
#[derive(Debug, Clone)]
pub(super) struct Framing {
    options: WireOptions,
    begun: bool,
}

impl Framing {
    pub(super) fn new(options: WireOptions) -> Self {
        Self {
            options,
            begun: false,
        }
    }

    /// The pieces to send for these frames, in order: one for each frame, or cut to the asked size.
    pub(super) fn pieces(&mut self, frames: &[Frame]) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(frames.len());
        for frame in frames {
            let mut text = String::new();
            if !self.begun {
                self.begun = true;
                if self.options.byte_order_mark {
                    text.push('\u{feff}');
                }
            }
            self.render(frame, &mut text);
            let bytes = Bytes::from(text);
            if self.options.cut_bytes == 0 {
                pieces.push(bytes);
            } else {
                pieces.extend(
                    (0..bytes.len())
                        .step_by(self.options.cut_bytes)
                        .map(|start| bytes.slice(start..bytes.len().min(start + self.options.cut_bytes))),
                );
            }
        }
        pieces
    }

    fn render(&self, frame: &Frame, text: &mut String) {
        let end = match self.options.line_end {
            LineEnd::Lf => "\n",
            LineEnd::Crlf => "\r\n",
            LineEnd::Cr => "\r",
        };
        let space = if self.options.no_space { "" } else { " " };
        match frame {
            Frame::Event { name, data } => {
                if let Some(name) = name {
                    text.push_str(&format!("event:{space}{name}{end}"));
                }
                text.push_str(&format!("data:{space}{data}{end}{end}"));
            }
            Frame::Comment(comment) => text.push_str(&format!(":{space}{comment}{end}{end}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(options: WireOptions) -> (Vec<Bytes>, String) {
        let frames = [
            Frame::Event {
                name: Some("ping"),
                data: "{\"é\":1}".to_owned(),
            },
            Frame::Comment("keep-alive".to_owned()),
        ];
        let pieces = Framing::new(options).pieces(&frames);
        let text = String::from_utf8(pieces.concat()).unwrap();
        (pieces, text)
    }

    #[test]
    fn an_event_is_one_piece_unless_cut() {
        let (pieces, text) = joined(WireOptions::default());
        assert_eq!(pieces.len(), 2);
        assert_eq!(text, "event: ping\ndata: {\"é\":1}\n\n: keep-alive\n\n");
    }

    #[test]
    fn hostile_framing_changes_the_bytes_and_not_the_content() {
        let options = WireOptions {
            line_end: LineEnd::Crlf,
            byte_order_mark: true,
            no_space: true,
            cut_bytes: 1,
        };
        let (pieces, text) = joined(options);
        assert!(pieces.iter().all(|piece| piece.len() == 1));
        assert_eq!(
            text,
            "\u{feff}event:ping\r\ndata:{\"é\":1}\r\n\r\n:keep-alive\r\n\r\n"
        );
    }
}
