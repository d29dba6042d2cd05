//! A PostgreSQL of our own in the data folder, for whoever has no database server.
//!
//! Started with full durability, reachable through a socket in a private folder only, by a generated password. Its
//! life is tied to this process's; whatever is killed, the next start recovers and never deletes data. It is watched:
//! when it dies, it is started again, and pools connect anew by themselves.

mod error;
mod initialise;
mod layout;
mod leftover;
mod plan;
mod programs;
mod supervisor;
mod user;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection};

use self::initialise::ROLE;
use self::layout::Layout;
use self::leftover::PidFile;
use self::supervisor::Supervisor;
use crate::provider::Secret;
use crate::store::data_dir::{DataDir, DataDirError, DataDirLock};

pub use error::EmbeddedError;

/// The database that everything is in.
const DATABASE: &str = "runloom";
/// How often [`EmbeddedPostgres::connect_or_start`] looks again while another process starts or stops.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How much a crash of the machine may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing that was committed.
    Full,
    /// Everything: for databases of tests, which nobody misses.
    Throwaway,
}

/// How the embedded PostgreSQL is run.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The folder of its programs; none: searched for.
    pub programs: Option<PathBuf>,
    /// How much a crash may cost.
    pub durability: Durability,
    /// Connections at the same time.
    pub max_connections: u16,
    /// Whether it ends when this process dies, where the machine can do that.
    pub end_with_parent: bool,
    /// How long [`EmbeddedPostgres::connect_or_start`] waits for a process that has the folder but no database yet.
    pub patience: Duration,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            programs: None,
            durability: Durability::Full,
            max_connections: 50,
            end_with_parent: true,
            patience: Duration::from_secs(15),
        }
    }
}

impl EmbeddedOptions {
    /// The defaults, with the programs of `PG_BIN` when it is set.
    pub fn from_environment() -> Self {
        let programs = std::env::var_os("PG_BIN")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from);
        Self {
            programs,
            ..Self::default()
        }
    }
}

/// A running PostgreSQL: of this process, or one that another process runs. Dropping it stops one of this process
/// without waiting; [`EmbeddedPostgres::stop`] waits.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    connect_options: PgConnectOptions,
    supervisor: Option<Supervisor>,
}

impl EmbeddedPostgres {
    /// Starts PostgreSQL in the data folder, and creates it there the first time. The lock is held until it has ended.
    ///
    /// # Errors
    /// When there are no programs, they do not fit the data, the folder is not reachable for PostgreSQL's user, or it
    /// does not start.
    pub async fn start(lock: &DataDirLock, options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let (supervisor, access) = Supervisor::spawn(lock.clone(), options.clone())?;
        let started = async {
            let access = access.await.map_err(|_| EmbeddedError::Stopped)??;
            let connect_options = connect_options(&access.socket_folder, &access.password);
            ensure_database(&connect_options).await?;
            Ok(connect_options)
        };
        match started.await {
            Ok(connect_options) => Ok(Self {
                connect_options,
                supervisor: Some(supervisor),
            }),
            Err(error) => {
                // The folder is free again when the caller learns of the failure.
                supervisor.stop().await;
                Err(error)
            }
        }
    }

    /// Uses the PostgreSQL that a server runs in this folder, or starts one for as long as the result lives.
    /// `purpose` is what a server that wants the folder is told meanwhile, such as `runloom verify`.
    ///
    /// # Errors
    /// As [`EmbeddedPostgres::start`]; and when another process has the folder but no database answers in time.
    pub async fn connect_or_start(
        data_dir: &DataDir,
        purpose: &str,
        options: &EmbeddedOptions,
    ) -> Result<Self, EmbeddedError> {
        let deadline = tokio::time::Instant::now() + options.patience;
        loop {
            if let Some(connect_options) = running(data_dir).await {
                return Ok(Self {
                    connect_options,
                    supervisor: None,
                });
            }
            match data_dir.lock(purpose) {
                Ok(lock) => return Self::start(&lock, options).await,
                Err(DataDirError::Held { .. }) if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How to connect.
    pub fn connect_options(&self) -> &PgConnectOptions {
        &self.connect_options
    }

    /// Whether this process runs it, and not another.
    pub fn is_own(&self) -> bool {
        self.supervisor.is_some()
    }

    /// Ends it and returns when it has ended. Close the pools first. One that another process runs is left alone.
    pub async fn stop(self) {
        if let Some(supervisor) = self.supervisor {
            supervisor.stop().await;
        }
    }
}

fn connect_options(socket_folder: &Path, password: &Secret) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .socket(socket_folder)
        .port(5432)
        .username(ROLE)
        .password(password.expose())
        .database(DATABASE)
        .ssl_mode(PgSslMode::Disable)
        .application_name("runloom")
}

/// How to reach the database that runs in this folder; none when none answers.
async fn running(data_dir: &DataDir) -> Option<PgConnectOptions> {
    let layout = Layout::new(data_dir);
    let file = PidFile::read(&layout.data).filter(|file| file.is_ready && file.is_alive(&layout.data))?;
    // Where data exist, the password is only read.
    let password = layout.password(Durability::Full).ok()?;
    let options = connect_options(&file.socket_folder?, &password);
    let connection = options.connect().await.ok()?;
    // It answered; that is all that was asked.
    let _ = connection.close().await;
    Some(options)
}

async fn ensure_database(options: &PgConnectOptions) -> Result<(), EmbeddedError> {
    let mut connection = options.clone().database("postgres").connect().await?;
    let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(DATABASE)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        sqlx::query("create database runloom")
            .execute(&mut connection)
            .await?;
    }
    connection.close().await?;
    Ok(())
}

#[cfg(test)]
mod tests;
