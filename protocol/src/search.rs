//! Searching the content of a session: what is asked, what is found, and what counts as the same text.

use serde::{Deserialize, Serialize};

use crate::id::{AttemptId, BlockId, MessageId, NodeId, RunId};
use crate::snapshot::Snapshot;

/// The most characters of what is searched for.
pub const MAX_QUERY: usize = 200;

/// The most hits of one answer.
pub const MAX_HITS: u32 = 500;

/// Which text of a thing a hit lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchField {
    /// What a person said.
    Message,
    /// Text of a block, as Markdown.
    Text,
    /// Reasoning of a block, as Markdown.
    Reasoning,
    /// The words with which the model declined.
    Refusal,
    /// The name of a node.
    Name,
    /// The title of a node.
    Title,
    /// Its error: of a node, an attempt or a run.
    Error,
    /// What a call was given.
    Arguments,
    /// What a running call says about its progress.
    Progress,
    /// What a call reported.
    Log,
    /// What a call gave back.
    Result,
    /// What a notice of the run says.
    Notice,
}

impl SearchField {
    /// All fields.
    pub const ALL: &[Self] = &[
        Self::Message,
        Self::Text,
        Self::Reasoning,
        Self::Refusal,
        Self::Name,
        Self::Title,
        Self::Error,
        Self::Arguments,
        Self::Progress,
        Self::Log,
        Self::Result,
        Self::Notice,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::Refusal => "refusal",
            Self::Name => "name",
            Self::Title => "title",
            Self::Error => "error",
            Self::Arguments => "arguments",
            Self::Progress => "progress",
            Self::Log => "log",
            Self::Result => "result",
            Self::Notice => "notice",
        }
    }

    /// The field of a word on the wire.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.as_str() == word)
    }

    /// How what is searched for may stand in it.
    pub fn writing(self) -> Writing {
        match self {
            Self::Text | Self::Reasoning => Writing::Markdown,
            Self::Arguments => Writing::Json,
            _ => Writing::Plain,
        }
    }
}

/// How a text is written: what of it nobody sees where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writing {
    /// As it is shown.
    Plain,
    /// With marks of emphasis and of code around words.
    Markdown,
    /// With escapes.
    Json,
}

/// What is searched for, or why it cannot be.
///
/// # Errors
/// When nothing is left of it, or it is too long, or holds NUL, which nobody can type or see.
pub fn query(text: &str) -> Result<&str, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("There is nothing to search for: `q` is empty.".to_owned());
    }
    if text.contains('\0') {
        return Err("NUL cannot be searched for.".to_owned());
    }
    let characters = text.chars().count();
    if characters > MAX_QUERY {
        return Err(format!(
            "What is searched for has {characters} characters: at most {MAX_QUERY} are taken."
        ));
    }
    Ok(text)
}

/// The regular expression that finds a text letter by letter, to be matched without regard to case. White space stands for
/// any white space. It is written so that the engines of server and browser (with the flag `u`) both read it.
pub fn pattern(text: &str, writing: Writing) -> String {
    const MARKS: &str = "[\\u{2a}\\u{5f}\\u{60}\\u{7e}]*";
    let mut pattern = String::with_capacity(text.len() * 2);
    for (place, word) in text.split_whitespace().enumerate() {
        if place > 0 {
            match writing {
                Writing::Plain => pattern.push_str("\\s+"),
                Writing::Markdown => pattern.push_str(&[MARKS, "\\s+", MARKS].concat()),
                Writing::Json => pattern.push_str("(?:\\s|\\u{5c}[nrt])+"),
            }
        }
        for letter in word.chars() {
            match letter {
                '"' | '/' | '\\' if writing == Writing::Json => pattern.push_str("\\u{5c}?"),
                _ => {}
            }
            if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
                pattern.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
            } else {
                pattern.push(letter);
            }
        }
    }
    pattern
}

/// A place where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchHit {
    /// The run.
    pub run_id: RunId,
    /// The node that it is of: the call, or the model node that wrote the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The attempt that it stands in: of a call, the one that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// The block that it stands in: of a call, its row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_id: Option<BlockId>,
    /// The message that it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Which of its texts.
    pub field: SearchField,
    /// Where it begins in that text, in bytes of UTF-8.
    pub offset: u64,
    /// How long it is there, in bytes of UTF-8.
    pub bytes: u64,
    /// What stands before it.
    pub before: String,
    /// What was found, as it stands there.
    pub found: String,
    /// What stands after it.
    pub after: String,
}

/// Answer to `GET /api/sessions/{session}/search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchAnswer {
    /// In the order of the page.
    pub hits: Vec<SearchHit>,
    /// Give this as `after` to search on from there; none when everything was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Answer to `GET /api/sessions/{session}/way`: what leads to a block or a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WayTo {
    /// The run that it is in.
    pub run_id: RunId,
    /// Windows to be added one after another, from the outermost call inwards.
    pub windows: Vec<Snapshot>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_searched_for_is_told() {
        assert_eq!(query(" a  b\n"), Ok("a  b"));
        assert!(query(" \t").is_err());
        assert!(query("a\0b").is_err());
        assert_eq!(query(&"é".repeat(MAX_QUERY)), Ok("é".repeat(MAX_QUERY).as_str()));
        assert!(query(&"é".repeat(MAX_QUERY + 1)).is_err());
    }

    #[test]
    fn signs_stand_for_themselves_and_white_space_for_any() {
        assert_eq!(pattern("a.b", Writing::Plain), "a\\u{2e}b");
        assert_eq!(pattern(" a \n b ", Writing::Plain), "a\\s+b");
        assert_eq!(pattern("É%", Writing::Plain), "É\\u{25}");
        assert_eq!(pattern("\"", Writing::Json), "\\u{5c}?\\u{22}");
    }

    #[test]
    fn a_field_is_known_by_its_word() {
        for field in SearchField::ALL {
            assert_eq!(SearchField::from_word(field.as_str()), Some(*field));
            let json = serde_json::to_value(field).expect("it is a word");
            assert_eq!(json, field.as_str());
        }
    }
}
