//! The queue of runs: claiming, leases and taking over.
//!
//! A claim adds one to `generation`; whoever writes with an older one is refused by `batch::write`. Leases end by the
//! database's clock, which all servers share.

use protocol::id::RunId;

use super::{Store, StoreError};

/// How long a lease lasts without being renewed.
pub const LEASE_SECONDS: i32 = 15;

/// A run that this server owns now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The run.
    pub run_id: RunId,
    /// Its new generation.
    pub generation: u64,
}

fn claim((run_id, generation): (String, i64)) -> Result<Claim, StoreError> {
    Ok(Claim {
        run_id: run_id
            .parse()
            .map_err(|error| StoreError::row("runs", &run_id, error))?,
        generation: generation as u64,
    })
}

impl Store {
    /// Claims the oldest queued run whose session executes nothing else.
    pub async fn claim_queued(&self, owner: &str) -> Result<Option<Claim>, StoreError> {
        let row: Option<(String, i64)> = sqlx::query_as(
            "update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             where run_id = (
                 select run_id from runs r
                 where status = 'queued' and (lease_expires_at is null or lease_expires_at < now())
                     and not exists (select 1 from runs earlier where earlier.session_id = r.session_id
                         and earlier.ordinal < r.ordinal and earlier.status in ('queued', 'running', 'waiting'))
                 order by created_at, run_id for update skip locked limit 1)
             returning run_id, generation",
        )
        .bind(owner)
        .bind(f64::from(LEASE_SECONDS))
        .fetch_optional(self.pool())
        .await?;
        row.map(claim).transpose()
    }

    /// Claims this run while it is queued, to end it before it starts.
    pub async fn claim_if_queued(&self, owner: &str, run_id: &RunId) -> Result<Option<Claim>, StoreError> {
        let row: Option<(String, i64)> = sqlx::query_as(
            "update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             where run_id = $3 and status = 'queued' and (lease_expires_at is null or lease_expires_at < now())
             returning run_id, generation",
        )
        .bind(owner)
        .bind(f64::from(LEASE_SECONDS))
        .bind(run_id.as_str())
        .fetch_optional(self.pool())
        .await?;
        row.map(claim).transpose()
    }

    /// Takes over one run whose owner is gone.
    pub async fn claim_orphan(&self, owner: &str) -> Result<Option<Claim>, StoreError> {
        let row: Option<(String, i64)> = sqlx::query_as(
            "update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             where run_id = (
                 select run_id from runs
                 where status in ('running', 'waiting') and (lease_expires_at is null or lease_expires_at < now())
                 order by created_at, run_id for update skip locked limit 1)
             returning run_id, generation",
        )
        .bind(owner)
        .bind(f64::from(LEASE_SECONDS))
        .fetch_optional(self.pool())
        .await?;
        row.map(claim).transpose()
    }

    /// Renews the leases of those runs that the owner executes; gives the ones that it still owns. A run that it does
    /// not execute any more keeps its end, so that a sweep closes it.
    pub async fn renew_leases(&self, owner: &str, executing: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        let ids: Vec<&str> = executing.iter().map(RunId::as_str).collect();
        let rows: Vec<(String,)> = sqlx::query_as(
            "update runs set lease_expires_at = now() + make_interval(secs => $2)
             where owner = $1 and status in ('queued', 'running', 'waiting') and run_id = any($3) returning run_id",
        )
        .bind(owner)
        .bind(f64::from(LEASE_SECONDS))
        .bind(ids)
        .fetch_all(self.pool())
        .await?;
        rows.into_iter()
            .map(|(id,)| id.parse().map_err(|error| StoreError::row("runs", &id, error)))
            .collect()
    }

    /// Ends all leases at once: for a server that knows that no other one lives.
    pub async fn end_all_leases(&self) -> Result<u64, StoreError> {
        let ended = sqlx::query(
            "update runs set lease_expires_at = now() - interval '1 second', owner = null
             where status in ('queued', 'running', 'waiting') and owner is not null",
        )
        .execute(self.pool())
        .await?;
        Ok(ended.rows_affected())
    }
}
