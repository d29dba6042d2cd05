//! As which user PostgreSQL runs. It refuses to be root, so root's runs as an unprivileged user.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Uid, User};

use super::error::EmbeddedError;

/// The user that PostgreSQL runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunAs {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
    pub(super) name: String,
    /// This process is root and becomes that user in the child.
    changes: bool,
}

impl RunAs {
    /// This process's user; when that is root, the owner of the data that exist, else `postgres`, else `nobody`.
    pub(super) fn decide(data: &Path) -> Result<Self, EmbeddedError> {
        let own = nix::unistd::geteuid();
        let owner = match data.metadata() {
            Ok(metadata) => Some(Uid::from_raw(metadata.uid())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(EmbeddedError::io("read", data)(error)),
        };
        if !own.is_root() {
            return match owner {
                Some(owner) if owner != own => Err(EmbeddedError::Owner {
                    path: data.to_path_buf(),
                    owner: format!("`{}`", name_of(owner)),
                    user: format!("`{}`", name_of(own)),
                    advice: format!("start as `{}`, or choose another --data-dir", name_of(owner)),
                }),
                _ => Ok(Self {
                    uid: own,
                    gid: nix::unistd::getegid(),
                    name: name_of(own),
                    changes: false,
                }),
            };
        }
        let found = match owner {
            Some(owner) => User::from_uid(owner),
            None => User::from_name("postgres").and_then(|user| match user {
                Some(user) => Ok(Some(user)),
                None => User::from_name("nobody"),
            }),
        };
        let user = found.ok().flatten().ok_or(EmbeddedError::NoUser)?;
        if user.uid.is_root() {
            return Err(EmbeddedError::Owner {
                path: data.to_path_buf(),
                owner: "root".to_owned(),
                user: "`postgres`".to_owned(),
                advice: format!("give it back: chown -R postgres {}", data.display()),
            });
        }
        Ok(Self {
            uid: user.uid,
            gid: user.gid,
            name: user.name,
            changes: true,
        })
    }

    /// A command that runs as this user in `folder`, in a process group of its own so that Ctrl-C reaches only the
    /// server, and with none of the server's environment: keys must not be readable there.
    pub(super) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .current_dir(folder)
            .stdin(Stdio::null())
            .process_group(0);
        for name in ["PATH", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if self.changes {
            command.uid(self.uid.as_raw()).gid(self.gid.as_raw());
        }
        command
    }

    /// Gives `path` to this user, without following a link.
    pub(super) fn take_over(&self, path: &Path) -> Result<(), EmbeddedError> {
        if !self.changes {
            return Ok(());
        }
        std::os::unix::fs::lchown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
            .map_err(EmbeddedError::io("give the database's user", path))
    }

    /// The first folder on the way to `target` that this user cannot pass, judged by owner, group and mode.
    pub(super) fn folder_in_the_way(&self, target: &Path) -> Option<PathBuf> {
        let mut folders: Vec<&Path> = target
            .ancestors()
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        folders.reverse();
        folders
            .into_iter()
            .find(|folder| !self.can_pass(folder))
            .map(Path::to_path_buf)
    }

    fn can_pass(&self, folder: &Path) -> bool {
        let Ok(metadata) = folder.metadata() else {
            return true;
        };
        if !metadata.is_dir() {
            return true;
        }
        let needed = if metadata.uid() == self.uid.as_raw() {
            0o100
        } else if metadata.gid() == self.gid.as_raw() {
            0o010
        } else {
            0o001
        };
        metadata.permissions().mode() & needed != 0
    }

    /// What to say when `program` could not be started in `folder`.
    pub(super) fn explain(&self, program: &Path, folder: &Path, error: std::io::Error) -> EmbeddedError {
        if error.kind() == std::io::ErrorKind::PermissionDenied && self.changes {
            for target in [folder, program] {
                if let Some(closed) = self.folder_in_the_way(target) {
                    let target = target.to_path_buf();
                    return EmbeddedError::FolderInTheWay {
                        folder: closed,
                        target,
                        user: self.name.clone(),
                    };
                }
            }
        }
        EmbeddedError::io("run", program)(error)
    }
}

fn name_of(uid: Uid) -> String {
    User::from_uid(uid)
        .ok()
        .flatten()
        .map_or_else(|| uid.to_string(), |user| user.name)
}
