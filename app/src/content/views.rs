//! What an opened row shows of a call: for the tools that people know, a view of their arguments and of what they gave back
//! in the form that fits. All are functions from what is recorded to a [`Shape`]; where the data does not fit, there is
//! none, and the text is shown as it came. `io` draws them, and always keeps a way to the text as it came.

pub mod ansi;
mod change;
mod draw;
mod edit;
mod hits;
mod language;
mod model;
mod read;
mod shell;
mod web;
mod write;

pub use change::{Change, count, unified};
pub use draw::{Draw, Drawing};
pub use edit::{edit, patched};
pub use hits::hits;
pub use model::{PROMPT, answer, prompt};
pub use read::text_read;
pub use shell::{command, command_text, program, program_result, terminal};
pub use web::page;
pub use write::content;

use language::language_of;
use read::lines_read;

use protocol::model::Output;

use super::partial_json::Fields;

/// How one channel of a call is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What it is called.
    pub title: &'static str,
    /// A few words beside the title, such as a path.
    pub note: String,
    /// The text that is shown; none where it is that of the channel.
    pub text: Option<String>,
    /// How it looks.
    pub form: Form,
}

/// How a text looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Form {
    /// As it came.
    #[default]
    Plain,
    /// As it came, its lines wrapped.
    Wrapped,
    /// Of a language, perhaps with the numbers of its lines from the first one on.
    Code {
        /// The language, or the ending of a file's name.
        language: String,
        /// The number of the first line.
        first: Option<u64>,
    },
    /// Lines that came and went, each with its sign.
    Diff,
    /// What a terminal would show.
    Terminal,
    /// Lines that were found, by file.
    Hits {
        /// What was looked for.
        pattern: String,
        /// Whether `a` and `A` differ.
        case_sensitive: bool,
    },
    /// Markdown.
    Markdown,
}

impl Shape {
    /// The channel's own text in a form.
    pub fn of(title: &'static str, form: Form) -> Self {
        Self {
            title,
            note: String::new(),
            text: None,
            form,
        }
    }

    /// A text of its own in a form.
    pub fn with_text(title: &'static str, form: Form, text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::of(title, form)
        }
    }

    /// The same with words beside the title.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Whether it is the text as it came.
    pub fn is_raw(&self) -> bool {
        self.text.is_none() && matches!(self.form, Form::Plain | Form::Wrapped)
    }
}

/// What a view of a return value is made of.
pub struct Answer<'a> {
    /// The arguments.
    pub fields: &'a Fields,
    /// The return value, or its beginning.
    pub output: &'a Output,
    /// Whether the whole of it is at hand.
    pub is_whole: bool,
}

/// The fields that hold the path of a file.
pub const PATH: &[&str] = &[
    "path",
    "file_path",
    "filename",
    "file_name",
    "file",
    "target_file",
    "absolute_path",
    "relative_path",
    "relative_workspace_path",
    "notebook_path",
];

/// Where in a file, for people.
fn note_of_path(fields: &Fields) -> String {
    fields
        .any(PATH)
        .map(|path| super::words::line(path, NOTE))
        .unwrap_or_default()
}

/// The most characters beside a title.
const NOTE: usize = 200;
/// The title of what came back.
const RESULT: &str = "Return value";

/// What came back as a JSON object, where it is one and all of it is at hand.
fn object(answer: &Answer<'_>) -> Option<serde_json::Map<String, serde_json::Value>> {
    let text = answer.output.text.trim_start();
    (answer.is_whole && text.starts_with('{')).then(|| protocol::from_json(text).ok())?
}

/// The first of several fields that is a text and not empty.
fn text_of<'a>(
    object: &'a serde_json::Map<String, serde_json::Value>,
    names: &[&'static str],
) -> Option<(&'static str, &'a str)> {
    names.iter().find_map(|name| {
        let text = object.get(*name)?.as_str()?;
        (!text.is_empty()).then_some((*name, text))
    })
}

#[cfg(test)]
mod tests;
