//! Where everything of the embedded PostgreSQL lies, and who may see it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Durability;
use super::error::EmbeddedError;
use super::user::RunAs;
use crate::provider::Secret;
use crate::store::data_dir::DataDir;

/// The name of the socket in its folder. It is fixed by the port number, which has no other meaning without TCP.
pub(super) const SOCKET_NAME: &str = ".s.PGSQL.5432";
/// Linux takes socket paths of at most 107 bytes.
const LONGEST_SOCKET_PATH: usize = 107;
const LONGEST_LOG: u64 = 10 * 1024 * 1024;

/// The places in a data folder.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    data_dir: PathBuf,
    /// Owned by PostgreSQL's user.
    pub(super) folder: PathBuf,
    /// PostgreSQL's data.
    pub(super) data: PathBuf,
    /// PostgreSQL's log; written by a descriptor that the server opens.
    pub(super) log: PathBuf,
    /// The password of the one role; for the server's user only.
    pub(super) password: PathBuf,
}

impl Layout {
    pub(super) fn new(data_dir: &DataDir) -> Self {
        let data_dir = data_dir.path().to_path_buf();
        let folder = data_dir.join("postgres");
        Self {
            data: folder.join("data"),
            log: data_dir.join("postgres.log"),
            password: data_dir.join("postgres.password"),
            folder,
            data_dir,
        }
    }

    /// The major version that made the data; none where there are none yet.
    pub(super) fn data_major(&self) -> Result<Option<u32>, EmbeddedError> {
        let file = self.data.join("PG_VERSION");
        if !self.data.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&file).map_err(EmbeddedError::io("read", &file))?;
        match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => {
                let problem =
                    std::io::Error::new(ErrorKind::InvalidData, format!("it holds {:?}", text.trim()));
                Err(EmbeddedError::io("use", file)(problem))
            }
        }
    }

    /// Makes the folder of PostgreSQL, closed to all but its user.
    pub(super) fn create(&self, run_as: &RunAs) -> Result<(), EmbeddedError> {
        private_folder(&self.folder, run_as)
    }

    /// The password, made on the first call. It is whole or absent.
    pub(super) fn password(&self, durability: Durability) -> Result<Secret, EmbeddedError> {
        match std::fs::read_to_string(&self.password) {
            Ok(text) => return Ok(Secret::new(text.trim())),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(EmbeddedError::io("read", &self.password)(error));
            }
            Err(_) if self.data.exists() => {
                return Err(EmbeddedError::PasswordLost {
                    data: self.data.clone(),
                    file: self.password.clone(),
                });
            }
            Err(_) => {}
        }
        let bytes: [u8; 24] = rand::random();
        let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let new = self.password.with_extension("password.new");
        write_private(&new, &password, durability)?;
        std::fs::rename(&new, &self.password).map_err(EmbeddedError::io("rename", &new))?;
        sync_folder(&self.data_dir, durability)?;
        Ok(Secret::new(password))
    }

    /// Opens the log for appending; one that has grown long becomes `postgres.log.1` first.
    pub(super) fn open_log(&self) -> Result<File, EmbeddedError> {
        if self
            .log
            .metadata()
            .is_ok_and(|metadata| metadata.len() > LONGEST_LOG)
        {
            let old = self.log.with_extension("log.1");
            std::fs::rename(&self.log, &old).map_err(EmbeddedError::io("rename", &self.log))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        options
            .open(&self.log)
            .map_err(EmbeddedError::io("open", &self.log))
    }

    /// A folder for the socket that is short enough and that only PostgreSQL's user can enter: inside the data
    /// folder, or where that is too deep, a folder of its own under `/run` (root) or `/tmp`.
    pub(super) fn socket_folder(&self, run_as: &RunAs) -> Result<PathBuf, EmbeddedError> {
        let inside = self.folder.join("run");
        if fits(&inside) {
            private_folder(&inside, run_as)?;
            return Ok(inside);
        }
        let parent = if nix::unistd::geteuid().is_root() {
            Path::new("/run")
        } else {
            Path::new("/tmp")
        };
        let hash = Sha256::digest(self.data_dir.as_os_str().as_bytes());
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        // Somebody else may have taken a name under /tmp; the folder is used only when it is ours.
        let mut reason = String::new();
        for number in 0..8 {
            let folder = parent.join(format!("runloom-{hash}-{number}"));
            match private_folder(&folder, run_as) {
                Ok(()) => return Ok(folder),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(EmbeddedError::SocketFolder { reason })
    }

    /// Whether the socket's folder is one that [`Layout::socket_folder`] made outside the data folder.
    pub(super) fn is_outside(&self, socket_folder: &Path) -> bool {
        !socket_folder.starts_with(&self.data_dir)
    }
}

fn fits(folder: &Path) -> bool {
    folder.join(SOCKET_NAME).as_os_str().len() <= LONGEST_SOCKET_PATH
}

/// Makes a folder of mode 0700 for PostgreSQL's user. One that exists is taken only when it is a real folder that
/// belongs to that user (or to this process), so that nobody can slip in a link or a folder of theirs.
pub(super) fn private_folder(path: &Path, run_as: &RunAs) -> Result<(), EmbeddedError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return run_as.take_over(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(EmbeddedError::io("create", path)(error)),
    }
    let metadata = path.symlink_metadata().map_err(EmbeddedError::io("read", path))?;
    let own = nix::unistd::geteuid().as_raw();
    if !metadata.is_dir() || (metadata.uid() != run_as.uid.as_raw() && metadata.uid() != own) {
        let problem = std::io::Error::new(
            ErrorKind::PermissionDenied,
            format!("it exists and is no folder of user {}", run_as.name),
        );
        return Err(EmbeddedError::io("use", path)(problem));
    }
    run_as.take_over(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
        .map_err(EmbeddedError::io("close", path))
}

/// Writes a file that only this user can read, and waits until it is on the disk where that matters.
pub(super) fn write_private(path: &Path, text: &str, durability: Durability) -> Result<(), EmbeddedError> {
    let write = || {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(text.as_bytes())?;
        match durability {
            Durability::Full => file.sync_all(),
            Durability::Throwaway => Ok(()),
        }
    };
    write().map_err(EmbeddedError::io("write", path))
}

/// Waits until the names in a folder are on the disk where that matters.
pub(super) fn sync_folder(path: &Path, durability: Durability) -> Result<(), EmbeddedError> {
    match durability {
        Durability::Full => File::open(path)
            .and_then(|folder| folder.sync_all())
            .map_err(EmbeddedError::io("sync", path)),
        Durability::Throwaway => Ok(()),
    }
}
