//! How a program calls the tools, in the notation of TypeScript, made of their schemas.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::tool::ToolInfo;

/// Deeper parts of a schema are `unknown`.
const LEVELS: usize = 6;

/// One signature for each tool, with what is said about it and about its arguments.
pub(crate) fn signatures<'a>(tools: impl Iterator<Item = &'a ToolInfo>) -> String {
    let mut text = String::new();
    for info in tools {
        for line in info.description.lines() {
            let _ = writeln!(text, "// {line}");
        }
        let name = Value::from(info.name.as_str());
        let arguments = type_of(&info.parameters, LEVELS);
        let _ = writeln!(text, "tools[{name}](arguments: {arguments}): Promise<string>\n");
    }
    text.trim_end().to_owned()
}

/// The type that a schema describes.
fn type_of(schema: &Value, levels: usize) -> String {
    let unknown = || "unknown".to_owned();
    let Some(schema) = schema.as_object().filter(|_| levels > 0) else {
        return unknown();
    };
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(several)) = schema.get(key) {
            return several_of(several.iter().map(|one| type_of(one, levels - 1)));
        }
    }
    if let Some(one) = schema.get("const") {
        return one.to_string();
    }
    if let Some(Value::Array(several)) = schema.get("enum") {
        return several_of(several.iter().map(Value::to_string));
    }
    match schema.get("type") {
        Some(Value::String(name)) => of_name(name, schema, levels),
        Some(Value::Array(names)) => several_of(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| of_name(name, schema, levels)),
        ),
        _ if schema.contains_key("properties") => object(schema, levels),
        _ => unknown(),
    }
}

fn several_of(several: impl Iterator<Item = String>) -> String {
    let several: Vec<String> = several.collect();
    match several.is_empty() {
        true => "unknown".to_owned(),
        false => several.join(" | "),
    }
}

fn of_name(name: &str, schema: &Map<String, Value>, levels: usize) -> String {
    match name {
        "string" | "boolean" | "null" => name.to_owned(),
        "number" | "integer" => "number".to_owned(),
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            format!("Array<{}>", type_of(items, levels - 1))
        }
        "object" => object(schema, levels),
        _ => "unknown".to_owned(),
    }
}

fn object(schema: &Map<String, Value>, levels: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "object".to_owned();
    };
    let required = schema.get("required").and_then(Value::as_array);
    let fields: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let is_required = required.is_some_and(|names| names.iter().any(|one| one == name.as_str()));
            let is_plain = name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '_');
            let shown = match is_plain && !name.is_empty() {
                true => name.clone(),
                false => Value::from(name.as_str()).to_string(),
            };
            let mark = if is_required { "" } else { "?" };
            let kind = type_of(property, levels - 1);
            // What a comment holds must not end it.
            let words = property.get("description").and_then(Value::as_str);
            let words = words.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
            let words = words.map_or_else(String::new, |words| {
                format!("/* {} */ ", words.replace("*/", "* /"))
            });
            format!("{words}{shown}{mark}: {kind}")
        })
        .collect();
    match fields.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", fields.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_written_as_a_type() {
        for (schema, written) in [
            (json!({}), "unknown"),
            (json!({ "type": "integer" }), "number"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "enum": ["a", 1] }), "\"a\" | 1"),
            (
                json!({ "anyOf": [{ "type": "string" }, { "const": false }] }),
                "string | false",
            ),
            (
                json!({ "type": "array", "items": { "type": "boolean" } }),
                "Array<boolean>",
            ),
            (json!({ "type": "object" }), "object"),
            (
                json!({
                    "type": "object", "required": ["a"],
                    "properties": { "a": { "type": "string", "description": "One\n*/ two." }, "b-c": {} },
                }),
                "{ /* One * / two. */ a: string; \"b-c\"?: unknown }",
            ),
        ] {
            assert_eq!(type_of(&schema, LEVELS), written, "{schema}");
        }
    }

    #[test]
    fn a_schema_without_end_has_an_end() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..50 {
            schema = json!({ "type": "array", "items": schema });
        }
        assert_eq!(
            type_of(&schema, LEVELS),
            "Array<Array<Array<Array<Array<Array<unknown>>>>>>"
        );
    }
}
