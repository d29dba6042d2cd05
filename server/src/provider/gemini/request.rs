//! Request builder of the Gemini format.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::provider::history::{NO_RESULT, arguments_object, join_url, usable_replay};
use crate::provider::{AssistantPart, Endpoint, ModelMessage, ModelRequest, ToolResult, WireRequest};

#[cfg(test)]
mod tests;

/// What the provider asks for in place of the signature of a call that another model made: from its third generation
/// on, a call without one is refused.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// Makes the request `POST {base_url}/models/{model}:streamGenerateContent?alt=sse`.
pub fn build_request(endpoint: &Endpoint, request: &ModelRequest) -> WireRequest {
    let mut body = Map::new();
    if let Some(system) = request
        .system
        .as_deref()
        .filter(|system| !system.trim().is_empty())
    {
        body.insert(
            "systemInstruction".to_owned(),
            json!({ "parts": [{ "text": system }] }),
        );
    }
    body.insert("contents".to_owned(), Value::Array(contents(endpoint, request)));
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters,
                })
            })
            .collect();
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": tools }]));
    }
    let mut generation = Map::new();
    if let Some(max_tokens) = request.max_tokens {
        generation.insert("maxOutputTokens".to_owned(), json!(max_tokens));
    }
    if version(&request.model).is_none_or(|version| version >= 2.5) {
        // Thoughts come only when asked for; models before these refuse to be asked.
        generation.insert("thinkingConfig".to_owned(), json!({ "includeThoughts": true }));
    }
    if !generation.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    let headers = BTreeMap::from([
        ("accept", "text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
    ]);
    // A model of another collection is named with it.
    let path = if request.model.contains('/') {
        request.model.clone()
    } else {
        format!("models/{}", request.model)
    };
    WireRequest {
        url: join_url(
            &endpoint.base_url,
            &format!("{path}:streamGenerateContent?alt=sse"),
        ),
        headers,
        auth: endpoint.api_key.clone().map(|key| ("x-goog-api-key", key)),
        body: Value::Object(body),
    }
}

/// The generation of a model, where its name tells one.
fn version(model: &str) -> Option<f32> {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.strip_prefix("gemini-")?.split('-').next()?.parse().ok()
}

/// A call that waits for its result: results go back in the order of their calls.
struct OpenCall {
    id: String,
    /// The id on the wire; many calls have none.
    wire_id: Option<String>,
    name: String,
}

fn contents(endpoint: &Endpoint, request: &ModelRequest) -> Vec<Value> {
    let wants_signatures = version(&request.model).is_none_or(|version| version >= 3.0);
    let mut contents = Vec::new();
    let mut open: Vec<OpenCall> = Vec::new();
    for message in &request.messages {
        match message {
            ModelMessage::User { text } => {
                answer(&mut open, &[], &mut contents);
                contents.extend(user_text(text));
            }
            ModelMessage::Assistant { parts, replay } => {
                answer(&mut open, &[], &mut contents);
                match usable_replay(replay.as_ref(), endpoint, &request.model) {
                    Some(replay) => {
                        open = replayed_calls(replay, parts);
                        contents.push(replay.clone());
                    }
                    None => {
                        let wire = assistant_parts(parts, wants_signatures, &mut open);
                        if !wire.is_empty() {
                            contents.push(json!({ "role": "model", "parts": wire }));
                        }
                    }
                }
            }
            ModelMessage::ToolResults { results } => answer(&mut open, results, &mut contents),
        }
    }
    answer(&mut open, &[], &mut contents);
    contents
}

/// Answers all open calls in one message, in call order; results of no call follow as text.
fn answer(open: &mut Vec<OpenCall>, results: &[ToolResult], contents: &mut Vec<Value>) {
    let mut results: Vec<&ToolResult> = results.iter().collect();
    let parts: Vec<Value> = std::mem::take(open)
        .into_iter()
        .map(|call| {
            let found = results.iter().position(|result| result.tool_call_id == call.id);
            let response = match found.map(|at| results.remove(at)) {
                Some(result) if !result.is_error => json!({ "output": result.content }),
                Some(result) => json!({ "error": result.content }),
                None => json!({ "error": NO_RESULT }),
            };
            let mut answer = Map::new();
            if let Some(id) = call.wire_id {
                answer.insert("id".to_owned(), json!(id));
            }
            answer.insert("name".to_owned(), json!(call.name));
            answer.insert("response".to_owned(), response);
            json!({ "functionResponse": answer })
        })
        .collect();
    if !parts.is_empty() {
        contents.push(json!({ "role": "user", "parts": parts }));
    }
    for result in results {
        contents.extend(user_text(&format!(
            "Result of the tool `{}`:\n{}",
            result.tool_name, result.content
        )));
    }
}

/// Text without anything in it is refused by the endpoint.
fn user_text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "role": "user", "parts": [{ "text": text }] }))
}

/// The calls of a record. One without an id is known by that of the displayable part at the same place.
fn replayed_calls(record: &Value, parts: &[AssistantPart]) -> Vec<OpenCall> {
    let mut known = parts.iter().filter_map(|part| match part {
        AssistantPart::ToolCall { id, .. } => Some(id.clone()),
        AssistantPart::Text { .. } => None,
    });
    let wire = record.get("parts").and_then(Value::as_array);
    wire.into_iter()
        .flatten()
        .filter_map(|part| {
            let call = part.get("functionCall")?;
            let name = call.get("name")?.as_str()?.to_owned();
            let wire_id = call.get("id").and_then(Value::as_str).map(str::to_owned);
            let id = known.next().or_else(|| wire_id.clone()).unwrap_or_default();
            Some(OpenCall { id, wire_id, name })
        })
        .collect()
}

/// The parts of a round of another model. Of its calls the first stands for the signature of all.
fn assistant_parts(parts: &[AssistantPart], wants_signatures: bool, open: &mut Vec<OpenCall>) -> Vec<Value> {
    let mut wire = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text { text } if text.is_empty() => {}
            AssistantPart::Text { text } => wire.push(json!({ "text": text })),
            AssistantPart::ToolCall { id, name, arguments } => {
                let mut part =
                    json!({ "functionCall": { "name": name, "args": arguments_object(arguments) } });
                if wants_signatures && open.is_empty() {
                    part["thoughtSignature"] = json!(NOT_SIGNED);
                }
                open.push(OpenCall {
                    id: id.clone(),
                    wire_id: None,
                    name: name.clone(),
                });
                wire.push(part);
            }
        }
    }
    wire
}
