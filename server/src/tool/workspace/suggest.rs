//! “Did you mean”: names near one that is not there.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::{Workspace, WorkspacePath};
use crate::tool::{ToolError, words};

/// How many names of a directory are compared; more would make an error slow.
const COMPARED_NAMES: usize = 5_000;
/// How many are offered.
const OFFERED_NAMES: usize = 5;

impl Workspace {
    /// The error for a path at which nothing is, with similar names beside the first part that is missing.
    pub(super) fn not_found(&self, path: &WorkspacePath) -> ToolError {
        let (parent, missing) = self.first_missing_part(path);
        let place = if parent.as_os_str().is_empty() {
            "the root of the workspace".to_owned()
        } else {
            format!("`{}`", words::name(parent.as_os_str()))
        };
        let similar = match self.directory.open_dir(if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &parent
        }) {
            Ok(directory) => similar_names(&directory, &missing),
            Err(_) => Vec::new(),
        };
        let advice = if similar.is_empty() {
            format!("Use `list_dir` to see what is in {place}.")
        } else {
            let offered: Vec<_> = similar
                .iter()
                .map(|name| format!("`{}`", parent.join(name).display()))
                .collect();
            format!("Did you mean {}?", offered.join(", "))
        };
        ToolError::new(
            "not_found",
            format!("There is no `{path}`: {place} has no `{missing}`. {advice}"),
        )
    }

    /// The directory that is there, and the name that is missing in it.
    fn first_missing_part(&self, path: &WorkspacePath) -> (PathBuf, String) {
        let mut parent = PathBuf::new();
        for part in path.below_root() {
            let next = parent.join(part);
            if self.directory.metadata(&next).is_err() {
                return (parent, words::name(part));
            }
            parent = next;
        }
        // It appeared in the meantime.
        let name = parent.file_name().map(words::name).unwrap_or_default();
        parent.pop();
        (parent, name)
    }
}

/// The most similar names first.
fn similar_names(directory: &Dir, missing: &str) -> Vec<String> {
    let Ok(entries) = directory.entries() else {
        return Vec::new();
    };
    let mut similar: Vec<(usize, String)> = entries
        .take(COMPARED_NAMES)
        .filter_map(Result::ok)
        .map(|entry| words::name(&entry.file_name()))
        .filter_map(|name| distance(missing, &name).map(|distance| (distance, name)))
        .collect();
    similar.sort();
    similar
        .into_iter()
        .take(OFFERED_NAMES)
        .map(|(_, name)| name)
        .collect()
}

/// How far a name is from the one that is missing; `None` when it is no likely slip.
fn distance(missing: &str, name: &str) -> Option<usize> {
    let (missing, name) = (missing.to_lowercase(), name.to_lowercase());
    let edits = strsim::osa_distance(&missing, &name);
    let stem = |name: &str| {
        Path::new(name)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    let allowed = (missing.chars().count() / 3).max(1);
    if edits <= allowed {
        return Some(edits);
    }
    // The right name with another ending, or with less or more of it.
    let same_start = missing.chars().count() >= 3
        && (name.starts_with(&missing) || missing.starts_with(&name) && name.len() >= 3);
    (stem(&missing) == stem(&name) || same_start).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_likely_slips_are_offered() {
        assert_eq!(distance("README.md", "readme.md"), Some(0));
        assert_eq!(distance("mian.rs", "main.rs"), Some(1));
        assert!(distance("config.yml", "config.toml").is_some());
        assert!(distance("config", "configuration.rs").is_some());
        assert_eq!(distance("main.rs", "zebra.txt"), None);
        assert_eq!(distance("a", "b"), Some(1));
        assert_eq!(distance("ab", "xy"), None);
    }
}
