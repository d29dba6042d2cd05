//! OpenAI Responses as a server: the event sequence of `POST /v1/responses` with `stream: true`.

use serde_json::{Map, Value, json};

use super::super::scenario::{ErrorEventStep, StopWord};
use super::{Encode, Frame, ToolStart, UsageCounts, signature};

#[cfg(test)]
mod tests;

/// The item that is open, at its place in the output.
#[derive(Debug)]
enum Open {
    Nothing,
    Reasoning(String),
    Text(String),
    Refusal(String),
    Call { item: Value, arguments: String },
}

/// The encoder of one reply.
#[derive(Debug)]
pub(in super::super) struct OpenaiResponsesEncoder {
    id: String,
    model: String,
    begun: bool,
    sequence: u64,
    output: Vec<Value>,
    open: Open,
    /// How the response ends, once that is known.
    end: Option<(StopWord, UsageCounts)>,
}

impl OpenaiResponsesEncoder {
    pub(in super::super) fn new(id: String, model: String) -> Self {
        Self {
            id,
            model,
            begun: false,
            sequence: 0,
            output: Vec::new(),
            open: Open::Nothing,
            end: None,
        }
    }

    fn event(&mut self, name: &'static str, fields: Value, out: &mut Vec<Frame>) {
        let mut event = Map::new();
        event.insert("type".to_owned(), json!(name));
        event.insert("sequence_number".to_owned(), json!(self.sequence));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.sequence += 1;
        out.push(Frame::typed(name, &Value::Object(event)));
    }

    fn response(&self, status: Option<&str>) -> Value {
        json!({"id": self.id, "object": "response", "model": self.model, "status": status, "output": self.output})
    }

    fn begin(&mut self, out: &mut Vec<Frame>) {
        if self.begun {
            return;
        }
        self.begun = true;
        for name in ["response.created", "response.in_progress"] {
            let response = self.response(Some("in_progress"));
            self.event(name, json!({ "response": response }), out);
        }
    }

    /// The place of the item that is open: it is put into the output when it ends.
    fn index(&self) -> usize {
        self.output.len()
    }

    fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.id, self.index())
    }

    fn start_item(&mut self, item: &Value, out: &mut Vec<Frame>) {
        let index = self.index();
        self.event(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
            out,
        );
    }

    fn end_item(&mut self, item: Value, out: &mut Vec<Frame>) {
        let index = self.index();
        self.event(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
            out,
        );
        self.output.push(item);
    }

    fn start_message(&mut self, part: &Value, out: &mut Vec<Frame>) {
        self.close(out);
        self.begin(out);
        let item = json!({
            "id": self.item_id("msg"), "type": "message", "status": "in_progress", "role": "assistant", "content": [],
        });
        self.start_item(&item, out);
        let place = json!({"output_index": self.index(), "content_index": 0, "part": part});
        self.event("response.content_part.added", place, out);
    }

    fn end_message(&mut self, part: Value, out: &mut Vec<Frame>) {
        let place = json!({"output_index": self.index(), "content_index": 0, "part": part});
        self.event("response.content_part.done", place, out);
        let item = json!({
            "id": self.item_id("msg"), "type": "message", "status": "completed", "role": "assistant", "content": [part],
        });
        self.end_item(item, out);
    }
}

impl Encode for OpenaiResponsesEncoder {
    fn reasoning(&mut self, text: &str, out: &mut Vec<Frame>) {
        if !matches!(self.open, Open::Reasoning(_)) {
            self.close(out);
            self.begin(out);
            let item = json!({"id": self.item_id("rs"), "type": "reasoning", "summary": []});
            self.start_item(&item, out);
            let part = json!({
                "output_index": self.index(), "summary_index": 0, "part": {"type": "summary_text", "text": ""},
            });
            self.event("response.reasoning_summary_part.added", part, out);
            self.open = Open::Reasoning(String::new());
        }
        if let Open::Reasoning(all) = &mut self.open {
            all.push_str(text);
        }
        let delta = json!({"output_index": self.index(), "summary_index": 0, "delta": text});
        self.event("response.reasoning_summary_text.delta", delta, out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<Frame>) {
        if !matches!(self.open, Open::Text(_)) {
            self.start_message(
                &json!({"type": "output_text", "annotations": [], "text": ""}),
                out,
            );
            self.open = Open::Text(String::new());
        }
        if let Open::Text(all) = &mut self.open {
            all.push_str(text);
        }
        let delta = json!({"output_index": self.index(), "content_index": 0, "delta": text});
        self.event("response.output_text.delta", delta, out);
    }

    fn refusal(&mut self, text: &str, out: &mut Vec<Frame>) {
        if !matches!(self.open, Open::Refusal(_)) {
            self.start_message(&json!({"type": "refusal", "refusal": ""}), out);
            self.open = Open::Refusal(String::new());
        }
        if let Open::Refusal(all) = &mut self.open {
            all.push_str(text);
        }
        let delta = json!({"output_index": self.index(), "content_index": 0, "delta": text});
        self.event("response.refusal.delta", delta, out);
    }

    fn tool_start(&mut self, start: &ToolStart, out: &mut Vec<Frame>) {
        self.close(out);
        self.begin(out);
        let mut item = json!({
            "id": self.item_id("fc"), "type": "function_call", "status": "in_progress", "name": start.name,
            "arguments": "",
        });
        if let (Some(id), Some(fields)) = (&start.id, item.as_object_mut()) {
            fields.insert("call_id".to_owned(), json!(id));
        }
        self.start_item(&item, out);
        self.open = Open::Call {
            item,
            arguments: String::new(),
        };
    }

    fn tool_arguments(&mut self, json: &str, out: &mut Vec<Frame>) {
        if let Open::Call { arguments, .. } = &mut self.open {
            arguments.push_str(json);
        }
        let delta = json!({"output_index": self.index(), "delta": json});
        self.event("response.function_call_arguments.delta", delta, out);
    }

    /// Text has an item of its own in this format; the call is over when it begins.
    fn text_on_open_tool(&mut self, text: &str, out: &mut Vec<Frame>) {
        self.text(text, out);
    }

    fn close(&mut self, out: &mut Vec<Frame>) {
        let index = self.index();
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Reasoning(text) => {
                let part = json!({"type": "summary_text", "text": text});
                for (name, fields) in [
                    (
                        "response.reasoning_summary_text.done",
                        json!({"output_index": index, "summary_index": 0, "text": text}),
                    ),
                    (
                        "response.reasoning_summary_part.done",
                        json!({"output_index": index, "summary_index": 0, "part": part}),
                    ),
                ] {
                    self.event(name, fields, out);
                }
                let item = json!({
                    "id": self.item_id("rs"), "type": "reasoning", "summary": [part],
                    "encrypted_content": signature(&text),
                });
                self.end_item(item, out);
            }
            Open::Text(text) => {
                let whole = json!({"output_index": index, "content_index": 0, "text": text});
                self.event("response.output_text.done", whole, out);
                self.end_message(
                    json!({"type": "output_text", "annotations": [], "text": text}),
                    out,
                );
            }
            Open::Refusal(text) => {
                let whole = json!({"output_index": index, "content_index": 0, "refusal": text});
                self.event("response.refusal.done", whole, out);
                self.end_message(json!({"type": "refusal", "refusal": text}), out);
            }
            Open::Call { mut item, arguments } => {
                let whole = json!({"output_index": index, "arguments": arguments});
                self.event("response.function_call_arguments.done", whole, out);
                let status = match serde_json::from_str::<serde::de::IgnoredAny>(&arguments) {
                    Err(error) if error.is_eof() && !arguments.is_empty() => "incomplete",
                    _ => "completed",
                };
                if let Some(fields) = item.as_object_mut() {
                    fields.insert("arguments".to_owned(), json!(arguments));
                    fields.insert("status".to_owned(), json!(status));
                }
                self.end_item(item, out);
            }
        }
    }

    fn ping(&mut self, out: &mut Vec<Frame>) {
        out.push(Frame::Comment("keep-alive".to_owned()));
    }

    fn error(&mut self, error: &ErrorEventStep, out: &mut Vec<Frame>) {
        let fields = json!({"code": error.error, "message": error.message, "param": null});
        self.event("error", fields, out);
    }

    /// The end of the format says why: what is known is kept until then.
    fn stop(&mut self, reason: StopWord, usage: UsageCounts, out: &mut Vec<Frame>) {
        self.close(out);
        self.begin(out);
        self.end = Some((reason, usage));
    }

    fn terminal(&mut self, out: &mut Vec<Frame>) {
        let (reason, usage) = self.end.unwrap_or((StopWord::Missing, UsageCounts::default()));
        let (name, status, detail) = match reason {
            StopWord::EndTurn | StopWord::ToolUse | StopWord::Refusal => {
                ("response.completed", Some("completed"), None)
            }
            StopWord::Missing => ("response.completed", None, None),
            StopWord::MaxTokens => (
                "response.incomplete",
                Some("incomplete"),
                Some("max_output_tokens"),
            ),
            StopWord::ContentFilter => ("response.incomplete", Some("incomplete"), Some("content_filter")),
        };
        let mut response = self.response(status);
        response["incomplete_details"] = detail.map_or(Value::Null, |reason| json!({ "reason": reason }));
        response["usage"] = json!({
            "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        });
        self.event(name, json!({ "response": response }), out);
    }
}
