//! Request builder of the Chat Completions format.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::provider::history::{NO_RESULT, WireIds, arguments_object, join_url, usable_replay};
use crate::provider::{AssistantPart, Endpoint, ModelMessage, ModelRequest, Secret, WireRequest};

#[cfg(test)]
mod tests;

/// Makes the request `POST {base_url}/chat/completions`.
pub fn build_request(endpoint: &Endpoint, request: &ModelRequest) -> WireRequest {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), Value::Array(messages(endpoint, request)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    if let Some(max_tokens) = request.max_tokens {
        // OpenAI's reasoning models refuse the older name; most compatible servers know only that one.
        let is_openai = endpoint.base_url.contains("://api.openai.com")
            || endpoint.base_url.contains(".openai.azure.com");
        let key = if is_openai {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body.insert(key.to_owned(), json!(max_tokens));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.parameters,
                } })
            })
            .collect();
        body.insert("tools".to_owned(), json!(tools));
    }
    let headers = BTreeMap::from([
        ("accept", "text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
    ]);
    WireRequest {
        url: join_url(&endpoint.base_url, "chat/completions"),
        headers,
        auth: endpoint
            .api_key
            .as_ref()
            .map(|key| ("authorization", Secret::new(format!("Bearer {}", key.expose())))),
        body: Value::Object(body),
    }
}

fn messages(endpoint: &Endpoint, request: &ModelRequest) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(system) = request
        .system
        .as_deref()
        .filter(|system| !system.trim().is_empty())
    {
        messages.push(json!({ "role": "system", "content": system }));
    }
    let mut ids = WireIds::new(if is_mistral(endpoint) { mistral_id } else { any_id });
    let last_user = request
        .messages
        .iter()
        .rposition(|message| matches!(message, ModelMessage::User { .. }));
    for (number, message) in request.messages.iter().enumerate() {
        match message {
            ModelMessage::User { text } => {
                answer_open_calls(&mut ids, &mut messages);
                messages.push(json!({ "role": "user", "content": text }));
            }
            ModelMessage::Assistant { parts, replay } => {
                answer_open_calls(&mut ids, &mut messages);
                let in_tool_loop = last_user.is_none_or(|last| number > last);
                messages.extend(match usable_replay(replay.as_ref(), endpoint, &request.model) {
                    Some(replay) => {
                        let keeps_reasoning = in_tool_loop && wants_reasoning_back(endpoint, &request.model);
                        Some(replayed(replay, keeps_reasoning, &mut ids))
                    }
                    None => assistant(parts, &mut ids),
                });
            }
            ModelMessage::ToolResults { results } => {
                let mut strays = Vec::new();
                for result in results {
                    match ids.result(&result.tool_call_id) {
                        Some(id) => messages.push(tool_message(&id, &result.content)),
                        None => strays.push(format!(
                            "Result of the tool `{}`:\n{}",
                            result.tool_name, result.content
                        )),
                    }
                }
                answer_open_calls(&mut ids, &mut messages);
                messages.extend(
                    strays
                        .into_iter()
                        .map(|text| json!({ "role": "user", "content": text })),
                );
            }
        }
    }
    answer_open_calls(&mut ids, &mut messages);
    messages
}

fn tool_message(id: &str, content: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": content })
}

fn answer_open_calls(ids: &mut WireIds, messages: &mut Vec<Value>) {
    messages.extend(ids.take_unanswered().iter().map(|id| tool_message(id, NO_RESULT)));
}

/// An assistant message without content and calls is refused by strict servers, so there is none then.
fn assistant(parts: &[AssistantPart], ids: &mut WireIds) -> Option<Value> {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text { text } => texts.push(text.as_str()),
            AssistantPart::ToolCall { id, name, arguments } => {
                let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
                let arguments = if is_object {
                    arguments.clone()
                } else {
                    arguments_object("").to_string()
                };
                calls.push(json!({
                    "id": ids.call(id), "type": "function", "function": { "name": name, "arguments": arguments },
                }));
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert(
        "content".to_owned(),
        if texts.is_empty() {
            Value::Null
        } else {
            json!(texts.join("\n\n"))
        },
    );
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Some(Value::Object(message))
}

/// The record as it came. Plain reasoning goes back only where the endpoint asks for it.
fn replayed(record: &Value, keeps_reasoning: bool, ids: &mut WireIds) -> Value {
    let mut message = record.clone();
    if let Some(object) = message.as_object_mut() {
        if !keeps_reasoning {
            object.shift_remove("reasoning_content");
        }
        for call in object
            .get_mut("tool_calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let wire = ids.call(call.get("id").and_then(Value::as_str).unwrap_or_default());
            if let Some(call) = call.as_object_mut() {
                call.insert("id".to_owned(), json!(wire));
            }
        }
    }
    message
}

/// Makers of models that, when they think, ask for `reasoning_content` back within a tool loop; others refuse it.
fn wants_reasoning_back(endpoint: &Endpoint, model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let address = endpoint.base_url.to_ascii_lowercase();
    ["deepseek", "kimi", "moonshot", "glm"]
        .iter()
        .any(|name| model.contains(name) || address.contains(name))
        || ["z.ai", "bigmodel"].iter().any(|name| address.contains(name))
}

fn is_mistral(endpoint: &Endpoint) -> bool {
    endpoint.base_url.to_ascii_lowercase().contains("mistral")
}

fn any_id(id: &str) -> String {
    if id.is_empty() {
        "call".to_owned()
    } else {
        id.to_owned()
    }
}

/// Mistral takes ids of exactly nine letters and digits; others are mapped to one, always the same.
fn mistral_id(id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    Sha256::digest(id.as_bytes())
        .iter()
        .take(9)
        .filter_map(|byte| DIGITS.get(usize::from(*byte) % DIGITS.len()))
        .map(|digit| char::from(*digit))
        .collect()
}
