//! The queue of runs: claiming, leases and taking over.
//!
//! A run that is over and has a wish to go on (`store::reopen`) stands in the queue too, in the place of its session's
//! order.
//!
//! A claim adds one to `generation`; whoever writes with an older one is refused by `batch::write`. Leases end by the
//! database's clock, which all servers share.

use protocol::id::RunId;
use sqlx::types::Json;

use super::reopen::Reopen;
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
    /// The wish that it goes on, when it was over.
    pub reopen: Option<Reopen>,
}

type ClaimRow = (String, i64, Option<Json<Reopen>>);

fn claim((run_id, generation, reopen): ClaimRow) -> Result<Claim, StoreError> {
    Ok(Claim {
        run_id: run_id
            .parse()
            .map_err(|error| StoreError::row("runs", &run_id, error))?,
        generation: generation as u64,
        reopen: reopen.map(|Json(reopen)| reopen),
    })
}

/// Makes claims from the queue one after another, over all servers: a run that goes on again and a later run of its
/// session could else both find the other one at rest.
const CLAIM_LOCK: i64 = 0x72_75_6e_6c_6f_6f_6d;

impl Store {
    /// Claims the oldest queued run whose session executes nothing else.
    pub async fn claim_queued(&self, owner: &str) -> Result<Option<Claim>, StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(CLAIM_LOCK)
            .execute(&mut *transaction)
            .await?;
        let row: Option<ClaimRow> = sqlx::query_as(
            "update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             where run_id = (
                 select run_id from runs r
                 where (status = 'queued' or reopen is not null and status not in ('running', 'waiting'))
                     and (lease_expires_at is null or lease_expires_at < now())
                     and not exists (select 1 from runs other where other.session_id = r.session_id
                         and other.run_id <> r.run_id
                         and (other.ordinal < r.ordinal
                                 and (other.status in ('queued', 'running', 'waiting') or other.reopen is not null)
                             or other.status in ('running', 'waiting')
                             or other.lease_expires_at >= now()))
                 order by created_at, run_id for update skip locked limit 1)
             returning run_id, generation, reopen",
        )
        .bind(owner)
        .bind(f64::from(LEASE_SECONDS))
        .fetch_optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        row.map(claim).transpose()
    }

    /// Claims this run while it is queued, to end it before it starts.
    pub async fn claim_if_queued(&self, owner: &str, run_id: &RunId) -> Result<Option<Claim>, StoreError> {
        let row: Option<ClaimRow> = sqlx::query_as(
            "update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             where run_id = $3 and status = 'queued' and (lease_expires_at is null or lease_expires_at < now())
             returning run_id, generation, reopen",
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
        let row: Option<ClaimRow> = sqlx::query_as(
            "update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             where run_id = (
                 select run_id from runs
                 where status in ('running', 'waiting') and (lease_expires_at is null or lease_expires_at < now())
                 order by created_at, run_id for update skip locked limit 1)
             returning run_id, generation, reopen",
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
             where owner = $1 and (status in ('queued', 'running', 'waiting') or reopen is not null)
                 and run_id = any($3) returning run_id",
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
             where (status in ('queued', 'running', 'waiting') or reopen is not null) and owner is not null",
        )
        .execute(self.pool())
        .await?;
        Ok(ended.rows_affected())
    }
}
