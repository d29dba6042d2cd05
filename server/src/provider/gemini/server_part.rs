//! Parts of tools that the provider runs itself: what can be shown of the call and of its result.

use serde_json::{Map, Value};

use crate::provider::server_result;

/// The name and the arguments of a call.
pub(super) fn call(kind: &str, call: &Map<String, Value>) -> (String, Value) {
    if kind == "executableCode" {
        let readable = |key: &&str| Some(((*key).to_owned(), call.get(*key)?.clone()));
        let arguments = ["language", "code"].iter().filter_map(readable).collect();
        return ("code_execution".to_owned(), Value::Object(arguments));
    }
    let name = text_in(call, "toolType").or_else(|| text_in(call, "name"));
    let arguments = call.get("args").filter(|arguments| arguments.is_object());
    (
        name.unwrap_or_else(|| "tool".to_owned()),
        arguments.cloned().unwrap_or_else(|| Value::Object(Map::new())),
    )
}

/// The readable text of a result, and whether it reports a failure.
pub(super) fn result(kind: &str, result: &Map<String, Value>) -> (String, bool) {
    let key = if kind == "toolResponse" {
        "response"
    } else {
        "output"
    };
    let mut block = Map::new();
    block.insert("content".to_owned(), result.get(key).cloned().unwrap_or_default());
    let (text, is_error) = server_result::displayable(&block);
    let failed = text_in(result, "outcome").is_some_and(|outcome| outcome != "OUTCOME_OK");
    (text, failed || is_error)
}

/// A text that is not empty.
pub(super) fn text_in(object: &Map<String, Value>, key: &str) -> Option<String> {
    object
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
