//! Anthropic Messages as a server: the event sequence of `POST /v1/messages` with `stream: true`.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::scenario::{ErrorEventStep, StopWord};
use super::{Encode, Frame, ToolStart, UsageCounts};

/// The signature of a thinking text: recognisable, so that a test can prove that it never reaches a client, and
/// bound to the text, so that a changed text is refused when it comes back.
pub(in super::super) fn signature(thinking: &str) -> String {
    let digest = Sha256::digest(thinking.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sim-signature-{hex}")
}

#[derive(Debug)]
enum Open {
    Nothing,
    Thinking { text: String },
    Text,
    Tool,
}

/// The encoder of one reply.
#[derive(Debug)]
pub(in super::super) struct AnthropicEncoder {
    id: String,
    model: String,
    input_tokens: u64,
    begun: bool,
    pinged: bool,
    open: Open,
    index: u32,
}

impl AnthropicEncoder {
    pub(in super::super) fn new(id: String, model: String, input_tokens: u64) -> Self {
        Self {
            id,
            model,
            input_tokens,
            begun: false,
            pinged: false,
            open: Open::Nothing,
            index: 0,
        }
    }

    fn begin(&mut self, out: &mut Vec<Frame>) {
        if self.begun {
            return;
        }
        self.begun = true;
        out.push(Frame::typed(
            "message_start",
            &json!({"type": "message_start", "message": {
                "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": {
                    "input_tokens": self.input_tokens, "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard",
                },
            }}),
        ));
    }

    fn start_block(&mut self, block: &Value, open: Open, out: &mut Vec<Frame>) {
        self.close(out);
        self.begin(out);
        out.push(Frame::typed(
            "content_block_start",
            &json!({"type": "content_block_start", "index": self.index, "content_block": block}),
        ));
        self.open = open;
        if !self.pinged {
            self.ping(out);
        }
    }

    fn delta(&self, delta: &Value, out: &mut Vec<Frame>) {
        out.push(Frame::typed(
            "content_block_delta",
            &json!({"type": "content_block_delta", "index": self.index, "delta": delta}),
        ));
    }
}

impl Encode for AnthropicEncoder {
    fn reasoning(&mut self, text: &str, out: &mut Vec<Frame>) {
        if !matches!(self.open, Open::Thinking { .. }) {
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            self.start_block(&block, Open::Thinking { text: String::new() }, out);
        }
        if let Open::Thinking { text: all } = &mut self.open {
            all.push_str(text);
        }
        self.delta(&json!({"type": "thinking_delta", "thinking": text}), out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<Frame>) {
        if !matches!(self.open, Open::Text) {
            self.start_block(&json!({"type": "text", "text": ""}), Open::Text, out);
        }
        self.delta(&json!({"type": "text_delta", "text": text}), out);
    }

    fn refusal(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.text(text, out);
    }

    fn tool_start(&mut self, start: &ToolStart, out: &mut Vec<Frame>) {
        let mut block = json!({"type": "tool_use"});
        if let (Some(id), Some(fields)) = (&start.id, block.as_object_mut()) {
            fields.insert("id".to_owned(), json!(id));
        }
        if let Some(fields) = block.as_object_mut() {
            fields.insert("name".to_owned(), json!(start.name));
            fields.insert("input".to_owned(), json!({}));
        }
        self.start_block(&block, Open::Tool, out);
        self.tool_arguments("", out);
    }

    fn tool_arguments(&mut self, json: &str, out: &mut Vec<Frame>) {
        self.delta(&json!({"type": "input_json_delta", "partial_json": json}), out);
    }

    fn text_on_open_tool(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.begin(out);
        self.delta(&json!({"type": "text_delta", "text": text}), out);
    }

    fn close(&mut self, out: &mut Vec<Frame>) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => return,
            Open::Thinking { text } => {
                self.delta(
                    &json!({"type": "signature_delta", "signature": signature(&text)}),
                    out,
                );
            }
            Open::Text | Open::Tool => {}
        }
        out.push(Frame::typed(
            "content_block_stop",
            &json!({"type": "content_block_stop", "index": self.index}),
        ));
        self.index += 1;
    }

    fn ping(&mut self, out: &mut Vec<Frame>) {
        self.pinged = true;
        out.push(Frame::typed("ping", &json!({"type": "ping"})));
    }

    fn error(&mut self, error: &ErrorEventStep, out: &mut Vec<Frame>) {
        out.push(Frame::typed(
            "error",
            &json!({"type": "error", "error": {"type": error.error, "message": error.message}}),
        ));
    }

    fn stop(&mut self, reason: StopWord, usage: UsageCounts, out: &mut Vec<Frame>) {
        self.close(out);
        self.begin(out);
        let word = match reason {
            StopWord::EndTurn => Some("end_turn"),
            StopWord::ToolUse => Some("tool_use"),
            StopWord::MaxTokens => Some("max_tokens"),
            StopWord::Refusal | StopWord::ContentFilter => Some("refusal"),
            StopWord::Missing => None,
        };
        let mut counts = json!({
            "input_tokens": usage.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": usage.output,
        });
        if usage.reasoning > 0
            && let Some(fields) = counts.as_object_mut()
        {
            fields.insert(
                "output_tokens_details".to_owned(),
                json!({"thinking_tokens": usage.reasoning}),
            );
        }
        out.push(Frame::typed(
            "message_delta",
            &json!({
                "type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": null}, "usage": counts,
            }),
        ));
    }

    fn terminal(&mut self, out: &mut Vec<Frame>) {
        out.push(Frame::typed("message_stop", &json!({"type": "message_stop"})));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(frames: &[Frame]) -> Vec<String> {
        frames
            .iter()
            .map(|frame| match frame {
                Frame::Event { name, data } => {
                    let data: Value = serde_json::from_str(data).unwrap();
                    assert_eq!(data["type"], name.unwrap());
                    let delta = data["delta"]["type"].as_str().map(|kind| format!("/{kind}"));
                    format!("{}{}", name.unwrap(), delta.unwrap_or_default())
                }
                Frame::Comment(_) => unreachable!("Anthropic sends no comments here"),
            })
            .collect()
    }

    #[test]
    fn a_reply_has_the_event_sequence_of_the_real_one() {
        let mut encoder = AnthropicEncoder::new("msg_1".to_owned(), "demo".to_owned(), 10);
        let mut out = Vec::new();
        encoder.reasoning("hm", &mut out);
        encoder.text("Hello", &mut out);
        let start = ToolStart {
            id: Some("toolu_1".to_owned()),
            name: "list_dir".to_owned(),
            index: None,
        };
        encoder.tool_start(&start, &mut out);
        encoder.tool_arguments("{}", &mut out);
        encoder.stop(
            StopWord::ToolUse,
            UsageCounts {
                input: 10,
                output: 5,
                reasoning: 1,
            },
            &mut out,
        );
        encoder.terminal(&mut out);
        assert_eq!(
            types(&out),
            [
                "message_start",
                "content_block_start",
                "ping",
                "content_block_delta/thinking_delta",
                "content_block_delta/signature_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta/text_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta/input_json_delta",
                "content_block_delta/input_json_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ]
        );
        let Frame::Event { data, .. } = &out[4] else {
            panic!("no event")
        };
        assert!(data.contains(&signature("hm")));
    }
}
