//! What the reference definitions and footnotes of a text have said so far.

use std::collections::BTreeMap;

/// A link definition as the parser found it.
#[derive(Debug, Clone)]
pub(super) struct LinkDefinition {
    /// The label, not yet in the form in which labels are compared.
    pub(super) label: String,
    pub(super) destination: String,
    pub(super) title: String,
    /// Where it starts, in the source that was parsed.
    pub(super) start: usize,
}

/// Settled definitions. The first definition of a label wins.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    links: BTreeMap<String, (String, String)>,
    /// The piece that holds the footnote's definition.
    footnotes: BTreeMap<String, usize>,
}

impl Definitions {
    /// Takes in a link definition. Returns its key if it is the first of its label.
    pub(super) fn define_link(&mut self, definition: &LinkDefinition) -> Option<String> {
        let key = label_key(&definition.label);
        if self.links.contains_key(&key) {
            return None;
        }
        self.links.insert(
            key.clone(),
            (definition.destination.clone(), definition.title.clone()),
        );
        Some(key)
    }

    /// Takes in a footnote's definition in this piece. Returns its key if it is the first of its label.
    pub(super) fn define_footnote(&mut self, label: &str, piece: usize) -> Option<String> {
        let key = footnote_key(label);
        if self.footnotes.contains_key(&key) {
            return None;
        }
        self.footnotes.insert(key.clone(), piece);
        Some(key)
    }

    /// Destination and title of a link label.
    pub(super) fn link(&self, label: &str) -> Option<(&str, &str)> {
        self.links
            .get(&label_key(label))
            .map(|(destination, title)| (destination.as_str(), title.as_str()))
    }

    /// The piece that defines the footnote.
    pub(super) fn footnote(&self, label: &str) -> Option<usize> {
        self.footnotes.get(&footnote_key(label)).copied()
    }
}

/// The form in which link labels are compared (CommonMark §4.7): case folded, white space collapsed.
pub(super) fn label_key(label: &str) -> String {
    let mut key = String::with_capacity(label.len());
    for word in label.split_whitespace() {
        if !key.is_empty() {
            key.push(' ');
        }
        // By way of upper case, so that letters with several lower case forms become one; and first of all small, since
        // the large sharp s has two letters only from there.
        key.push_str(&word.to_lowercase().to_uppercase().to_lowercase());
    }
    key
}

/// The key of a footnote's label: it shares the keys' space with link labels, whose brackets never start with `^`.
pub(super) fn footnote_key(label: &str) -> String {
    let mut key = label_key(label);
    key.insert(0, '^');
    key
}

/// A part of an element's id: letters, digits, `-` and `_` stay; each other character becomes its code, so that different
/// labels have different ids.
pub(super) fn id_of(label: &str) -> String {
    let mut id = String::with_capacity(label.len());
    for character in label.chars() {
        if character.is_ascii_alphanumeric() || matches!(character, '-' | '_') {
            id.push(character);
        } else {
            id.push('.');
            let mut code = u32::from(character);
            loop {
                id.push(char::from_digit(code % 16, 16).unwrap_or('0'));
                code /= 16;
                if code == 0 {
                    break;
                }
            }
            id.push('.');
        }
    }
    id
}
