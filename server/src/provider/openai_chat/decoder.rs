//! Decoder of the Chat Completions stream.
//!
//! The format has no block index: order is arrival. Within a chunk reasoning comes before content, refusal and calls;
//! neighbours of one kind are one block, and content after a call is a new one. Only choice 0 is read.

use serde_json::{Map, Value, json};

use super::assembly::{Calls, next};
use super::message::MessageRecord;
use super::think::{Piece, ThinkSplitter};
use super::usage::{stop_reason, usage_in};
use crate::provider::wire::event_value;
use crate::provider::{
    BlockStart, DecoderOptions, Position, ProviderError, ProviderErrorClass, ProviderEvent, Replay, SseEvent,
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
    open: Option<(Position, Kind)>,
    calls: Calls,
    record: MessageRecord,
    splitter: Option<ThinkSplitter>,
    last_usage: Option<Usage>,
    stop: Option<String>,
    end: Option<StreamEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Refusal,
}

type Events = Vec<ProviderEvent>;

impl StreamDecoder for Decoder {
    fn push(&mut self, event: &SseEvent) -> Events {
        let mut out = Vec::new();
        if self.end.is_some() {
            return out;
        }
        let data = event.data.trim();
        if data == "[DONE]" {
            self.complete(&mut out);
            return out;
        }
        let is_error = event.event.as_deref() == Some("error");
        match event_value(event) {
            Ok(Some(value)) => self.take(&value, is_error, &mut out),
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
            // Some servers close after the finish reason, without the end marker.
            self.complete(&mut out);
        } else {
            let message = "the stream ended without a finish reason and without its end marker ([DONE])";
            self.fail(ProviderError::new(ProviderErrorClass::Broken, message), &mut out);
        }
        out
    }

    fn abort(&mut self, error: Option<ProviderError>) -> Events {
        let mut out = Vec::new();
        if self.end.is_none() {
            self.release_held_text(&mut out);
            out.extend(error.map(ProviderEvent::Error));
            self.close(StreamEnd::Interrupted, &mut out);
        }
        out
    }

    fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    fn replay(&self) -> Option<Replay> {
        if self.end != Some(StreamEnd::Complete) {
            return None;
        }
        let message = self.record.replay(self.calls.replay())?;
        Some(Replay {
            provider_id: self.provider_id.clone(),
            model: self.model.clone(),
            message,
        })
    }
}

impl Decoder {
    /// A decoder for the answer of `model` at the endpoint `provider_id`.
    pub fn new(provider_id: &str, model: &str, options: DecoderOptions) -> Self {
        Self {
            provider_id: provider_id.to_owned(),
            model: model.to_owned(),
            started: false,
            next_position: 0,
            open: None,
            calls: Calls::default(),
            record: MessageRecord::default(),
            splitter: options.split_think_tags.then(ThinkSplitter::default),
            last_usage: None,
            stop: None,
            end: None,
        }
    }

    fn take(&mut self, value: &Value, is_error: bool, out: &mut Events) {
        let choices = value.get("choices").and_then(Value::as_array);
        if choices.is_some() {
            self.start(value, out);
        }
        // What a failing chunk still brings is kept.
        let choice = choices.and_then(|choices| {
            choices
                .iter()
                .find(|choice| choice.get("index").and_then(Value::as_i64).unwrap_or(0) == 0)
        });
        if let Some(choice) = choice {
            self.take_choice(choice, out);
        }
        if let Some(usage) = usage_in(value)
            && self.last_usage.as_ref() != Some(&usage)
        {
            self.last_usage = Some(usage.clone());
            out.push(ProviderEvent::Usage(usage));
        }
        if let Some(error) = error::error_in(value) {
            self.fail(error, out);
        } else if is_error {
            self.fail(error::from_value(value), out);
        }
    }

    fn start(&mut self, value: &Value, out: &mut Events) {
        if self.started {
            return;
        }
        self.started = true;
        let text = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        out.push(ProviderEvent::Started {
            response_id: text("id"),
            model: text("model"),
        });
    }

    fn take_choice(&mut self, choice: &Value, out: &mut Events) {
        // A gateway that answers whole puts a `message` where the delta should be.
        let whole = || {
            choice
                .get("message")
                .filter(|_| self.calls.is_empty() && self.next_position == 0)
        };
        if let Some(Value::Object(delta)) = choice
            .get("delta")
            .filter(|delta| delta.is_object())
            .or_else(whole)
        {
            self.record.take(delta);
            self.take_reasoning(delta, out);
            self.take_content(delta.get("content"), out);
            if let Some(text) = delta.get("refusal").and_then(Value::as_str) {
                self.show(Kind::Refusal, text, out);
            }
            self.take_calls(delta, out);
        }
        if let Some(reason) = choice
            .get("finish_reason")
            .and_then(Value::as_str)
            .filter(|reason| !reason.is_empty())
        {
            self.stop = Some(reason.to_owned());
        }
    }

    /// Servers name reasoning differently, and some send it under two names at once: the first that has text counts.
    fn take_reasoning(&mut self, delta: &Map<String, Value>, out: &mut Events) {
        let named = ["reasoning_content", "reasoning", "reasoning_text", "thinking"]
            .iter()
            .filter_map(|key| delta.get(*key).and_then(Value::as_str))
            .find(|text| !text.is_empty());
        if let Some(text) = named {
            self.show(Kind::Reasoning, text, out);
            return;
        }
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            let key = match detail.get("type").and_then(Value::as_str) {
                Some("reasoning.text") => "text",
                Some("reasoning.summary") => "summary",
                _ => continue,
            };
            self.show(
                Kind::Reasoning,
                detail.get(key).and_then(Value::as_str).unwrap_or_default(),
                out,
            );
        }
    }

    fn take_content(&mut self, content: Option<&Value>, out: &mut Events) {
        match content {
            Some(Value::String(text)) => self.show_content(text, out),
            Some(Value::Array(parts)) => {
                for part in parts {
                    let text = part.get("text").and_then(Value::as_str);
                    match (part.get("type").and_then(Value::as_str), part.get("thinking")) {
                        (Some("thinking"), Some(Value::String(text))) => {
                            self.show(Kind::Reasoning, text, out);
                        }
                        (Some("thinking"), Some(Value::Array(inner))) => {
                            for piece in inner
                                .iter()
                                .filter_map(|piece| piece.get("text").and_then(Value::as_str))
                            {
                                self.show(Kind::Reasoning, piece, out);
                            }
                        }
                        _ => self.show_content(text.or_else(|| part.as_str()).unwrap_or_default(), out),
                    }
                }
            }
            _ => {}
        }
    }

    fn show_content(&mut self, text: &str, out: &mut Events) {
        let Some(splitter) = &mut self.splitter else {
            return self.show(Kind::Text, text, out);
        };
        let pieces = splitter.push(text);
        self.show_pieces(pieces, out);
    }

    fn show_pieces(&mut self, pieces: Vec<Piece>, out: &mut Events) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.show(Kind::Text, &text, out),
                Piece::Reasoning(text) => self.show(Kind::Reasoning, &text, out),
            }
        }
    }

    fn take_calls(&mut self, delta: &Map<String, Value>, out: &mut Events) {
        let entries = delta.get("tool_calls").and_then(Value::as_array);
        let older = delta.get("function_call").filter(|call| call.is_object());
        let older = older.map(|function| json!({ "index": 0, "function": function }));
        for entry in entries
            .into_iter()
            .flatten()
            .chain(older.as_ref())
            .filter_map(Value::as_object)
        {
            self.release_held_text(out);
            self.end_open(out);
            self.calls.take(entry, &mut self.next_position, out);
        }
    }

    fn show(&mut self, kind: Kind, text: &str, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let position = match self.open {
            Some((position, open)) if open == kind => position,
            _ => {
                self.end_open(out);
                let position = next(&mut self.next_position);
                let start = match kind {
                    Kind::Text => BlockStart::Text,
                    Kind::Reasoning => BlockStart::Reasoning,
                    Kind::Refusal => BlockStart::Refusal,
                };
                out.push(ProviderEvent::BlockStart {
                    position,
                    kind: start,
                });
                self.open = Some((position, kind));
                position
            }
        };
        out.push(ProviderEvent::Delta {
            position,
            text: text.to_owned(),
        });
    }

    fn release_held_text(&mut self, out: &mut Events) {
        if let Some(splitter) = &mut self.splitter {
            let pieces = splitter.finish();
            self.show_pieces(pieces, out);
        }
    }

    fn end_open(&mut self, out: &mut Events) {
        if let Some((position, _)) = self.open.take() {
            out.push(ProviderEvent::BlockEnd { position });
        }
    }

    fn complete(&mut self, out: &mut Events) {
        self.release_held_text(out);
        let stop = self.stop.as_deref().map(stop_reason);
        if self.stop.as_deref() == Some("error") {
            // The server says that it failed, but left out why.
            let message = "the provider ended the answer with finish reason `error`";
            return self.fail(ProviderError::new(ProviderErrorClass::Server, message), out);
        }
        self.end_open(out);
        self.calls.close(stop, &mut self.next_position, out);
        self.close(StreamEnd::Complete, out);
    }

    fn fail(&mut self, error: ProviderError, out: &mut Events) {
        self.release_held_text(out);
        out.push(ProviderEvent::Error(error));
        self.close(StreamEnd::Interrupted, out);
    }

    fn close(&mut self, end: StreamEnd, out: &mut Events) {
        if let Some(raw) = self.stop.clone() {
            out.push(ProviderEvent::Stop {
                reason: stop_reason(&raw),
                raw,
            });
        }
        out.push(ProviderEvent::End(end));
        self.end = Some(end);
    }
}
