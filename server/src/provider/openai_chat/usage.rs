//! Usage in its many places, and finish reasons.

use serde_json::Value;

use crate::provider::{StopReason, Usage};

/// The usage of a chunk. It comes in a chunk of its own, with the finish reason, or as a running total in every chunk,
/// so that the latest counts.
pub(super) fn usage_in(chunk: &Value) -> Option<Usage> {
    let usage = chunk.get("usage").filter(|usage| usage.is_object()).or_else(|| {
        chunk
            .get("x_groq")?
            .get("usage")
            .filter(|usage| usage.is_object())
    })?;
    let count = |path: &[&str]| {
        path.iter()
            .try_fold(usage, |value, key| value.get(key))
            .and_then(Value::as_u64)
    };
    let cost = usage.get("cost");
    Some(Usage {
        input_tokens: count(&["prompt_tokens"]),
        output_tokens: count(&["completion_tokens"]),
        cache_read_tokens: count(&["prompt_tokens_details", "cached_tokens"])
            .or_else(|| count(&["prompt_cache_hit_tokens"]))
            .or_else(|| count(&["cache_read_input_tokens"])),
        cache_write_tokens: count(&["prompt_tokens_details", "cache_write_tokens"])
            .or_else(|| count(&["cache_creation_input_tokens"])),
        reasoning_tokens: count(&["completion_tokens_details", "reasoning_tokens"]),
        cost: cost.and_then(|cost| cost.as_f64().or_else(|| cost.get("total_cost")?.as_f64())),
    })
}

/// The meaning of a `finish_reason`.
pub(super) fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "stop" | "end_turn" | "eos" => StopReason::EndTurn,
        "length" | "max_tokens" => StopReason::Length,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "content_filter" => StopReason::ContentFilter,
        "model_length" => StopReason::ContextWindow,
        "refusal" => StopReason::Refusal,
        _ => StopReason::Other,
    }
}
