//! Commands: what a person asks of a run, as rows that its owner consumes.

use protocol::id::{ApprovalId, NodeId, RunId, SessionId};
use protocol::model::Approval;
use protocol::state::ApprovalAnswer;
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
    /// A person answers a call that waits for that.
    Answer(Answer),
}

/// A person's answer to a request for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The call.
    pub node_id: NodeId,
    /// The request.
    pub approval_id: ApprovalId,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// What the person says to it.
    pub words: Option<String>,
}

impl CommandKind {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::CancelNode(_) => "cancel_node",
            Self::Answer(_) => "answer",
        }
    }

    fn payload(&self) -> Payload {
        match self {
            Self::Cancel => Payload::default(),
            Self::CancelNode(node_id) => Payload {
                node_id: Some(node_id.clone()),
                ..Payload::default()
            },
            Self::Answer(answer) => Payload {
                node_id: Some(answer.node_id.clone()),
                approval_id: Some(answer.approval_id.clone()),
                answer: Some(answer.answer),
                words: answer.words.clone(),
            },
        }
    }

    fn read(kind: &str, payload: Payload) -> Option<Self> {
        match (kind, payload.node_id) {
            ("cancel", _) => Some(Self::Cancel),
            ("cancel_node", Some(node_id)) => Some(Self::CancelNode(node_id)),
            ("answer", Some(node_id)) => Some(Self::Answer(Answer {
                node_id,
                approval_id: payload.approval_id?,
                answer: payload.answer?,
                words: payload.words,
            })),
            _ => None,
        }
    }
}

/// What a command says beside its kind.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Payload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<ApprovalAnswer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
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

    /// The first answer to a request, whether an owner has seen it or not: one that ended before it wrote the answer
    /// down has left it here.
    pub async fn answer_to(
        &self,
        run_id: &RunId,
        approval_id: &ApprovalId,
    ) -> Result<Option<Answer>, StoreError> {
        let row: Option<(String, Json<Payload>)> = sqlx::query_as(
            "select kind, payload from commands
             where run_id = $1 and kind = 'answer' and payload->>'approval_id' = $2 order by command_id limit 1",
        )
        .bind(run_id.as_str())
        .bind(approval_id.as_str())
        .fetch_optional(self.pool())
        .await?;
        Ok(
            row.and_then(|(kind, Json(payload))| match CommandKind::read(&kind, payload) {
                Some(CommandKind::Answer(answer)) => Some(answer),
                _ => None,
            }),
        )
    }

    /// The request that a node was asked for with last.
    pub async fn last_request_of(
        &self,
        run_id: &RunId,
        node_id: &NodeId,
    ) -> Result<Option<Approval>, StoreError> {
        let row: Option<(Json<Approval>,)> = sqlx::query_as(
            "select body from approvals where run_id = $1 and body->>'node_id' = $2 order by seq desc limit 1",
        )
        .bind(run_id.as_str())
        .bind(node_id.as_str())
        .fetch_optional(self.pool())
        .await?;
        Ok(row.map(|(Json(approval),)| approval))
    }

    /// The tools whose calls a person allowed once for all in a session.
    pub async fn always_allowed(&self, session_id: &SessionId) -> Result<Vec<String>, StoreError> {
        let rows: Vec<(String,)> = sqlx::query_as(
            "select distinct node.name from runs
             join approvals asked on asked.run_id = runs.run_id
             join nodes node on node.node_id = asked.body->>'node_id'
             where runs.session_id = $1 and asked.body->'resolution'->>'answer' = 'always'",
        )
        .bind(session_id.as_str())
        .fetch_all(self.pool())
        .await?;
        Ok(rows.into_iter().map(|(name,)| name).collect())
    }

    /// Takes the commands that wait for any of these runs. One of a kind that this version does not know is dropped.
    pub async fn take_commands(
        &self,
        runs: &[RunId],
        at: i64,
    ) -> Result<Vec<(RunId, CommandKind)>, StoreError> {
        let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
        let rows: Vec<(String, String, Json<Payload>)> = sqlx::query_as(
            "with taken as (
                 update commands set consumed_at = $2 where run_id = any($1) and consumed_at is null
                 returning command_id, run_id, kind, payload)
             select run_id, kind, payload from taken order by command_id",
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
