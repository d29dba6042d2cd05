//! Responses requests. The wording of refusals follows the real service.

use serde_json::Value;

use super::super::failure::Failure;
use super::super::wire::signature;
use super::{Heard, Incoming, check_tool_names, choose, common};

pub(super) fn read(body: &Value) -> Result<Incoming, Failure> {
    let (model, items) = common(body, "input")?;
    if let Some(tools) = body.get("tools").and_then(Value::as_array) {
        check_tool_names(
            tools.iter().map(|tool| tool.get("name").and_then(Value::as_str)),
            64,
        )?;
    }
    let mut input = Input::default();
    for (index, item) in items.iter().enumerate() {
        input.item(index, item)?;
    }
    input.finish_round()?;
    input.follow_reasoning(None)?;
    choose(model, &input.heard, false)
}

/// The conversation as far as it was read.
#[derive(Default)]
struct Input {
    heard: Vec<Heard>,
    /// Every call so far, and those that wait for their output.
    calls: Vec<String>,
    open_calls: Vec<String>,
    /// Whether the calls of a round are being answered.
    answering: bool,
    /// Reasoning whose item has not come yet.
    reasoning: Option<String>,
}

impl Input {
    fn item(&mut self, index: usize, item: &Value) -> Result<(), Failure> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "" => "message",
            kind => kind,
        };
        if kind != "function_call_output" && self.answering {
            self.finish_round()?;
        }
        match kind {
            "message" => self.message(index, item),
            "reasoning" => {
                let summary = item.get("summary").and_then(Value::as_array);
                let texts = summary.into_iter().flatten();
                let joined: Vec<&str> = texts
                    .filter_map(|part| part.get("text").and_then(Value::as_str))
                    .collect();
                if text("encrypted_content") != signature(&joined.join("\n\n")) {
                    return Err(Failure::invalid(format!(
                        "The encrypted content of item input[{index}] could not be verified."
                    )));
                }
                self.reasoning = Some(text("id").to_owned());
                Ok(())
            }
            "function_call" => {
                self.follow_reasoning(Some("function_call"))?;
                let call_id = text("call_id");
                if call_id.is_empty() || text("name").is_empty() {
                    return Err(Failure::invalid(format!(
                        "Missing required parameter: 'input[{index}].call_id' or 'input[{index}].name'."
                    )));
                }
                if self.calls.iter().any(|known| known == call_id) {
                    return Err(Failure::invalid(format!(
                        "Duplicate call_id '{call_id}' (input[{index}])."
                    )));
                }
                if !serde_json::from_str::<Value>(text("arguments")).is_ok_and(|value| value.is_object()) {
                    return Err(Failure::invalid(format!(
                        "Invalid 'input[{index}].arguments': expected a string with a JSON object."
                    )));
                }
                self.calls.push(call_id.to_owned());
                self.open_calls.push(call_id.to_owned());
                Ok(())
            }
            "function_call_output" => {
                self.answering = true;
                let call_id = text("call_id");
                let Some(found) = self.open_calls.iter().position(|open| open == call_id) else {
                    return Err(Failure::invalid(format!(
                        "No tool call found for function call output with call_id {call_id}."
                    )));
                };
                self.open_calls.remove(found);
                if !item.get("output").is_some_and(Value::is_string) {
                    return Err(Failure::invalid(format!(
                        "Missing required parameter: 'input[{index}].output'."
                    )));
                }
                Ok(())
            }
            other => Err(Failure::invalid(format!(
                "Invalid value: '{other}' (input[{index}].type)."
            ))),
        }
    }

    fn message(&mut self, index: usize, item: &Value) -> Result<(), Failure> {
        let content = content(index, item)?;
        match item.get("role").and_then(Value::as_str).unwrap_or_default() {
            "system" | "developer" => Ok(()),
            "user" => {
                self.follow_reasoning(None)?;
                self.refuse_unanswered()?;
                self.heard.push(Heard::Prompt(content));
                Ok(())
            }
            "assistant" => self.follow_reasoning(Some("message")),
            other => Err(Failure::invalid(format!(
                "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer' and 'user' \
                 (input[{index}].role)."
            ))),
        }
    }

    /// Reasoning stands before what came of it.
    fn follow_reasoning(&mut self, follower: Option<&str>) -> Result<(), Failure> {
        match self.reasoning.take() {
            Some(id) if follower.is_none() => Err(Failure::invalid(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ))),
            _ => Ok(()),
        }
    }

    fn refuse_unanswered(&self) -> Result<(), Failure> {
        match self.open_calls.first() {
            None => Ok(()),
            Some(call_id) => Err(Failure::invalid(format!(
                "No tool output found for function call {call_id}."
            ))),
        }
    }

    /// Another item or the end after outputs: all calls must be answered.
    fn finish_round(&mut self) -> Result<(), Failure> {
        self.refuse_unanswered()?;
        if std::mem::take(&mut self.answering) {
            self.heard.push(Heard::AnsweredRound);
        }
        Ok(())
    }
}

fn content(index: usize, item: &Value) -> Result<String, Failure> {
    match item.get("content") {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.get("text").or_else(|| part.get("refusal"))?.as_str())
                .collect();
            Ok(texts.join("\n"))
        }
        _ => Err(Failure::invalid(format!(
            "Invalid value for 'content': expected a string or a list of parts (input[{index}].content)."
        ))),
    }
}
