//! The arguments of a call: from the model's raw text to a JSON object, and from that to a tool's own type.

use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::ToolError;

/// The code of every error about arguments.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Makes a JSON object of the arguments as the model wrote them. Nothing and `null` are an object without fields.
///
/// # Errors
/// `invalid_arguments` when the text is not JSON (with line and column) or not an object. Such a call must not be
/// executed.
pub fn parse_arguments(raw: &str) -> Result<Value, ToolError> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Value>(raw) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(other) => Err(ToolError::new(
            INVALID_ARGUMENTS,
            format!(
                "The arguments must be one JSON object with named fields, such as {{\"name\": \"value\"}}, \
                 but {} was found. The call was not executed.",
                kind_in_words(&other)
            ),
        )),
        Err(error) if error.is_eof() => Err(ToolError::new(
            INVALID_ARGUMENTS,
            format!(
                "The arguments end in the middle of the JSON object ({error}), perhaps because an output \
                 limit cut them. The call was not executed. Send it again whole, or with less content."
            ),
        )),
        Err(error) => Err(ToolError::new(
            INVALID_ARGUMENTS,
            format!("The arguments are not valid JSON: {error}. The call was not executed."),
        )),
    }
}

fn kind_in_words(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads a tool's own arguments from the object.
///
/// # Errors
/// `invalid_arguments` with the field, what was found and what is expected.
pub(crate) fn decode<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        let found = error.inner();
        let message = if path == "." {
            format!("The arguments do not fit: {found}.")
        } else {
            format!("The argument `{path}` does not fit: {found}.")
        };
        ToolError::new(INVALID_ARGUMENTS, message)
    })
}

/// The JSON Schema of a tool's arguments in the plain form that every provider takes: one object schema without
/// `$schema`, titles and references. An optional field is one that is not in `required`.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        root.remove("description");
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties
                .values_mut()
                .filter_map(Value::as_object_mut)
                .for_each(simplify_property);
        }
    }
    schema
}

/// Takes away what only some providers understand: the null type of optional fields, formats and empty defaults.
fn simplify_property(property: &mut Map<String, Value>) {
    property.remove("format");
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::String(description)) = property.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

/// A whole number from 1. A model may write it as `3` or `3.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PositiveInteger(u64);

impl PositiveInteger {
    /// The number.
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for PositiveInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PositiveIntegerVisitor)
    }
}

struct PositiveIntegerVisitor;

impl Visitor<'_> for PositiveIntegerVisitor {
    type Value = PositiveInteger;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number from 1")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        if value == 0 {
            return Err(E::invalid_value(serde::de::Unexpected::Unsigned(0), &self));
        }
        Ok(PositiveInteger(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
        // Up to here each whole number has its own floating point value.
        const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && (1.0..=LARGEST_EXACT).contains(&value) {
            return Ok(PositiveInteger(value as u64));
        }
        Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
    }
}

impl JsonSchema for PositiveInteger {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PositiveInteger".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is read here stands for any tool's arguments.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// Where it is,
        /// in words.
        path: String,
        /// How many.
        count: Option<PositiveInteger>,
        /// Whether it is loud.
        loud: Option<bool>,
    }

    fn message(arguments: Value) -> String {
        let error = decode::<Sample>(&arguments).unwrap_err();
        assert_eq!(error.code, "invalid_arguments");
        error.message
    }

    #[test]
    fn nothing_and_null_are_an_empty_object() {
        for raw in ["", "  \n", "null", " null ", "{}"] {
            assert_eq!(parse_arguments(raw).unwrap(), json!({}), "{raw:?}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_position() {
        let error = parse_arguments("{\"path\": oops}").unwrap_err();
        assert_eq!(error.code, "invalid_arguments");
        assert!(error.message.contains("line 1 column 10"), "{}", error.message);
    }

    #[test]
    fn cut_arguments_are_told_from_wrong_ones() {
        let error = parse_arguments("{\"path\": \"src/ma").unwrap_err();
        assert_eq!(error.code, "invalid_arguments");
        assert!(error.message.contains("output limit"), "{}", error.message);
    }

    #[test]
    fn json_that_is_not_an_object_is_refused_with_what_was_found() {
        for (raw, found) in [
            ("[1]", "an array"),
            ("\"a\"", "a string"),
            ("7", "a number"),
            ("true", "a boolean"),
        ] {
            let error = parse_arguments(raw).unwrap_err();
            assert_eq!(error.code, "invalid_arguments");
            assert!(error.message.contains(found), "{}", error.message);
        }
    }

    #[test]
    fn arguments_nested_without_end_are_refused() {
        let error = parse_arguments(&"[".repeat(100_000)).unwrap_err();
        assert_eq!(error.code, "invalid_arguments");
    }

    #[test]
    fn a_wrong_field_is_named_with_what_was_found_and_expected() {
        assert_eq!(
            message(json!({"path": 5})),
            "The argument `path` does not fit: invalid type: integer `5`, expected a string."
        );
        assert_eq!(
            message(json!({"path": "a", "count": "ten"})),
            "The argument `count` does not fit: invalid type: string \"ten\", expected a whole number from 1."
        );
        assert_eq!(
            message(json!({})),
            "The arguments do not fit: missing field `path`."
        );
        let unknown = message(json!({"path": "a", "speed": 1}));
        assert!(
            unknown.contains("unknown field `speed`, expected one of `path`, `count`, `loud`"),
            "{unknown}"
        );
    }

    #[test]
    fn whole_numbers_are_taken_in_both_spellings_and_nothing_else() {
        let sample = |count: Value| decode::<Sample>(&json!({"path": "a", "count": count}));
        assert_eq!(sample(json!(3)).unwrap().count, Some(PositiveInteger(3)));
        assert_eq!(sample(json!(3.0)).unwrap().count, Some(PositiveInteger(3)));
        assert_eq!(sample(Value::Null).unwrap().count, None);
        for wrong in [
            json!(0),
            json!(-1),
            json!(1.5),
            json!(1e300),
            json!("3"),
            json!([]),
        ] {
            assert!(sample(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_schema_is_one_plain_closed_object() {
        assert_eq!(
            schema_of::<Sample>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Where it is, in words.", "type": "string"},
                    "count": {"description": "How many.", "type": "integer", "minimum": 1},
                    "loud": {"description": "Whether it is loud.", "type": "boolean"}
                },
                "additionalProperties": false,
                "required": ["path"]
            })
        );
    }
}
