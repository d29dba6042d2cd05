//! Anthropic Messages requests. The wording of refusals follows the real service.

use axum::http::HeaderMap;
use serde_json::Value;

use super::super::failure::Failure;
use super::super::wire::signature;
use super::{Heard, Incoming, check_tool_names, choose, common};

pub(super) fn read(headers: &HeaderMap, body: &Value) -> Result<Incoming, Failure> {
    if !headers.contains_key("anthropic-version") {
        return Err(Failure::invalid("anthropic-version: header is required"));
    }
    let (model, messages) = common(body, "messages")?;
    if body
        .get("max_tokens")
        .and_then(Value::as_u64)
        .is_none_or(|count| count == 0)
    {
        return Err(Failure::invalid("max_tokens: Field required"));
    }
    if let Some(tools) = body.get("tools").and_then(Value::as_array) {
        check_tool_names(
            tools.iter().map(|tool| tool.get("name").and_then(Value::as_str)),
            128,
        )?;
    }
    let mut heard = Vec::new();
    let mut open_calls: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let blocks = blocks(index, message)?;
        match message.get("role").and_then(Value::as_str) {
            Some("user") => user(index, &blocks, &mut open_calls, &mut heard)?,
            Some("assistant") => {
                refuse_unanswered(index, &open_calls)?;
                open_calls = assistant(index, &blocks)?;
            }
            other => {
                return Err(Failure::invalid(format!(
                    "messages.{index}.role: Input should be 'user' or 'assistant', not {other:?}"
                )));
            }
        }
    }
    refuse_unanswered(messages.len(), &open_calls)?;
    if messages
        .last()
        .and_then(|message| message.get("role"))
        .and_then(Value::as_str)
        == Some("assistant")
    {
        return Err(Failure::invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ));
    }
    choose(model, &heard, false)
}

/// The content as blocks; a plain text is one text block.
fn blocks(index: usize, message: &Value) -> Result<Vec<Value>, Failure> {
    let blocks = match message.get("content") {
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => {
            return Err(Failure::invalid(format!(
                "messages.{index}.content: Field required"
            )));
        }
    };
    if blocks.is_empty() {
        return Err(Failure::invalid(format!(
            "messages.{index}: all messages must have non-empty content"
        )));
    }
    for (position, block) in blocks.iter().enumerate() {
        if kind(block) == "text" && text(block).is_empty() {
            return Err(Failure::invalid(format!(
                "messages.{index}.content.{position}: text content blocks must be non-empty"
            )));
        }
    }
    Ok(blocks)
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn text(block: &Value) -> &str {
    block.get("text").and_then(Value::as_str).unwrap_or_default()
}

fn refuse_unanswered(index: usize, open_calls: &[String]) -> Result<(), Failure> {
    if open_calls.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        index.saturating_sub(1),
        open_calls.join(", ")
    )))
}

fn user(
    index: usize,
    blocks: &[Value],
    open_calls: &mut Vec<String>,
    heard: &mut Vec<Heard>,
) -> Result<(), Failure> {
    let had_calls = !open_calls.is_empty();
    let mut results = 0;
    let mut other_first = false;
    for (position, block) in blocks.iter().enumerate() {
        if kind(block) != "tool_result" {
            other_first = true;
            continue;
        }
        results += 1;
        let id = block
            .get("tool_use_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(found) = open_calls.iter().position(|open| open == id) else {
            return Err(Failure::invalid(format!(
                "messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                 Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )));
        };
        open_calls.remove(found);
        if other_first {
            return Err(Failure::invalid(format!(
                "messages.{index}.content.{position}: `tool_result` blocks must come before other content"
            )));
        }
    }
    refuse_unanswered(index, open_calls)?;
    if results > 0 {
        if had_calls {
            heard.push(Heard::AnsweredRound);
        }
        return Ok(());
    }
    // A prompt that got no answer stands in the same message as the one after it: the last one counts.
    let prompt = blocks
        .iter()
        .rev()
        .map(text)
        .find(|text| !text.is_empty())
        .unwrap_or_default();
    heard.push(Heard::Prompt(prompt.to_owned()));
    Ok(())
}

/// Checks an assistant message; the ids of its tool calls.
fn assistant(index: usize, blocks: &[Value]) -> Result<Vec<String>, Failure> {
    let mut calls: Vec<String> = Vec::new();
    for (position, block) in blocks.iter().enumerate() {
        let at = format!("messages.{index}.content.{position}");
        match kind(block) {
            "tool_use" => {
                let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
                if id.is_empty() {
                    return Err(Failure::invalid(format!("{at}.tool_use.id: Field required")));
                }
                if calls.iter().any(|call| call == id) {
                    return Err(Failure::invalid(format!(
                        "{at}: `tool_use` ids must be unique; {id} comes twice"
                    )));
                }
                if !block.get("input").is_some_and(Value::is_object) {
                    return Err(Failure::invalid(format!(
                        "{at}.tool_use.input: Input should be an object"
                    )));
                }
                if block
                    .get("name")
                    .and_then(Value::as_str)
                    .is_none_or(str::is_empty)
                {
                    return Err(Failure::invalid(format!("{at}.tool_use.name: Field required")));
                }
                calls.push(id.to_owned());
            }
            "thinking" => {
                let thinking = block.get("thinking").and_then(Value::as_str).unwrap_or_default();
                if block.get("signature").and_then(Value::as_str) != Some(signature(thinking).as_str()) {
                    return Err(Failure::invalid(format!(
                        "{at}: Invalid `signature` in `thinking` block"
                    )));
                }
            }
            "text" | "redacted_thinking" => {}
            other => {
                return Err(Failure::invalid(format!(
                    "{at}: Input tag '{other}' does not match any expected tag"
                )));
            }
        }
    }
    Ok(calls)
}
