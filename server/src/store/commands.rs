//! Commands: what a person asks of a run, as rows that its owner consumes.

use protocol::id::{NodeId, RunId};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;

use super::rows::AsJson;
use super::wake::{self, WakeUp};
use super::{Store, StoreError};

/// What can be asked of a run that executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// Stop it.
    Cancel,
    /// Stop one node of it, and all below.
    CancelNode(NodeId),
}

impl CommandKind {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::CancelNode(_) => "cancel_node",
        }
    }

    fn payload(&self) -> Payload {
        match self {
            Self::Cancel => Payload::default(),
            Self::CancelNode(node_id) => Payload {
                node_id: Some(node_id.clone()),
            },
        }
    }

    fn read(kind: &str, payload: Payload) -> Option<Self> {
        match (kind, payload.node_id) {
            ("cancel", _) => Some(Self::Cancel),
            ("cancel_node", Some(node_id)) => Some(Self::CancelNode(node_id)),
            _ => None,
        }
    }
}

/// What a command says beside its kind.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Payload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_id: Option<NodeId>,
}

impl Store {
    /// Leaves a command for the owner of a run, and wakes it.
    pub async fn leave_command(
        &self,
        run_id: &RunId,
        command: &CommandKind,
        at: i64,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query("insert into commands (run_id, kind, payload, created_at) values ($1, $2, $3, $4)")
            .bind(run_id.as_str())
            .bind(command.as_str())
            .bind(AsJson(&command.payload()))
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

    /// Takes the commands that wait for any of these runs. One of a kind that this version does not know is dropped.
    pub async fn take_commands(
        &self,
        runs: &[RunId],
        at: i64,
    ) -> Result<Vec<(RunId, CommandKind)>, StoreError> {
        let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
        let rows: Vec<(String, String, Json<Payload>)> = sqlx::query_as(
            "update commands set consumed_at = $2 where run_id = any($1) and consumed_at is null
             returning run_id, kind, payload",
        )
        .bind(ids)
        .bind(at)
        .fetch_all(self.pool())
        .await?;
        rows.into_iter()
            .filter_map(|(id, kind, Json(payload))| {
                let command = CommandKind::read(&kind, payload)?;
                let run_id = id.parse();
                Some(
                    run_id
                        .map(|run_id| (run_id, command))
                        .map_err(|error| StoreError::row("commands", &id, error)),
                )
            })
            .collect()
    }
}
