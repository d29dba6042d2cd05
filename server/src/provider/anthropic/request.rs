//! Request builder of the Messages format.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::provider::history::{NO_RESULT, WireIds, arguments_object, join_url, usable_replay};
use crate::provider::{AssistantPart, Endpoint, ModelMessage, ModelRequest, ToolResult, WireRequest};

#[cfg(test)]
mod tests;

/// The format asks for a limit; this one stands where the request has none.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// Makes the request `POST {base_url}/v1/messages`.
pub fn build_request(endpoint: &Endpoint, request: &ModelRequest) -> WireRequest {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert(
        "max_tokens".to_owned(),
        json!(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)),
    );
    body.insert("stream".to_owned(), json!(true));
    if let Some(system) = request
        .system
        .as_deref()
        .filter(|system| !system.trim().is_empty())
    {
        body.insert("system".to_owned(), json!(system));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters }))
            .collect();
        body.insert("tools".to_owned(), json!(tools));
    }
    body.insert("messages".to_owned(), Value::Array(messages(endpoint, request)));
    let headers = BTreeMap::from([
        ("accept", "text/event-stream".to_owned()),
        ("anthropic-version", "2023-06-01".to_owned()),
        ("content-type", "application/json".to_owned()),
    ]);
    WireRequest {
        url: join_url(&endpoint.base_url, "v1/messages"),
        headers,
        auth: endpoint.api_key.clone().map(|key| ("x-api-key", key)),
        body: Value::Object(body),
    }
}

/// Messages on the wire: neighbours of one role are one message.
#[derive(Default)]
struct Messages(Vec<(&'static str, Vec<Value>)>);

impl Messages {
    fn add(&mut self, role: &'static str, content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        match self.0.last_mut().filter(|(last, _)| *last == role) {
            Some((_, held)) => held.extend(content),
            None => self.0.push((role, content)),
        }
    }
}

fn messages(endpoint: &Endpoint, request: &ModelRequest) -> Vec<Value> {
    let mut messages = Messages::default();
    let mut ids = WireIds::new(legal_id);
    for message in &request.messages {
        match message {
            ModelMessage::User { text } => {
                answer_open_calls(&mut ids, &mut messages);
                messages.add("user", text_block(text).into_iter().collect());
            }
            ModelMessage::Assistant { parts, replay } => {
                answer_open_calls(&mut ids, &mut messages);
                let content = match usable_replay(replay.as_ref(), endpoint, &request.model) {
                    Some(replay) => replayed(replay, &mut ids),
                    None => parts
                        .iter()
                        .filter_map(|part| assistant_block(part, &mut ids))
                        .collect(),
                };
                messages.add("assistant", content);
            }
            ModelMessage::ToolResults { results } => {
                // All results of a batch come first in one message; what belongs to no call follows as text.
                let mut blocks = Vec::new();
                let mut strays = Vec::new();
                for result in results {
                    match ids.result(&result.tool_call_id) {
                        Some(id) => blocks.push(result_block(&id, result)),
                        None => strays.extend(text_block(&format!(
                            "Result of the tool `{}`:\n{}",
                            result.tool_name, result.content
                        ))),
                    }
                }
                blocks.extend(ids.take_unanswered().iter().map(|id| missing_result(id)));
                blocks.extend(strays);
                messages.add("user", blocks);
            }
        }
    }
    answer_open_calls(&mut ids, &mut messages);
    // A conversation that ends in an assistant turn asks for its continuation, which may not begin after a space.
    if let Some(("assistant", content)) = messages.0.last_mut()
        && let Some(Value::Object(block)) = content.last_mut()
        && let Some(Value::String(text)) = block.get_mut("text")
    {
        text.truncate(text.trim_end().len());
    }
    messages
        .0
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn answer_open_calls(ids: &mut WireIds, messages: &mut Messages) {
    let missing = ids
        .take_unanswered()
        .iter()
        .map(|id| missing_result(id))
        .collect();
    messages.add("user", missing);
}

/// The record as it came; only ids of calls are checked, since other rounds may have used them too.
fn replayed(message: &Value, ids: &mut WireIds) -> Vec<Value> {
    let mut content = message
        .get("content")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for block in &mut content {
        if block.get("type").and_then(Value::as_str) == Some("tool_use") {
            let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
            let wire = ids.call(id);
            if wire != id {
                block["id"] = json!(wire);
            }
        }
    }
    content
}

fn assistant_block(part: &AssistantPart, ids: &mut WireIds) -> Option<Value> {
    match part {
        AssistantPart::Text { text } => text_block(text),
        AssistantPart::ToolCall { id, name, arguments } => Some(json!({
            "type": "tool_use", "id": ids.call(id), "name": name, "input": arguments_object(arguments),
        })),
    }
}

/// Text without anything to read is refused by the endpoint.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn result_block(id: &str, result: &ToolResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": result.content });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn missing_result(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": NO_RESULT, "is_error": true })
}

/// Ids may have letters, digits, `_` and `-`; other endpoints use more.
fn legal_id(id: &str) -> String {
    let legal: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if legal.is_empty() {
        "call".to_owned()
    } else {
        legal
    }
}
