//! Decoder of the Gemini stream.
//!
//! Each event holds the parts that are new, in order; a part is a piece of text, or something else as a whole. There is
//! no end marker, and a finish reason may be followed by more: the answer ends with the stream.

use serde_json::{Map, Value};

use super::partial_arguments::PartialArguments;
use super::record::Record;
use super::server_part::{self, text_in};
use super::usage::{stop_reason, usage_in};
use crate::provider::wire::event_value;
use crate::provider::{
    BlockStart, Position, ProviderError, ProviderErrorClass, ProviderEvent, Replay, SseEvent, StopReason,
    StreamDecoder, StreamEnd, Usage, error,
};

#[cfg(test)]
mod tests;

/// The state of one answer.
#[derive(Debug)]
pub struct Decoder {
    provider_id: String,
    model: String,
    started: bool,
    next_position: Position,
    /// The open run of text or reasoning.
    open: Option<(Position, bool)>,
    /// The call whose arguments come in pieces.
    partial: Option<(Position, PartialArguments)>,
    /// The latest call that the provider runs itself, and its id.
    server_call: Option<(Position, String)>,
    has_calls: bool,
    record: Record,
    last_usage: Option<Usage>,
    stop: Option<(String, Why)>,
    end: Option<StreamEnd>,
}

/// Which word says why the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Finished,
    /// The prompt itself was refused.
    Blocked,
}

type Events = Vec<ProviderEvent>;

impl StreamDecoder for Decoder {
    fn push(&mut self, event: &SseEvent) -> Events {
        let mut out = Vec::new();
        if self.end.is_some() {
            return out;
        }
        match event_value(event) {
            Ok(Some(value)) => self.take(&value, event.bytes, &mut out),
            Ok(None) => {}
            Err(error) => self.fail(error, &mut out),
        }
        out
    }

    fn finish(&mut self) -> Events {
        let mut out = Vec::new();
        if self.end.is_some() {
            return out;
        }
        if self.stop.is_some() {
            self.complete(&mut out);
        } else {
            let message = "the stream ended without a finish reason";
            self.fail(ProviderError::new(ProviderErrorClass::Broken, message), &mut out);
        }
        out
    }

    fn abort(&mut self, error: Option<ProviderError>) -> Events {
        let mut out = Vec::new();
        if self.end.is_none() {
            out.extend(error.map(ProviderEvent::Error));
            self.close(StreamEnd::Interrupted, &mut out);
        }
        out
    }

    fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Where the provider runs code, a finish reason may stand in the middle of the answer.
    fn has_stopped(&self) -> bool {
        self.stop.is_some() && self.server_call.is_none()
    }

    fn replay(&self) -> Option<Replay> {
        if self.end != Some(StreamEnd::Complete) {
            return None;
        }
        self.record.replay().map(|message| Replay {
            provider_id: self.provider_id.clone(),
            model: self.model.clone(),
            message,
        })
    }
}

impl Decoder {
    /// A decoder for the answer of `model` at the endpoint `provider_id`.
    pub fn new(provider_id: &str, model: &str) -> Self {
        Self {
            provider_id: provider_id.to_owned(),
            model: model.to_owned(),
            started: false,
            next_position: 0,
            open: None,
            partial: None,
            server_call: None,
            has_calls: false,
            record: Record::default(),
            last_usage: None,
            stop: None,
            end: None,
        }
    }

    fn take(&mut self, value: &Value, bytes: u64, out: &mut Events) {
        let candidate = value
            .get("candidates")
            .and_then(Value::as_array)
            .and_then(|candidates| candidates.first());
        if candidate.is_some() || value.get("responseId").is_some() {
            self.start(value, out);
        }
        let parts = candidate
            .and_then(|candidate| candidate.pointer("/content/parts"))
            .and_then(Value::as_array);
        let shown = out.len();
        for part in parts.into_iter().flatten().filter_map(Value::as_object) {
            self.record.take(part);
            self.take_part(part, bytes, out);
        }
        if out.len() > shown {
            // What follows a finish reason has one of its own: without it the answer is cut.
            self.stop = None;
        }
        let word = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        if let Some(reason) = word(candidate.and_then(|candidate| candidate.get("finishReason"))) {
            self.stop = Some((reason, Why::Finished));
        } else if let Some(reason) = word(value.pointer("/promptFeedback/blockReason")) {
            self.stop = Some((reason, Why::Blocked));
        }
        if let Some(usage) = usage_in(value)
            && self.last_usage.as_ref() != Some(&usage)
        {
            self.last_usage = Some(usage.clone());
            out.push(ProviderEvent::Usage(usage));
        }
        if let Some(error) = error::error_in(value) {
            self.fail(error, out);
        }
    }

    fn start(&mut self, value: &Value, out: &mut Events) {
        if self.started {
            return;
        }
        self.started = true;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        out.push(ProviderEvent::Started {
            response_id: text("responseId"),
            model: text("modelVersion"),
        });
    }

    fn take_part(&mut self, part: &Map<String, Value>, bytes: u64, out: &mut Events) {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
            return self.show(is_thought, text, out);
        }
        let known = [
            "functionCall",
            "executableCode",
            "codeExecutionResult",
            "toolCall",
            "toolResponse",
        ];
        let found = known
            .into_iter()
            .find_map(|key| Some((key, part.get(key)?.as_object()?)));
        match found {
            Some(("functionCall", call)) => self.take_call(call, out),
            Some((kind @ ("executableCode" | "toolCall"), call)) => {
                let (name, arguments) = server_part::call(kind, call);
                self.server_tool(call, &name, &arguments, out);
            }
            Some((kind, result)) => {
                let (text, is_error) = server_part::result(kind, result);
                let call = self.server_call.as_ref();
                out.push(ProviderEvent::ServerToolResult {
                    position: call.map(|(position, _)| *position),
                    tool_call_id: call.map(|(_, id)| id.clone()).unwrap_or_default(),
                    text,
                    is_error,
                });
            }
            None => {
                let hidden = ["thought", "thoughtSignature", "videoMetadata", "partMetadata"];
                if let Some(kind) = part.keys().find(|key| !hidden.contains(&key.as_str())) {
                    self.end_open(out);
                    let raw_kind = kind.clone();
                    let position = self.begin(BlockStart::Unsupported { raw_kind, bytes }, out);
                    out.push(ProviderEvent::BlockEnd { position });
                }
            }
        }
    }

    fn server_tool(&mut self, call: &Map<String, Value>, name: &str, arguments: &Value, out: &mut Events) {
        self.end_open(out);
        let id = text_in(call, "id").unwrap_or_else(|| format!("call_{}", self.next_position));
        let kind = BlockStart::ServerTool {
            id: id.clone(),
            name: name.to_owned(),
        };
        let position = self.begin(kind, out);
        self.server_call = Some((position, id));
        out.push(ProviderEvent::ArgumentsDelta {
            position,
            json: arguments.to_string(),
        });
        out.push(ProviderEvent::BlockEnd { position });
    }

    /// A call comes whole, or is begun by its name, gets its arguments in pieces, and is over with an empty call.
    fn take_call(&mut self, call: &Map<String, Value>, out: &mut Events) {
        let pieces = call.get("partialArgs").and_then(Value::as_array);
        let goes_on = call.get("willContinue").and_then(Value::as_bool).unwrap_or(false);
        if let Some(name) = text_in(call, "name") {
            self.end_partial(true, out);
            self.end_open(out);
            self.has_calls = true;
            let id = text_in(call, "id").unwrap_or_else(|| format!("call_{}", self.next_position));
            let position = self.begin(BlockStart::ToolCall { id, name }, out);
            if !goes_on && pieces.is_none() {
                let json = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
                out.push(ProviderEvent::ArgumentsDelta { position, json });
                out.push(ProviderEvent::BlockEnd { position });
                return;
            }
            self.partial = Some((position, PartialArguments::default()));
        }
        if let Some((_, arguments)) = &mut self.partial {
            for piece in pieces.into_iter().flatten() {
                arguments.take(piece);
            }
        }
        if !goes_on && pieces.is_none() {
            self.end_partial(true, out);
        }
    }

    /// Gives the arguments that came in pieces; they can be written only once they are whole.
    fn end_partial(&mut self, is_whole: bool, out: &mut Events) {
        let Some((position, arguments)) = self.partial.take() else {
            return;
        };
        let arguments = arguments.into_value();
        self.record.take_arguments(&arguments);
        if is_whole {
            out.push(ProviderEvent::ArgumentsDelta {
                position,
                json: arguments.to_string(),
            });
            out.push(ProviderEvent::BlockEnd { position });
        }
    }

    fn show(&mut self, is_thought: bool, text: &str, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let position = match self.open {
            Some((position, open)) if open == is_thought => position,
            _ => {
                self.end_open(out);
                let kind = if is_thought {
                    BlockStart::Reasoning
                } else {
                    BlockStart::Text
                };
                let position = self.begin(kind, out);
                self.open = Some((position, is_thought));
                position
            }
        };
        out.push(ProviderEvent::Delta {
            position,
            text: text.to_owned(),
        });
    }

    fn begin(&mut self, kind: BlockStart, out: &mut Events) -> Position {
        let position = self.next_position;
        self.next_position += 1;
        out.push(ProviderEvent::BlockStart { position, kind });
        position
    }

    fn end_open(&mut self, out: &mut Events) {
        if let Some((position, _)) = self.open.take() {
            out.push(ProviderEvent::BlockEnd { position });
        }
    }

    fn reason(&self) -> Option<(String, StopReason)> {
        let (raw, why) = self.stop.clone()?;
        let reason = match why {
            Why::Finished => stop_reason(&raw, self.has_calls),
            Why::Blocked => StopReason::ContentFilter,
        };
        Some((raw, reason))
    }

    fn complete(&mut self, out: &mut Events) {
        let is_cut = self
            .reason()
            .is_some_and(|(_, reason)| reason == StopReason::Length);
        self.end_open(out);
        self.end_partial(!is_cut, out);
        self.close(StreamEnd::Complete, out);
    }

    fn fail(&mut self, error: ProviderError, out: &mut Events) {
        out.push(ProviderEvent::Error(error));
        self.close(StreamEnd::Interrupted, out);
    }

    fn close(&mut self, end: StreamEnd, out: &mut Events) {
        if let Some((raw, reason)) = self.reason() {
            out.push(ProviderEvent::Stop { raw, reason });
        }
        out.push(ProviderEvent::End(end));
        self.end = Some(end);
    }
}
