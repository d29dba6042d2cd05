//! Decoder of the Responses stream.
//!
//! Items are addressed by `output_index`, never by their id: some gateways give them another one in each event.
//! Positions are our own, counted in the order in which blocks become visible. What ends a part or an item repeats it
//! whole, and that counts where the deltas left something out.

use serde_json::{Map, Value, json};

use super::item::{Item, Role, Source};
use super::record;
use super::server_item;
use super::usage::{failure, stop_reason, usage_in};
use crate::provider::wire::event_value;
use crate::provider::{
    BlockStart, Position, ProviderError, ProviderErrorClass, ProviderEvent, Replay, SseEvent, StreamDecoder,
    StreamEnd, error,
};

#[cfg(test)]
mod tests;

/// The state of one answer.
#[derive(Debug)]
pub struct Decoder {
    provider_id: String,
    model: String,
    /// The id that was told with the start, which gateways may change until the first item.
    started: Option<Option<String>>,
    items: Vec<Item>,
    next_position: Position,
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
        match event_value(event) {
            Ok(Some(Value::Object(value))) => {
                let kind = value
                    .get("type")
                    .and_then(Value::as_str)
                    .or(event.event.as_deref())
                    .unwrap_or_default()
                    .to_owned();
                self.take(&kind, value, event.bytes, &mut out);
            }
            // `[DONE]` too: it is no end of this format, and comes, if at all, after that.
            Ok(_) => {}
            Err(error) => self.fail(error, &mut out),
        }
        out
    }

    fn finish(&mut self) -> Events {
        let mut out = Vec::new();
        if self.end.is_none() {
            let message = "the stream ended without its end marker (response.completed)";
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
        let completed = self.stop.as_deref() == Some("completed");
        record::replay(&self.items, completed).map(|message| Replay {
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
            started: None,
            items: Vec::new(),
            next_position: 0,
            stop: None,
            end: None,
        }
    }

    fn take(&mut self, kind: &str, mut value: Map<String, Value>, bytes: u64, out: &mut Events) {
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start(value.get("response"), out);
            }
            "response.output_item.added" | "response.output_item.done" => {
                let index = value.get("output_index").and_then(Value::as_i64);
                if let Some(Value::Object(item)) = value.remove("item") {
                    self.take_item(index, item, kind.ends_with(".done"), bytes, out);
                }
            }
            "response.completed" | "response.incomplete" => {
                let response = value.remove("response").unwrap_or_default();
                self.complete(kind, response, out);
            }
            "response.failed" | "response.cancelled" => {
                let error = failure(kind, value.get("response"));
                self.fail(error, out);
            }
            "error" => self.fail(error::from_value(&Value::Object(value)), out),
            _ if value.get("error").is_some_and(|error| !error.is_null()) => {
                self.fail(error::from_value(&Value::Object(value)), out);
            }
            _ => self.take_content(kind, &value, out),
        }
    }

    /// The events of one piece of an item.
    fn take_content(&mut self, kind: &str, value: &Map<String, Value>, out: &mut Events) {
        let number = |key: &str| value.get(key).and_then(Value::as_i64);
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let index = number("output_index");
        let part = number("content_index").unwrap_or(0);
        let summary = number("summary_index").unwrap_or(0);
        let Some(event) = kind.strip_prefix("response.") else {
            return;
        };
        let item_type = match event.split('.').next().unwrap_or_default() {
            "output_text" | "refusal" => "message",
            "reasoning_summary_text" | "reasoning_text" => "reasoning",
            "function_call_arguments" => "function_call",
            "custom_tool_call_input" => "custom_tool_call",
            "mcp_call_arguments" => "mcp_call",
            _ => return,
        };
        let slot = self.slot_for(index, item_type);
        let positions = &mut self.next_position;
        let Some(item) = self.items.get_mut(slot).filter(|item| !item.done) else {
            return;
        };
        match event {
            "output_text.delta" => item.show_text(part, BlockStart::Text, text("delta"), positions, out),
            "output_text.done" => item.settle_text(part, BlockStart::Text, text("text"), positions, out),
            "refusal.delta" => item.show_text(part, BlockStart::Refusal, text("delta"), positions, out),
            "refusal.done" => item.settle_text(part, BlockStart::Refusal, text("refusal"), positions, out),
            "reasoning_summary_text.delta" => {
                item.show_reasoning(Source::Summary, summary, text("delta"), positions, out);
            }
            "reasoning_text.delta" => item.show_reasoning(Source::Text, part, text("delta"), positions, out),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" | "mcp_call_arguments.delta" => {
                item.block.show_arguments(text("delta"), out);
            }
            "function_call_arguments.done" | "mcp_call_arguments.done" => {
                item.settle_arguments(text("arguments"), out);
            }
            "custom_tool_call_input.done" => item.settle_arguments(text("input"), out),
            // The end of the item brings reasoning whole.
            _ => {}
        }
    }

    fn start(&mut self, response: Option<&Value>, out: &mut Events) {
        let text = |key: &str| {
            response
                .and_then(|response| response.get(key))
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let response_id = text("id");
        if self.started.as_ref().is_some_and(|told| *told == response_id) || !self.items.is_empty() {
            return;
        }
        self.started = Some(response_id.clone());
        let model = text("model");
        out.push(ProviderEvent::Started { response_id, model });
    }

    fn take_item(
        &mut self,
        index: Option<i64>,
        value: Map<String, Value>,
        done: bool,
        bytes: u64,
        out: &mut Events,
    ) {
        let fresh = Item::new(index.unwrap_or(self.items.len() as i64), value);
        let held = self.items.iter().rposition(|item| match index {
            Some(index) => item.index == index && item.role == fresh.role,
            None => done && !item.done && item.role == fresh.role,
        });
        let slot = match held {
            Some(slot) => {
                if let Some(item) = self.items.get_mut(slot).filter(|item| !item.done) {
                    item.replace(fresh.value().clone());
                }
                slot
            }
            None => {
                self.items.push(fresh);
                self.items.len() - 1
            }
        };
        if let Some(item) = self.items.get_mut(slot) {
            item.show_call(&mut self.next_position, out);
        }
        if done {
            self.finish_item(slot, false, bytes, out);
        }
    }

    fn finish_item(&mut self, slot: usize, limited: bool, bytes: u64, out: &mut Events) {
        let Some(item) = self.items.get_mut(slot).filter(|item| !item.done) else {
            return;
        };
        item.done = true;
        item.finish(limited, &mut self.next_position, out);
        match item.role {
            Role::ServerTool | Role::ServerResult => self.show_result(slot, out),
            Role::Other => {
                let raw_kind = item.text_field("type").to_owned();
                item.block.begin(
                    BlockStart::Unsupported { raw_kind, bytes },
                    &mut self.next_position,
                    out,
                );
                item.block.end(out);
            }
            Role::Message | Role::Reasoning | Role::Call => {}
        }
    }

    /// Shows the result of a call that the provider ran: of the item itself, or of the call that it answers.
    fn show_result(&self, slot: usize, out: &mut Events) {
        let Some(item) = self.items.get(slot) else { return };
        let call = match item.role {
            Role::ServerTool => Some(item),
            _ => {
                let call_id = item.text_field("call_id");
                let mut before = self.items.iter().take(slot).rev();
                before.find(|call| {
                    call.role == Role::ServerTool
                        && (call_id.is_empty() || call.text_field("call_id") == call_id)
                })
            }
        };
        let Some((text, is_error)) = server_item::result(item.value()) else {
            return;
        };
        out.push(ProviderEvent::ServerToolResult {
            position: call.and_then(|call| call.block.position),
            tool_call_id: call.map_or_else(|| item.call_id("call_id"), |call| call.call_id("id")),
            text,
            is_error,
        });
    }

    /// The item that a piece belongs to. A piece without a start opens one.
    fn slot_for(&mut self, index: Option<i64>, kind: &str) -> usize {
        let value = json!({ "type": kind }).as_object().cloned().unwrap_or_default();
        let fresh = Item::new(index.unwrap_or(self.items.len() as i64), value);
        let held = self.items.iter().rposition(|item| match index {
            Some(index) => item.index == index && item.role == fresh.role,
            None => item.role == fresh.role && !item.done,
        });
        held.unwrap_or_else(|| {
            self.items.push(fresh);
            self.items.len() - 1
        })
    }

    fn complete(&mut self, kind: &str, mut response: Value, out: &mut Events) {
        let text = |path: &str| response.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let stop = text("/incomplete_details/reason").or_else(|| text("/status"));
        let stop = stop.unwrap_or_else(|| kind.trim_start_matches("response.").to_owned());
        let limited = stop != "completed";
        self.stop = Some(stop);
        let usage = usage_in(&response);
        self.start(Some(&response), out);
        // The whole answer once more, which some gateways leave empty: what did not come in events is taken from it.
        if let Some(Value::Array(output)) = response.get_mut("output").map(Value::take) {
            for (index, item) in output.into_iter().enumerate() {
                let index = index as i64;
                let bytes = item.to_string().len() as u64;
                let is_done = self.items.iter().any(|held| held.index == index && held.done);
                if let Value::Object(item) = item
                    && !is_done
                {
                    self.take_item(Some(index), item, true, bytes, out);
                }
            }
        }
        for slot in 0..self.items.len() {
            self.finish_item(slot, limited, 0, out);
        }
        out.extend(usage.map(ProviderEvent::Usage));
        self.close(StreamEnd::Complete, out);
    }

    fn fail(&mut self, error: ProviderError, out: &mut Events) {
        out.push(ProviderEvent::Error(error));
        self.close(StreamEnd::Interrupted, out);
    }

    fn close(&mut self, end: StreamEnd, out: &mut Events) {
        if let Some(raw) = self.stop.clone() {
            let has_calls = self.items.iter().any(|item| item.role == Role::Call);
            let refuses = self.items.iter().any(Item::refuses);
            out.push(ProviderEvent::Stop {
                reason: stop_reason(&raw, has_calls, refuses),
                raw,
            });
        }
        out.push(ProviderEvent::End(end));
        self.end = Some(end);
    }
}
