//! Writing files: a new content is there whole, or not at all.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::OpenOptions;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Workspace, WorkspacePath, is_escape, outside_workspace, regular_file};
use crate::tool::ToolError;

impl Workspace {
    /// Writes a file, with the folders that lead to it; `true` when one was replaced, which keeps its rights. A link to a
    /// file inside is followed. The content is written beside the file and put in its place at the end, so that nobody
    /// reads a part of it.
    ///
    /// # Errors
    /// `is_directory`, `not_a_file`, those of [`Workspace::metadata`], and `io_error` where the file system is full.
    pub fn write(
        &self,
        path: &WorkspacePath,
        content: &[u8],
        cancel: &CancellationToken,
    ) -> Result<bool, ToolError> {
        let known = match self.metadata(path) {
            Ok(metadata) => {
                regular_file(path, &metadata)?;
                Some(metadata)
            }
            Err(error) if error.code == "not_found" => None,
            Err(error) => return Err(error),
        };
        let target = match known {
            Some(_) => self.real_path(path)?,
            None => {
                // A link that leads nowhere would be replaced by a file: its target may lie outside.
                if self.directory.symlink_metadata(path.as_path()).is_ok() {
                    return Err(outside_workspace(&path.to_string()));
                }
                path.clone()
            }
        };
        let folder = target.as_path().parent().unwrap_or(Path::new(""));
        let written = self.write_beside(folder, target.as_path(), content, known.as_ref(), cancel);
        written.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => ToolError::cancelled(),
            io::ErrorKind::PermissionDenied if !is_escape(&error) => ToolError::new(
                "permission_denied",
                format!("`{path}` may not be written by this server: the file system denies it."),
            ),
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => ToolError::new(
                "not_a_directory",
                format!("`{path}` cannot be made: a part of it before the last is not a directory."),
            ),
            _ if is_escape(&error) => self.error(path, &error),
            _ => ToolError::new("io_error", format!("`{path}` could not be written: {error}.")),
        })?;
        Ok(known.is_some())
    }

    fn write_beside(
        &self,
        folder: &Path,
        target: &Path,
        content: &[u8],
        known: Option<&cap_std::fs::Metadata>,
        cancel: &CancellationToken,
    ) -> io::Result<()> {
        if !folder.as_os_str().is_empty() {
            self.directory.create_dir_all(folder)?;
        }
        let beside: PathBuf = folder.join(format!(".runloom-{}.new", Uuid::now_v7().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = self.directory.open_with(&beside, &options)?;
        let done = (|| {
            file.write_all(content)?;
            if let Some(known) = known {
                file.set_permissions(known.permissions())?;
            }
            file.sync_all()?;
            if cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.directory.rename(&beside, &self.directory, target)
        })();
        if done.is_err() {
            // What failed is told; what is left over is taken away as far as that is possible.
            let _ = self.directory.remove_file(&beside);
        }
        done
    }
}
