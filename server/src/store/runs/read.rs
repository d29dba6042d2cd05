//! Rows of a run as things of the protocol.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use protocol::PREVIEW_BYTES;
use protocol::id::RunId;
use protocol::model::{Approval, Attempt, Block, ContentRef, Message, Node, Notice, Run};
use protocol::op::Op;
use protocol::snapshot::Snapshot;
use protocol::state::{BlockStatus, Retention};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row as _};

use crate::store::StoreError;
use crate::store::rows::Fields;

/// Closed texts by subject and channel: all of them whole, or beginnings.
pub(super) struct Texts {
    known: HashMap<(String, String), Vec<u8>>,
    is_whole: bool,
}

impl Texts {
    /// All texts.
    pub(super) fn whole(known: HashMap<(String, String), Vec<u8>>) -> Self {
        let is_whole = true;
        Self { known, is_whole }
    }

    /// Beginnings, which may end within a character.
    pub(super) fn beginnings(known: HashMap<(String, String), Vec<u8>>) -> Self {
        let is_whole = false;
        Self { known, is_whole }
    }

    /// None: only hashes are needed.
    pub(super) fn none() -> Self {
        Self::beginnings(HashMap::new())
    }

    /// Text that was UTF-8 when it was written.
    fn of(&self, table: &'static str, subject: &str, channel: &str) -> Result<String, StoreError> {
        let Some(bytes) = self.known.get(&(subject.to_owned(), channel.to_owned())) else {
            return Ok(String::new());
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) if !self.is_whole && error.error_len().is_none() => {
                let text = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Ok(String::from_utf8_lossy(text).into_owned())
            }
            Err(error) => Err(StoreError::row(table, subject, error)),
        }
    }

    /// Where the whole of a closed text is, when this is only its beginning.
    fn whole_of(&self, text: &str, bytes: Option<i64>, sha256: Option<&str>) -> Option<Value> {
        let (bytes, sha256) = (u64::try_from(bytes?).ok()?, sha256?.to_owned());
        if self.is_whole || text.len() as u64 >= bytes {
            return None;
        }
        serde_json::to_value(ContentRef { bytes, sha256 }).ok()
    }
}

/// The run's own row; none when there is no such run.
pub(super) async fn head(
    connection: &mut PgConnection,
    run_id: &RunId,
) -> Result<Option<Snapshot>, StoreError> {
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
    Ok(Some(Snapshot::empty(run)))
}

/// What stands beside the content: messages, approvals, notices.
pub(super) async fn beside(
    connection: &mut PgConnection,
    run_id: &RunId,
    snapshot: &mut Snapshot,
) -> Result<(), StoreError> {
    snapshot.messages = list(
        connection,
        "select * from messages where run_id = $1 order by seq",
        run_id,
        message,
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
    Ok(())
}

/// The rows of a query about a run.
pub(super) async fn list<T>(
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

/// Whom each node read from.
pub(super) async fn edges(
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

/// A node, with what is known of its closed channels.
pub(super) fn node(
    row: &PgRow,
    texts: &Texts,
    edges: &HashMap<String, Vec<String>>,
) -> Result<Node, StoreError> {
    let id: String = row.try_get("node_id")?;
    let Json(mut outputs) = row.try_get::<Json<Value>, _>("outputs")?;
    if let Value::Object(outputs) = &mut outputs {
        for (channel, output) in outputs {
            let text = texts.of("nodes", &id, channel)?;
            if let Value::Object(output) = output {
                let bytes = output.get("bytes").and_then(Value::as_i64);
                let whole = texts.whole_of(&text, bytes, output.get("sha256").and_then(Value::as_str));
                output.insert("text".to_owned(), text.into());
                if let Some(whole) = whole {
                    output.insert("content_ref".to_owned(), whole);
                }
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

/// An attempt.
pub(super) fn attempt(row: &PgRow) -> Result<Attempt, StoreError> {
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

/// A block, with its text where it is closed.
pub(super) fn block(row: &PgRow, texts: &Texts) -> Result<Block, StoreError> {
    let id: String = row.try_get("block_id")?;
    let fields = Fields::of("blocks", "block_id", row)?.spread("body")?;
    // A pointer has no text, not even an empty one.
    let fields = match fields.word("kind") {
        Some("text" | "reasoning" | "refusal") => {
            let status: String = row.try_get("status")?;
            let text = if status == BlockStatus::Streaming.as_str() {
                String::new()
            } else {
                texts.of("blocks", &id, "content")?
            };
            let (bytes, sha256): (Option<i64>, Option<String>) =
                (row.try_get("bytes")?, row.try_get("sha256")?);
            // What was shown live only is nowhere whole.
            let is_unsaved = fields.word("retention") == Some(Retention::NotSaved.as_str());
            let whole = texts
                .whole_of(&text, bytes, sha256.as_deref())
                .filter(|_| !is_unsaved);
            let fields = fields.set("content", text);
            match whole {
                Some(whole) => fields.set("content_ref", whole),
                None => fields,
            }
        }
        _ => fields,
    };
    fields
        .text(&["attempt_id", "node_id", "status", "sha256"])?
        .small(&["block_index", "round"])?
        .number(&["started_at", "finished_at", "bytes"])?
        .build()
}

/// Adds the texts of blocks and channels that are still open, from the journal. Of a channel that holds more than
/// `limit` bytes only a beginning is kept, and counted on.
pub(super) async fn add_open_texts(
    connection: &mut PgConnection,
    run_id: &RunId,
    snapshot: &mut Snapshot,
    limit: Option<usize>,
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
    let mut rows = sqlx::query_as::<_, (Json<Op>,)>(
        "select op from ops where run_id = $1 and seq > least(
                 (select min(seq) from blocks where run_id = $1 and status = 'streaming'),
                 (select min(seq) from nodes where run_id = $1 and finished_at is null and kind in ('function', 'code')))
         order by seq",
    )
    .bind(run_id.as_str())
    .fetch(connection);
    while let Some((Json(op),)) = rows.try_next().await? {
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
                    if !output.is_open_preview() {
                        output.text.push_str(&op.text);
                    }
                    output.bytes += op.text.len() as u64;
                    if limit.is_some_and(|limit| output.text.len() > limit) {
                        output.shorten(PREVIEW_BYTES);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
