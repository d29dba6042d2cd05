//! Reads the top-level fields out of a JSON object that may not be finished: a tool call's arguments while they stream.

use std::iter::Peekable;
use std::str::Chars;

/// The top-level fields of an object, as far as they have come, in their order. Strings are unescaped; numbers and words
/// stand as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    texts: Vec<(String, String)>,
    /// Arrays and objects, as JSON.
    nested: Vec<(String, String)>,
}

impl Fields {
    /// Reads what is there. What is not an object has no fields.
    pub fn read(text: &str) -> Self {
        let mut fields = Self::default();
        let mut chars = text.chars().peekable();
        if skip_space(&mut chars) == Some('{') {
            chars.next();
            while let Some((name, value)) = field(&mut chars) {
                match value {
                    Value::Missing => {}
                    Value::Text(value) => fields.texts.push((name, value)),
                    Value::Nested(value) => fields.nested.push((name, value)),
                }
            }
        }
        fields
    }

    /// The value of a field that has come and is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.texts
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The value of the first of several fields that has come and is not empty.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Whether a field has come, also one that is empty.
    pub fn has(&self, name: &str) -> bool {
        self.texts.iter().any(|(known, _)| known == name)
    }

    /// An array or object, as JSON, as far as it has come.
    pub fn nested(&self, name: &str) -> Option<&str> {
        self.nested
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first field that is not empty.
    pub fn first(&self) -> Option<&str> {
        self.texts
            .iter()
            .map(|(_, value)| value.as_str())
            .find(|value| !value.is_empty())
    }
}

/// What came of a field after its name.
enum Value {
    Missing,
    Text(String),
    Nested(String),
}

type Input<'a> = Peekable<Chars<'a>>;

fn skip_space(chars: &mut Input<'_>) -> Option<char> {
    while chars
        .next_if(|next| next.is_ascii_whitespace() || *next == ',')
        .is_some()
    {}
    chars.peek().copied()
}

/// The next field; its value is missing while nothing of it has come.
fn field(chars: &mut Input<'_>) -> Option<(String, Value)> {
    if skip_space(chars)? != '"' {
        return None;
    }
    chars.next();
    let name = string(chars)?;
    if skip_space(chars) != Some(':') {
        return None;
    }
    chars.next();
    match skip_space(chars) {
        None => Some((name, Value::Missing)),
        Some('"') => {
            chars.next();
            let mut value = String::new();
            string_into(chars, &mut value);
            Some((name, Value::Text(value)))
        }
        Some('{' | '[') => Some((name, Value::Nested(nested(chars)))),
        Some(_) => {
            let mut value = String::new();
            while let Some(next) =
                chars.next_if(|next| !matches!(next, ',' | '}') && !next.is_ascii_whitespace())
            {
                value.push(next);
            }
            Some((name, Value::Text(value)))
        }
    }
}

/// A string after its opening quote, if its closing one has come.
fn string(chars: &mut Input<'_>) -> Option<String> {
    let mut text = String::new();
    string_into(chars, &mut text).then_some(text)
}

/// Reads a string after its opening quote. Says whether its closing one has come.
fn string_into(chars: &mut Input<'_>, text: &mut String) -> bool {
    while let Some(next) = chars.next() {
        match next {
            '"' => return true,
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('b') => text.push('\u{8}'),
                Some('f') => text.push('\u{c}'),
                Some('u') => match escape(chars) {
                    Some(character) => text.push(character),
                    None => return false,
                },
                Some(other) => text.push(other),
                None => return false,
            },
            other => text.push(other),
        }
    }
    false
}

/// The character of an escape after its `\u`: one unit, or two that form a pair. `None` while it is not whole.
fn escape(chars: &mut Input<'_>) -> Option<char> {
    let unit = |chars: &mut Input<'_>| {
        let mut value = 0;
        for _ in 0..4 {
            value = value * 16 + chars.next()?.to_digit(16)?;
        }
        Some(value)
    };
    let first = unit(chars)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    chars.next_if_eq(&'\\')?;
    chars.next_if_eq(&'u')?;
    let second = unit(chars)?;
    let joined = 0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff);
    Some(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// An array or an object as it is written, without recursion.
fn nested(chars: &mut Input<'_>) -> String {
    let mut written = String::new();
    let mut depth = 0_usize;
    let mut is_string = false;
    while let Some(next) = chars.next() {
        written.push(next);
        match next {
            '\\' if is_string => written.extend(chars.next()),
            '"' => is_string = !is_string,
            '{' | '[' if !is_string => depth += 1,
            '}' | ']' if !is_string => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_as_soon_as_a_part_of_it_has_come() {
        let whole = r#"{"path": "src/a\n\"b\u00e9.rs", "deep": {"x": ["}"]}, "lines": 12, "end": true}"#;
        let fields = Fields::read(whole);
        assert_eq!(fields.get("path"), Some("src/a\n\"bé.rs"));
        assert_eq!(fields.get("lines"), Some("12"));
        assert_eq!(fields.get("end"), Some("true"));
        assert_eq!(fields.get("deep"), None);
        assert_eq!(fields.nested("deep"), Some(r#"{"x": ["}"]}"#));
        assert_eq!(Fields::read(r#"{"path": "src/a"#).get("path"), Some("src/a"));
        assert_eq!(Fields::read(r#"{"path": "src/a\"#).get("path"), Some("src/a"));
        assert_eq!(Fields::read(r#"{"pa"#).first(), None);
        assert_eq!(Fields::read(r#"{"path":"#).first(), None);
    }

    #[test]
    fn every_prefix_of_every_value_is_a_prefix_of_the_whole() {
        let whole = r#"{"a": {"b": "\"}"}, "text": "one \ud83d\ude00 two\\ three", "n": -1.5e3 }"#;
        let last = Fields::read(whole);
        assert_eq!(last.get("text"), Some("one 😀 two\\ three"));
        assert_eq!(last.get("n"), Some("-1.5e3"));
        for (end, _) in whole.char_indices() {
            let Fields { texts, nested } = Fields::read(&whole[..end]);
            for (name, value) in texts.into_iter().chain(nested) {
                let mut all = last.texts.iter().chain(&last.nested);
                let known = all.find(|(known, _)| *known == name).unwrap();
                assert!(known.1.starts_with(&value), "{name}: {value:?} at {end}");
            }
        }
    }

    #[test]
    fn what_is_not_an_object_has_no_fields() {
        for text in ["", "[1]", "\"a\"", "{", "{1: 2}", "}{", "{\"a\" \"b\"}"] {
            assert_eq!(Fields::read(text), Fields::default(), "{text}");
        }
    }
}
