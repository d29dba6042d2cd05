//! Which files are searched.
//!
//! The walk itself reads directories by their path on the machine. It opens no file but .gitignore and .ignore; what it
//! finds is opened through the workspace, which refuses whatever a link may have brought in meanwhile.

use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use super::below;
use crate::tool::workspace::{Workspace, WorkspacePath};

/// Hands each regular file in the directory `target` to `visit`, sorted by path, with its path below `target`; or the
/// reason why something there could not be looked at.
///
/// .gitignore and .ignore count from the root of the workspace on, and no others of this machine. A target that they
/// name is searched all the same: somebody asked for it.
pub(super) fn files(
    workspace: &Workspace,
    target: &WorkspacePath,
    mut visit: impl FnMut(&Path, Result<WorkspacePath, String>) -> ControlFlow<()>,
) {
    let target_path = workspace.root().join(target.below_root());
    let reached = walk(workspace, workspace.root(), &target_path, &mut visit);
    if !reached {
        walk(workspace, &target_path, &target_path, &mut visit);
    }
}

/// Walks from `start` to the files in `target`. Says whether it reached the target, which ignore files can prevent.
fn walk(
    workspace: &Workspace,
    start: &Path,
    target: &Path,
    visit: &mut impl FnMut(&Path, Result<WorkspacePath, String>) -> ControlFlow<()>,
) -> bool {
    let mut reached = false;
    for entry in builder(start, target.to_path_buf()).build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                if visit(&error_place(&error, target), Err(error.to_string())).is_break() {
                    return true;
                }
                continue;
            }
        };
        reached |= entry.path() == target;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !entry.path().starts_with(target) {
            continue;
        }
        let path = WorkspacePath::found_at(below(entry.path(), workspace.root()));
        if visit(below(entry.path(), target), Ok(path)).is_break() {
            return true;
        }
    }
    reached
}

fn builder(start: &Path, target: PathBuf) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    let readable = !has_blocking_ignore_file(start);
    builder
        .hidden(false)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .git_exclude(false)
        .git_ignore(readable)
        .ignore(readable)
        .follow_links(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(move |entry| {
            let on_the_way = target.starts_with(entry.path()) || entry.path().starts_with(&target);
            on_the_way
                && !is_repository_data(entry)
                && !(is_directory(entry) && has_blocking_ignore_file(entry.path()))
        });
    builder
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn is_repository_data(entry: &DirEntry) -> bool {
    is_directory(entry) && entry.file_name() == OsStr::new(".git")
}

/// Whether reading the directory's ignore files could wait for ever, as a named pipe does.
fn has_blocking_ignore_file(directory: &Path) -> bool {
    [".gitignore", ".ignore"].into_iter().any(|name| {
        fs::metadata(directory.join(name)).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    })
}

/// The place that an error of the walk is about, below the target.
fn error_place(error: &ignore::Error, target: &Path) -> PathBuf {
    match error {
        ignore::Error::WithPath { path, .. } => below(path, target).to_path_buf(),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            error_place(err, target)
        }
        _ => PathBuf::from("."),
    }
}
