//! `write_file`: creates a file of the workspace, or replaces one.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{decode, schema_of};
use super::blocking::run_blocking;
use super::{
    Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, Workspace, words,
};

/// The most bytes that one call writes.
pub(super) const LARGEST_CONTENT: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the root of the workspace. Folders that lead to it are made.
    path: String,
    /// The whole content of the file.
    content: String,
}

/// The tool `write_file`.
pub struct WriteFile {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl WriteFile {
    /// The tool over a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let info = ToolInfo {
            name: "write_file".to_owned(),
            description: format!(
                "Writes a text file of the workspace, at most {}: makes a new one, or replaces the whole content \
                 of one that is there. To change a part of a file, use `edit_file`.",
                words::size(LARGEST_CONTENT as u64)
            ),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::Exclusive,
            mutating: true,
            exposure: Exposure::Full,
        };
        Self { info, workspace }
    }
}

impl Tool for WriteFile {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        check_size(arguments.content.len())
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let Arguments { path, content } = decode(&arguments)?;
            let workspace = Arc::clone(&self.workspace);
            run_blocking(context, move |cancel| {
                let path = workspace.resolve(&path)?;
                let replaced = workspace.write(&path, content.as_bytes(), cancel)?;
                let lines = content.lines().count() as u64;
                let text = format!(
                    "{} `{path}`: {lines} {}, {}.\n",
                    if replaced { "Replaced" } else { "Created" },
                    words::plural(lines, "line", "lines"),
                    words::size(content.len() as u64)
                );
                Ok(ToolOutput {
                    text,
                    media_type: "text/plain".to_owned(),
                    exit_code: None,
                })
            })
            .await
        })
    }
}

/// Whether a content of so many bytes may be written.
pub(super) fn check_size(bytes: usize) -> Result<(), ToolError> {
    if bytes <= LARGEST_CONTENT {
        return Ok(());
    }
    Err(ToolError::new(
        "too_large",
        format!(
            "The content has {}; at most {} are written at once.",
            words::size(bytes as u64),
            words::size(LARGEST_CONTENT as u64)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;
    use crate::tool::test_support::{Folder, call};

    async fn write(folder: &Folder, path: &str, content: &str) -> Result<String, ToolError> {
        let tool = WriteFile::new(Arc::clone(&folder.workspace));
        let output = call(&tool, json!({ "path": path, "content": content })).await;
        output.map(|output| output.text)
    }

    fn content(folder: &Folder, path: &str) -> String {
        std::fs::read_to_string(folder.path(path)).unwrap()
    }

    #[tokio::test]
    async fn a_file_is_created_with_the_folders_that_lead_to_it_and_replaced_whole() {
        let folder = Folder::new();
        let said = write(&folder, "a/b/größe.txt", "one\ntwo\n").await.unwrap();
        assert_eq!(said, "Created `a/b/größe.txt`: 2 lines, 8 bytes.\n");
        let said = write(&folder, "./a/b/größe.txt", "x").await.unwrap();
        assert_eq!(said, "Replaced `a/b/größe.txt`: 1 line, 1 byte.\n");
        assert_eq!(content(&folder, "a/b/größe.txt"), "x");
        let said = write(&folder, "empty", "").await.unwrap();
        assert_eq!(said, "Created `empty`: 0 lines, 0 bytes.\n");
        let left: Vec<_> = std::fs::read_dir(folder.path("a/b")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside it");
    }

    #[tokio::test]
    async fn a_replaced_file_keeps_its_rights_and_a_link_to_it() {
        let folder = Folder::new();
        folder.write("run.sh", "old");
        std::fs::set_permissions(folder.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
        folder.link("run.sh", "link");
        write(&folder, "link", "new").await.unwrap();
        assert_eq!(content(&folder, "run.sh"), "new");
        assert!(
            std::fs::symlink_metadata(folder.path("link"))
                .unwrap()
                .is_symlink()
        );
        let mode = std::fs::metadata(folder.path("run.sh"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o750);
    }

    #[tokio::test]
    async fn nothing_is_written_outside_of_the_workspace() {
        let folder = Folder::new();
        folder.link(folder.outside(), "way");
        folder.link(folder.outside().join("secret.txt"), "file");
        folder.link(folder.outside().join("new.txt"), "dangling");
        for path in [
            "../outside/new.txt",
            "/tmp/new.txt",
            "way/new.txt",
            "file",
            "dangling",
        ] {
            let error = write(&folder, path, "gone").await.unwrap_err();
            assert_eq!(error.code, "outside_workspace", "{path}: {error}");
        }
        let secret = std::fs::read_to_string(folder.outside().join("secret.txt")).unwrap();
        assert_eq!(secret, "secret words\n");
        assert_eq!(std::fs::read_dir(folder.outside()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn what_is_no_file_is_not_replaced() {
        let folder = Folder::new();
        folder.write("folder/file", "text");
        folder.pipe("pipe");
        folder.link("loop", "loop");
        for (path, code) in [
            ("", "is_directory"),
            ("folder", "is_directory"),
            ("pipe", "not_a_file"),
            ("folder/file/below", "not_a_directory"),
            ("loop", "symlink_loop"),
            ("nul\0", "invalid_arguments"),
        ] {
            let error = write(&folder, path, "gone").await.unwrap_err();
            assert_eq!(error.code, code, "{path:?}: {error}");
        }
        assert_eq!(content(&folder, "folder/file"), "text");
    }

    #[tokio::test]
    async fn too_much_is_refused_before_anything_is_written() {
        let folder = Folder::new();
        folder.write("file", "old");
        let error = write(&folder, "file", &"x".repeat(LARGEST_CONTENT + 1))
            .await
            .unwrap_err();
        assert_eq!(error.code, "too_large");
        assert!(error.message.contains("4.0 MiB"), "{error}");
        assert_eq!(content(&folder, "file"), "old");
    }
}
