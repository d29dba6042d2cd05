//! What has to be known and prepared before PostgreSQL can be started, and its command line.

use std::path::PathBuf;
use std::process::Command;

use super::error::EmbeddedError;
use super::initialise::initialise;
use super::layout::Layout;
use super::programs::{Programs, Search};
use super::user::RunAs;
use super::{Durability, EmbeddedOptions};
use crate::provider::Secret;
use crate::store::data_dir::DataDirLock;

/// Everything that a start needs and that stays the same.
pub(super) struct Plan {
    pub(super) layout: Layout,
    pub(super) run_as: RunAs,
    pub(super) programs: Programs,
    pub(super) socket_folder: PathBuf,
    pub(super) password: Secret,
    /// `setpriv`, where it can tie the child's life to this thread's.
    tie: Option<PathBuf>,
    options: EmbeddedOptions,
}

impl Plan {
    /// Finds the programs, and creates the database the first time.
    pub(super) fn make(lock: &DataDirLock, options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let layout = Layout::new(lock.data_dir());
        let run_as = RunAs::decide(&layout.data)?;
        layout.create(&run_as)?;
        let data_major = layout.data_major()?;
        let search = Search {
            folder: options.programs.clone(),
            path: std::env::var_os("PATH"),
        };
        let programs = Programs::find(&search, &run_as, &layout.folder, &layout.data, data_major)?;
        let password = layout.password(options.durability)?;
        if data_major.is_none() {
            initialise(&layout, &run_as, &programs, &password, options.durability)?;
        }
        let socket_folder = layout.socket_folder(&run_as)?;
        let tie = if options.end_with_parent {
            find_tie(&run_as, &layout)
        } else {
            None
        };
        Ok(Self {
            layout,
            run_as,
            programs,
            socket_folder,
            password,
            tie,
            options: options.clone(),
        })
    }

    /// PostgreSQL itself, as the right user, tied to this thread where that is possible.
    pub(super) fn command(&self) -> Command {
        let mut command = match &self.tie {
            Some(setpriv) => {
                let mut command = self.run_as.command(setpriv, &self.layout.folder);
                command
                    .args(["--pdeathsig", "INT", "--"])
                    .arg(&self.programs.postgres);
                command
            }
            None => self.run_as.command(&self.programs.postgres, &self.layout.folder),
        };
        command
            .arg("-D")
            .arg(&self.layout.data)
            .arg("-k")
            .arg(&self.socket_folder)
            .args(["-p", "5432"]);
        for setting in settings(&self.options) {
            command.arg("-c").arg(setting);
        }
        command
    }
}

/// Full durability; modest memory, because the machine has other work to do.
fn settings(options: &EmbeddedOptions) -> Vec<String> {
    let durable = match options.durability {
        Durability::Full => "on",
        Durability::Throwaway => "off",
    };
    let connections = options.max_connections;
    let mut settings: Vec<String> = ["fsync", "full_page_writes", "synchronous_commit"]
        .map(|name| format!("{name}={durable}"))
        .into();
    settings.push(format!("max_connections={connections}"));
    settings.extend(
        [
            "listen_addresses=",
            "unix_socket_permissions=0700",
            "password_encryption=scram-sha-256",
            "shared_buffers=64MB",
            "max_wal_size=1GB",
            "min_wal_size=80MB",
            "wal_compression=on",
            "jit=off",
            "timezone=UTC",
            "log_timezone=UTC",
            "log_checkpoints=off",
            "logging_collector=off",
            "lc_messages=C",
        ]
        .map(str::to_owned),
    );
    settings
}

/// `setpriv`, when it is here and knows the parent-death signal.
fn find_tie(run_as: &RunAs, layout: &Layout) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let setpriv = std::env::split_paths(&path)
        .map(|folder| folder.join("setpriv"))
        .find(|file| file.is_file())?;
    let works = run_as
        .command(&setpriv, &layout.folder)
        .args(["--pdeathsig", "INT", "--", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        tracing::warn!(
            "setpriv cannot tie PostgreSQL to this process: after a kill -9 it runs on until the next start"
        );
    }
    works.then_some(setpriv)
}
