//! The record of an answer for the next request to the same endpoint and model.

use serde_json::{Value, json};

use super::item::{Item, Role};
use crate::provider::BlockStart;

/// The items in the provider's order, or nothing where none may be sent back.
pub(super) fn replay(items: &[Item], completed: bool) -> Option<Value> {
    let mut kept: Vec<&Item> = items.iter().collect();
    kept.sort_by_key(|item| item.index);
    if !completed {
        // Reasoning is refused without the item that came of it.
        while kept.last().is_some_and(|item| item.role == Role::Reasoning) {
            kept.pop();
        }
    }
    let mut lost_reasoning = false;
    let mut output = Vec::with_capacity(kept.len());
    for item in kept {
        match replay_item(item) {
            Some(value) => output.push(value),
            None => lost_reasoning |= item.role == Role::Reasoning,
        }
    }
    if lost_reasoning {
        // An id ties an item to the reasoning before it, which cannot go with it.
        for item in output.iter_mut().filter_map(Value::as_object_mut) {
            let kind = item.get("type").and_then(Value::as_str);
            if matches!(kind, Some("message" | "function_call" | "custom_tool_call")) {
                item.shift_remove("id");
            }
        }
    }
    (!output.is_empty()).then(|| json!({ "output": output }))
}

/// The item for the next request, or nothing where it may not be sent back: reasoning that neither the provider
/// nor the model could read again, and a message without content.
fn replay_item(item: &Item) -> Option<Value> {
    let mut value = item.value().clone();
    let is_empty = |key: &str| {
        value.get(key).is_none_or(|held| match held {
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => true,
        })
    };
    match item.role {
        Role::Reasoning if is_empty("encrypted_content") && is_empty("content") => return None,
        Role::Message if is_empty("content") => {
            let parts: Vec<Value> = item
                .parts
                .iter()
                .map(|(_, kind, block)| match kind {
                    BlockStart::Refusal => json!({ "type": "refusal", "refusal": block.content }),
                    _ => json!({ "type": "output_text", "text": block.content, "annotations": [] }),
                })
                .collect();
            if parts.is_empty() {
                return None;
            }
            value.insert("role".to_owned(), json!("assistant"));
            value.insert("content".to_owned(), Value::Array(parts));
        }
        Role::Call => {
            item.block.position?;
            value.insert("call_id".to_owned(), json!(item.call_id("call_id")));
            if item.text_field("type") == "function_call" {
                let is_object =
                    serde_json::from_str::<Value>(&item.block.content).is_ok_and(|held| held.is_object());
                let arguments = if is_object {
                    item.block.content.as_str()
                } else {
                    "{}"
                };
                value.insert("arguments".to_owned(), json!(arguments));
            } else {
                value.insert("input".to_owned(), json!(item.block.content));
            }
        }
        Role::Reasoning | Role::Message | Role::ServerTool | Role::ServerResult | Role::Other => {}
    }
    Some(Value::Object(value))
}
