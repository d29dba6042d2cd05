//! `read_file`: the text of a file, whole or by lines.
//!
//! Line ends are given as they are (CRLF too), so that what is shown can be found again in the file. Bytes that are not
//! UTF-8 become U+FFFD. Whether a file is text is decided by [`super::sniff`]. However large the file is, no more than
//! one result and a read buffer are in memory.

mod window;

use std::io::{Cursor, Read};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::arguments::{PositiveInteger, decode, schema_of};
use super::blocking::run_blocking;
use super::sniff::{SNIFFED_BYTES, binary_kind};
use super::workspace::WorkspacePath;
use super::{
    Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, Workspace, words,
};
use window::{End, Lines, Start, Stop, Window};

/// Larger files are only read in parts.
const LARGEST_WHOLE_FILE: u64 = 10 * 1024 * 1024;
/// The most text of a file in one result, in bytes.
const LARGEST_RESULT: usize = 256 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The first line to read, counted from 1. Left out: 1.
    offset: Option<PositiveInteger>,
    /// How many lines to read at most. Left out: as many as fit.
    limit: Option<PositiveInteger>,
    /// Where to start inside the first line, in bytes from 1; to go on in a line that is too long for one result.
    column: Option<PositiveInteger>,
}

/// The tool `read_file`.
pub struct ReadFile {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl ReadFile {
    /// The tool over a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let info = ToolInfo {
            name: "read_file".to_owned(),
            description: format!(
                "Reads a text file of the workspace, whole or some of its lines. A result holds at most {}; \
                 when something was left out, its last line, in square brackets, says what and how to go \
                 on. Files over {} are read by `offset` and `limit` only; binary files are not read.",
                words::size(LARGEST_RESULT as u64),
                words::size(LARGEST_WHOLE_FILE)
            ),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::ParallelSafe,
            mutating: false,
            exposure: Exposure::Full,
        };
        Self { info, workspace }
    }
}

impl Tool for ReadFile {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        decode::<Arguments>(arguments).map(drop)
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: Arguments = decode(&arguments)?;
            let workspace = Arc::clone(&self.workspace);
            run_blocking(context, move |cancel| read(&workspace, &arguments, cancel)).await
        })
    }
}

fn read(
    workspace: &Workspace,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let path = workspace.resolve(&arguments.path)?;
    let mut opened = workspace.open_file(&path)?;
    let mut head = Vec::with_capacity(SNIFFED_BYTES);
    (&mut opened.file)
        .take(SNIFFED_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|error| workspace.error(&path, &error))?;
    let size = words::size(opened.size);
    if let Some(kind) = binary_kind(&head, path.as_path()) {
        return Err(ToolError::new(
            "binary_file",
            format!("`{path}` is a binary file of {size}, {kind}; only text can be read."),
        ));
    }
    let whole = arguments.offset.is_none() && arguments.limit.is_none() && arguments.column.is_none();
    if whole && opened.size > LARGEST_WHOLE_FILE {
        return Err(ToolError::new(
            "too_large",
            format!(
                "`{path}` has {size}; at most {} are read whole. Read a part with `offset` (the first line, \
                 from 1) and `limit` (how many lines), such as offset 1 and limit 200, or find the place \
                 with `search_files`.",
                words::size(LARGEST_WHOLE_FILE)
            ),
        ));
    }
    let start = Start {
        line: arguments.offset.map_or(1, PositiveInteger::get),
        column: arguments.column.map_or(1, PositiveInteger::get),
    };
    let limit = arguments.limit.map_or(u64::MAX, PositiveInteger::get);
    let mut lines = Lines::new(Cursor::new(head).chain(opened.file), cancel);
    let told = |stop| in_words(stop, workspace, &path, start);
    let window = lines.window(start, limit, LARGEST_RESULT).map_err(told)?;
    // To count the lines of a huge file would take longer than it helps.
    let total = if window.end == End::OfFile || opened.size > LARGEST_WHOLE_FILE {
        None
    } else {
        Some(lines.count().map_err(told)?)
    };
    let text = text_with_note(window, start, total);
    Ok(ToolOutput {
        text,
        media_type: "text/plain".to_owned(),
        exit_code: None,
    })
}

fn in_words(stop: Stop, workspace: &Workspace, path: &WorkspacePath, start: Start) -> ToolError {
    let message = match stop {
        Stop::Cancelled => return ToolError::cancelled(),
        Stop::Failed(error) => return workspace.error(path, &error),
        Stop::NoSuchLine { lines } => format!(
            "`{path}` has {lines} {}, so there is no line {}.",
            words::plural(lines, "line", "lines"),
            start.line
        ),
        Stop::NoSuchColumn { bytes } => format!(
            "Line {} of `{path}` has {bytes} {}, so there is no column {}.",
            start.line,
            words::plural(bytes, "byte", "bytes"),
            start.column
        ),
    };
    ToolError::new("out_of_range", message)
}

/// The text, with a last line when it is not the whole file.
fn text_with_note(window: Window, start: Start, total: Option<u64>) -> String {
    let Window {
        mut text,
        last_line,
        end,
    } = window;
    let of = total.map_or_else(String::new, |total| format!(" of {total}"));
    let shown = if last_line == start.line {
        format!("line {last_line}{of}")
    } else {
        format!("lines {} to {last_line}{of}", start.line)
    };
    let next = last_line + 1;
    let kib = LARGEST_RESULT / 1024;
    let note = match end {
        End::OfFile if text.is_empty() => "[The file is empty.]".to_owned(),
        End::OfFile if start.line == 1 && start.column == 1 => return text,
        End::OfFile => format!("[This was {shown}; the file ends here.]"),
        End::Limit => format!("[This was {shown}. Go on with offset {next}.]"),
        End::Full { next_column: None } => {
            format!("[Cut after {kib} KiB: this was {shown}. Go on with offset {next}.]")
        }
        End::Full {
            next_column: Some(column),
        } => format!(
            "[Cut after {kib} KiB inside {shown}. Go on in it with offset {last_line} and column {column}.]"
        ),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&note);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
