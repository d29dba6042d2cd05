//! OpenAI Chat Completions as a server: the chunks of `POST /v1/chat/completions` with `stream: true`.

use serde_json::{Value, json};

use super::super::scenario::{ErrorEventStep, StopWord};
use super::{Encode, Frame, ToolStart, UsageCounts};

/// The `created` of every chunk: fixed, so that the same request gives the same bytes.
const CREATED: u64 = 1_767_225_600;

/// The encoder of one reply.
#[derive(Debug)]
pub(in super::super) struct OpenaiChatEncoder {
    id: String,
    model: String,
    include_usage: bool,
    begun: bool,
    calls: u32,
    call_index: u32,
}

impl OpenaiChatEncoder {
    pub(in super::super) fn new(id: String, model: String, include_usage: bool) -> Self {
        Self {
            id,
            model,
            include_usage,
            begun: false,
            calls: 0,
            call_index: 0,
        }
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> Frame {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": CREATED, "model": self.model,
            "system_fingerprint": "fp_simulator", "choices": choices,
        });
        if self.include_usage
            && let Some(fields) = chunk.as_object_mut()
        {
            fields.insert("usage".to_owned(), usage.clone());
        }
        Frame::data(&chunk)
    }

    fn choice(&self, delta: &Value, finish_reason: Option<&str>) -> Frame {
        let choices = json!([{
            "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason,
        }]);
        self.chunk(&choices, &Value::Null)
    }

    fn begin(&mut self, out: &mut Vec<Frame>) {
        if !self.begun {
            self.begun = true;
            out.push(self.choice(
                &json!({"role": "assistant", "content": "", "refusal": null}),
                None,
            ));
        }
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<Frame>) {
        self.begin(out);
        out.push(self.choice(delta, None));
    }
}

impl Encode for OpenaiChatEncoder {
    fn reasoning(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.delta(&json!({"reasoning_content": text}), out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.delta(&json!({"content": text}), out);
    }

    fn refusal(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.delta(&json!({"refusal": text}), out);
    }

    fn tool_start(&mut self, start: &ToolStart, out: &mut Vec<Frame>) {
        self.call_index = start.index.unwrap_or(self.calls);
        self.calls += 1;
        let mut call = json!({"index": self.call_index});
        if let Some(fields) = call.as_object_mut() {
            if let Some(id) = &start.id {
                fields.insert("id".to_owned(), json!(id));
            }
            fields.insert("type".to_owned(), json!("function"));
            fields.insert(
                "function".to_owned(),
                json!({"name": start.name, "arguments": ""}),
            );
        }
        self.delta(&json!({"tool_calls": [call]}), out);
    }

    fn tool_arguments(&mut self, json: &str, out: &mut Vec<Frame>) {
        let call = json!({"index": self.call_index, "function": {"arguments": json}});
        self.delta(&json!({"tool_calls": [call]}), out);
    }

    fn text_on_open_tool(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.text(text, out);
    }

    fn close(&mut self, _out: &mut Vec<Frame>) {}

    fn ping(&mut self, out: &mut Vec<Frame>) {
        out.push(Frame::Comment("keep-alive".to_owned()));
    }

    fn error(&mut self, error: &ErrorEventStep, out: &mut Vec<Frame>) {
        out.push(Frame::data(&json!({
            "error": {"message": error.message, "type": error.error, "param": null, "code": error.error},
        })));
    }

    fn stop(&mut self, reason: StopWord, usage: UsageCounts, out: &mut Vec<Frame>) {
        self.begin(out);
        let word = match reason {
            StopWord::EndTurn | StopWord::Refusal => Some("stop"),
            StopWord::ToolUse => Some("tool_calls"),
            StopWord::MaxTokens => Some("length"),
            StopWord::ContentFilter => Some("content_filter"),
            StopWord::Missing => None,
        };
        if let Some(word) = word {
            out.push(self.choice(&json!({}), Some(word)));
        }
        if self.include_usage {
            let counts = json!({
                "prompt_tokens": usage.input, "completion_tokens": usage.output,
                "total_tokens": usage.input + usage.output,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            });
            out.push(self.chunk(&json!([]), &counts));
        }
    }

    fn terminal(&mut self, out: &mut Vec<Frame>) {
        out.push(Frame::Event {
            name: None,
            data: "[DONE]".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(frame: &Frame) -> Value {
        match frame {
            Frame::Event { name: None, data } if data == "[DONE]" => json!("[DONE]"),
            Frame::Event { name: None, data } => serde_json::from_str(data).unwrap(),
            other => panic!("not expected: {other:?}"),
        }
    }

    #[test]
    fn a_reply_has_the_chunks_of_the_real_one() {
        let mut encoder = OpenaiChatEncoder::new("chatcmpl-1".to_owned(), "demo".to_owned(), true);
        let mut out = Vec::new();
        encoder.reasoning("hm", &mut out);
        encoder.text("Hello", &mut out);
        for id in ["call_1", "call_2"] {
            let start = ToolStart {
                id: Some(id.to_owned()),
                name: "list_dir".to_owned(),
                index: None,
            };
            encoder.tool_start(&start, &mut out);
            encoder.tool_arguments("{}", &mut out);
        }
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
        let chunks: Vec<Value> = out.iter().map(data).collect();
        let delta = |index: usize| &chunks[index]["choices"][0]["delta"];
        assert_eq!(delta(0)["role"], "assistant");
        assert_eq!(delta(1)["reasoning_content"], "hm");
        assert_eq!(delta(2)["content"], "Hello");
        assert_eq!(delta(3)["tool_calls"][0]["id"], "call_1");
        assert_eq!(delta(5)["tool_calls"][0]["index"], 1);
        assert_eq!(delta(6)["tool_calls"][0]["function"]["arguments"], "{}");
        assert_eq!(chunks[7]["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(chunks[8]["choices"], json!([]));
        assert_eq!(chunks[8]["usage"]["total_tokens"], 15);
        assert_eq!(chunks[9], "[DONE]");
        assert!(chunks[7]["usage"].is_null());
    }

    #[test]
    fn usage_is_sent_only_when_it_was_asked_for() {
        let mut encoder = OpenaiChatEncoder::new("chatcmpl-1".to_owned(), "demo".to_owned(), false);
        let mut out = Vec::new();
        encoder.text("Hello", &mut out);
        encoder.stop(StopWord::EndTurn, UsageCounts::default(), &mut out);
        assert!(out.iter().all(|frame| data(frame).get("usage").is_none()));
    }
}
