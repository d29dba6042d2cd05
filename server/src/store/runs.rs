//! Runs: creating one, and reading its state from rows and journal.

use std::collections::HashMap;

use protocol::api::InterruptionPolicy;
use protocol::fold::RunState;
use protocol::id::{BlockId, NodeId, RunId, SessionId};
use protocol::model::{Approval, Attempt, Block, Message, Node, Notice, Run};
use protocol::op::Op;
use protocol::snapshot::Snapshot;
use protocol::state::RunStatus;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row as _};

use super::batch::{self, RunBatch};
use super::rows::Fields;
use super::wake::{self, WakeUp};
use super::{Store, StoreError, content};

/// What a new run is.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The start of its prompt, on one line.
    pub prompt_start: String,
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// What becomes of it when its owner goes away.
    pub on_interruption: InterruptionPolicy,
    /// The same key gives the same run.
    pub idempotency_key: Option<String>,
    /// When.
    pub created_at: i64,
}

/// What became of a wish for a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunCreation {
    /// It is there.
    Created,
    /// The same key made this run before.
    Repeated(RunId),
    /// There is no such session.
    NoSession,
}

impl Store {
    /// Creates a run with its first ops, all in one transaction.
    pub async fn create_run(&self, new: &NewRun, first: &RunBatch<'_>) -> Result<RunCreation, StoreError> {
        let run = first.state.run();
        let mut transaction = self.pool().begin().await?;
        // The session's row is the lock under which its runs get their order.
        let session: Option<(String,)> =
            sqlx::query_as("select session_id from sessions where session_id = $1 for update")
                .bind(run.session_id.as_str())
                .fetch_optional(&mut *transaction)
                .await?;
        if session.is_none() {
            return Ok(RunCreation::NoSession);
        }
        if let Some(key) = &new.idempotency_key {
            let known: Option<(String,)> =
                sqlx::query_as("select run_id from runs where session_id = $1 and idempotency_key = $2")
                    .bind(run.session_id.as_str())
                    .bind(key)
                    .fetch_optional(&mut *transaction)
                    .await?;
            if let Some((run_id,)) = known {
                return run_id
                    .parse()
                    .map(RunCreation::Repeated)
                    .map_err(|error| StoreError::row("runs", &run_id, error));
            }
        }
        sqlx::query(
            "insert into runs (run_id, session_id, ordinal, status, prompt_start, provider, model, idempotency_key, created_at,
                 on_interruption)
             values ($1, $2, (select count(*) from runs where session_id = $2), $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(run.run_id.as_str())
        .bind(run.session_id.as_str())
        .bind(run.status.as_str())
        .bind(&new.prompt_start)
        .bind(&new.provider)
        .bind(&new.model)
        .bind(&new.idempotency_key)
        .bind(new.created_at)
        .bind(new.on_interruption.as_str())
        .execute(&mut *transaction)
        .await?;
        batch::write(&mut transaction, std::slice::from_ref(first)).await?;
        let wake_up = WakeUp {
            runs: vec![(run.run_id.clone(), first.state.seq())],
            sessions: vec![run.session_id.clone()],
            queue: true,
            ..WakeUp::default()
        };
        wake::send(&mut transaction, self.process(), &wake_up).await?;
        transaction.commit().await?;
        Ok(RunCreation::Created)
    }

    /// The state of a run, as its last committed op left it; none when there is no such run.
    pub async fn load_run(&self, run_id: &RunId) -> Result<Option<RunState>, StoreError> {
        let mut transaction = self.pool().begin().await?;
        // All of the reads below see the same moment.
        sqlx::query("set transaction isolation level repeatable read, read only")
            .execute(&mut *transaction)
            .await?;
        let state = load(&mut transaction, run_id).await?;
        transaction.commit().await?;
        Ok(state)
    }

    /// The snapshot of a run; none when there is no such run.
    pub async fn load_snapshot(&self, run_id: &RunId) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.load_run(run_id).await?.map(|state| state.to_snapshot()))
    }

    /// The state of a run, as its row has it; none when there is no such run.
    pub async fn run_status(&self, run_id: &RunId) -> Result<Option<RunStatus>, StoreError> {
        let row: Option<(String,)> = sqlx::query_as("select status from runs where run_id = $1")
            .bind(run_id.as_str())
            .fetch_optional(self.pool())
            .await?;
        row.map(|(word,)| {
            RunStatus::from_word(&word)
                .ok_or_else(|| StoreError::row("runs", run_id, format!("unknown status {word:?}")))
        })
        .transpose()
    }

    /// The last op of a run; none when there is no such run.
    pub async fn last_seq(&self, run_id: &RunId) -> Result<Option<u64>, StoreError> {
        let row: Option<(i64,)> = sqlx::query_as("select last_seq from runs where run_id = $1")
            .bind(run_id.as_str())
            .fetch_optional(self.pool())
            .await?;
        Ok(row.map(|(seq,)| seq as u64))
    }

    /// The run of a node.
    pub async fn run_of_node(&self, node_id: &NodeId) -> Result<Option<RunId>, StoreError> {
        let row: Option<(String,)> = sqlx::query_as("select run_id from nodes where node_id = $1")
            .bind(node_id.as_str())
            .fetch_optional(self.pool())
            .await?;
        row.map(|(id,)| {
            id.parse()
                .map_err(|error| StoreError::row("nodes", node_id, error))
        })
        .transpose()
    }

    /// The run of a block.
    pub async fn run_of_block(&self, block_id: &BlockId) -> Result<Option<RunId>, StoreError> {
        let row: Option<(String,)> = sqlx::query_as("select run_id from blocks where block_id = $1")
            .bind(block_id.as_str())
            .fetch_optional(self.pool())
            .await?;
        row.map(|(id,)| {
            id.parse()
                .map_err(|error| StoreError::row("blocks", block_id, error))
        })
        .transpose()
    }

    /// The bytes of a run's prompt; none when there is no such run.
    pub async fn prompt_of(&self, run_id: &RunId) -> Result<Option<Vec<u8>>, StoreError> {
        let row: Option<(Vec<u8>,)> =
            sqlx::query_as("select text from messages where run_id = $1 order by seq limit 1")
                .bind(run_id.as_str())
                .fetch_optional(self.pool())
                .await?;
        Ok(row.map(|(text,)| text))
    }

    /// The session of a run.
    pub async fn session_of(&self, run_id: &RunId) -> Result<Option<SessionId>, StoreError> {
        let row: Option<(String,)> = sqlx::query_as("select session_id from runs where run_id = $1")
            .bind(run_id.as_str())
            .fetch_optional(self.pool())
            .await?;
        row.map(|(id,)| id.parse().map_err(|error| StoreError::row("runs", run_id, error)))
            .transpose()
    }
}

/// Reads rows, closed texts, and from the journal the texts of what is open.
async fn load(connection: &mut PgConnection, run_id: &RunId) -> Result<Option<RunState>, StoreError> {
    let Some(row) = sqlx::query("select * from runs where run_id = $1")
        .bind(run_id.as_str())
        .fetch_optional(&mut *connection)
        .await?
    else {
        return Ok(None);
    };
    let run: Run = Fields::of("runs", "run_id", &row)?
        .text(&["session_id", "status"])?
        .number(&["generation", "last_seq"])?
        .json(&["error", "usage"])?
        .build()?;
    let contents = content::of_run(connection, run_id).await?;
    let mut snapshot = Snapshot::empty(run);
    snapshot.messages = list(
        connection,
        "select * from messages where run_id = $1 order by seq",
        run_id,
        message,
    )
    .await?;
    let edges = edges(connection, run_id).await?;
    snapshot.nodes = list(
        connection,
        "select * from nodes where run_id = $1 order by seq",
        run_id,
        |row| node(row, &contents, &edges),
    )
    .await?;
    snapshot.attempts = list(
        connection,
        "select * from attempts where run_id = $1 order by seq",
        run_id,
        attempt,
    )
    .await?;
    snapshot.blocks = list(
        connection,
        "select * from blocks where run_id = $1 order by seq",
        run_id,
        |row| block(row, &contents),
    )
    .await?;
    snapshot.approvals = bodies::<Approval>(
        connection,
        "select body from approvals where run_id = $1 order by seq",
        run_id,
    )
    .await?;
    snapshot.notices = bodies::<Notice>(
        connection,
        "select body from notices where run_id = $1 and kind = 'notice' order by seq",
        run_id,
    )
    .await?;
    snapshot.unknown = bodies::<Value>(
        connection,
        "select body from notices where run_id = $1 and kind = 'unknown' order by seq",
        run_id,
    )
    .await?;
    add_open_texts(connection, run_id, &mut snapshot).await?;
    Ok(Some(RunState::from_snapshot(snapshot)))
}

async fn list<T>(
    connection: &mut PgConnection,
    query: &'static str,
    run_id: &RunId,
    read: impl Fn(&PgRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let rows = sqlx::query(query)
        .bind(run_id.as_str())
        .fetch_all(connection)
        .await?;
    rows.iter().map(read).collect()
}

async fn bodies<T: serde::de::DeserializeOwned + Send + Unpin>(
    connection: &mut PgConnection,
    query: &'static str,
    run_id: &RunId,
) -> Result<Vec<T>, StoreError> {
    let rows: Vec<(Json<Value>,)> = sqlx::query_as(query)
        .bind(run_id.as_str())
        .fetch_all(connection)
        .await?;
    rows.into_iter()
        .map(|(Json(body),)| {
            serde_json::from_value(body).map_err(|error| StoreError::row("notices", run_id, error))
        })
        .collect()
}

async fn edges(
    connection: &mut PgConnection,
    run_id: &RunId,
) -> Result<HashMap<String, Vec<String>>, StoreError> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "select node_id, after_node_id from node_edges join nodes using (node_id) where run_id = $1 order by node_id, node_edges.ordinal",
    )
    .bind(run_id.as_str())
    .fetch_all(connection)
    .await?;
    let mut edges: HashMap<String, Vec<String>> = HashMap::new();
    for (node, after) in rows {
        edges.entry(node).or_default().push(after);
    }
    Ok(edges)
}

type Contents = HashMap<(String, String), Vec<u8>>;

/// Text that was UTF-8 when it was written.
fn text_of(
    contents: &Contents,
    table: &'static str,
    subject: &str,
    channel: &str,
) -> Result<String, StoreError> {
    match contents.get(&(subject.to_owned(), channel.to_owned())) {
        None => Ok(String::new()),
        Some(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|error| StoreError::row(table, subject, error))
        }
    }
}

fn message(row: &PgRow) -> Result<Message, StoreError> {
    let bytes: Vec<u8> = row.try_get("text")?;
    let id: String = row.try_get("message_id")?;
    let text = String::from_utf8(bytes).map_err(|error| StoreError::row("messages", id, error))?;
    Fields::of("messages", "message_id", row)?
        .text(&["role", "state"])?
        .number(&["at"])?
        .set("text", text)
        .build()
}

fn node(row: &PgRow, contents: &Contents, edges: &HashMap<String, Vec<String>>) -> Result<Node, StoreError> {
    let id: String = row.try_get("node_id")?;
    let Json(mut outputs) = row.try_get::<Json<Value>, _>("outputs")?;
    if let Value::Object(outputs) = &mut outputs {
        for (channel, output) in outputs {
            let text = text_of(contents, "nodes", &id, channel)?;
            if let Value::Object(output) = output {
                output.insert("text".to_owned(), text.into());
            }
        }
    }
    Fields::of("nodes", "node_id", row)?
        .text(&[
            "parent_id",
            "kind",
            "name",
            "title",
            "executor",
            "occurrence_id",
            "status",
        ])?
        .small(&["ordinal", "exit_code"])?
        .number(&["announced_at", "started_at", "finished_at"])?
        .json(&["progress", "error"])?
        .set("after", edges.get(&id).cloned().unwrap_or_default())
        .set("outputs", outputs)
        .build()
}

fn attempt(row: &PgRow) -> Result<Attempt, StoreError> {
    Fields::of("attempts", "attempt_id", row)?
        .text(&[
            "node_id",
            "reason",
            "status",
            "provider",
            "model",
            "continues_attempt_id",
            "stop_reason",
        ])?
        .small(&["attempt_index"])?
        .number(&["started_at", "finished_at"])?
        .json(&["kept", "usage", "error"])?
        .build()
}

fn block(row: &PgRow, contents: &Contents) -> Result<Block, StoreError> {
    let id: String = row.try_get("block_id")?;
    let fields = Fields::of("blocks", "block_id", row)?.spread("body")?;
    // A pointer has no text, not even an empty one.
    let fields = match fields.word("kind") {
        Some("text" | "reasoning" | "refusal") => {
            fields.set("content", text_of(contents, "blocks", &id, "content")?)
        }
        _ => fields,
    };
    fields
        .text(&["attempt_id", "node_id", "status", "sha256"])?
        .small(&["block_index", "round"])?
        .number(&["started_at", "finished_at", "bytes"])?
        .build()
}

/// Adds the texts of blocks and channels that are still open, which only the journal has.
async fn add_open_texts(
    connection: &mut PgConnection,
    run_id: &RunId,
    snapshot: &mut Snapshot,
) -> Result<(), StoreError> {
    let open_blocks: HashMap<_, _> = snapshot
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| !block.state.status().is_final())
        .map(|(place, block)| (block.block_id.clone(), place))
        .collect();
    let open_nodes: HashMap<_, _> = snapshot
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.state.end().is_none())
        .map(|(place, node)| (node.node_id.clone(), place))
        .collect();
    if open_blocks.is_empty() && open_nodes.is_empty() {
        return Ok(());
    }
    // Nearly all ops are text. The database is not asked for their kind: it cannot look into JSON that holds NUL.
    let rows: Vec<(Json<Op>,)> = sqlx::query_as(
        "select op from ops where run_id = $1 and seq > least(
                 (select min(seq) from blocks where run_id = $1 and status = 'streaming'),
                 (select min(seq) from nodes where run_id = $1 and finished_at is null and kind in ('function', 'code')))
         order by seq",
    )
    .bind(run_id.as_str())
    .fetch_all(connection)
    .await?;
    for (Json(op),) in rows {
        match op {
            Op::BlockDelta(op) => {
                let block = open_blocks
                    .get(&op.block_id)
                    .and_then(|&place| snapshot.blocks.get_mut(place));
                if let Some(content) = block.and_then(|block| block.body.content_mut()) {
                    content.text.push_str(&op.delta);
                }
            }
            Op::NodeOutput(op) => {
                if let Some(node) = open_nodes
                    .get(&op.node_id)
                    .and_then(|&place| snapshot.nodes.get_mut(place))
                {
                    let output = node.outputs.entry(op.channel).or_default();
                    output.text.push_str(&op.text);
                    output.bytes = output.text.len() as u64;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
