//! The data folder: transcripts and the embedded database of one server at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK_FILE: &str = "runloom.lock";

/// The data folder of this server. It exists.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

/// The proof that this process alone uses a data folder. Held until the last clone is dropped; the kernel gives it up
/// when the process dies, however that happens.
#[derive(Debug, Clone)]
pub struct DataDirLock {
    data_dir: DataDir,
    file: Arc<LockedFile>,
}

/// A file that is locked. Closing it would not be enough to give the lock up: a process that is being started at that
/// moment still holds a copy of the file until it runs its own program.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // When this fails, the kernel gives the lock up with the last copy.
        let _ = self.0.unlock();
    }
}

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error(
        "the data folder {path} is in use by {holder}\n  stop it first, or give this one a folder of its own with --data-dir"
    )]
    Held {
        /// The folder.
        path: PathBuf,
        /// Who has it, such as `process 4711 (serving 127.0.0.1:3000)`.
        holder: String,
    },
    /// It belongs to somebody else, or others can put files into it.
    #[error("the data folder {path} {problem}")]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The system refuses.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl DataDir {
    /// Creates the folder where it does not exist: for this user only, or as root passable for the database's user.
    ///
    /// # Errors
    /// When it cannot be created, or belongs to another user than this process runs as.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let failed = |action: &'static str| {
            let path = path.to_path_buf();
            move |source| DataDirError::Io { action, path, source }
        };
        let user = nix::unistd::geteuid();
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed("create the folder above"))?;
        }
        // Root's database runs as another user, who has to pass through this folder but not to list it.
        let mode = if user.is_root() { 0o711 } else { 0o700 };
        match DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("create")(error));
            }
            _ => {}
        }
        let path = path.canonicalize().map_err(failed("find"))?;
        let metadata = path.metadata().map_err(failed("read"))?;
        let problem = if !metadata.is_dir() {
            Some("is a file, not a folder".to_owned())
        } else if metadata.uid() != user.as_raw() {
            Some(format!(
                "belongs to user {}, but this process runs as user {user}",
                metadata.uid()
            ))
        } else if metadata.permissions().mode() & 0o022 != 0 {
            Some(format!(
                "can be written by others; run: chmod go-w {}",
                path.display()
            ))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(DataDirError::Unsafe { path, problem });
        }
        let data_dir = Self { path };
        data_dir.private_folder("transcripts")?;
        Ok(data_dir)
    }

    /// Its absolute path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the transcripts.
    pub fn transcripts(&self) -> PathBuf {
        self.path.join("transcripts")
    }

    /// A folder inside, made where it does not exist, that only this user can enter.
    ///
    /// # Errors
    /// When it cannot be made or closed.
    pub fn private_folder(&self, name: &str) -> Result<PathBuf, DataDirError> {
        let path = self.path.join(name);
        let made = match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))
            }
            made => made,
        };
        made.map_err(|source| DataDirError::Io {
            action: "create",
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }

    /// Takes the folder for this process. `purpose` is what another process is told, such as
    /// `serving 127.0.0.1:3000`.
    ///
    /// # Errors
    /// [`DataDirError::Held`] when another process has it.
    pub fn lock(&self, purpose: &str) -> Result<DataDirLock, DataDirError> {
        let path = self.path.join(LOCK_FILE);
        let failed = |action: &'static str| {
            let path = path.clone();
            move |source| DataDirError::Io { action, path, source }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(failed("read"))?;
                return Err(DataDirError::Held {
                    path: self.path.clone(),
                    holder: holder(&text),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
        }
        let lock = DataDirLock {
            data_dir: self.clone(),
            file: Arc::new(LockedFile(file)),
        };
        lock.describe(purpose)?;
        Ok(lock)
    }
}

impl DataDirLock {
    /// The folder that is held.
    pub fn data_dir(&self) -> &DataDir {
        &self.data_dir
    }

    /// Changes what another process is told about this one.
    ///
    /// # Errors
    /// When the lock file cannot be written.
    pub fn describe(&self, purpose: &str) -> Result<(), DataDirError> {
        let write = || {
            let mut file: &File = &self.file.0;
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            write!(file, "{}\n{purpose}\n", std::process::id())
        };
        let path = self.data_dir.path.join(LOCK_FILE);
        write().map_err(|source| DataDirError::Io {
            action: "write",
            path,
            source,
        })
    }
}

fn holder(text: &str) -> String {
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(process), Some(purpose)) => format!("process {process} ({purpose})"),
        _ => "another process, which is just starting".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("an existing folder").permissions().mode() & 0o7777
    }

    #[test]
    fn a_second_server_is_told_who_holds_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let data_dir = DataDir::open(&folder.path().join("data")).expect("a data folder");
        let lock = data_dir.lock("serving 127.0.0.1:3000").expect("the first lock");
        let message = data_dir
            .lock("serving 127.0.0.1:4000")
            .expect_err("a second lock")
            .to_string();
        let expected = format!(
            "in use by process {} (serving 127.0.0.1:3000)",
            std::process::id()
        );
        assert!(message.contains(&expected), "{message}");
        lock.describe("verifying").expect("a new purpose");
        let message = data_dir.lock("x").expect_err("a second lock").to_string();
        assert!(message.contains("(verifying)"), "{message}");
        drop(lock);
        data_dir
            .lock("serving 127.0.0.1:4000")
            .expect("the lock is free again");
    }

    #[test]
    fn what_is_private_is_closed_to_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let data_dir = DataDir::open(&folder.path().join("deep/data")).expect("a data folder");
        let expected = if nix::unistd::geteuid().is_root() {
            0o711
        } else {
            0o700
        };
        assert_eq!(mode(data_dir.path()), expected);
        assert_eq!(mode(&data_dir.transcripts()), 0o700);
        data_dir.lock("serving").expect("the lock");
        assert_eq!(mode(&data_dir.path().join(LOCK_FILE)), 0o600);
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("chmod");
        let message = DataDir::open(folder.path())
            .expect_err("an open folder")
            .to_string();
        assert!(message.contains("can be written by others"), "{message}");
    }

    #[test]
    fn a_file_is_no_data_folder() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let message = DataDir::open(file.path()).expect_err("a file").to_string();
        assert!(message.contains("is a file"), "{message}");
    }
}
