//! Chat Completions requests. The wording of refusals follows the real service.

use serde_json::Value;

use super::super::failure::Failure;
use super::{Heard, Incoming, check_tool_names, choose, common};

pub(super) fn read(body: &Value) -> Result<Incoming, Failure> {
    let (model, messages) = common(body, "messages")?;
    if let Some(tools) = body.get("tools").and_then(Value::as_array) {
        let name = |tool: &'_ Value| -> Option<String> {
            Some(tool.get("function")?.get("name")?.as_str()?.to_owned())
        };
        let names: Vec<Option<String>> = tools.iter().map(name).collect();
        check_tool_names(names.iter().map(Option::as_deref), 64)?;
    }
    let include_usage = body
        .pointer("/stream_options/include_usage")
        .and_then(Value::as_bool)
        .unwrap_or(false);

    let mut heard = Vec::new();
    let mut open_calls: Vec<String> = Vec::new();
    let mut in_round = false;
    for (index, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if role == "tool" {
            tool(index, message, in_round, &mut open_calls)?;
            continue;
        }
        finish_round(&mut in_round, &open_calls, &mut heard)?;
        match role {
            "system" | "developer" => {
                content(index, message)?;
            }
            "user" => heard.push(Heard::Prompt(content(index, message)?)),
            "assistant" => {
                open_calls = assistant(index, message)?;
                in_round = !open_calls.is_empty();
            }
            other => {
                return Err(Failure::invalid(format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'developer', 'user', 'assistant' \
                     and 'tool' (messages[{index}].role)."
                )));
            }
        }
    }
    finish_round(&mut in_round, &open_calls, &mut heard)?;
    choose(model, &heard, include_usage)
}

/// Another message or the end after an assistant message with calls: all of them must be answered.
fn finish_round(in_round: &mut bool, open_calls: &[String], heard: &mut Vec<Heard>) -> Result<(), Failure> {
    if !std::mem::take(in_round) {
        return Ok(());
    }
    if !open_calls.is_empty() {
        return Err(Failure::invalid(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open_calls.join(", ")
        )));
    }
    heard.push(Heard::AnsweredRound);
    Ok(())
}

fn content(index: usize, message: &Value) -> Result<String, Failure> {
    match message.get("content") {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect();
            Ok(texts.join("\n"))
        }
        _ => Err(Failure::invalid(format!(
            "Invalid value for 'content': expected a string or a list of parts (messages[{index}].content)."
        ))),
    }
}

fn tool(index: usize, message: &Value, in_round: bool, open_calls: &mut Vec<String>) -> Result<(), Failure> {
    let id = message
        .get("tool_call_id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !in_round {
        return Err(Failure::invalid(format!(
            "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' \
             (messages[{index}].role)."
        )));
    }
    content(index, message)?;
    match open_calls.iter().position(|open| open == id) {
        Some(found) => {
            open_calls.remove(found);
            Ok(())
        }
        None => Err(Failure::invalid(format!(
            "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message \
             (messages[{index}].tool_call_id)."
        ))),
    }
}

/// Checks an assistant message; the ids of its tool calls.
fn assistant(index: usize, message: &Value) -> Result<Vec<String>, Failure> {
    let calls = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let has_content = message.get("content").is_some_and(|content| match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => false,
    }) || message.get("refusal").is_some_and(Value::is_string);
    if calls.is_empty() && !has_content {
        return Err(Failure::invalid(format!(
            "Invalid value for 'content': an assistant message needs content or tool_calls (messages[{index}])."
        )));
    }
    let mut ids: Vec<String> = Vec::new();
    for (position, call) in calls.iter().enumerate() {
        let at = format!("messages[{index}].tool_calls[{position}]");
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() {
            return Err(Failure::invalid(format!(
                "Missing required parameter: '{at}.id'."
            )));
        }
        if ids.iter().any(|known| known == id) {
            return Err(Failure::invalid(format!(
                "Duplicate tool call id '{id}' ({at}.id)."
            )));
        }
        if call.get("type").and_then(Value::as_str) != Some("function") {
            return Err(Failure::invalid(format!(
                "Missing required parameter: '{at}.type'."
            )));
        }
        if call
            .pointer("/function/name")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            return Err(Failure::invalid(format!(
                "Missing required parameter: '{at}.function.name'."
            )));
        }
        let arguments = call.pointer("/function/arguments").and_then(Value::as_str);
        let parsed = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
        if !parsed.is_some_and(|value| value.is_object()) {
            return Err(Failure::invalid(format!(
                "Invalid '{at}.function.arguments': expected a string with a JSON object."
            )));
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}
