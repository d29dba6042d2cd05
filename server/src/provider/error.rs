//! Errors in the many forms in which providers report them, turned into one.

use serde_json::Value;

use super::{ProviderError, ProviderErrorClass};

mod retry_after;

pub use retry_after::retry_after_ms;
use retry_after::retry_delay_ms;

#[cfg(test)]
mod tests;

/// The most characters of a provider's message that are kept.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// What an error object says, whatever its form.
#[derive(Debug, Default)]
struct Facts {
    message: Option<String>,
    /// The words in `type`, `code` and `status`, in lower case.
    words: Vec<String>,
    /// A numeric code that is an HTTP status.
    status: Option<u16>,
    /// How long the error itself asks to wait.
    retry_after_ms: Option<u64>,
}

/// The error of an HTTP answer: its status and its body, which may be JSON of any known form, an event stream that
/// holds such JSON, HTML, or plain text.
pub fn from_http(status: u16, body: &str, retry_after_ms: Option<u64>) -> ProviderError {
    let facts = facts_of_text(body);
    let own = facts.message.clone().filter(|message| !message.trim().is_empty());
    let message = match own {
        Some(message) => format!("HTTP {status}: {}", shorten(&message)),
        None => format!("HTTP {status} without a message"),
    };
    ProviderError {
        class: class_of_status(status, &facts),
        status: Some(status),
        message,
        retry_after_ms: retry_after_ms.or(facts.retry_after_ms),
    }
}

/// The error in an answer with status 200 whose body is not an event stream.
pub fn from_unexpected_body(status: u16, body: &str) -> ProviderError {
    let trimmed = body.trim_start_matches('\u{feff}').trim();
    if let Ok(value) = serde_json::from_str::<Value>(trimmed)
        && let Some(error) = error_in(&value)
    {
        return ProviderError {
            status: Some(status),
            ..error
        };
    }
    let what = if trimmed.starts_with('<') {
        let title = html_title(trimmed)
            .map(|title| format!(": {}", shorten(&title)))
            .unwrap_or_default();
        format!("the answer is an HTML page, not an event stream{title}; is the base address right?")
    } else if trimmed.starts_with('{') || trimmed.starts_with('[') {
        "the answer is one JSON document, not an event stream; the endpoint may not support streaming"
            .to_owned()
    } else if trimmed.is_empty() {
        "the answer is empty".to_owned()
    } else {
        format!("the answer is not an event stream: {}", shorten(trimmed))
    };
    ProviderError {
        status: Some(status),
        ..ProviderError::new(ProviderErrorClass::Protocol, what)
    }
}

/// The error that a JSON value of a stream reports, if it does: any top-level `error` that is not null, or an
/// error object that stands alone.
pub fn error_in(value: &Value) -> Option<ProviderError> {
    let value = value.as_array().and_then(|array| array.first()).unwrap_or(value);
    let object = value.as_object()?;
    let has_error = object
        .get("error")
        .is_some_and(|error| !matches!(error, Value::Null | Value::Bool(false)));
    let kind = object
        .get("object")
        .or_else(|| object.get("type"))
        .and_then(Value::as_str);
    let stands_alone = kind == Some("error")
        || object.contains_key("detail") && !object.contains_key("choices")
        || object.contains_key("message") && object.contains_key("code") && !object.contains_key("choices");
    if !has_error && !stands_alone {
        return None;
    }
    Some(from_value(value))
}

/// The error that an error object in a stream reports.
pub fn from_value(value: &Value) -> ProviderError {
    let mut facts = Facts::default();
    collect(value, &mut facts);
    let class = class_of_words(&facts)
        .or_else(|| facts.status.map(|status| class_of_status(status, &facts)))
        .unwrap_or(ProviderErrorClass::Server);
    let message = match facts
        .message
        .as_deref()
        .map(str::trim)
        .filter(|message| !message.is_empty())
    {
        Some(message) => shorten(message),
        None if facts.words.is_empty() => "the provider reports an error without a message".to_owned(),
        None => format!(
            "the provider reports an error without a message: {}",
            facts.words.join(", ")
        ),
    };
    ProviderError {
        class,
        status: facts.status,
        message,
        retry_after_ms: facts.retry_after_ms,
    }
}

/// The error of an `event: error` whose data is no JSON.
pub fn from_text(text: &str) -> ProviderError {
    let facts = facts_of_text(text);
    let message = facts
        .message
        .as_deref()
        .map_or_else(|| "the provider reports an error".to_owned(), shorten);
    ProviderError::new(
        class_of_words(&facts).unwrap_or(ProviderErrorClass::Server),
        message,
    )
}

fn facts_of_text(body: &str) -> Facts {
    let trimmed = body.trim_start_matches('\u{feff}').trim();
    let json = serde_json::from_str::<Value>(trimmed).ok().or_else(|| {
        // Some error answers keep the event stream's framing.
        let data: Vec<&str> = trimmed
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .collect();
        serde_json::from_str(data.join("\n").trim()).ok()
    });
    let mut facts = Facts::default();
    match json {
        Some(value) => collect(&value, &mut facts),
        None if trimmed.starts_with('<') => {
            let title = html_title(trimmed);
            facts.message = Some(title.map_or_else(
                || "an HTML page".to_owned(),
                |title| format!("an HTML page: {title}"),
            ));
        }
        None if !trimmed.is_empty() => facts.message = Some(trimmed.to_owned()),
        None => {}
    }
    facts
}

/// Reads `{error: {…}}`, `{error: "…"}`, `{detail: …}`, `{message, type, code}`, `{errors: […]}` and arrays of
/// these. Of an object only these fields are looked at, so that nothing hidden gets into a message.
fn collect(value: &Value, facts: &mut Facts) {
    match value {
        Value::String(text) => facts.message = facts.message.take().or_else(|| Some(text.clone())),
        Value::Array(values) => {
            if let Some(first) = values.first() {
                collect(first, facts);
            }
        }
        Value::Object(object) => {
            if let Some(wait) = object.get("details").and_then(retry_delay_ms) {
                facts.retry_after_ms.get_or_insert(wait);
            }
            for key in ["error", "errors", "detail", "message", "msg"] {
                if let Some(inner) = object.get(key) {
                    collect(inner, facts);
                }
            }
            for key in ["type", "code", "status", "status_code"] {
                match object.get(key) {
                    Some(Value::String(word)) => {
                        if let Ok(status) = word.parse() {
                            facts.set_status(status);
                        } else if word != "error" {
                            facts.words.push(word.to_ascii_lowercase());
                        }
                    }
                    Some(Value::Number(number)) => {
                        if let Some(status) = number.as_u64() {
                            facts.set_status(status);
                        }
                    }
                    _ => {}
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Facts {
    fn set_status(&mut self, status: u64) {
        if let Ok(status) = u16::try_from(status)
            && (400..600).contains(&status)
        {
            self.status.get_or_insert(status);
        }
    }

    fn says(&self, needles: &[&str]) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        needles
            .iter()
            .any(|needle| message.contains(needle) || self.words.iter().any(|word| word.contains(needle)))
    }

    fn is_context_length(&self) -> bool {
        self.says(&[
            "context_length",
            "context length",
            "context window",
            "maximum context",
            "prompt is too long",
            "too many tokens",
            "exceeds the context",
            "input is too long",
            "input token count",
            "exceed_context_size",
        ])
    }

    fn is_final_quota(&self) -> bool {
        self.says(&[
            "insufficient_quota",
            "billing",
            "spend limit",
            "credit balance",
            "insufficient balance",
            "usage limit reached",
        ])
    }
}

fn class_of_status(status: u16, facts: &Facts) -> ProviderErrorClass {
    match status {
        401 | 403 => ProviderErrorClass::Authentication,
        402 => ProviderErrorClass::Billing,
        404 => ProviderErrorClass::NotFound,
        // A quota that is back in a while speaks of billing too, but says when.
        429 if facts.is_final_quota() && facts.retry_after_ms.is_none() => ProviderErrorClass::Billing,
        429 => ProviderErrorClass::RateLimited,
        529 => ProviderErrorClass::Overloaded,
        503 if facts.says(&["overloaded"]) => ProviderErrorClass::Overloaded,
        408 | 409 | 500.. => ProviderErrorClass::Server,
        400 if facts.says(&["api key not valid"]) => ProviderErrorClass::Authentication,
        400..500 if facts.is_context_length() => ProviderErrorClass::ContextLength,
        400..500 if facts.is_final_quota() => ProviderErrorClass::Billing,
        400..500 => ProviderErrorClass::InvalidRequest,
        _ => ProviderErrorClass::Protocol,
    }
}

/// The class that the words of an error tell, for errors without a status of their own. `None` where they tell none.
fn class_of_words(facts: &Facts) -> Option<ProviderErrorClass> {
    // What the model wrote was refused by the provider's own check: another try can help.
    if facts.words.iter().any(|word| word == "tool_use_failed") {
        return Some(ProviderErrorClass::Server);
    }
    let table: [(&[&str], ProviderErrorClass); 8] = [
        (&["insufficient_quota", "billing"], ProviderErrorClass::Billing),
        (&["overloaded"], ProviderErrorClass::Overloaded),
        (
            &["rate_limit", "resource_exhausted", "too_many_requests"],
            ProviderErrorClass::RateLimited,
        ),
        (
            &["authentication", "permission", "invalid_api_key", "unauthorized"],
            ProviderErrorClass::Authentication,
        ),
        (&["not_found"], ProviderErrorClass::NotFound),
        (
            &["api_error", "server_error", "timeout", "internal", "unavailable"],
            ProviderErrorClass::Server,
        ),
        (&["request_too_large"], ProviderErrorClass::InvalidRequest),
        (
            &["invalid_request", "invalid_argument"],
            ProviderErrorClass::InvalidRequest,
        ),
    ];
    let told = table
        .into_iter()
        .find(|(needles, _)| {
            facts
                .words
                .iter()
                .any(|word| needles.iter().any(|needle| word.contains(needle)))
        })
        .map(|(_, class)| class);
    match told {
        // The words of a message count only where the error's own do not tell more: a rate limit speaks of tokens too.
        None | Some(ProviderErrorClass::InvalidRequest) if facts.is_context_length() => {
            Some(ProviderErrorClass::ContextLength)
        }
        told => told,
    }
}

fn html_title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let open = start + lower.get(start..)?.find('>')? + 1;
    let close = open + lower.get(open..)?.find("</title")?;
    let title = html
        .get(open..close)?
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    (!title.is_empty()).then_some(title)
}

fn shorten(message: &str) -> String {
    let message = message.trim();
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}
