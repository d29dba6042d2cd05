//! `edit_file`: puts one text in the place of another in a file of the workspace.

use std::io::Read as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use similar::TextDiff;
use tokio_util::sync::CancellationToken;

use super::arguments::{decode, schema_of};
use super::blocking::run_blocking;
use super::sniff::{SNIFFED_BYTES, binary_kind};
use super::workspace::WorkspacePath;
use super::write_file::{LARGEST_CONTENT, check_size};
use super::{
    Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, Workspace, words,
};

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// Of so many places at most the lines are told.
const TOLD_PLACES: usize = 5;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file, with enough around it that it stands there once.
    old_string: String,
    /// The text to put in its place; empty to take it out.
    new_string: String,
    /// Replaces it wherever it stands. Left out: it has to stand there once.
    replace_all: Option<bool>,
}

/// The tool `edit_file`.
pub struct EditFile {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl EditFile {
    /// The tool over a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let info = ToolInfo {
            name: "edit_file".to_owned(),
            description:
                "Changes a text file of the workspace: puts `new_string` in the place of `old_string`, \
                          which has to stand in the file exactly once. The answer is the change as a diff."
                    .to_owned(),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::Exclusive,
            mutating: true,
            exposure: Exposure::Full,
        };
        Self { info, workspace }
    }
}

impl Tool for EditFile {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        let wrong = |words: &str| Err(ToolError::new("invalid_arguments", words));
        if arguments.old_string.is_empty() {
            return wrong(
                "The argument `old_string` is empty: say which text is replaced, or use `write_file` for a new file.",
            );
        }
        if arguments.old_string == arguments.new_string {
            return wrong("`old_string` and `new_string` are the same: nothing would change.");
        }
        check_size(arguments.new_string.len())
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: Arguments = decode(&arguments)?;
            let workspace = Arc::clone(&self.workspace);
            run_blocking(context, move |cancel| edit(&workspace, &arguments, cancel)).await
        })
    }
}

fn edit(
    workspace: &Workspace,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let path = workspace.resolve(&arguments.path)?;
    let before = read(workspace, &path)?;
    let (mut old, mut new) = (arguments.old_string.clone(), arguments.new_string.clone());
    // A model writes line feeds, also where a file has carriage returns before them.
    if !before.contains(&old) && before.contains("\r\n") && !old.contains('\r') {
        (old, new) = (old.replace('\n', "\r\n"), new.replace('\n', "\r\n"));
    }
    let places: Vec<usize> = before.match_indices(&old).map(|(at, _)| at).collect();
    let is_all = arguments.replace_all.unwrap_or(false);
    match places.as_slice() {
        [] => return Err(not_found(&path, &before, &old)),
        [_, _, ..] if !is_all => return Err(several(&path, &before, &places)),
        _ => {}
    }
    let after = before.replace(&old, &new);
    check_size(after.len())?;
    workspace.write(&path, after.as_bytes(), cancel)?;
    let name = path.to_string();
    let text = TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string();
    Ok(ToolOutput {
        text,
        media_type: "text/x-diff".to_owned(),
        exit_code: None,
    })
}

/// The whole text of a file that can be edited.
fn read(workspace: &Workspace, path: &WorkspacePath) -> Result<String, ToolError> {
    let opened = workspace.open_file(path)?;
    let too_large = || {
        ToolError::new(
            "too_large",
            format!(
                "`{path}` has {}; files up to {} can be edited.",
                words::size(opened.size),
                words::size(LARGEST_CONTENT as u64)
            ),
        )
    };
    let mut bytes = Vec::new();
    // It may grow while it is read.
    let limit = LARGEST_CONTENT as u64 + 1;
    (&opened.file)
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| workspace.error(path, &error))?;
    if bytes.len() > LARGEST_CONTENT {
        return Err(too_large());
    }
    let head = bytes.get(..SNIFFED_BYTES).unwrap_or(&bytes);
    if let Some(kind) = binary_kind(head, path.as_path()) {
        return Err(ToolError::new(
            "binary_file",
            format!("`{path}` is a binary file, {kind}; only text can be edited."),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        ToolError::new(
            "not_utf8",
            format!("`{path}` is not UTF-8 (byte {place}): it was left as it is."),
        )
    })
}

/// The line of a place, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()
        .get(..at)
        .map_or(1, |before| memchr::memchr_iter(b'\n', before).count() + 1)
}

fn not_found(path: &WorkspacePath, text: &str, old: &str) -> ToolError {
    let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = old.lines().map(bare).find(|line| !line.is_empty());
    let similar = first.and_then(|first| text.lines().position(|line| bare(line) == first));
    let hint = match similar {
        Some(line) => format!(
            " Line {} has the words of its first line: look at spaces, indentation and what follows.",
            line + 1
        ),
        None => " Read the file to see what stands there now.".to_owned(),
    };
    ToolError::new(
        "no_match",
        format!("`old_string` does not stand in `{path}`: nothing was changed.{hint}"),
    )
}

fn several(path: &WorkspacePath, text: &str, places: &[usize]) -> ToolError {
    let lines: Vec<String> = places
        .iter()
        .take(TOLD_PLACES)
        .map(|at| line_of(text, *at).to_string())
        .collect();
    let more = if places.len() > TOLD_PLACES { ", …" } else { "" };
    ToolError::new(
        "several_matches",
        format!(
            "`old_string` stands in `{path}` {} times (lines {}{more}): nothing was changed. Add lines around it, or \
             set `replace_all`.",
            places.len(),
            lines.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::test_support::{Folder, call};

    async fn edit(folder: &Folder, arguments: Value) -> Result<String, ToolError> {
        let output = call(&EditFile::new(Arc::clone(&folder.workspace)), arguments).await?;
        assert_eq!(output.media_type, "text/x-diff");
        Ok(output.text)
    }

    fn content(folder: &Folder, path: &str) -> String {
        std::fs::read_to_string(folder.path(path)).unwrap()
    }

    #[tokio::test]
    async fn a_text_that_stands_there_once_is_replaced_and_the_answer_is_a_diff() {
        let folder = Folder::new();
        folder.write("a.py", "one\ntwo\nthree\nfour\nfive\nsix\n");
        let arguments =
            json!({ "path": "a.py", "old_string": "five\n", "new_string": "5\nfive and a half\n" });
        let diff = edit(&folder, arguments).await.unwrap();
        assert_eq!(
            content(&folder, "a.py"),
            "one\ntwo\nthree\nfour\n5\nfive and a half\nsix\n"
        );
        assert_eq!(
            diff,
            "--- a/a.py\n+++ b/a.py\n@@ -2,5 +2,6 @@\n two\n three\n four\n-five\n+5\n+five and a half\n six\n"
        );
    }

    #[tokio::test]
    async fn what_stands_there_more_than_once_is_only_replaced_when_all_of_it_is_meant() {
        let folder = Folder::new();
        folder.write("a", "x = 1\ny\nx = 1\n");
        let once = json!({ "path": "a", "old_string": "x = 1", "new_string": "x = 2" });
        let error = edit(&folder, once.clone()).await.unwrap_err();
        assert_eq!(error.code, "several_matches");
        assert!(error.message.contains("2 times (lines 1, 3)"), "{error}");
        assert_eq!(content(&folder, "a"), "x = 1\ny\nx = 1\n");
        let mut all = once;
        all["replace_all"] = json!(true);
        edit(&folder, all).await.unwrap();
        assert_eq!(content(&folder, "a"), "x = 2\ny\nx = 2\n");
    }

    #[tokio::test]
    async fn line_ends_of_a_file_are_kept() {
        let folder = Folder::new();
        folder.write("a", "one\r\ntwo\r\nthree\r\n");
        let arguments = json!({ "path": "a", "old_string": "one\ntwo\n", "new_string": "1\n2\n" });
        edit(&folder, arguments).await.unwrap();
        assert_eq!(content(&folder, "a"), "1\r\n2\r\nthree\r\n");
    }

    #[tokio::test]
    async fn a_text_that_is_not_there_says_what_is_near() {
        let folder = Folder::new();
        folder.write("a", "def f():\n\treturn 1\n");
        let arguments = json!({ "path": "a", "old_string": "    return 1", "new_string": "x" });
        let error = edit(&folder, arguments).await.unwrap_err();
        assert_eq!(error.code, "no_match");
        assert!(error.message.contains("Line 2"), "{error}");
        let arguments = json!({ "path": "a", "old_string": "nothing like it", "new_string": "x" });
        let error = edit(&folder, arguments).await.unwrap_err();
        assert!(error.message.contains("Read the file"), "{error}");
    }

    #[tokio::test]
    async fn what_cannot_be_edited_is_refused_and_left_as_it_is() {
        let folder = Folder::new();
        folder.write("text", "text");
        folder.write("binary", b"\x7fELF\0\0text");
        folder.write("latin", b"caf\xe9 text ".repeat(4));
        folder.write("huge", "text ".repeat(LARGEST_CONTENT / 5 + 1));
        folder.link(folder.outside().join("secret.txt"), "way");
        std::fs::create_dir(folder.path("folder")).unwrap();
        for (path, old, new, code) in [
            ("text", "", "x", "invalid_arguments"),
            ("text", "text", "text", "invalid_arguments"),
            ("missing", "text", "x", "not_found"),
            ("folder", "text", "x", "is_directory"),
            ("binary", "text", "x", "binary_file"),
            ("latin", "text", "x", "not_utf8"),
            ("huge", "text", "x", "too_large"),
            ("way", "secret", "x", "outside_workspace"),
            ("../outside/secret.txt", "secret", "x", "outside_workspace"),
        ] {
            let arguments = json!({ "path": path, "old_string": old, "new_string": new });
            let error = edit(&folder, arguments).await.unwrap_err();
            assert_eq!(error.code, code, "{path}: {error}");
        }
        assert_eq!(
            std::fs::read(folder.path("latin")).unwrap(),
            b"caf\xe9 text ".repeat(4)
        );
        assert_eq!(content(&folder, "text"), "text");
    }
}
