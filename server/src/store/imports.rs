//! Runs that come from elsewhere: they are written as their owner would have written them, and never claimed.

use protocol::api::{InterruptionPolicy, SessionKind, SessionSettings};
use protocol::fold::Change;
use protocol::id::{RunId, SessionId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::Json;

use super::batch::{self, RunBatch};
use super::rows::AsJson;
use super::wake::{self, WakeUp};
use super::{Store, StoreError};

/// How far an imported run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// It is being written; importing its file again goes on.
    Writing,
    /// Its file was cut off: a whole one replaces it.
    Cut,
    /// It is here as its file has it.
    Whole,
}

/// What a run's row says of where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// How far it is.
    pub state: ImportState,
    /// The format of its file.
    pub format: String,
}

/// The session of an imported run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Its id.
    pub session_id: SessionId,
    /// A few words.
    #[serde(default)]
    pub title: String,
    /// What it is.
    #[serde(default)]
    pub kind: SessionKind,
    /// What holds for its runs.
    #[serde(default)]
    pub settings: SessionSettings,
    /// When it was created.
    #[serde(default)]
    pub created_at: i64,
}

/// An imported run, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// Its id.
    pub run_id: RunId,
    /// Its place in its session, from 0.
    #[serde(default)]
    pub ordinal: u32,
    /// The start of its prompt, on one line.
    #[serde(default)]
    pub prompt: String,
    /// The provider's id.
    #[serde(default)]
    pub provider: String,
    /// The model's id.
    #[serde(default)]
    pub model: String,
    /// When it was created.
    #[serde(default)]
    pub created_at: i64,
}

/// What there is of a run already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Nothing: its row was made.
    New,
    /// So much of it was imported.
    Imported {
        /// How far it is.
        state: ImportState,
        /// Its last op.
        seq: u64,
    },
    /// A server on this database executed it.
    Native {
        /// Its last op.
        seq: u64,
    },
}

/// What became of a part of an imported run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It is there.
    Done,
    /// Somebody else writes the same run.
    Busy,
    /// This thing belongs to another run.
    Taken(String),
}

impl Store {
    /// A run and its session, as an export names them; none when there is no such run.
    pub async fn heads_of(&self, run_id: &RunId) -> Result<Option<(SessionHead, RunHead)>, StoreError> {
        let Some(session_id) = self.session_of(run_id).await? else {
            return Ok(None);
        };
        let Some(session) = self.session(&session_id).await? else {
            return Ok(None);
        };
        let heads = session
            .runs
            .iter()
            .zip(0..)
            .find(|(run, _)| run.run_id == *run_id);
        Ok(heads.map(|(run, ordinal)| {
            let run = RunHead {
                run_id: run_id.clone(),
                ordinal,
                prompt: run.prompt.clone(),
                provider: run.provider.clone(),
                model: run.model.clone(),
                created_at: run.created_at,
            };
            let session = SessionHead {
                session_id: session_id.clone(),
                title: session.title.clone(),
                kind: session.kind,
                settings: session.settings.clone(),
                created_at: session.created_at,
            };
            (session, run)
        }))
    }

    /// Makes the row of an imported run and of its session where they are not there yet. One whose file was cut off
    /// makes room for another.
    pub async fn begin_import(
        &self,
        session: &SessionHead,
        run: &RunHead,
        format: &str,
    ) -> Result<Known, StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query(
            "insert into sessions (session_id, title, kind, settings, created_at, updated_at)
             values ($1, $2, $3, $4, $5, $5) on conflict do nothing",
        )
        .bind(session.session_id.as_str())
        .bind(&session.title)
        .bind(session.kind.as_str())
        .bind(AsJson(&session.settings))
        .bind(session.created_at)
        .execute(&mut *transaction)
        .await?;
        // The session's row is the lock under which its runs get their order.
        sqlx::query("select 1 from sessions where session_id = $1 for update")
            .bind(session.session_id.as_str())
            .execute(&mut *transaction)
            .await?;
        let row: Option<(i64, Option<Json<Imported>>)> =
            sqlx::query_as("select last_seq, imported from runs where run_id = $1")
                .bind(run.run_id.as_str())
                .fetch_optional(&mut *transaction)
                .await?;
        match row {
            Some((seq, None)) => return Ok(Known::Native { seq: seq as u64 }),
            Some((
                _,
                Some(Json(Imported {
                    state: ImportState::Cut,
                    ..
                })),
            )) => {
                sqlx::query("delete from runs where run_id = $1")
                    .bind(run.run_id.as_str())
                    .execute(&mut *transaction)
                    .await?;
            }
            Some((seq, Some(Json(Imported { state, .. })))) => {
                return Ok(Known::Imported {
                    state,
                    seq: seq as u64,
                });
            }
            None => {}
        }
        let imported = Imported {
            state: ImportState::Writing,
            format: format.to_owned(),
        };
        sqlx::query(
            "insert into runs (run_id, session_id, ordinal, status, prompt_start, provider, model, created_at,
                 on_interruption, imported)
             select $1, $2,
                 case when exists (select 1 from runs where session_id = $2 and ordinal = $3)
                     then (select max(ordinal) + 1 from runs where session_id = $2) else $3 end,
                 'queued', $4, $5, $6, $7, $8, $9",
        )
        .bind(run.run_id.as_str())
        .bind(session.session_id.as_str())
        .bind(i32::try_from(run.ordinal).unwrap_or(i32::MAX / 2))
        .bind(&run.prompt)
        .bind(&run.provider)
        .bind(&run.model)
        .bind(run.created_at)
        .bind(InterruptionPolicy::Leave.as_str())
        .bind(AsJson(&imported))
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Known::New)
    }

    /// Writes the next ops of an imported run; with `ended` it is over, and in which state.
    pub async fn write_import(
        &self,
        batch: &RunBatch<'_>,
        ended: Option<&Imported>,
    ) -> Result<Written, StoreError> {
        let run = batch.state.run();
        let mut transaction = self.pool().begin().await?;
        if let Some(taken) = taken(&mut transaction, batch).await? {
            return Ok(Written::Taken(taken));
        }
        sqlx::query(
            "update runs set generation = $2 where run_id = $1 and imported is not null and last_seq = $3",
        )
        .bind(run.run_id.as_str())
        .bind(batch.state.generation() as i64)
        .bind(batch.previous_seq as i64)
        .execute(&mut *transaction)
        .await?;
        let written = batch::write(&mut transaction, std::slice::from_ref(batch)).await?;
        if !written.contains(&run.run_id) {
            return Ok(Written::Busy);
        }
        if let Some(imported) = ended {
            sqlx::query("update runs set imported = $2 where run_id = $1")
                .bind(run.run_id.as_str())
                .bind(AsJson(imported))
                .execute(&mut *transaction)
                .await?;
        }
        let wake_up = WakeUp {
            runs: vec![(run.run_id.clone(), batch.state.seq())],
            sessions: ended.map(|_| run.session_id.clone()).into_iter().collect(),
            ..WakeUp::default()
        };
        wake::send(&mut transaction, self.process(), &wake_up).await?;
        transaction.commit().await?;
        Ok(Written::Done)
    }
}

/// A thing of this batch that another run has: its rows would be written over.
async fn taken(connection: &mut PgConnection, batch: &RunBatch<'_>) -> Result<Option<String>, StoreError> {
    let (mut nodes, mut attempts, mut blocks, mut messages, mut approvals) =
        (vec![], vec![], vec![], vec![], vec![]);
    for change in batch.steps.iter().flat_map(|(_, changes)| changes) {
        match change {
            Change::NodeAdded(id) => nodes.push(id.as_str()),
            Change::AttemptAdded(_, id) => attempts.push(id.as_str()),
            Change::BlockAdded(_, id) => blocks.push(id.as_str()),
            Change::MessageAdded(id) => messages.push(id.as_str()),
            Change::Approval(id) => approvals.push(id.as_str()),
            _ => {}
        }
    }
    let row: Option<(String,)> = sqlx::query_as(
        "select node_id from nodes where node_id = any($2) and run_id <> $1
         union all select attempt_id from attempts where attempt_id = any($3) and run_id <> $1
         union all select block_id from blocks where block_id = any($4) and run_id <> $1
         union all select message_id from messages where message_id = any($5) and run_id <> $1
         union all select approval_id from approvals where approval_id = any($6) and run_id <> $1
         limit 1",
    )
    .bind(batch.state.run().run_id.as_str())
    .bind(nodes)
    .bind(attempts)
    .bind(blocks)
    .bind(messages)
    .bind(approvals)
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|(id,)| id))
}
