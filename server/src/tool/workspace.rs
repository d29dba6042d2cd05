//! The folder that tools see, with no way out of it.
//!
//! Everything is opened relative to one handle of the folder by cap-std, which resolves each part of a path beneath it;
//! so `..`, links and absolute paths cannot lead outside, also while somebody changes the tree at the same time.

mod suggest;
mod write;

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, FileTypeExt, Metadata, OpenOptions, OpenOptionsExt};
use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::{ToolError, words};

/// A folder, opened once.
#[derive(Debug)]
pub struct Workspace {
    directory: Dir,
    /// Free of links.
    root: PathBuf,
    /// As it was configured, made absolute: a model may have seen this spelling.
    configured_root: PathBuf,
}

/// A path inside of a [`Workspace`], relative to its root and without `.` and `..`. It may still be or pass a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePath(PathBuf);

impl WorkspacePath {
    /// The path for calls on the workspace's [`Dir`]; `.` for the root.
    pub fn as_path(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.0 }
    }

    /// Whether it is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// A path that a walk found below the root.
    pub(crate) fn found_at(below_root: &Path) -> Self {
        Self(below_root.to_path_buf())
    }

    /// The parts below the root; empty for the root.
    pub(crate) fn below_root(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&words::name(self.as_path().as_os_str()))
    }
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    /// At its start.
    pub file: File,
    /// In bytes, when it was opened.
    pub size: u64,
}

impl Workspace {
    /// Opens the folder at `root`.
    ///
    /// # Errors
    /// When it is not there, not a folder, or may not be read.
    pub fn open(root: &Path) -> io::Result<Self> {
        let configured_root = std::path::absolute(root)?;
        let root = root.canonicalize()?;
        let directory = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self {
            directory,
            root,
            configured_root,
        })
    }

    /// Where it is on this machine, free of links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The handle beneath which everything is opened.
    pub fn directory(&self) -> &Dir {
        &self.directory
    }

    /// Reads a path as a model writes it. It is relative to the root; a leading `./`, a trailing slash, `..` that stays
    /// inside and an absolute path to something inside are tolerated. Empty is the root.
    ///
    /// # Errors
    /// `outside_workspace`; `invalid_arguments` for a NUL in the path.
    pub fn resolve(&self, requested: &str) -> Result<WorkspacePath, ToolError> {
        if requested.contains('\0') {
            return Err(ToolError::new(
                "invalid_arguments",
                "The argument `path` does not fit: a path cannot hold a NUL character.",
            ));
        }
        let path = Path::new(requested);
        let outside = || outside_workspace(requested);
        let normal = without_dots(path).ok_or_else(outside)?;
        if !path.is_absolute() {
            return Ok(WorkspacePath(normal));
        }
        [&self.root, &self.configured_root]
            .into_iter()
            .filter_map(|root| without_dots(root))
            .find_map(|root| normal.strip_prefix(root).ok().map(Path::to_path_buf))
            .map(WorkspacePath)
            .ok_or_else(outside)
    }

    /// The same place without links on the way.
    ///
    /// # Errors
    /// As [`Workspace::metadata`].
    pub fn real_path(&self, path: &WorkspacePath) -> Result<WorkspacePath, ToolError> {
        let real = self.inside(path, |path| self.directory.canonicalize(path))?;
        without_dots(&real)
            .map(WorkspacePath)
            .ok_or_else(|| outside_workspace(&path.to_string()))
    }

    /// What is at the path; links are followed.
    ///
    /// # Errors
    /// `not_found` with similar names, `outside_workspace` when a link leads out, `symlink_loop`,
    /// `permission_denied`, `io_error`.
    pub fn metadata(&self, path: &WorkspacePath) -> Result<Metadata, ToolError> {
        self.inside(path, |path| self.directory.metadata(path))
    }

    /// Opens a regular file for reading. Never blocks on a pipe or a device.
    ///
    /// # Errors
    /// `is_directory`, `not_a_file`, and those of [`Workspace::metadata`].
    pub fn open_file(&self, path: &WorkspacePath) -> Result<OpenedFile, ToolError> {
        // Opening a device can already do something, so it is looked at first; the opened file is looked at again
        // because it may have been replaced in between.
        regular_file(path, &self.metadata(path)?)?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
        let file = self.inside(path, |path| self.directory.open_with(path, &options))?;
        let metadata = file.metadata().map_err(|error| self.error(path, &error))?;
        regular_file(path, &metadata)?;
        Ok(OpenedFile {
            file,
            size: metadata.len(),
        })
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// `not_a_directory`, and those of [`Workspace::metadata`].
    pub fn open_directory(&self, path: &WorkspacePath) -> Result<Dir, ToolError> {
        let metadata = self.metadata(path)?;
        if !metadata.is_dir() {
            let advice = if metadata.is_file() {
                " Use `read_file` to see its content."
            } else {
                ""
            };
            return Err(ToolError::new(
                "not_a_directory",
                format!(
                    "`{path}` is {}, not a directory.{advice}",
                    kind_in_words(metadata.file_type())
                ),
            ));
        }
        self.inside(path, |path| self.directory.open_dir(path))
    }

    /// Does `operation` beneath the root. A link by absolute path to something inside is refused by cap-std as any
    /// absolute path; it is then taken again at the place it leads to.
    fn inside<T>(
        &self,
        path: &WorkspacePath,
        operation: impl Fn(&Path) -> io::Result<T>,
    ) -> Result<T, ToolError> {
        let error = match operation(path.as_path()) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if is_escape(&error)
            && let Ok(target) = self.root.join(&path.0).canonicalize()
            && let Ok(below_root) = target.strip_prefix(&self.root)
        {
            let target = WorkspacePath(below_root.to_path_buf());
            return operation(target.as_path()).map_err(|error| self.error(path, &error));
        }
        Err(self.error(path, &error))
    }

    /// Words for a failed operation on the path.
    pub(crate) fn error(&self, path: &WorkspacePath, error: &io::Error) -> ToolError {
        if is_escape(error) {
            return ToolError::new(
                "outside_workspace",
                format!(
                    "`{path}` is or passes a link that leads out of the workspace. Only what lies inside it \
                     can be reached."
                ),
            );
        }
        if error.raw_os_error() == Some(Errno::ELOOP as i32) {
            return ToolError::new(
                "symlink_loop",
                format!("`{path}` cannot be reached: its links lead in a circle."),
            );
        }
        match error.kind() {
            io::ErrorKind::NotFound => self.not_found(path),
            io::ErrorKind::NotADirectory => ToolError::new(
                "not_a_directory",
                format!("`{path}` cannot be reached: a part of it before the last is not a directory."),
            ),
            io::ErrorKind::PermissionDenied => ToolError::new(
                "permission_denied",
                format!("`{path}` may not be read by this server: the file system denies it."),
            ),
            _ => ToolError::new("io_error", format!("`{path}` could not be read: {error}.")),
        }
    }
}

/// Removes `.` and resolves `..` by the words of the path alone; the root of an absolute path is dropped. `None` when
/// `..` leads above the start.
fn without_dots(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir if !normal.pop() => return None,
            Component::ParentDir | Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(normal)
}

fn outside_workspace(requested: &str) -> ToolError {
    ToolError::new(
        "outside_workspace",
        format!(
            "`{requested}` is outside of the workspace. Only what lies inside it can be reached: give a \
             path relative to its root, such as `src/main.rs`, or `.` for the root itself."
        ),
    )
}

/// cap-std reports an attempt to leave as an error of its own, without a number of the operating system.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

fn regular_file(path: &WorkspacePath, metadata: &Metadata) -> Result<(), ToolError> {
    if metadata.is_file() {
        return Ok(());
    }
    if metadata.is_dir() {
        return Err(ToolError::new(
            "is_directory",
            format!("`{path}` is a directory, not a file. Use `list_dir` to see what is in it."),
        ));
    }
    Err(ToolError::new(
        "not_a_file",
        format!(
            "`{path}` is {}; only regular files can be read.",
            kind_in_words(metadata.file_type())
        ),
    ))
}

/// What something is, in words, for lists and errors.
pub(crate) fn kind_in_words(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a link"
    } else if kind.is_file() {
        "a file"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "a special file"
    }
}

#[cfg(test)]
mod tests;
