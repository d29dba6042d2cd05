//! Usage, stop reasons, and when arguments count as cut.

use serde_json::{Map, Value};

use crate::provider::{ProviderEvent, StopReason, Usage};

/// Usage so far. Events give totals, so that each field replaces the one before; `null` says nothing.
#[derive(Debug, Default)]
pub(super) struct UsageTotals {
    fields: Map<String, Value>,
    last: Option<Usage>,
}

impl UsageTotals {
    /// Takes a `usage` object; gives an event when it changes something.
    pub(super) fn take(&mut self, usage: Option<&Value>) -> Option<ProviderEvent> {
        let usage = usage?.as_object()?;
        for (key, value) in usage.iter().filter(|(_, value)| !value.is_null()) {
            self.fields.insert(key.clone(), value.clone());
        }
        let count = |key: &str| self.fields.get(key).and_then(Value::as_u64);
        let (fresh, read, written) = (
            count("input_tokens"),
            count("cache_read_input_tokens"),
            count("cache_creation_input_tokens"),
        );
        let thinking = self
            .fields
            .get("output_tokens_details")
            .and_then(|details| details.get("thinking_tokens"));
        let now = Usage {
            // The format counts cached tokens apart.
            input_tokens: [fresh, read, written]
                .into_iter()
                .flatten()
                .reduce(u64::saturating_add),
            output_tokens: count("output_tokens"),
            cache_read_tokens: read,
            cache_write_tokens: written,
            reasoning_tokens: thinking.and_then(Value::as_u64),
            cost: self.fields.get("cost").and_then(Value::as_f64),
        };
        if self.last.as_ref() == Some(&now) {
            return None;
        }
        self.last = Some(now.clone());
        Some(ProviderEvent::Usage(now))
    }
}

/// The meaning of a `stop_reason`.
pub(super) fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::Length,
        "stop_sequence" => StopReason::StopSequence,
        "tool_use" => StopReason::ToolUse,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        _ => StopReason::Other,
    }
}
