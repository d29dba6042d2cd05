//! Usage, and finish reasons.

use serde_json::Value;

use crate::provider::{StopReason, Usage};

/// The usage of an event. Each one holds totals, so that the latest counts. What the provider's own tools put into the
/// prompt is input too, and thoughts are output that is counted apart.
pub(super) fn usage_in(event: &Value) -> Option<Usage> {
    let usage = event.get("usageMetadata").filter(|usage| usage.is_object())?;
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let sum = |keys: [&str; 2]| keys.into_iter().filter_map(count).reduce(u64::saturating_add);
    Some(Usage {
        input_tokens: sum(["promptTokenCount", "toolUsePromptTokenCount"]),
        output_tokens: sum(["candidatesTokenCount", "thoughtsTokenCount"]),
        cache_read_tokens: count("cachedContentTokenCount"),
        cache_write_tokens: None,
        reasoning_tokens: count("thoughtsTokenCount"),
        cost: None,
    })
}

/// The meaning of a `finishReason`; calls do not show in it.
pub(super) fn stop_reason(raw: &str, has_calls: bool) -> StopReason {
    match raw {
        "STOP" if has_calls => StopReason::ToolUse,
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "IMAGE_SAFETY" => StopReason::ContentFilter,
        _ => StopReason::Other,
    }
}
