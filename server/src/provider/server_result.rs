//! What can be shown of the result of a tool that the provider ran itself.
//!
//! Results hold opaque values (`encrypted_content`, `encrypted_index`, encrypted stdout). What is shown is built from
//! fields that are known to be readable; a field that is not known is never shown.

use serde_json::{Map, Value};

/// Fields whose values are for people, in results of any kind.
const READABLE: [&str; 26] = [
    "type",
    "title",
    "url",
    "page_age",
    "text",
    "stdout",
    "stderr",
    "return_code",
    "content",
    "error_code",
    "error_message",
    "file_type",
    "num_lines",
    "start_line",
    "total_lines",
    "is_file_update",
    "old_start",
    "old_lines",
    "new_start",
    "new_lines",
    "lines",
    "retrieved_at",
    "tool_references",
    "tool_name",
    "source",
    "media_type",
];

/// The readable text of a result block, and whether it reports a failure.
pub(super) fn displayable(block: &Map<String, Value>) -> (String, bool) {
    let content = block.get("content").unwrap_or(&Value::Null);
    let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false)
        || content.get("error_code").is_some_and(|code| !code.is_null())
        || content
            .get("return_code")
            .and_then(Value::as_i64)
            .is_some_and(|code| code != 0);
    (text_of(content), is_error)
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(items) => items
            .iter()
            .map(text_of)
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n"),
        Value::Object(object) => text_of_object(object),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

fn text_of_object(object: &Map<String, Value>) -> String {
    let text = |key: &str| {
        object
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    if let Some(code) = text("error_code") {
        return text("error_message").map_or_else(|| code.to_owned(), |message| format!("{code}: {message}"));
    }
    if object.contains_key("stdout") || object.contains_key("stderr") {
        let code = object
            .get("return_code")
            .and_then(Value::as_i64)
            .filter(|code| *code != 0);
        return [
            text("stdout").map(str::to_owned),
            text("stderr").map(str::to_owned),
            code.map(|code| format!("exit code {code}")),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n");
    }
    if let Some(url) = text("url").filter(|_| !object.contains_key("content")) {
        let title = text("title")
            .map(|title| format!("{title}\n"))
            .unwrap_or_default();
        return format!("{title}{url}");
    }
    if let Some(text) = text("text") {
        return text.to_owned();
    }
    if let Some(Value::String(content)) = object.get("content") {
        return content.clone();
    }
    let readable = readable(object);
    if readable.keys().all(|key| key == "type") {
        return String::new();
    }
    serde_json::to_string_pretty(&Value::Object(readable)).unwrap_or_default()
}

fn readable(object: &Map<String, Value>) -> Map<String, Value> {
    // A document's `data` is text only where its source says so; else it is a file in base64.
    let is_text_source = object.get("type").and_then(Value::as_str) == Some("text");
    object
        .iter()
        .filter(|(key, _)| READABLE.contains(&key.as_str()) || is_text_source && *key == "data")
        .map(|(key, value)| (key.clone(), readable_value(value)))
        .collect()
}

fn readable_value(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(readable(object)),
        Value::Array(items) => Value::Array(items.iter().map(readable_value).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(block: Value) -> (String, bool) {
        displayable(block.as_object().expect("an object"))
    }

    #[test]
    fn results_are_shown_by_their_readable_fields_only() {
        let search = json!({"type":"web_search_tool_result","content":[
            {"type":"web_search_result","title":"A","url":"https://a","encrypted_content":"HIDDEN","page_age":null},
            {"type":"web_search_result","title":"B","url":"https://b","encrypted_content":"HIDDEN"}]});
        assert_eq!(shown(search), ("A\nhttps://a\n\nB\nhttps://b".to_owned(), false));
        let code = json!({"content":{"type":"bash_code_execution_result","stdout":"out\n","stderr":"bad","return_code":2,"content":[]}});
        assert_eq!(shown(code), ("out\n\nbad\nexit code 2".to_owned(), true));
        let failed =
            json!({"content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}});
        assert_eq!(shown(failed), ("max_uses_exceeded".to_owned(), true));
        let unknown = json!({"content":{"type":"advisor_redacted_result","encrypted_content":"HIDDEN","novel":"HIDDEN"}});
        assert_eq!(shown(unknown), (String::new(), false));
        let fetched = json!({"content":{"type":"web_fetch_result","url":"https://a","retrieved_at":"now","content":
            {"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"HIDDEN"},"title":"T"}}});
        let (text, _) = shown(fetched);
        assert!(
            text.contains("https://a") && text.contains("\"T\"") && !text.contains("HIDDEN"),
            "{text}"
        );
    }
}
