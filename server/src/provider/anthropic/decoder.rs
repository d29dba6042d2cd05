//! Decoder of the Messages stream.
//!
//! Deltas are addressed by `index`; positions are our own, counted in the order in which blocks become visible. A run
//! of adjacent text blocks (citations cut a paragraph into many) is one text block on the display side.

use serde_json::{Map, Value, json};

use super::display::Display;
use super::usage::{UsageTotals, stop_reason};
use super::wire_block::{Role, WireBlock};
use crate::provider::history::is_cut;
use crate::provider::wire::event_value;
use crate::provider::{
    BlockStart, Position, ProviderError, ProviderErrorClass, ProviderEvent, Replay, SseEvent, StopReason,
    StreamDecoder, StreamEnd, error, server_result,
};

#[cfg(test)]
mod tests;

/// The state of one answer.
#[derive(Debug)]
pub struct Decoder {
    provider_id: String,
    model: String,
    response_id: Option<String>,
    started: bool,
    blocks: Vec<WireBlock>,
    display: Display,
    /// Calls without arguments whose end is known only when the output limit did not cut them.
    empty_calls: Vec<Position>,
    usage: UsageTotals,
    stop: Option<String>,
    end: Option<StreamEnd>,
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
            // Some gateways close with this mark; it stands for the missing `message_stop` only after a stop reason.
            if self.stop.is_some() {
                self.complete(&mut out);
            }
            return out;
        }
        let value = match event_value(event) {
            Ok(Some(Value::Object(value))) => value,
            Ok(_) => return out,
            Err(error) => {
                self.fail(error, &mut out);
                return out;
            }
        };
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .or(event.event.as_deref())
            .unwrap_or_default()
            .to_owned();
        self.take(&kind, value, event.bytes, &mut out);
        out
    }

    fn finish(&mut self) -> Events {
        let mut out = Vec::new();
        if self.end.is_none() {
            let message = "the stream ended without its end marker (message_stop)";
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

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    fn replay(&self) -> Option<Replay> {
        if self.end != Some(StreamEnd::Complete) {
            return None;
        }
        let content: Vec<Value> = self.blocks.iter().filter_map(WireBlock::replay).collect();
        (!content.is_empty()).then(|| Replay {
            provider_id: self.provider_id.clone(),
            model: self.model.clone(),
            message: json!({ "role": "assistant", "content": content }),
        })
    }
}

impl Decoder {
    /// A decoder for the answer of `model` at the endpoint `provider_id`.
    pub fn new(provider_id: &str, model: &str) -> Self {
        Self {
            provider_id: provider_id.to_owned(),
            model: model.to_owned(),
            response_id: None,
            started: false,
            blocks: Vec::new(),
            display: Display::default(),
            empty_calls: Vec::new(),
            usage: UsageTotals::default(),
            stop: None,
            end: None,
        }
    }

    fn take(&mut self, kind: &str, mut value: Map<String, Value>, bytes: u64, out: &mut Events) {
        let index = value.get("index").and_then(Value::as_i64);
        match kind {
            "message_start" => self.message_start(value, out),
            "content_block_start" => {
                if let Some(Value::Object(block)) = value.remove("content_block") {
                    self.block_start(index, block, bytes, out);
                }
            }
            "content_block_delta" => {
                if let Some(Value::Object(delta)) = value.get("delta") {
                    self.block_delta(index, delta, out);
                }
            }
            "content_block_stop" => {
                if let Some(slot) = self.slot_of(index) {
                    self.block_stop(slot, out);
                }
            }
            "message_delta" => {
                out.extend(self.usage.take(value.get("usage")));
                if let Some(reason) = value
                    .get("delta")
                    .and_then(|delta| delta.get("stop_reason"))
                    .and_then(Value::as_str)
                {
                    self.stop = Some(reason.to_owned());
                    self.display.end_text(out);
                }
            }
            "message_stop" => self.complete(out),
            "error" => self.fail(error::from_value(&Value::Object(value)), out),
            "ping" => {}
            _ => {
                if value.get("error").is_some_and(|error| !error.is_null()) {
                    self.fail(error::from_value(&Value::Object(value)), out);
                }
            }
        }
    }

    fn message_start(&mut self, mut value: Map<String, Value>, out: &mut Events) {
        let Some(Value::Object(mut message)) = value.remove("message") else {
            return;
        };
        let text = |key: &str| {
            message
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let response_id = text("id");
        if self.started {
            // The same answer announced twice is harmless; another one means that a gateway spliced in a retry.
            if response_id != self.response_id {
                let message = "another answer was spliced into the stream; what came before it is kept";
                self.fail(ProviderError::new(ProviderErrorClass::Broken, message), out);
            }
            return;
        }
        self.started = true;
        self.response_id.clone_from(&response_id);
        let (model, stop) = (text("model"), text("stop_reason"));
        out.push(ProviderEvent::Started { response_id, model });
        out.extend(self.usage.take(message.get("usage")));
        if let Some(Value::Array(content)) = message.remove("content") {
            for block in content {
                let bytes = block.to_string().len() as u64;
                if let Value::Object(block) = block {
                    self.block_start(None, block, bytes, out);
                    self.block_stop(self.blocks.len().saturating_sub(1), out);
                }
            }
        }
        self.stop = stop;
    }

    fn block_start(&mut self, index: Option<i64>, value: Map<String, Value>, bytes: u64, out: &mut Events) {
        let mut block = WireBlock::new(index, value);
        self.flush_empty_calls(out);
        self.end_reasoning(out);
        match block.role {
            Role::Text => self.display.show_text(&block.content, out),
            Role::Thinking => {
                self.display.end_text(out);
                let repeated = self.blocks.last_mut().filter(|last| {
                    last.role == Role::Thinking && !block.content.is_empty() && last.content == block.content
                });
                match repeated {
                    Some(last) => last.superseded = true,
                    None if block.content.is_empty() => {}
                    None => block.position = Some(self.display.show_reasoning(None, &block.content, out)),
                }
            }
            Role::Call => {
                self.display.end_text(out);
                let position = self.display.new_position();
                if block.text_field("id").is_empty() {
                    block.set_id(&format!("call_{position}"));
                }
                let (id, name) = (
                    block.text_field("id").to_owned(),
                    block.text_field("name").to_owned(),
                );
                let kind = if block.kind() == "tool_use" {
                    BlockStart::ToolCall { id, name }
                } else {
                    BlockStart::ServerTool { id, name }
                };
                out.push(ProviderEvent::BlockStart { position, kind });
                block.position = Some(position);
            }
            Role::Other => {
                self.display.end_text(out);
                self.show_other(&block, bytes, out);
            }
        }
        self.blocks.push(block);
    }

    fn show_other(&mut self, block: &WireBlock, bytes: u64, out: &mut Events) {
        let call_id = block.text_field("tool_use_id").to_owned();
        match block.kind() {
            // Opaque, or bookkeeping of the provider: for the replay record only.
            "redacted_thinking" | "compaction" | "fallback" | "container_upload" => {}
            kind if kind.ends_with("_tool_result") => {
                let mut fields = Map::new();
                for key in ["content", "is_error"] {
                    if let Some(value) = block.field(key) {
                        fields.insert(key.to_owned(), value.clone());
                    }
                }
                let (text, is_error) = server_result::displayable(&fields);
                let position = self
                    .blocks
                    .iter()
                    .rev()
                    .find(|call| call.role == Role::Call && call.text_field("id") == call_id)
                    .and_then(|call| call.position);
                out.push(ProviderEvent::ServerToolResult {
                    position,
                    tool_call_id: call_id,
                    text,
                    is_error,
                });
            }
            kind => {
                let raw_kind = kind.to_owned();
                let position = self.display.new_position();
                out.push(ProviderEvent::BlockStart {
                    position,
                    kind: BlockStart::Unsupported { raw_kind, bytes },
                });
                out.push(ProviderEvent::BlockEnd { position });
            }
        }
    }

    fn block_delta(&mut self, index: Option<i64>, delta: &Map<String, Value>, out: &mut Events) {
        let kind = delta.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match kind {
            "text_delta" => {
                let slot = self.slot_for(index, Role::Text, "text", out);
                if let Some(block) = self.blocks.get_mut(slot) {
                    block.content.push_str(text("text"));
                }
                self.display.show_text(text("text"), out);
            }
            "thinking_delta" => {
                let piece = text("thinking");
                let slot = self.slot_for(index, Role::Thinking, "thinking", out);
                let shown = self.blocks.get(slot).and_then(|block| block.position);
                let position = if piece.is_empty() {
                    shown
                } else {
                    Some(self.display.show_reasoning(shown, piece, out))
                };
                if let Some(block) = self.blocks.get_mut(slot) {
                    block.content.push_str(piece);
                    block.position = position;
                }
            }
            "input_json_delta" => {
                let piece = text("partial_json");
                let block = self.slot_of(index).and_then(|slot| self.blocks.get_mut(slot));
                if let Some(block) = block.filter(|block| block.role == Role::Call && !piece.is_empty()) {
                    block.content.push_str(piece);
                    if let Some(position) = block.position {
                        out.push(ProviderEvent::ArgumentsDelta {
                            position,
                            json: piece.to_owned(),
                        });
                    }
                }
            }
            _ => {
                if let Some(block) = self.slot_of(index).and_then(|slot| self.blocks.get_mut(slot)) {
                    block.take_hidden(kind, delta);
                }
            }
        }
    }

    fn block_stop(&mut self, slot: usize, out: &mut Events) {
        let Some(block) = self.blocks.get_mut(slot).filter(|block| !block.stopped) else {
            return;
        };
        block.stopped = true;
        let Some(position) = block.position else { return };
        match block.role {
            Role::Thinking => {
                block.position = None;
                out.push(ProviderEvent::BlockEnd { position });
            }
            Role::Call if block.content.is_empty() => match block.start_input() {
                Some(json) => {
                    out.push(ProviderEvent::ArgumentsDelta { position, json });
                    out.push(ProviderEvent::BlockEnd { position });
                }
                None => self.empty_calls.push(position),
            },
            Role::Call if is_cut(&block.content) => {}
            Role::Call => out.push(ProviderEvent::BlockEnd { position }),
            Role::Text | Role::Other => {}
        }
    }

    /// The block that deltas with `index` are for; without an index the latest.
    fn slot_of(&self, index: Option<i64>) -> Option<usize> {
        match index {
            Some(_) => self.blocks.iter().rposition(|block| block.index == index),
            None => self.blocks.len().checked_sub(1),
        }
    }

    /// The block for a delta of this role. A delta without a start, or on a block of another role, opens one.
    fn slot_for(&mut self, index: Option<i64>, role: Role, kind: &str, out: &mut Events) -> usize {
        let fits = |block: &WireBlock| block.role == role && !block.stopped;
        if let Some(slot) = self.slot_of(index)
            && self.blocks.get(slot).is_some_and(fits)
        {
            return slot;
        }
        if let Some(slot) = self.blocks.len().checked_sub(1)
            && self
                .blocks
                .get(slot)
                .is_some_and(|block| fits(block) && block.index.is_none())
        {
            return slot;
        }
        let known = index.is_some() && self.slot_of(index).is_some();
        let value = json!({ "type": kind }).as_object().cloned().unwrap_or_default();
        self.block_start(if known { None } else { index }, value, 0, out);
        self.blocks.len().saturating_sub(1)
    }

    /// Ends reasoning whose stop event a gateway left out, when the next block starts.
    fn end_reasoning(&mut self, out: &mut Events) {
        for block in self
            .blocks
            .iter_mut()
            .filter(|block| block.role == Role::Thinking && !block.stopped)
        {
            block.stopped = true;
            if let Some(position) = block.position.take() {
                out.push(ProviderEvent::BlockEnd { position });
            }
        }
    }

    fn flush_empty_calls(&mut self, out: &mut Events) {
        out.extend(
            self.empty_calls
                .drain(..)
                .map(|position| ProviderEvent::BlockEnd { position }),
        );
    }

    fn complete(&mut self, out: &mut Events) {
        self.display.end_text(out);
        self.end_reasoning(out);
        let open: Vec<usize> = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.role == Role::Call && !block.stopped)
            .map(|(slot, _)| slot)
            .collect();
        for slot in open {
            self.block_stop(slot, out);
        }
        match self.stop.as_deref().map(stop_reason) {
            // The output ended here, maybe before the first byte of the arguments.
            Some(StopReason::Length | StopReason::ContextWindow | StopReason::Refusal) => {
                self.empty_calls.clear();
            }
            _ => self.flush_empty_calls(out),
        }
        self.close(StreamEnd::Complete, out);
    }

    fn fail(&mut self, error: ProviderError, out: &mut Events) {
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
