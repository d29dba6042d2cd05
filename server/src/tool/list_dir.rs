//! `list_dir`: what is in a directory.

use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::sync::Arc;

use cap_std::fs::Dir;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::arguments::{decode, schema_of};
use super::blocking::run_blocking;
use super::workspace::{WorkspacePath, kind_in_words};
use super::{
    Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, Workspace, words,
};

/// How many entries one call shows.
const SHOWN_ENTRIES: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, relative to the root of the workspace. Left out: the root.
    path: Option<String>,
}

/// The tool `list_dir`.
pub struct ListDir {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl ListDir {
    /// The tool over a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let info = ToolInfo {
            name: "list_dir".to_owned(),
            description: "Lists what is in a directory of the workspace, sorted by name, hidden entries \
                          too. Directories end in a slash, files show their size, links show where they lead."
                .to_owned(),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::ParallelSafe,
            mutating: false,
            exposure: Exposure::Full,
        };
        Self { info, workspace }
    }
}

impl Tool for ListDir {
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
            run_blocking(context, move |cancel| {
                let path = workspace.resolve(arguments.path.as_deref().unwrap_or(""))?;
                list(&workspace, &path, SHOWN_ENTRIES, cancel)
            })
            .await
        })
    }
}

/// Lists the first `shown` entries by name and counts the rest, holding no more names than it shows.
fn list(
    workspace: &Workspace,
    path: &WorkspacePath,
    shown: usize,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let directory = workspace.open_directory(path)?;
    let mut first: BinaryHeap<OsString> = BinaryHeap::new();
    let mut total = 0_u64;
    for entry in directory
        .entries()
        .map_err(|error| workspace.error(path, &error))?
    {
        if cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let name = entry.map_err(|error| workspace.error(path, &error))?.file_name();
        total += 1;
        if first.len() < shown {
            first.push(name);
        } else if let Some(mut last) = first.peek_mut()
            && name < *last
        {
            *last = name;
        }
    }
    let mut text = String::new();
    for name in first.into_sorted_vec() {
        describe(&directory, &name, &mut text);
        text.push('\n');
    }
    if total == 0 {
        text.push_str("[The directory is empty.]\n");
    } else if total > shown as u64 {
        let rest = total - shown as u64;
        text.push_str(&format!(
            "[{rest} more {} not shown, of {total} in all. Use `search_files` with a `glob`, or list a \
             directory inside.]\n",
            words::plural(rest, "entry is", "entries are")
        ));
    }
    Ok(ToolOutput {
        text,
        media_type: "text/plain".to_owned(),
        exit_code: None,
    })
}

/// One line: `src/`, `main.rs  1.2 KiB`, `link -> target`, `pipe  (a named pipe)`.
fn describe(directory: &Dir, name: &OsString, line: &mut String) {
    line.push_str(&words::name(name));
    let Ok(metadata) = directory.symlink_metadata(name) else {
        // Gone or unreadable since its name was read.
        line.push_str("  (unreadable)");
        return;
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        line.push('/');
    } else if kind.is_file() {
        line.push_str("  ");
        line.push_str(&words::size(metadata.len()));
    } else if kind.is_symlink() {
        match directory.read_link_contents(name) {
            Ok(target) => line.push_str(&format!(" -> {}", words::name(target.as_os_str()))),
            Err(_) => line.push_str("  (a link)"),
        }
    } else {
        line.push_str(&format!("  ({})", kind_in_words(kind)));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use serde_json::json;

    use super::*;
    use crate::tool::test_support::{Folder, call};

    async fn listed(folder: &Folder, arguments: Value) -> Result<String, ToolError> {
        call(&ListDir::new(Arc::clone(&folder.workspace)), arguments)
            .await
            .map(|output| output.text)
    }

    #[tokio::test]
    async fn entries_are_sorted_with_kinds_and_sizes() {
        let folder = Folder::new();
        folder.write("b.txt", "12345");
        folder.write("a/inner.txt", "");
        folder.write(".hidden", "1");
        folder.write("grün 🦀", vec![0; 1536]);
        folder.link("b.txt", "link");
        folder.pipe("pipe");
        let expected =
            ".hidden  1 byte\na/\nb.txt  5 bytes\ngrün 🦀  1.5 KiB\nlink -> b.txt\npipe  (a named pipe)\n";
        assert_eq!(listed(&folder, json!({})).await.unwrap(), expected);
        assert_eq!(listed(&folder, json!({"path": "./"})).await.unwrap(), expected);
        assert_eq!(
            listed(&folder, json!({"path": "a/"})).await.unwrap(),
            "inner.txt  0 bytes\n"
        );
    }

    #[tokio::test]
    async fn an_empty_directory_says_so() {
        assert_eq!(
            listed(&Folder::new(), json!({})).await.unwrap(),
            "[The directory is empty.]\n"
        );
    }

    #[tokio::test]
    async fn names_that_are_not_utf8_or_hold_a_line_break_stay_one_line() {
        let folder = Folder::new();
        std::fs::write(folder.path("").join(OsStr::from_bytes(b"n\xffme")), "").unwrap();
        folder.write("two\nlines", "");
        assert_eq!(
            listed(&folder, json!({})).await.unwrap(),
            "n\u{fffd}me  0 bytes\ntwo\\nlines  0 bytes\n"
        );
    }

    #[tokio::test]
    async fn beyond_the_cap_the_first_by_name_are_shown_and_the_rest_counted() {
        let folder = Folder::new();
        for number in 0..SHOWN_ENTRIES + 5 {
            folder.write(&format!("{number:05}"), "");
        }
        let text = listed(&folder, json!({})).await.unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), SHOWN_ENTRIES + 1);
        assert_eq!(lines[0], "00000  0 bytes");
        assert_eq!(
            lines[SHOWN_ENTRIES - 1],
            format!("{:05}  0 bytes", SHOWN_ENTRIES - 1)
        );
        assert!(
            lines[SHOWN_ENTRIES].starts_with("[5 more entries are not shown, of 1005 in all."),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_file_a_missing_one_and_a_way_out_are_told_apart() {
        let folder = Folder::new();
        folder.write("source/file.txt", "");
        folder.link("../outside", "way-out");
        let code = async |path: &str| listed(&folder, json!({ "path": path })).await.unwrap_err().code;
        assert_eq!(code("source/file.txt").await, "not_a_directory");
        assert_eq!(code("source/file.txt/deeper").await, "not_a_directory");
        assert_eq!(code("way-out").await, "outside_workspace");
        assert_eq!(code("..").await, "outside_workspace");
        let missing = listed(&folder, json!({"path": "sorce"})).await.unwrap_err();
        assert_eq!(missing.code, "not_found");
        assert!(
            missing.message.ends_with("Did you mean `source`?"),
            "{}",
            missing.message
        );
    }

    #[test]
    fn a_cancelled_listing_ends() {
        let folder = Folder::new();
        folder.write("a", "");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let root = folder.workspace.resolve("").unwrap();
        assert_eq!(
            list(&folder.workspace, &root, 10, &cancel),
            Err(ToolError::cancelled())
        );
    }
}
