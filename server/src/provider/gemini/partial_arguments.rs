//! Arguments that come in pieces: values by their JSON path, strings piece by piece.

use serde_json::{Map, Value};

/// The longest list that a path may ask for: an index is a number that somebody else wrote.
const MOST_ENTRIES: usize = 10_000;

/// Arguments on their way.
#[derive(Debug, Default)]
pub(super) struct PartialArguments(Map<String, Value>);

impl PartialArguments {
    /// Takes one entry of `partialArgs`.
    pub(super) fn take(&mut self, entry: &Value) {
        let path = entry.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        let mut steps = steps(path).into_iter();
        let Some(Step::Key(first)) = steps.next() else {
            return;
        };
        let mut place = self.0.entry(first).or_insert(Value::Null);
        for step in steps {
            let Some(next) = enter(place, step) else { return };
            place = next;
        }
        if let Some(text) = entry.get("stringValue").and_then(Value::as_str) {
            match place {
                Value::String(held) => held.push_str(text),
                _ => *place = Value::String(text.to_owned()),
            }
        } else if let Some(value) = ["numberValue", "boolValue"]
            .iter()
            .find_map(|key| entry.get(*key))
        {
            *place = value.clone();
        }
    }

    /// What came, as an object.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

enum Step {
    Key(String),
    Index(usize),
}

/// The steps of a path such as `$.city.names[0]['a.b']`.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let quote = inner.chars().next().filter(|first| matches!(first, '\'' | '"'));
            let (end, skip) = match quote {
                Some(quote) => (inner.find(&format!("{quote}]")), 2),
                None => (inner.find(']'), 1),
            };
            let Some(end) = end else { return Vec::new() };
            let name = inner
                .get(quote.map_or(0, char::len_utf8)..end)
                .unwrap_or_default();
            steps.push(match (quote, name.parse()) {
                (None, Ok(index)) => Step::Index(index),
                _ => Step::Key(name.to_owned()),
            });
            rest = inner.get(end + skip..).unwrap_or_default();
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 {
                return Vec::new();
            }
            steps.push(Step::Key(name.get(..end).unwrap_or_default().to_owned()));
            rest = name.get(end..).unwrap_or_default();
        }
    }
    steps
}

/// The place one step further, made where there is none yet.
fn enter(place: &mut Value, step: Step) -> Option<&mut Value> {
    match step {
        Step::Key(key) => {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            Some(place.as_object_mut()?.entry(key).or_insert(Value::Null))
        }
        Step::Index(index) if index < MOST_ENTRIES => {
            if place.is_null() {
                *place = Value::Array(Vec::new());
            }
            let list = place.as_array_mut()?;
            if list.len() <= index {
                list.resize(index + 1, Value::Null);
            }
            list.get_mut(index)
        }
        Step::Index(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_find_their_places_and_strings_grow() {
        let mut arguments = PartialArguments::default();
        for entry in [
            json!({"jsonPath":"$.city","stringValue":"Bos","willContinue":true}),
            json!({"jsonPath":"$.city","stringValue":"ton"}),
            json!({"jsonPath":"$.days[1].hot","boolValue":true}),
            json!({"jsonPath":"$.days[0]","numberValue":3}),
            json!({"jsonPath":"$['a.b']","stringValue":""}),
            json!({"jsonPath":"$.list[99999999]","numberValue":1}),
            json!({"jsonPath":"$..","numberValue":1}),
            json!({"jsonPath":"$.city.name","numberValue":1}),
            json!({"jsonPath":"$[","numberValue":1}),
        ] {
            arguments.take(&entry);
        }
        assert_eq!(
            arguments.into_value(),
            json!({"city":"Boston","days":[3,{"hot":true}],"a.b":"","list":null})
        );
    }
}
