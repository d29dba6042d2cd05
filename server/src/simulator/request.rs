//! Requests as a strict provider reads them: what is needed to pick a turn, or why they are refused.

mod anthropic;
mod openai_chat;
mod openai_responses;

use axum::http::HeaderMap;
use serde_json::Value;

use super::failure::Failure;
use super::wire::WireFormat;
use crate::provider::GO_ON;

/// What a request says, as far as the simulator needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Incoming {
    /// The model's name.
    pub(super) model: String,
    /// The last user message that carries no tool results and is not [`GO_ON`].
    pub(super) prompt: String,
    /// How many rounds of tool calls were answered since.
    pub(super) round: usize,
    /// Whether the model is told to go on from its own text that broke off.
    pub(super) goes_on: bool,
    /// Whether Chat Completions shall send usage.
    pub(super) include_usage: bool,
}

/// One message, as far as the choice of the turn needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Heard {
    /// A user message without tool results.
    Prompt(String),
    /// An assistant message that was followed by the results of its calls.
    AnsweredRound,
}

/// Checks a request and reads it.
pub(super) fn read(format: WireFormat, headers: &HeaderMap, body: &[u8]) -> Result<Incoming, Failure> {
    check_key(headers)?;
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::invalid(format!("The request body is not valid JSON: {error}")))?;
    match format {
        WireFormat::Anthropic => anthropic::read(headers, &body),
        WireFormat::OpenaiChat => openai_chat::read(&body),
        WireFormat::OpenaiResponses => openai_responses::read(&body),
    }
}

fn check_key(headers: &HeaderMap) -> Result<(), Failure> {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok());
    let keys = [
        headers.get("x-api-key").and_then(|value| value.to_str().ok()),
        bearer.map(|value| value.strip_prefix("Bearer ").unwrap_or(value)),
    ];
    if keys.contains(&Some("bad-key")) {
        return Err(Failure::new(401, "invalid x-api-key"));
    }
    Ok(())
}

/// The model, the messages under their key, and that a stream was asked for: alike in these formats.
fn common<'a>(body: &'a Value, key: &str) -> Result<(String, &'a Vec<Value>), Failure> {
    let Some(model) = body
        .get("model")
        .and_then(Value::as_str)
        .filter(|model| !model.is_empty())
    else {
        return Err(Failure::invalid("model: Field required"));
    };
    let Some(messages) = body
        .get(key)
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty())
    else {
        return Err(Failure::invalid(format!(
            "{key}: at least one message is required"
        )));
    };
    if body.get("stream").and_then(Value::as_bool) != Some(true) {
        return Err(Failure::invalid(
            "stream: the simulator only streams; set `stream` to true",
        ));
    }
    Ok((model.to_owned(), messages))
}

/// Names of tools: present, unique, of the characters that providers take.
fn check_tool_names<'a>(names: impl Iterator<Item = Option<&'a str>>, longest: usize) -> Result<(), Failure> {
    let mut seen = std::collections::BTreeSet::new();
    for (index, name) in names.enumerate() {
        let Some(name) = name else {
            return Err(Failure::invalid(format!("tools.{index}.name: Field required")));
        };
        let good = (1..=longest).contains(&name.len())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !good {
            return Err(Failure::invalid(format!(
                "tools.{index}.name: `{name}` should match '^[a-zA-Z0-9_-]{{1,{longest}}}$'"
            )));
        }
        if !seen.insert(name) {
            return Err(Failure::invalid(format!(
                "tools: Tool names must be unique; `{name}` comes twice"
            )));
        }
    }
    Ok(())
}

/// The last prompt and the rounds after it.
fn choose(model: String, heard: &[Heard], include_usage: bool) -> Result<Incoming, Failure> {
    let last = heard
        .iter()
        .rposition(|heard| matches!(heard, Heard::Prompt(text) if text != GO_ON));
    let Some((index, Heard::Prompt(prompt))) = last.and_then(|index| Some((index, heard.get(index)?))) else {
        return Err(Failure::invalid(
            "messages: at least one user message is required",
        ));
    };
    let round = heard
        .iter()
        .skip(index)
        .filter(|heard| matches!(heard, Heard::AnsweredRound))
        .count();
    Ok(Incoming {
        model,
        prompt: prompt.clone(),
        round,
        goes_on: matches!(heard.last(), Some(Heard::Prompt(text)) if text == GO_ON),
        include_usage,
    })
}

#[cfg(test)]
mod tests;
