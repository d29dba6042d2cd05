//! Runs: creating one, and reading its state from rows and journal.

mod read;
mod window;

use protocol::api::{InterruptionPolicy, RunDigest, ToolMode};
use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::id::{AttemptId, BlockId, NodeId, RunId, SessionId};
use protocol::snapshot::Snapshot;
use protocol::state::{Executor, NodeStatus, RunStatus};
use sqlx::{PgConnection, Postgres, Transaction};

use self::read::Texts;
use super::batch::{self, RunBatch};
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
    /// How its models call tools.
    pub tool_mode: ToolMode,
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

/// Where a node stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// Its run.
    pub run_id: RunId,
    /// Its state.
    pub status: NodeStatus,
    /// Who runs it.
    pub executor: Executor,
    /// It is the root, or the answer: with it the whole run ends.
    pub is_whole_run: bool,
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
                 on_interruption, tool_mode)
             values ($1, $2, (select coalesce(max(ordinal) + 1, 0) from runs where session_id = $2), $3, $4, $5, $6, $7, $8, $9, $10)",
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
        .bind(new.tool_mode.as_str())
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

    /// How the models of a run call tools.
    pub async fn tool_mode(&self, run_id: &RunId) -> Result<ToolMode, StoreError> {
        let (word,): (String,) = sqlx::query_as("select tool_mode from runs where run_id = $1")
            .bind(run_id.as_str())
            .fetch_one(self.pool())
            .await?;
        serde_json::from_value(word.into()).map_err(|error| StoreError::row("runs", run_id, error))
    }

    /// A transaction whose reads all see the same moment.
    pub(super) async fn moment(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query("set transaction isolation level repeatable read, read only")
            .execute(&mut *transaction)
            .await?;
        Ok(transaction)
    }

    /// The state of a run, as its last committed op left it; none when there is no such run.
    pub async fn load_run(&self, run_id: &RunId) -> Result<Option<RunState>, StoreError> {
        let mut transaction = self.moment().await?;
        let texts = Texts::whole(content::of_run(&mut transaction, run_id).await?);
        let snapshot = whole(&mut transaction, run_id, &texts, None).await?;
        transaction.commit().await?;
        Ok(snapshot.map(RunState::from_snapshot))
    }

    /// The snapshot of a run with all of its content; none when there is no such run.
    pub async fn load_snapshot(&self, run_id: &RunId) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.load_run(run_id).await?.map(|state| state.to_snapshot()))
    }

    /// A window of a run: about `most` of its newest blocks, all that is open, and of longer texts a beginning. Only
    /// that is read. None when there is no such run.
    pub async fn load_window(&self, run_id: &RunId, most: u32) -> Result<Option<Snapshot>, StoreError> {
        let mut transaction = self.moment().await?;
        let snapshot = window::newest(&mut transaction, run_id, most).await?;
        transaction.commit().await?;
        Ok(snapshot)
    }

    /// Blocks of an attempt before an index, at most `most`, with all that they called: a window to be added to
    /// another. None when the run has no such attempt.
    pub async fn load_earlier(
        &self,
        run_id: &RunId,
        attempt_id: &AttemptId,
        before: u32,
        most: u32,
    ) -> Result<Option<Snapshot>, StoreError> {
        let mut transaction = self.moment().await?;
        let snapshot = window::earlier(&mut transaction, run_id, attempt_id, before, most).await?;
        transaction.commit().await?;
        Ok(snapshot)
    }

    /// The blocks that lead to a block or node, each with its attempt and index, the outermost first.
    pub async fn way_to(&self, thing: &str) -> Result<Vec<(AttemptId, u32)>, StoreError> {
        let rows: Vec<(String, i32, i32)> = sqlx::query_as(
            "with recursive up(node_id, depth) as (
                 (select node_id, 0 from blocks where block_id = $1
                  union all select node_id, 0 from nodes where node_id = $1)
                 union all select n.parent_id, up.depth + 1 from nodes n join up on n.node_id = up.node_id
                     where n.parent_id is not null and up.depth < 100)
             select attempt_id, block_index, -1 as depth from blocks where block_id = $1
             union all select b.attempt_id, b.block_index, up.depth from up join blocks b on b.ref_node_id = up.node_id
             order by depth desc",
        )
        .bind(thing)
        .fetch_all(self.pool())
        .await?;
        rows.into_iter()
            .map(|(attempt, index, _)| {
                let attempt = attempt
                    .parse()
                    .map_err(|error| StoreError::row("blocks", &attempt, error))?;
                Ok((attempt, u32::try_from(index).unwrap_or(0)))
            })
            .collect()
    }

    /// The run of a block or a node of a session.
    pub async fn run_of_thing(&self, session: &SessionId, thing: &str) -> Result<Option<RunId>, StoreError> {
        let row: Option<(String,)> = sqlx::query_as(
            "select run_id from runs where session_id = $1 and run_id in (
                 select run_id from blocks where block_id = $2 union all select run_id from nodes where node_id = $2)",
        )
        .bind(session.as_str())
        .bind(thing)
        .fetch_optional(self.pool())
        .await?;
        row.map(|(id,)| id.parse().map_err(|error| StoreError::row("runs", &id, error)))
            .transpose()
    }

    /// A run without its closed texts: what there is, and how long it is. None when there is no such run.
    pub async fn load_outline(&self, run_id: &RunId) -> Result<Option<RunState>, StoreError> {
        let mut transaction = self.moment().await?;
        let state = outline(&mut transaction, run_id).await?;
        transaction.commit().await?;
        Ok(state)
    }

    /// How many bytes of closed text a run has.
    pub async fn content_bytes(&self, run_id: &RunId) -> Result<u64, StoreError> {
        let (bytes,): (i64,) = sqlx::query_as(
            "select coalesce(sum(octet_length(bytes)), 0)::bigint from content_parts where run_id = $1",
        )
        .bind(run_id.as_str())
        .fetch_one(self.pool())
        .await?;
        Ok(bytes as u64)
    }

    /// The digest of a run, from the hashes in its rows; none when there is no such run.
    pub async fn run_digest(&self, run_id: &RunId) -> Result<Option<RunDigest>, StoreError> {
        let mut transaction = self.moment().await?;
        let snapshot = whole(&mut transaction, run_id, &Texts::none(), None).await?;
        transaction.commit().await?;
        Ok(snapshot.map(|snapshot| RunDigest {
            run_id: run_id.clone(),
            seq: snapshot.seq,
            digest: digest(&RunState::from_snapshot(snapshot)),
        }))
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

    /// Where a node stands; none when there is no such node.
    pub async fn place_of_node(&self, node_id: &NodeId) -> Result<Option<NodePlace>, StoreError> {
        let row: Option<(String, String, String, bool)> = sqlx::query_as(
            "select node.run_id, node.status, node.executor,
                 coalesce(node.kind = 'root' or (node.kind = 'model' and parent.kind = 'root'), false)
             from nodes node left join nodes parent on parent.node_id = node.parent_id
             where node.node_id = $1",
        )
        .bind(node_id.as_str())
        .fetch_optional(self.pool())
        .await?;
        let Some((run, status, executor, is_whole_run)) = row else {
            return Ok(None);
        };
        let unknown =
            |what: &str, word: &str| StoreError::row("nodes", node_id, format!("unknown {what} {word:?}"));
        Ok(Some(NodePlace {
            run_id: run
                .parse()
                .map_err(|error| StoreError::row("nodes", node_id, error))?,
            status: NodeStatus::from_word(&status).ok_or_else(|| unknown("status", &status))?,
            executor: Executor::from_word(&executor).ok_or_else(|| unknown("executor", &executor))?,
            is_whole_run,
        }))
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

/// A run without its closed texts; of a channel that grows and is long there is a beginning.
pub(super) async fn outline(
    connection: &mut PgConnection,
    run_id: &RunId,
) -> Result<Option<RunState>, StoreError> {
    let snapshot = whole(connection, run_id, &Texts::none(), Some(window::OPEN_BYTES)).await?;
    Ok(snapshot.map(RunState::from_snapshot))
}

/// All rows of a run with these texts, and from the journal the texts of what is open: of a channel a beginning, where it
/// holds more than `limit` bytes.
async fn whole(
    connection: &mut PgConnection,
    run_id: &RunId,
    texts: &Texts,
    limit: Option<usize>,
) -> Result<Option<Snapshot>, StoreError> {
    let Some(mut snapshot) = read::head(connection, run_id).await? else {
        return Ok(None);
    };
    read::beside(connection, run_id, &mut snapshot).await?;
    let edges = read::edges(connection, run_id).await?;
    snapshot.nodes = read::list(
        connection,
        "select * from nodes where run_id = $1 order by seq",
        run_id,
        |row| read::node(row, texts, &edges),
    )
    .await?;
    snapshot.attempts = read::list(
        connection,
        "select * from attempts where run_id = $1 order by seq",
        run_id,
        read::attempt,
    )
    .await?;
    snapshot.blocks = read::list(
        connection,
        "select * from blocks where run_id = $1 order by seq",
        run_id,
        |row| read::block(row, texts),
    )
    .await?;
    read::add_open_texts(connection, run_id, &mut snapshot, limit).await?;
    Ok(Some(snapshot))
}
