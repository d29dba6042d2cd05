//! Items of tools that the provider runs itself: what can be shown of the call and of its result.
//!
//! What is shown is built from fields that are known to be readable; a field that is not known is never shown.

use serde_json::{Map, Value, json};

use crate::provider::server_result;

/// Whether items of this type are calls that the provider runs, or asks somebody else to run.
pub(super) fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "web_search_call"
            | "file_search_call"
            | "code_interpreter_call"
            | "image_generation_call"
            | "mcp_call"
            | "mcp_list_tools"
            | "mcp_approval_request"
            | "shell_call"
            | "local_shell_call"
            | "apply_patch_call"
            | "computer_call"
            | "tool_search_call"
            | "compaction"
            | "program"
    )
}

/// The name under which the call is shown.
pub(super) fn name(item: &Map<String, Value>) -> String {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("type"), text("name")) {
        ("mcp_call", name) if !name.is_empty() => name.to_owned(),
        (kind, _) => kind.strip_suffix("_call").unwrap_or(kind).to_owned(),
    }
}

/// The arguments of the call as JSON text.
pub(super) fn arguments(item: &Map<String, Value>) -> Option<String> {
    for key in ["arguments", "action", "operation"] {
        match item.get(key) {
            Some(Value::String(text)) if !text.is_empty() => return Some(text.clone()),
            Some(object @ Value::Object(_)) => return Some(object.to_string()),
            _ => {}
        }
    }
    ["queries", "code"].into_iter().find_map(|key| {
        let value = item.get(key).filter(|value| !value.is_null())?;
        Some(json!({ key: value }).to_string())
    })
}

/// The result that stands in the item itself, and whether it reports a failure. Calls whose result is an item of its
/// own have none.
pub(super) fn result(item: &Map<String, Value>) -> Option<(String, bool)> {
    let error = item.get("error").filter(|error| !error.is_null());
    let failed = error.is_some() || item.get("status").and_then(Value::as_str) == Some("failed");
    let content = error.or_else(|| {
        ["output", "outputs", "results", "tools"]
            .into_iter()
            .filter_map(|key| item.get(key))
            .find(|value| !value.is_null())
    })?;
    if content.as_array().is_some_and(Vec::is_empty) {
        return None;
    }
    let (text, is_error) = readable(content);
    Some((text, failed || is_error))
}

fn readable(content: &Value) -> (String, bool) {
    let Some(list) = content.as_array() else {
        let message = content.get("message").filter(|message| message.is_string());
        return displayable(message.unwrap_or(content));
    };
    let mut is_error = false;
    let texts = list.iter().map(|entry| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let code = entry.pointer("/outcome/exit_code").and_then(Value::as_i64);
        let timed_out = entry.pointer("/outcome/type").and_then(Value::as_str) == Some("timeout");
        is_error |= timed_out || code.is_some_and(|code| code != 0);
        // Tools are told by their names, logs by themselves; all else by what is known to be readable.
        if let Some(logs) = text("logs") {
            return logs.to_owned();
        }
        if let Some(name) = text("name") {
            return name.to_owned();
        }
        let mut entry = entry.clone();
        if let (Some(code), Some(fields)) = (code, entry.as_object_mut()) {
            fields.insert("return_code".to_owned(), json!(code));
        }
        displayable(&entry).0
    });
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    (texts.join("\n"), is_error)
}

fn displayable(content: &Value) -> (String, bool) {
    let mut block = Map::new();
    block.insert("content".to_owned(), content.clone());
    server_result::displayable(&block)
}
