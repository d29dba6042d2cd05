//! PostgreSQL: what was shown is what is kept. One file for each family of tables; rows become things of the
//! protocol here and nowhere else.

pub mod batch;
pub mod commands;
pub mod content;
pub mod data_dir;
pub mod embedded;
pub mod imports;
pub mod journal;
pub mod provider_state;
pub mod queue;
pub mod reopen;
pub mod replay;
pub mod rows;
pub mod runs;
pub mod search;
pub mod sessions;
#[doc(hidden)]
pub mod test_support;
pub mod transcripts;
pub mod wake;
mod words;

use std::sync::Arc;

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use tokio::time::Instant;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database refused, or could not be reached.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// No server answers at this address.
    #[error("no PostgreSQL answers at {address}: {cause}")]
    Unreachable {
        /// Host and port, or the folder of its socket.
        address: String,
        /// What the last try met.
        cause: String,
    },
    /// The migrations could not be applied.
    #[error("migrations: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The recorder could not write it.
    #[error("not written: {0}")]
    NotWritten(String),
    /// A row that this version cannot read.
    #[error("table {table}, row {row}: {problem}")]
    Row {
        /// The table.
        table: &'static str,
        /// The row's key.
        row: String,
        /// What is wrong.
        problem: String,
    },
}

impl StoreError {
    /// A row that this version cannot read.
    pub(crate) fn row(table: &'static str, row: impl ToString, problem: impl ToString) -> Self {
        Self::Row {
            table,
            row: row.to_string(),
            problem: problem.to_string(),
        }
    }

    /// Whether asking again later can help: the connection failed, not the data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Database(sqlx::Error::Database(error)) => {
                // Class 08: connection, 40: rollback, 53: resources, 57: operator intervention.
                error.code().is_some_and(|code| {
                    ["08", "40", "53", "57"]
                        .iter()
                        .any(|class| code.starts_with(class))
                })
            }
            Self::Database(
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed,
            )
            | Self::NotWritten(_) => true,
            Self::Database(_) | Self::Migrate(_) | Self::Row { .. } => false,
        }
    }
}

/// How long a server is waited for that may be about to start, and a free connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long after a refused connection the next one is tried.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Waits until the server takes a connection. A pool alone would only say that its time was up.
async fn reach(options: &PgConnectOptions) -> Result<(), StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let cause = match tokio::time::timeout_at(deadline, PgConnection::connect_with(options)).await {
            Ok(Ok(connection)) => return Ok(connection.close().await?),
            Ok(Err(sqlx::Error::Io(error))) => error.to_string(),
            // 57P03: it is starting.
            Ok(Err(sqlx::Error::Database(error))) if error.code().as_deref() == Some("57P03") => {
                error.to_string()
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => format!("it did not answer within {} s", PATIENCE.as_secs()),
        };
        if Instant::now() + TRY_AGAIN >= deadline {
            let address = match options.get_socket() {
                Some(socket) => socket.display().to_string(),
                None => format!("{}:{}", options.get_host(), options.get_port()),
            };
            return Err(StoreError::Unreachable { address, cause });
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// The record, in PostgreSQL.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
    /// Tells the wake-ups of this process from those of others.
    process: Arc<str>,
}

impl Store {
    /// Connects, and brings the tables up to this version.
    pub async fn open(options: PgConnectOptions) -> Result<Self, StoreError> {
        let store = Self::connect(options).await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Connects without touching the tables.
    pub async fn connect(options: PgConnectOptions) -> Result<Self, StoreError> {
        reach(&options).await?;
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .acquire_timeout(PATIENCE)
            .connect_with(options)
            .await?;
        let process = uuid::Uuid::now_v7().simple().to_string().into();
        Ok(Self { pool, process })
    }

    /// Brings the tables up to this version.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        Ok(sqlx::migrate!("../migrations").run(&self.pool).await?)
    }

    /// The connections.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The name of this process in wake-ups.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("select 1").execute(&self.pool).await?;
        Ok(())
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
