//! Runs that go on after they were over: the wish is a column of the run's row, so that it survives a restart and any
//! server can take it up.

use protocol::id::{NodeId, RunId};
use protocol::state::RunStatus;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;

use super::queue::Claim;
use super::rows::AsJson;
use super::wake::{self, WakeUp};
use super::{Store, StoreError};

/// How often a run is resumed without a person.
pub const MAX_AUTOMATIC_RESUMES: i32 = 3;

/// A wish that a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopen {
    /// From where.
    pub kind: ReopenKind,
    /// Who wishes it.
    pub by: ReopenedBy,
}

/// From where a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReopenKind {
    /// From where it broke off.
    Resume,
    /// From its prompt.
    Regenerate,
}

/// Who wishes that a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReopenedBy {
    /// A person: limits count anew.
    Person,
    /// The run's own policy.
    Policy,
}

/// What became of a wish that a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopening {
    /// It goes on as soon as a server takes it up, or it was to go on already.
    Accepted,
    /// It executes, or waits to.
    Active,
    /// It is in this end state, from which it cannot go on in this way.
    Refused(RunStatus),
    /// A later run of the session follows on it.
    NotLast,
    /// It was executed elsewhere and imported.
    Imported,
    /// There is no such run.
    NoSuchRun,
}

impl Store {
    /// Wishes that a run goes on, when it is over in one of the states `from`. A regenerated run has to be the last one
    /// of its session. Repeating it is harmless.
    pub async fn request_reopen(
        &self,
        run_id: &RunId,
        reopen: Reopen,
        from: &[RunStatus],
        at: i64,
    ) -> Result<Reopening, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let row: Option<(String, bool, bool, bool)> = sqlx::query_as(
            "select status, reopen is not null, exists (select 1 from runs later
                 where later.session_id = runs.session_id and later.ordinal > runs.ordinal), imported is not null
             from runs where run_id = $1 for update",
        )
        .bind(run_id.as_str())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((word, is_pending, has_later, is_imported)) = row else {
            return Ok(Reopening::NoSuchRun);
        };
        let status = RunStatus::from_word(&word)
            .ok_or_else(|| StoreError::row("runs", run_id, format!("unknown status {word:?}")))?;
        if is_imported {
            return Ok(Reopening::Imported);
        }
        if is_pending {
            return Ok(Reopening::Accepted);
        }
        if reopen.kind == ReopenKind::Regenerate && has_later {
            return Ok(Reopening::NotLast);
        }
        if !status.is_final() {
            return Ok(Reopening::Active);
        }
        if !from.contains(&status) {
            return Ok(Reopening::Refused(status));
        }
        sqlx::query("update runs set reopen = $2 where run_id = $1")
            .bind(run_id.as_str())
            .bind(AsJson(&reopen))
            .execute(&mut *transaction)
            .await?;
        // A stop that came too late for the last execution is not meant for the next one.
        sqlx::query("update commands set consumed_at = $2 where run_id = $1 and consumed_at is null")
            .bind(run_id.as_str())
            .bind(at)
            .execute(&mut *transaction)
            .await?;
        let wake_up = WakeUp {
            queue: true,
            ..WakeUp::default()
        };
        wake::send(&mut transaction, self.process(), &wake_up).await?;
        transaction.commit().await?;
        Ok(Reopening::Accepted)
    }

    /// Marks a run whose execution is about to be closed as interrupted to be resumed by its policy, where it has one
    /// and was not resumed too often. The claim proves that nobody else executes it.
    pub async fn mark_automatic_resume(&self, claim: &Claim) -> Result<bool, StoreError> {
        let reopen = Reopen {
            kind: ReopenKind::Resume,
            by: ReopenedBy::Policy,
        };
        let marked = sqlx::query(
            "update runs set reopen = $3, automatic_resumes = automatic_resumes + 1
             where run_id = $1 and generation = $2 and on_interruption = 'resume' and automatic_resumes < $4
                 and reopen is null",
        )
        .bind(claim.run_id.as_str())
        .bind(claim.generation as i64)
        .bind(AsJson(&reopen))
        .bind(MAX_AUTOMATIC_RESUMES)
        .execute(self.pool())
        .await?;
        Ok(marked.rows_affected() > 0)
    }

    /// Takes back the wish that a run goes on while no server has taken it up; `false` when there is none to take back.
    pub async fn withdraw_reopen(&self, run_id: &RunId) -> Result<bool, StoreError> {
        let withdrawn = sqlx::query(
            "update runs set reopen = null, owner = null, lease_expires_at = null
             where run_id = $1 and reopen is not null and status not in ('queued', 'running', 'waiting')
                 and (lease_expires_at is null or lease_expires_at < now())",
        )
        .bind(run_id.as_str())
        .execute(self.pool())
        .await?;
        Ok(withdrawn.rows_affected() > 0)
    }

    /// Drops the wish of a run that this server has taken up and cannot execute.
    pub async fn drop_reopen(&self, claim: &Claim) -> Result<(), StoreError> {
        sqlx::query(
            "update runs set reopen = null, owner = null, lease_expires_at = null
             where run_id = $1 and generation = $2 and status not in ('queued', 'running', 'waiting')",
        )
        .bind(claim.run_id.as_str())
        .bind(claim.generation as i64)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// The wish that a run goes on, where there is one.
    pub async fn reopen_of(&self, run_id: &RunId) -> Result<Option<Reopen>, StoreError> {
        let row: Option<(Option<Json<Reopen>>,)> =
            sqlx::query_as("select reopen from runs where run_id = $1")
                .bind(run_id.as_str())
                .fetch_optional(self.pool())
                .await?;
        Ok(row.and_then(|(reopen,)| reopen).map(|Json(reopen)| reopen))
    }

    /// Whether a node is a model node directly below a root.
    pub async fn is_root_model(&self, node_id: &NodeId) -> Result<bool, StoreError> {
        let row: Option<(i32,)> = sqlx::query_as(
            "select 1 from nodes node join nodes parent on parent.node_id = node.parent_id
             where node.node_id = $1 and node.kind = 'model' and parent.kind = 'root'",
        )
        .bind(node_id.as_str())
        .fetch_optional(self.pool())
        .await?;
        Ok(row.is_some())
    }

    /// Why the current attempt of a node was started.
    pub async fn current_reason(&self, node_id: &NodeId) -> Result<Option<String>, StoreError> {
        let row: Option<(String,)> = sqlx::query_as(
            "select reason from attempts where node_id = $1 order by attempt_index desc, seq desc limit 1",
        )
        .bind(node_id.as_str())
        .fetch_optional(self.pool())
        .await?;
        Ok(row.map(|(reason,)| reason))
    }
}
