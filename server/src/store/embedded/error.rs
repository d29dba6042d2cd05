//! Why the embedded PostgreSQL cannot be used.

use std::io;
use std::path::PathBuf;

use crate::store::data_dir::DataDirError;

/// Why the embedded PostgreSQL cannot be used. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No PostgreSQL on this machine.
    #[error(
        "no PostgreSQL programs found (looked in {looked})\n  install PostgreSQL (Debian: apt-get install postgresql), \
         or set PG_BIN to the folder of initdb and postgres,\n  or use another server with DATABASE_URL"
    )]
    NoPrograms {
        /// Where was looked.
        looked: String,
    },
    /// A program does not say its version, or one that is too old.
    #[error("{program} cannot be used: {problem}")]
    Program {
        /// The program.
        program: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The data were made by another major version.
    #[error(
        "the database in {data} was made by PostgreSQL {data_major}, but only version {found} is here\n  \
         install PostgreSQL {data_major}, or set PG_BIN to its folder; nothing was changed"
    )]
    VersionMismatch {
        /// The folder of the database.
        data: PathBuf,
        /// Its major version.
        data_major: u32,
        /// What is installed.
        found: String,
    },
    /// Root has no user to run PostgreSQL as.
    #[error(
        "PostgreSQL refuses to run as root, and there is neither a user `postgres` nor `nobody`\n  add one, or start as an ordinary user"
    )]
    NoUser,
    /// The data belong to the wrong user.
    #[error("the database in {path} belongs to {owner}, but PostgreSQL would run as {user}\n  {advice}")]
    Owner {
        /// The folder of the database.
        path: PathBuf,
        /// Who owns it.
        owner: String,
        /// Who should.
        user: String,
        /// What to do.
        advice: String,
    },
    /// A folder above is closed for the database's user.
    #[error(
        "PostgreSQL runs as user `{user}` because this process is root, and that user cannot pass the folder {folder} to reach {target}\n  \
         choose another place (--data-dir /var/lib/runloom), or open it for passing: chmod o+x {folder}"
    )]
    FolderInTheWay {
        /// The folder that is closed.
        folder: PathBuf,
        /// What lies behind it.
        target: PathBuf,
        /// Who cannot pass.
        user: String,
    },
    /// No safe short folder for the socket.
    #[error("no folder for the database's socket: {reason}")]
    SocketFolder {
        /// Why not.
        reason: String,
    },
    /// `initdb` failed.
    #[error("cannot create the database in {data}: initdb failed\n{output}")]
    Initialise {
        /// Where.
        data: PathBuf,
        /// What it said.
        output: String,
    },
    /// PostgreSQL does not start.
    #[error("PostgreSQL does not start ({status}); the end of {log}:\n{output}")]
    Start {
        /// How it ended.
        status: String,
        /// Its whole log.
        log: PathBuf,
        /// The end of it.
        output: String,
    },
    /// Processes of an earlier PostgreSQL still use the data.
    #[error(
        "processes of an earlier PostgreSQL still use {data} (shared memory {shared_memory}) and do not end"
    )]
    StillInUse {
        /// The folder of the database.
        data: PathBuf,
        /// Id of the System V segment that they hold.
        shared_memory: u64,
    },
    /// The password file is gone.
    #[error(
        "the database in {data} exists, but its password file {file} does not\n  put it back from a backup"
    )]
    PasswordLost {
        /// The folder of the database.
        data: PathBuf,
        /// The missing file.
        file: PathBuf,
    },
    /// It was told to stop while it started.
    #[error("PostgreSQL was told to stop while it started")]
    Stopped,
    /// It runs but does not answer as it should.
    #[error("the embedded PostgreSQL does not answer: {0}")]
    Connect(#[from] sqlx::Error),
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
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

impl EmbeddedError {
    /// For `map_err`: what was tried on which path.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
