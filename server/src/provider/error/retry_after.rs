//! How long providers ask to wait.

use serde_json::Value;

/// How long a provider asks to wait, in milliseconds, from `retry-after-ms` or `retry-after` (seconds, also with a
/// fraction, or an HTTP date), at the time `now_ms` since the epoch.
pub fn retry_after_ms(retry_after_ms: Option<&str>, retry_after: Option<&str>, now_ms: i64) -> Option<u64> {
    let milliseconds = |text: &str, factor: f64| {
        let number: f64 = text.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some((number * factor).ceil() as u64)
    };
    if let Some(wait) = retry_after_ms.and_then(|text| milliseconds(text, 1.0)) {
        return Some(wait);
    }
    let text = retry_after?.trim();
    if let Some(wait) = milliseconds(text, 1000.0) {
        return Some(wait);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let date_ms = i64::try_from(date.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()?;
    Some(u64::try_from(date_ms.saturating_sub(now_ms)).unwrap_or(0))
}

/// The wait in a list of details, as Gemini tells it: `{retryDelay: "34.5s"}`.
pub(super) fn retry_delay_ms(details: &Value) -> Option<u64> {
    let mut delays = details.as_array()?.iter();
    let text = delays.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    retry_after_ms(None, text.strip_suffix('s'), 0)
}
