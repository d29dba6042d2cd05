//! Commands: what a person asks of a run, as rows that its owner consumes.

use protocol::id::RunId;

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
    /// Leaves a command for the owner of a run.
    pub async fn leave_command(&self, run_id: &RunId, kind: CommandKind, at: i64) -> Result<(), StoreError> {
        sqlx::query("insert into commands (run_id, kind, created_at) values ($1, $2, $3)")
            .bind(run_id.as_str())
            .bind(kind.as_str())
            .bind(at)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Takes the cancels that wait for runs of an owner.
    pub async fn take_cancels(&self, owner: &str, at: i64) -> Result<Vec<RunId>, StoreError> {
        let rows: Vec<(String,)> = sqlx::query_as(
            "update commands set consumed_at = $2 from runs
             where commands.run_id = runs.run_id and runs.owner = $1 and commands.kind = 'cancel' and consumed_at is null
             returning commands.run_id",
        )
        .bind(owner)
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
