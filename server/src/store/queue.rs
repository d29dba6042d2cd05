//! The queue of runs: claiming, leases and taking over.
//!
//! A run that is over and has a wish to go on (`store::reopen`) stands in the queue too, in the place of its session's
//! order.
//!
//! Imported runs are never claimed.
//!
//! A claim adds one to `generation`; whoever writes with an older one is refused by `batch::write`. Leases end by the
//! database's clock, which all servers share.

use protocol::id::RunId;
use sqlx::types::Json;

use super::reopen::Reopen;
use super::wake::{self, WakeUp};
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
    /// The owner from whom it was taken over in the middle of it.
    pub predecessor: Option<Predecessor>,
    /// The wish that it goes on, when it was over.
    pub reopen: Option<Reopen>,
}

/// An owner that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessor {
    /// Milliseconds from its last sign of life to the taking over; none when it gave none.
    pub gone_ms: Option<u64>,
}

type ClaimRow = (String, i64, Option<Json<Reopen>>);

/// A claim, and the seconds since the last sign of life of its owner.
type OrphanRow = (String, i64, Option<Json<Reopen>>, Option<f64>);

fn claim((run_id, generation, reopen): ClaimRow) -> Result<Claim, StoreError> {
    Ok(Claim {
        run_id: run_id
            .parse()
            .map_err(|error| StoreError::row("runs", &run_id, error))?,
        generation: generation as u64,
        predecessor: None,
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
                     and imported is null
                     and (lease_expires_at is null or lease_expires_at < now())
                     and not exists (select 1 from runs other where other.session_id = r.session_id
                         and other.run_id <> r.run_id and other.imported is null
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
             where run_id = $3 and status = 'queued' and imported is null and (lease_expires_at is null or lease_expires_at < now())
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
        // A lease ends its length after the last sign of life; one without an owner was ended at that sign.
        let row: Option<OrphanRow> = sqlx::query_as(
            "with orphan as (
                 select run_id, lease_expires_at - case when owner is null then interval '0' else make_interval(secs => $2) end
                     as last_seen
                 from runs
                 where status in ('running', 'waiting') and imported is null
                     and (lease_expires_at is null or lease_expires_at < now())
                 order by created_at, run_id for update skip locked limit 1)
             update runs set owner = $1, generation = generation + 1,
                 lease_expires_at = now() + make_interval(secs => $2)
             from orphan where runs.run_id = orphan.run_id
             returning runs.run_id, generation, reopen, extract(epoch from now() - last_seen)::float8",
        )
        .bind(owner)
        .bind(f64::from(LEASE_SECONDS))
        .fetch_optional(self.pool())
        .await?;
        let Some((run_id, generation, reopen, seconds)) = row else {
            return Ok(None);
        };
        let gone_ms = seconds.map(|seconds| (seconds.max(0.0) * 1_000.0) as u64);
        Ok(Some(Claim {
            predecessor: Some(Predecessor { gone_ms }),
            ..claim((run_id, generation, reopen))?
        }))
    }

    /// Gives back a queued run that was claimed and never begun, so that another server may claim it at once.
    pub async fn release(&self, owner: &str, claim: &Claim) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        let released = sqlx::query(
            "update runs set owner = null, lease_expires_at = null
             where run_id = $1 and owner = $2 and generation = $3 and (status = 'queued' or reopen is not null)",
        )
        .bind(claim.run_id.as_str())
        .bind(owner)
        .bind(claim.generation as i64)
        .execute(&mut *transaction)
        .await?;
        if released.rows_affected() > 0 {
            let wake_up = WakeUp {
                queue: true,
                ..WakeUp::default()
            };
            wake::send(&mut transaction, self.process(), &wake_up).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Lets go of a run in the middle of it, so that the next sweep of any server takes it over.
    pub async fn let_go(&self, claim: &Claim) -> Result<(), StoreError> {
        sqlx::query(
            "update runs set owner = null, lease_expires_at = now()
             where run_id = $1 and generation = $2 and status in ('running', 'waiting')",
        )
        .bind(claim.run_id.as_str())
        .bind(claim.generation as i64)
        .execute(self.pool())
        .await?;
        Ok(())
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
            // A lease with an owner ends its length after that owner's last sign of life.
            "update runs set owner = null,
                 lease_expires_at = least(lease_expires_at - make_interval(secs => $1), now() - interval '1 millisecond')
             where (status in ('queued', 'running', 'waiting') or reopen is not null) and owner is not null",
        )
        .bind(f64::from(LEASE_SECONDS))
        .execute(self.pool())
        .await?;
        Ok(ended.rows_affected())
    }
}
