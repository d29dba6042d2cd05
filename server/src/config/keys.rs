//! The list of all keys, read from the shape of the settings so that there is only one.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::settings::Settings;

/// How the value of a key is written in an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// As it is.
    Text,
    /// As a TOML value.
    Toml,
}

/// Every key with its kind: `server.listen`, `providers`, `providers[].models[].id`, … A table of fixed keys is not
/// itself in the list, a list of tables is.
pub(super) fn keys() -> BTreeMap<String, KeyKind> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Settings>();
    let mut keys = BTreeMap::new();
    collect(schema.as_value(), "", &mut keys);
    keys
}

fn collect(schema: &Value, path: &str, keys: &mut BTreeMap<String, KeyKind>) {
    // An optional table is `anyOf: [table, null]`.
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    if let Some(table) = alternatives.and_then(|all| all.iter().find(|one| one.get("properties").is_some())) {
        return collect(table, path, keys);
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, inner) in properties {
            let key = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            collect(inner, &key, keys);
        }
        return;
    }
    keys.insert(path.to_owned(), kind(schema));
    if let Some(items) = schema
        .get("items")
        .filter(|items| items.get("properties").is_some())
    {
        collect(items, &format!("{path}[]"), keys);
    }
}

fn kind(schema: &Value) -> KeyKind {
    let is_text = match schema.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        // An enumeration whose variants are documented is `oneOf: [{const: …}, …]`.
        _ => schema.get("oneOf").is_some() || schema.get("enum").is_some(),
    };
    if is_text { KeyKind::Text } else { KeyKind::Toml }
}
