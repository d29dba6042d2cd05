//! PostgreSQL: what was shown is what is kept. One file for each family of tables; rows become things of the
//! protocol here and nowhere else.

pub mod batch;
pub mod commands;
pub mod content;
pub mod data_dir;
pub mod embedded;
pub mod journal;
pub mod provider_state;
pub mod queue;
pub mod rows;
pub mod runs;
pub mod sessions;
#[doc(hidden)]
pub mod test_support;
pub mod wake;

use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database refused, or could not be reached.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
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
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .acquire_timeout(std::time::Duration::from_secs(10))
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
