//! Tool name → how its row looks. A tool that is not listed gets the generic view.

use protocol::model::Output;

use super::partial_json::Fields;
use super::views::{self, Answer, Shape};
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

/// How the row of a tool looks, and what it shows when it is opened.
pub struct ToolView {
    /// Its kind.
    pub variant: Variant,
    /// A word for people in the place of the tool's name.
    pub title: Option<&'static str>,
    /// The one-line summary, from arguments that may not be whole.
    pub summary: fn(&Fields) -> Option<String>,
    /// A few words about what it gave back.
    pub result: fn(&Output) -> Option<String>,
    /// The view of its arguments, from their fields and as they came.
    pub arguments: fn(&Fields, &str) -> Option<Shape>,
    /// The view of what it gave back.
    pub output: fn(&Answer<'_>) -> Option<Shape>,
}

/// The most characters of a summary.
const SUMMARY: usize = 240;

const GENERIC: ToolView = ToolView {
    variant: Variant::Other,
    title: None,
    summary: |fields| {
        fields
            .get("description")
            .or(fields.first())
            .map(|value| words::first_line(value, SUMMARY))
    },
    result: |output| (output.bytes > 0).then(|| format::bytes(output.bytes)),
    arguments: |_, _| None,
    output: |_| None,
};

const READ: ToolView = ToolView {
    variant: Variant::Read,
    summary: file,
    result: lines,
    output: views::text_read,
    ..GENERIC
};
const LIST: ToolView = ToolView {
    variant: Variant::Read,
    summary: |fields| {
        Some(
            field(fields, &["path", "dir", "directory", "target_directory"])
                .unwrap_or_else(|| ".".to_owned()),
        )
    },
    result: |output| line_count(output).map(|number| words::counted_as(number, "entry", "entries")),
    ..GENERIC
};
const SEARCH: ToolView = ToolView {
    variant: Variant::Search,
    summary: search,
    result: lines,
    output: views::hits,
    ..GENERIC
};
const EDIT: ToolView = ToolView {
    variant: Variant::Edit,
    summary: edited,
    arguments: change,
    output: text_viewed,
    ..GENERIC
};
const WRITE: ToolView = ToolView {
    variant: Variant::Write,
    summary: path,
    arguments: views::content,
    ..GENERIC
};
const SHELL: ToolView = ToolView {
    variant: Variant::Shell,
    summary: |fields| {
        field(fields, &["description"])
            .or_else(|| views::command_text(fields).map(|text| words::first_line(&text, SUMMARY)))
    },
    result: lines,
    arguments: views::command,
    output: views::terminal,
    ..GENERIC
};
const WEB: ToolView = ToolView {
    variant: Variant::Web,
    summary: |fields| field(fields, &["url", "uri", "query", "q", "search_term"]),
    output: views::page,
    ..GENERIC
};
const CODE: ToolView = ToolView {
    variant: Variant::Code,
    title: Some("Code"),
    summary: |fields| {
        field(fields, &["description"])
            .or_else(|| field(fields, &["code", "program", "source", "script", "input"]))
    },
    arguments: |fields, _| views::program(fields, "js"),
    output: views::program_result,
    ..GENERIC
};
const PYTHON: ToolView = ToolView {
    arguments: |fields, _| views::program(fields, "python"),
    ..CODE
};
const MODEL: ToolView = ToolView {
    variant: Variant::Model,
    summary: |fields| field(fields, &["description"]).or_else(|| field(fields, views::PROMPT)),
    arguments: views::prompt,
    output: views::answer,
    ..GENERIC
};

/// The view of a tool: by its name, or, for a tool of another server, by the part after the server's own name.
pub fn view_of(tool_name: &str) -> ToolView {
    let known = known(&letters(tool_name));
    let last = || known_part(tool_name, "__").or_else(|| known_part(tool_name, "."));
    known.or_else(last).unwrap_or(GENERIC)
}

fn known_part(tool_name: &str, separator: &str) -> Option<ToolView> {
    tool_name
        .rsplit_once(separator)
        .and_then(|(_, name)| known(&letters(name)))
}

/// A name without what only tells words apart: `read_file`, `ReadFile` and `read-file` are one.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric).take(64);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

fn known(letters: &str) -> Option<ToolView> {
    Some(match letters {
        "readfile" | "read" | "view" | "viewfile" | "openfile" | "cat" | "readtextfile"
        | "getfilecontents" => READ,
        "listdir" | "listdirectory" | "listfiles" | "ls" | "directorytree" => LIST,
        "searchfiles" | "search" | "grep" | "ripgrep" | "rg" | "searchcode" | "codesearch" | "grepsearch"
        | "codebasesearch" | "glob" | "globfiles" | "find" | "findfiles" | "filesearch" => SEARCH,
        "editfile"
        | "edit"
        | "multiedit"
        | "strreplace"
        | "strreplaceeditor"
        | "strreplacebasededittool"
        | "replace"
        | "replaceinfile"
        | "searchreplace"
        | "applypatch"
        | "applydiff"
        | "patch"
        | "patchfile"
        | "insert"
        | "texteditor" => EDIT,
        "writefile" | "write" | "createfile" | "create" | "savefile" | "writetofile"
        | "createorupdatefile" => WRITE,
        "shell" | "bash" | "runcommand" | "executecommand" | "execcommand" | "exec" | "terminal"
        | "localshell" | "runshellcommand" | "runterminalcmd" | "runinterminal" | "powershell" => SHELL,
        "fetchurl" | "fetch" | "webfetch" | "websearch" | "httprequest" | "openurl" | "browse"
        | "readurl" | "googlewebsearch" => WEB,
        "runcode" | "executecode" | "codeexecution" | "javascript" | "runjavascript" => CODE,
        "python" | "runpython" | "codeinterpreter" | "executepython" => PYTHON,
        "askmodel" | "askagent" | "agent" | "task" | "subagent" | "delegate" | "callmodel" | "spawnagent" => {
            MODEL
        }
        _ => return None,
    })
}

/// The first of several fields that is there, in one line.
fn field(fields: &Fields, names: &[&str]) -> Option<String> {
    fields.any(names).map(|value| words::first_line(value, SUMMARY))
}

fn path(fields: &Fields) -> Option<String> {
    field(fields, views::PATH)
}

/// Where something is changed: a path, or the first one that a patch names.
fn edited(fields: &Fields) -> Option<String> {
    let of_patch = || {
        let patch = fields.any(&["patch", "diff", "input", "patch_text"])?;
        let starts = [
            "*** Update File: ",
            "*** Add File: ",
            "*** Delete File: ",
            "+++ b/",
            "+++ ",
        ];
        patch.lines().find_map(|line| {
            let name = starts.iter().find_map(|start| line.strip_prefix(start))?;
            Some(words::line(name, SUMMARY))
        })
    };
    path(fields).or_else(of_patch)
}

/// What an edit changes; a tool that can do several things may also write a file.
fn change(fields: &Fields, raw: &str) -> Option<Shape> {
    let writes = fields.get("command") == Some("create") || fields.has("file_text");
    if writes {
        return views::content(fields, raw);
    }
    views::edit(fields, raw)
}

/// What a tool that edits gave back when it was asked to show a file.
fn text_viewed(answer: &Answer<'_>) -> Option<Shape> {
    if let Some(change) = views::patched(answer) {
        return Some(change);
    }
    (answer.fields.get("command") == Some("view")).then(|| views::text_read(answer))?
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
    let pattern = field(
        fields,
        &["pattern", "query", "regex", "search_term", "glob_pattern", "q"],
    )?;
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
        assert_eq!(
            summary("edit_file", r#"{"path": "a.rs", "old_string": "x"#).unwrap(),
            "a.rs"
        );
        assert_eq!(
            summary(
                "apply_patch",
                r#"{"input": "*** Begin Patch\n*** Update File: b.rs\n@@"#
            )
            .unwrap(),
            "b.rs"
        );
        assert_eq!(
            summary("write_file", r#"{"content": "long", "file_path": "c.rs"}"#).unwrap(),
            "c.rs"
        );
        assert_eq!(summary("shell", r#"{"command": "cargo te"#).unwrap(), "cargo te");
        assert_eq!(
            summary("shell", r#"{"command": ["bash", "-lc", "ls\npwd"]}"#).unwrap(),
            "ls"
        );
        assert_eq!(
            summary("fetch_url", r#"{"url": "https://example.org/a"#).unwrap(),
            "https://example.org/a"
        );
        assert_eq!(
            summary("ask_model", r#"{"prompt": "Is it\nright?"}"#).unwrap(),
            "Is it"
        );
    }

    #[test]
    fn a_tool_is_known_by_its_name_however_it_is_written_and_wherever_it_comes_from() {
        for (names, variant) in [
            (
                &[
                    "read_file",
                    "Read",
                    "readFile",
                    "fs__read_file",
                    "mcp__files__view",
                ][..],
                Variant::Read,
            ),
            (&["search_files", "Grep", "glob", "code-search"], Variant::Search),
            (
                &["edit_file", "str_replace", "apply_patch", "MultiEdit"],
                Variant::Edit,
            ),
            (&["write_file", "create", "files.write"], Variant::Write),
            (
                &["shell", "Bash", "run_command", "executeCommand"],
                Variant::Shell,
            ),
            (&["fetch_url", "WebFetch", "web_search"], Variant::Web),
            (&["run_code", "python", "code_interpreter"], Variant::Code),
            (&["ask_model", "Task", "agent"], Variant::Model),
            (
                &[
                    "",
                    "unknown",
                    "__proto__",
                    "read_file__unknown",
                    "é",
                    "constructor",
                ],
                Variant::Other,
            ),
        ] {
            for name in names {
                assert_eq!(view_of(name).variant, variant, "{name}");
            }
        }
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
