//! Usage, and why a response ended.

use serde_json::{Value, json};

use crate::provider::{ProviderError, ProviderErrorClass, StopReason, Usage, error};

/// The usage of a response.
pub(super) fn usage_in(response: &Value) -> Option<Usage> {
    let usage = response.get("usage").filter(|usage| usage.is_object())?;
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    Some(Usage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cache_read_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        cost: usage.get("cost").and_then(Value::as_f64),
    })
}

/// What the format says of the end is little: calls and refusals are told by the items.
pub(super) fn stop_reason(raw: &str, has_calls: bool, refuses: bool) -> StopReason {
    match raw {
        "completed" if has_calls => StopReason::ToolUse,
        "completed" if refuses => StopReason::Refusal,
        "completed" => StopReason::EndTurn,
        "max_output_tokens" => StopReason::Length,
        "content_filter" => StopReason::ContentFilter,
        _ => StopReason::Other,
    }
}

/// The error with which a response ended.
pub(super) fn failure(kind: &str, response: Option<&Value>) -> ProviderError {
    let reported = response.and_then(|response| response.get("error"));
    match reported.filter(|error| !error.is_null()) {
        Some(error) => error::from_value(&json!({ "error": error })),
        None => {
            let message = format!("the provider ended the answer with `{kind}`, without a reason");
            ProviderError::new(ProviderErrorClass::Server, message)
        }
    }
}
