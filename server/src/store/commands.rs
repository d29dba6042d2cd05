//! Commands: what a person asks of a run, as rows that its owner consumes.

use protocol::id::RunId;

use super::wake::{self, WakeUp};
use super::{Store, StoreError};

/// What can be asked of a run that executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// Stop it.
    Cancel,
}

impl CommandKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
        }
    }
}

impl Store {
    /// Leaves a command for the owner of a run, and wakes it.
    pub async fn leave_command(&self, run_id: &RunId, kind: CommandKind, at: i64) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query("insert into commands (run_id, kind, created_at) values ($1, $2, $3)")
            .bind(run_id.as_str())
            .bind(kind.as_str())
            .bind(at)
            .execute(&mut *transaction)
            .await?;
        let wake_up = WakeUp {
            commands: vec![run_id.clone()],
            ..WakeUp::default()
        };
        wake::send(&mut transaction, self.process(), &wake_up).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Takes the cancels that wait for any of these runs.
    pub async fn take_cancels(&self, runs: &[RunId], at: i64) -> Result<Vec<RunId>, StoreError> {
        let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
        let rows: Vec<(String,)> = sqlx::query_as(
            "update commands set consumed_at = $2
             where run_id = any($1) and kind = 'cancel' and consumed_at is null returning run_id",
        )
        .bind(ids)
        .bind(at)
        .fetch_all(self.pool())
        .await?;
        rows.into_iter()
            .map(|(id,)| {
                id.parse()
                    .map_err(|error| StoreError::row("commands", &id, error))
            })
            .collect()
    }
}
