//! Request builder of the Responses format.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use crate::provider::history::{NO_RESULT, WireIds, arguments_object, join_url, usable_replay};
use crate::provider::{AssistantPart, Endpoint, ModelMessage, ModelRequest, Secret, WireRequest};

#[cfg(test)]
mod tests;

/// Makes the request `POST {base_url}/responses`. Nothing is stored at the provider, so that reasoning comes
/// encrypted and goes back with the calls that came of it.
pub fn build_request(endpoint: &Endpoint, request: &ModelRequest) -> WireRequest {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    if let Some(system) = request
        .system
        .as_deref()
        .filter(|system| !system.trim().is_empty())
    {
        body.insert("instructions".to_owned(), json!(system));
    }
    body.insert("input".to_owned(), Value::Array(input(endpoint, request)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    if reasons(&request.model) {
        // Without a summary nothing comes while the model thinks, which looks like a stall.
        body.insert("reasoning".to_owned(), json!({ "summary": "auto" }));
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(max_tokens) = request.max_tokens {
        body.insert("max_output_tokens".to_owned(), json!(max_tokens));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                // Strict is this format's default and refuses schemas with optional fields.
                json!({
                    "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.parameters, "strict": false,
                })
            })
            .collect();
        body.insert("tools".to_owned(), json!(tools));
    }
    let headers = BTreeMap::from([
        ("accept", "text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
    ]);
    WireRequest {
        url: join_url(&endpoint.base_url, "responses"),
        headers,
        auth: endpoint
            .api_key
            .as_ref()
            .map(|key| ("authorization", Secret::new(format!("Bearer {}", key.expose())))),
        body: Value::Object(body),
    }
}

/// Whether the model reasons, by its name: others refuse to be asked for it.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let is_known = ["o1", "o3", "o4", "gpt-5", "codex", "computer-use"]
        .iter()
        .any(|start| name.starts_with(start));
    is_known && !name.contains("-chat")
}

/// The conversation on the wire, with the ids of its calls.
struct Input {
    items: Vec<Value>,
    ids: WireIds,
    /// Calls of custom tools by their id on the wire: their results have a type of their own.
    custom: HashSet<String>,
}

fn input(endpoint: &Endpoint, request: &ModelRequest) -> Vec<Value> {
    let mut input = Input {
        items: Vec::new(),
        ids: WireIds::new(any_id),
        custom: HashSet::new(),
    };
    for message in &request.messages {
        match message {
            ModelMessage::User { text } => {
                input.answer_open_calls();
                input.items.push(json!({ "role": "user", "content": text }));
            }
            ModelMessage::Assistant { parts, replay } => {
                input.answer_open_calls();
                match usable_replay(replay.as_ref(), endpoint, &request.model) {
                    Some(replay) => input.replay(replay),
                    None => parts.iter().for_each(|part| input.part(part)),
                }
            }
            ModelMessage::ToolResults { results } => {
                let mut strays = Vec::new();
                for result in results {
                    match input.ids.result(&result.tool_call_id) {
                        Some(id) => input.result(&id, &result.content),
                        None => strays.push(format!(
                            "Result of the tool `{}`:\n{}",
                            result.tool_name, result.content
                        )),
                    }
                }
                input.answer_open_calls();
                let strays = strays.into_iter();
                input
                    .items
                    .extend(strays.map(|text| json!({ "role": "user", "content": text })));
            }
        }
    }
    input.answer_open_calls();
    input.items
}

impl Input {
    /// The record as it came; only ids of calls are checked, since other rounds may have used them too.
    fn replay(&mut self, record: &Value) {
        let output = record.get("output").and_then(Value::as_array);
        for item in output.into_iter().flatten() {
            let mut item = item.clone();
            let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
            if matches!(kind, "function_call" | "custom_tool_call") {
                let is_custom = kind == "custom_tool_call";
                let wire = self
                    .ids
                    .call(item.get("call_id").and_then(Value::as_str).unwrap_or_default());
                if is_custom {
                    self.custom.insert(wire.clone());
                }
                if let Some(fields) = item.as_object_mut() {
                    fields.insert("call_id".to_owned(), json!(wire));
                }
            }
            self.items.push(item);
        }
    }

    fn part(&mut self, part: &AssistantPart) {
        match part {
            AssistantPart::Text { text } if text.is_empty() => {}
            AssistantPart::Text { text } => {
                self.items.push(json!({ "role": "assistant", "content": text }));
            }
            AssistantPart::ToolCall { id, name, arguments } => {
                let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
                let arguments = if is_object {
                    arguments.clone()
                } else {
                    arguments_object("").to_string()
                };
                let call_id = self.ids.call(id);
                self.items.push(json!({
                    "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments,
                }));
            }
        }
    }

    fn result(&mut self, call_id: &str, output: &str) {
        let kind = if self.custom.contains(call_id) {
            "custom_tool_call_output"
        } else {
            "function_call_output"
        };
        self.items
            .push(json!({ "type": kind, "call_id": call_id, "output": output }));
    }

    fn answer_open_calls(&mut self) {
        for call_id in self.ids.take_unanswered() {
            self.result(&call_id, NO_RESULT);
        }
    }
}

fn any_id(id: &str) -> String {
    if id.is_empty() {
        "call".to_owned()
    } else {
        id.to_owned()
    }
}
