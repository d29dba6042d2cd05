//! Tool name → how its row looks. A tool that is not listed gets the generic view.

use protocol::model::Output;

use super::partial_json::Fields;
use super::words;
use crate::ui::{IconName, format};

/// The kind of a row: its icon and its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Reads files or folders.
    Read,
    /// Searches.
    Search,
    /// Changes a file.
    Edit,
    /// Writes a file.
    Write,
    /// Runs a command.
    Shell,
    /// Reads from the web.
    Web,
    /// Runs a program.
    Code,
    /// Calls a model.
    Model,
    /// Anything else.
    Other,
}

impl Variant {
    /// The classes of the row.
    pub fn class(self) -> &'static str {
        match self {
            Self::Read => "row row--read",
            Self::Search => "row row--search",
            Self::Edit => "row row--edit",
            Self::Write => "row row--write",
            Self::Shell => "row row--shell",
            Self::Web => "row row--web",
            Self::Code => "row row--code",
            Self::Model => "row row--model",
            Self::Other => "row row--other",
        }
    }

    /// The icon of the row.
    pub fn icon(self) -> IconName {
        match self {
            Self::Read => IconName::Read,
            Self::Search => IconName::Search,
            Self::Edit => IconName::Edit,
            Self::Write => IconName::Write,
            Self::Shell => IconName::Shell,
            Self::Web => IconName::Web,
            Self::Code => IconName::Code,
            Self::Model => IconName::Model,
            Self::Other => IconName::Other,
        }
    }
}

/// How the row of a tool looks.
pub struct ToolView {
    /// Its kind.
    pub variant: Variant,
    /// A word for people in the place of the tool's name.
    pub title: Option<&'static str>,
    /// The title of its arguments, and the field that is all of them where there is one.
    pub arguments: (&'static str, Option<&'static str>),
    /// The one-line summary, from arguments that may not be whole.
    pub summary: fn(&Fields) -> Option<String>,
    /// A few words about what it gave back.
    pub result: fn(&Output) -> Option<String>,
}

/// The most characters of a summary.
const SUMMARY: usize = 240;

const GENERIC: ToolView = ToolView {
    variant: Variant::Other,
    title: None,
    arguments: ("Arguments", None),
    summary: |fields| {
        fields
            .get("description")
            .or(fields.first())
            .map(|value| words::first_line(value, SUMMARY))
    },
    result: |output| (output.bytes > 0).then(|| format::bytes(output.bytes)),
};

/// The view of a tool.
pub fn view_of(tool_name: &str) -> ToolView {
    match tool_name {
        "read_file" => ToolView {
            variant: Variant::Read,
            summary: file,
            result: lines,
            ..GENERIC
        },
        "list_dir" => ToolView {
            variant: Variant::Read,
            summary: |fields| Some(field(fields, "path").unwrap_or_else(|| ".".to_owned())),
            result: |output| line_count(output).map(|number| words::counted_as(number, "entry", "entries")),
            ..GENERIC
        },
        "search_files" | "search" | "grep" => ToolView {
            variant: Variant::Search,
            summary: search,
            result: lines,
            ..GENERIC
        },
        "edit_file" => ToolView {
            variant: Variant::Edit,
            summary: path,
            ..GENERIC
        },
        "write_file" => ToolView {
            variant: Variant::Write,
            summary: path,
            ..GENERIC
        },
        "shell" | "bash" => ToolView {
            variant: Variant::Shell,
            summary: |fields| field(fields, "description").or_else(|| field(fields, "command")),
            ..GENERIC
        },
        "fetch_url" | "web_search" | "web_fetch" => ToolView {
            variant: Variant::Web,
            summary: |fields| field(fields, "url").or_else(|| field(fields, "query")),
            ..GENERIC
        },
        "run_code" => ToolView {
            variant: Variant::Code,
            title: Some("Code"),
            arguments: ("Program", Some("code")),
            summary: |fields| field(fields, "description"),
            ..GENERIC
        },
        "ask_model" => ToolView {
            variant: Variant::Model,
            summary: |fields| field(fields, "prompt").or_else(|| field(fields, "question")),
            ..GENERIC
        },
        _ => GENERIC,
    }
}

fn field(fields: &Fields, name: &str) -> Option<String> {
    fields.get(name).map(|value| words::first_line(value, SUMMARY))
}

fn path(fields: &Fields) -> Option<String> {
    field(fields, "path")
}

/// A file and the lines of it that are read.
fn file(fields: &Fields) -> Option<String> {
    let path = path(fields)?;
    let number = |name| fields.get(name).and_then(|value| value.parse::<u64>().ok());
    Some(match (number("offset"), number("limit")) {
        (None, None) => path,
        (first, None) => format!("{path}:{}–", first.unwrap_or(1)),
        (first, Some(limit)) => {
            let first = first.unwrap_or(1);
            format!("{path}:{first}–{}", first.saturating_add(limit).saturating_sub(1))
        }
    })
}

/// What is looked for, and where.
fn search(fields: &Fields) -> Option<String> {
    let pattern = field(fields, "pattern").or_else(|| field(fields, "query"))?;
    Some(match path(fields) {
        Some(place) => format!("{pattern} in {place}"),
        None => pattern,
    })
}

/// How many lines came back, where the whole of them is at hand.
fn line_count(output: &Output) -> Option<usize> {
    if output.content_ref.is_some() {
        return None;
    }
    let lines = output.text.lines().filter(|line| !line.trim().is_empty()).count();
    // A last line in square brackets says what was left out.
    let note = output
        .text
        .lines()
        .next_back()
        .is_some_and(|line| line.starts_with('[') && line.ends_with(']'));
    Some(lines.saturating_sub(usize::from(note)))
}

fn lines(output: &Output) -> Option<String> {
    match line_count(output) {
        Some(number) => Some(words::counted(number, "line")),
        None => (GENERIC.result)(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(tool: &str, arguments: &str) -> Option<String> {
        (view_of(tool).summary)(&Fields::read(arguments))
    }

    #[test]
    fn a_summary_is_there_before_the_arguments_are_whole() {
        assert_eq!(summary("read_file", r#"{"path": "src/lib"#).unwrap(), "src/lib");
        assert_eq!(
            summary("read_file", r#"{"path":"a.rs","offset":30,"limit":67}"#).unwrap(),
            "a.rs:30–96"
        );
        assert_eq!(summary("search_files", r#"{"pattern": "next_"#).unwrap(), "next_");
        assert_eq!(
            summary("search_files", r#"{"pattern":"x","path":"src"}"#).unwrap(),
            "x in src"
        );
        assert_eq!(summary("list_dir", "{").unwrap(), ".");
        assert_eq!(
            summary("run_code", r#"{"description":"Count","code":"1"#).unwrap(),
            "Count"
        );
        assert_eq!(
            summary("some_tool", r#"{"id": "FER-2291\nmore"}"#).unwrap(),
            "FER-2291"
        );
        assert_eq!(summary("some_tool", ""), None);
    }

    #[test]
    fn a_result_that_is_only_a_preview_is_not_counted() {
        let whole = Output {
            text: "a\nb\n[2 more lines]".to_owned(),
            bytes: 18,
            ..Output::default()
        };
        assert_eq!((view_of("read_file").result)(&whole).unwrap(), "2 lines");
        let reference = protocol::model::ContentRef {
            bytes: 48_000,
            sha256: String::new(),
        };
        let preview = Output {
            bytes: 48_000,
            content_ref: Some(reference),
            ..whole
        };
        assert_eq!((view_of("read_file").result)(&preview).unwrap(), "48.0 KB");
    }
}
