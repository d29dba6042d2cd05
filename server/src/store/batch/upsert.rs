//! One statement for each kind of row.

use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::model::{Approval, Attempt, Block, Message, Node};
use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use crate::store::StoreError;
use crate::store::rows::{AsJson, json};

/// The run's own row. Its first end and start times stay; a run that goes on again has no end. The wish that it goes on
/// is met when it `began` to run among the ops of the batch, even if it is over again at the end of them.
pub(super) async fn run(
    connection: &mut PgConnection,
    state: &RunState,
    at: i64,
    began: bool,
) -> Result<(), StoreError> {
    let run = state.run();
    let key = run.run_id.as_str();
    sqlx::query(
        "update runs set status = $2, error = $3, usage = $4, extra = $5,
             started_at = case when $8 then coalesce(started_at, $6) else started_at end,
             finished_at = case when $7 then $6 else null end,
             reopen = case when $8 then null else reopen end,
             owner = case when $7 then null else owner end,
             lease_expires_at = case when $7 then null else lease_expires_at end
         where run_id = $1",
    )
    .bind(key)
    .bind(run.status.as_str())
    .bind(run.error.as_ref().map(AsJson))
    .bind(run.usage.as_ref().map(AsJson))
    .bind(AsJson(&run.extra))
    .bind(at)
    .bind(run.status.is_final())
    .bind(began)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn message(
    connection: &mut PgConnection,
    run_id: &RunId,
    seq: u64,
    message: &Message,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into messages (message_id, run_id, seq, role, state, text, at, extra)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (message_id) do update set state = excluded.state, extra = excluded.extra",
    )
    .bind(message.message_id.as_str())
    .bind(run_id.as_str())
    .bind(seq as i64)
    .bind(message.role.as_str())
    .bind(message.state.as_str())
    .bind(message.text.as_bytes())
    .bind(message.at)
    .bind(AsJson(&message.extra))
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn node(
    connection: &mut PgConnection,
    run_id: &RunId,
    seq: u64,
    node: &Node,
) -> Result<(), StoreError> {
    let key = node.node_id.as_str();
    let end = node.state.end();
    let outputs: Map<String, Value> = node
        .outputs
        .iter()
        .filter(|_| end.is_some())
        .map(|(channel, output)| {
            let mut summary = Map::new();
            summary.insert("bytes".to_owned(), output.bytes.into());
            summary.insert("sha256".to_owned(), output.sha256.clone().into());
            summary.insert("media_type".to_owned(), output.media_type.clone().into());
            (channel.to_string(), Value::Object(summary))
        })
        .collect();
    sqlx::query(
        "insert into nodes (node_id, run_id, seq, parent_id, kind, name, title, ordinal, executor, occurrence_id,
             status, announced_at, started_at, finished_at, progress, error, exit_code, outputs, extra)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
         on conflict (node_id) do update set title = excluded.title, status = excluded.status,
             started_at = excluded.started_at, finished_at = excluded.finished_at, progress = excluded.progress,
             error = excluded.error, exit_code = excluded.exit_code, outputs = excluded.outputs, extra = excluded.extra",
    )
    .bind(key)
    .bind(run_id.as_str())
    .bind(seq as i64)
    .bind(node.parent_id.as_ref().map(protocol::id::NodeId::as_str))
    .bind(node.kind.as_str())
    .bind(&node.name)
    .bind(&node.title)
    .bind(node.ordinal as i32)
    .bind(node.executor.as_str())
    .bind(node.occurrence_id.as_ref().map(protocol::id::OccurrenceId::as_str))
    .bind(node.state.status().as_str())
    .bind(node.announced_at)
    .bind(node.started_at)
    .bind(end.map(|end| end.finished_at))
    .bind(node.progress.as_ref().map(AsJson))
    .bind(end.and_then(|end| end.error.as_ref()).map(AsJson))
    .bind(end.and_then(|end| end.exit_code))
    .bind(AsJson(outputs))
    .bind(AsJson(&node.extra))
    .execute(&mut *connection)
    .await?;
    for (ordinal, after) in node.after.iter().enumerate() {
        sqlx::query("insert into node_edges (node_id, after_node_id, ordinal) values ($1, $2, $3) on conflict do nothing")
            .bind(key)
            .bind(after.as_str())
            .bind(ordinal as i32)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

pub(super) async fn attempt(
    connection: &mut PgConnection,
    run_id: &RunId,
    seq: u64,
    attempt: &Attempt,
) -> Result<(), StoreError> {
    let end = attempt.state.end();
    sqlx::query(
        "insert into attempts (attempt_id, run_id, seq, node_id, attempt_index, reason, status, provider, model,
             continues_attempt_id, kept, stop_reason, usage, error, started_at, finished_at, extra)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
         on conflict (attempt_id) do update set status = excluded.status, stop_reason = excluded.stop_reason,
             usage = excluded.usage, error = excluded.error, finished_at = excluded.finished_at, extra = excluded.extra",
    )
    .bind(attempt.attempt_id.as_str())
    .bind(run_id.as_str())
    .bind(seq as i64)
    .bind(attempt.node_id.as_str())
    .bind(attempt.attempt_index as i32)
    .bind(attempt.reason.as_str())
    .bind(attempt.state.status().as_str())
    .bind(&attempt.provider)
    .bind(&attempt.model)
    .bind(attempt.continues_attempt_id.as_ref().map(protocol::id::AttemptId::as_str))
    .bind(attempt.kept.as_ref().map(AsJson))
    .bind(end.and_then(|end| end.stop_reason.as_deref()))
    .bind(end.and_then(|end| end.usage.as_ref()).map(AsJson))
    .bind(end.and_then(|end| end.error.as_ref()).map(AsJson))
    .bind(attempt.started_at)
    .bind(end.map(|end| end.finished_at))
    .bind(AsJson(&attempt.extra))
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn block(
    connection: &mut PgConnection,
    run_id: &RunId,
    seq: u64,
    block: &Block,
) -> Result<(), StoreError> {
    let key = block.block_id.as_str();
    let end = match &block.state {
        protocol::model::BlockState::Streaming => None,
        protocol::model::BlockState::Ended(end) => Some(end),
    };
    let reference = match &block.body {
        protocol::model::BlockBody::ToolRef(reference) => reference.ref_node_id.as_ref(),
        _ => None,
    };
    let reference = reference.map(protocol::id::NodeId::as_str);
    let mut body = json("blocks", key, &body_without_text(block))?;
    if let Value::Object(body) = &mut body {
        body.retain(|name, _| {
            !matches!(
                name.as_str(),
                "block_id"
                    | "attempt_id"
                    | "node_id"
                    | "block_index"
                    | "round"
                    | "status"
                    | "started_at"
                    | "finished_at"
                    | "sha256"
                    | "content"
            )
        });
    }
    sqlx::query(
        "insert into blocks (block_id, run_id, seq, attempt_id, node_id, block_index, round, status, started_at,
             finished_at, bytes, sha256, body, extra, ref_node_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         on conflict (block_id) do update set status = excluded.status, finished_at = excluded.finished_at,
             bytes = excluded.bytes, sha256 = excluded.sha256, body = excluded.body, extra = excluded.extra,
             ref_node_id = excluded.ref_node_id",
    )
    .bind(key)
    .bind(run_id.as_str())
    .bind(seq as i64)
    .bind(block.attempt_id.as_str())
    .bind(block.node_id.as_str())
    .bind(block.block_index as i32)
    .bind(block.round as i32)
    .bind(block.state.status().as_str())
    .bind(block.started_at)
    .bind(end.map(|end| end.finished_at))
    .bind(end.map(|end| end.bytes as i64))
    .bind(end.and_then(|end| end.sha256.as_deref()))
    .bind(AsJson(body))
    .bind(AsJson(&block.extra))
    .bind(reference)
    .execute(connection)
    .await?;
    Ok(())
}

/// The block with an empty text: its text is kept elsewhere. What this version does not know has its own column.
pub(super) fn body_without_text(block: &Block) -> Block {
    use protocol::model::{BlockBody, Content};
    let body = match &block.body {
        BlockBody::Text(_) => BlockBody::Text(Content::default()),
        BlockBody::Refusal(_) => BlockBody::Refusal(Content::default()),
        BlockBody::Reasoning { retention, .. } => BlockBody::Reasoning {
            content: Content::default(),
            retention: *retention,
        },
        pointer => pointer.clone(),
    };
    Block {
        block_id: block.block_id.clone(),
        attempt_id: block.attempt_id.clone(),
        node_id: block.node_id.clone(),
        block_index: block.block_index,
        round: block.round,
        body,
        state: block.state.clone(),
        started_at: block.started_at,
        extra: protocol::Extra::new(),
    }
}

pub(super) async fn approval(
    connection: &mut PgConnection,
    run_id: &RunId,
    seq: u64,
    approval: &Approval,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into approvals (approval_id, run_id, seq, body) values ($1, $2, $3, $4)
         on conflict (approval_id) do update set body = excluded.body",
    )
    .bind(approval.approval_id.as_str())
    .bind(run_id.as_str())
    .bind(seq as i64)
    .bind(AsJson(approval))
    .execute(connection)
    .await?;
    Ok(())
}

/// A notice, or an op that this version did not know.
pub(super) async fn notice<T: Serialize>(
    connection: &mut PgConnection,
    run_id: &RunId,
    seq: u64,
    kind: &str,
    body: &T,
) -> Result<(), StoreError> {
    let body = json("notices", run_id.as_str(), body)?;
    sqlx::query(
        "insert into notices (run_id, seq, kind, body) values ($1, $2, $3, $4) on conflict do nothing",
    )
    .bind(run_id.as_str())
    .bind(seq as i64)
    .bind(kind)
    .bind(AsJson(body))
    .execute(connection)
    .await?;
    Ok(())
}
