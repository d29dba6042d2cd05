//! The sample workspace: a small project that the tools can work on when no folder is configured.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "sample-workspace"]
struct SampleFiles;

/// Writes the embedded files into a folder, which is made when missing. A file that exists is left as it is.
pub fn unpack(into: &Path) -> io::Result<()> {
    for path in SampleFiles::iter() {
        let Some(file) = SampleFiles::get(&path) else {
            continue;
        };
        let target = into.join(path.as_ref());
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        match OpenOptions::new().write(true).create_new(true).open(&target) {
            Ok(mut out) => out.write_all(&file.data)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_written_and_others_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new/workspace");
        unpack(&root).unwrap();
        let readme = root.join("README.md");
        let original = fs::read_to_string(&readme).unwrap();
        assert!(root.join("acorn/store.py").is_file());
        fs::write(&readme, "mine").unwrap();
        fs::remove_file(root.join("acorn/store.py")).unwrap();
        unpack(&root).unwrap();
        assert_eq!(fs::read_to_string(&readme).unwrap(), "mine");
        assert!(root.join("acorn/store.py").is_file());
        assert!(original.starts_with("# Acorn"));
    }

    #[test]
    fn the_workspace_has_ten_to_twenty_text_files() {
        let count = SampleFiles::iter().count();
        assert!((10..=20).contains(&count), "{count} files");
        for path in SampleFiles::iter() {
            let file = SampleFiles::get(&path).unwrap();
            assert!(std::str::from_utf8(&file.data).is_ok(), "{path} is no text");
            assert!(file.data.ends_with(b"\n"), "{path} has no line end at its end");
        }
    }
}
