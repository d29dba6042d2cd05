//! Reading a part of a run: a few of its blocks with all that they called, and beginnings of long texts.

use std::collections::{HashMap, HashSet};

use protocol::PREVIEW_BYTES;
use protocol::id::{AttemptId, RunId};
use protocol::snapshot::{LeftOut, Snapshot};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row as _};

use super::read::{self, Texts};
use crate::store::{StoreError, content};

/// A window ends where its texts, as far as they are in it, are longer than this. Bytes.
const TEXT_BYTES: u64 = 1024 * 1024;

/// Of a channel that still grows more than this is cut to a beginning. Bytes.
pub(super) const OPEN_BYTES: usize = 256 * 1024;

/// From which index on the blocks of an attempt are in the window.
type Bounds = HashMap<String, i32>;

/// The newest blocks of a run, and all that is open.
pub(super) async fn newest(
    connection: &mut PgConnection,
    run_id: &RunId,
    most: u32,
) -> Result<Option<Snapshot>, StoreError> {
    let Some(mut snapshot) = read::head(connection, run_id).await? else {
        return Ok(None);
    };
    read::beside(connection, run_id, &mut snapshot).await?;
    let bounds = bounds(connection, run_id, most).await?;
    let (attempts, indices): (Vec<&str>, Vec<i32>) = bounds
        .iter()
        .map(|(attempt, from)| (attempt.as_str(), *from))
        .unzip();
    let nodes = sqlx::query(
        "with recursive gone(node_id) as (
             select b.ref_node_id from blocks b
                 left join unnest($2::text[], $3::integer[]) as bound(attempt_id, from_index)
                     on bound.attempt_id = b.attempt_id
                 where b.run_id = $1 and b.ref_node_id is not null
                     and (bound.from_index is null or b.block_index < bound.from_index)
             union select n.node_id from nodes n join gone on n.parent_id = gone.node_id)
         select * from nodes where run_id = $1 and node_id not in (select node_id from gone) order by seq",
    )
    .bind(run_id.as_str())
    .bind(&attempts)
    .bind(&indices)
    .fetch_all(&mut *connection)
    .await?;
    let blocks = sqlx::query(
        "select b.* from unnest($1::text[], $2::integer[]) as bound(attempt_id, from_index)
             join blocks b on b.attempt_id = bound.attempt_id and b.block_index >= bound.from_index
         order by b.seq",
    )
    .bind(&attempts)
    .bind(&indices)
    .fetch_all(&mut *connection)
    .await?;
    fill(connection, run_id, &mut snapshot, &nodes, &blocks).await?;
    let counts = counts(connection, &snapshot).await?;
    for attempt in &snapshot.attempts {
        let key = attempt.attempt_id.as_str();
        let to = bounds.get(key).or(counts.get(key)).copied().unwrap_or(0);
        push_gap(&mut snapshot.left_out, &attempt.attempt_id, 0, to);
    }
    read::add_open_texts(connection, run_id, &mut snapshot, Some(OPEN_BYTES)).await?;
    Ok(Some(snapshot))
}

/// Blocks of one attempt before an index.
pub(super) async fn earlier(
    connection: &mut PgConnection,
    run_id: &RunId,
    attempt_id: &AttemptId,
    before: u32,
    most: u32,
) -> Result<Option<Snapshot>, StoreError> {
    let Some(mut snapshot) = read::head(connection, run_id).await? else {
        return Ok(None);
    };
    let is_there: Option<(String,)> =
        sqlx::query_as("select node_id from attempts where attempt_id = $1 and run_id = $2")
            .bind(attempt_id.as_str())
            .bind(run_id.as_str())
            .fetch_optional(&mut *connection)
            .await?;
    if is_there.is_none() {
        return Ok(None);
    }
    let before = i32::try_from(before).unwrap_or(i32::MAX);
    let candidates = sqlx::query(
        "select b.attempt_id, b.block_index, b.bytes, n.outputs from blocks b
             left join nodes n on n.node_id = b.ref_node_id
         where b.attempt_id = $1 and b.block_index < $2 order by b.block_index desc limit $3",
    )
    .bind(attempt_id.as_str())
    .bind(before)
    .bind(i64::from(most))
    .fetch_all(&mut *connection)
    .await?;
    let mut from = before;
    for (_, index) in within_bytes(&candidates)? {
        from = from.min(index);
    }
    let nodes = sqlx::query(
        "with recursive called(node_id) as (
             select ref_node_id from blocks
                 where attempt_id = $1 and block_index >= $2 and block_index < $3 and ref_node_id is not null
             union select n.node_id from nodes n join called on n.parent_id = called.node_id)
         select nodes.* from nodes join called using (node_id) where run_id = $4 order by seq",
    )
    .bind(attempt_id.as_str())
    .bind(from)
    .bind(before)
    .bind(run_id.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let blocks = sqlx::query(
        "select * from blocks where attempt_id = $1 and block_index >= $2 and block_index < $3 order by seq",
    )
    .bind(attempt_id.as_str())
    .bind(from)
    .bind(before)
    .fetch_all(&mut *connection)
    .await?;
    fill(connection, run_id, &mut snapshot, &nodes, &blocks).await?;
    // What is called within comes when it is looked at.
    let counts = counts(connection, &snapshot).await?;
    for attempt in &snapshot.attempts {
        let to = counts.get(attempt.attempt_id.as_str()).copied().unwrap_or(0);
        push_gap(&mut snapshot.left_out, &attempt.attempt_id, 0, to);
    }
    push_gap(&mut snapshot.left_out, attempt_id, 0, from);
    push_gap(&mut snapshot.left_out, attempt_id, before, i32::MAX);
    Ok(Some(snapshot))
}

fn push_gap(gaps: &mut Vec<LeftOut>, attempt_id: &AttemptId, from: i32, to: i32) {
    if from < to {
        gaps.push(LeftOut {
            attempt_id: attempt_id.clone(),
            from: u32::try_from(from).unwrap_or(0),
            to: u32::try_from(to).unwrap_or(0),
        });
    }
}

/// Where the window begins in each attempt of which anything is in it.
async fn bounds(connection: &mut PgConnection, run_id: &RunId, most: u32) -> Result<Bounds, StoreError> {
    let candidates = sqlx::query(
        "select b.attempt_id, b.block_index, b.bytes, n.outputs from blocks b
             left join nodes n on n.node_id = b.ref_node_id
         where b.run_id = $1 order by b.seq desc limit $2",
    )
    .bind(run_id.as_str())
    .bind(i64::from(most))
    .fetch_all(&mut *connection)
    .await?;
    let mut bounds = Bounds::new();
    let mut lower = |attempt: String, index: i32| {
        let bound = bounds.entry(attempt).or_insert(index);
        *bound = index.min(*bound);
    };
    for (attempt, index) in within_bytes(&candidates)? {
        lower(attempt, index);
    }
    // What is open: texts that grow, and calls that run.
    let open: Vec<(String, i32)> = sqlx::query_as(
        "select attempt_id, min(block_index) from (
             select attempt_id, block_index from blocks where run_id = $1 and status = 'streaming'
             union all
             select b.attempt_id, b.block_index from nodes n join blocks b on b.ref_node_id = n.node_id
                 where n.run_id = $1 and n.finished_at is null) as open
         group by attempt_id",
    )
    .bind(run_id.as_str())
    .fetch_all(&mut *connection)
    .await?;
    for (attempt, index) in open {
        lower(attempt, index);
    }
    // What is shown within a call is reached by the call's own row.
    let inside: Vec<String> = bounds.keys().cloned().collect();
    let above: Vec<(String, i32)> = sqlx::query_as(
        "with recursive up(node_id) as (
             select node_id from attempts where attempt_id = any($1)
             union select n.parent_id from nodes n join up on n.node_id = up.node_id where n.parent_id is not null)
         select b.attempt_id, min(b.block_index) from blocks b join up on b.ref_node_id = up.node_id
         group by b.attempt_id",
    )
    .bind(inside)
    .fetch_all(&mut *connection)
    .await?;
    for (attempt, index) in above {
        let bound = bounds.entry(attempt).or_insert(index);
        *bound = index.min(*bound);
    }
    Ok(bounds)
}

/// The first of these blocks, each with its attempt and index, as far as their texts are not too long; at least one.
fn within_bytes(rows: &[PgRow]) -> Result<Vec<(String, i32)>, StoreError> {
    let beginning = |bytes: u64| bytes.min(PREVIEW_BYTES as u64);
    let mut kept = Vec::new();
    let mut total = 0;
    for row in rows {
        let bytes: Option<i64> = row.try_get("bytes")?;
        total += beginning(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0));
        if let Some(Json(Value::Object(outputs))) = row.try_get::<Option<Json<Value>>, _>("outputs")? {
            let outputs = outputs
                .values()
                .filter_map(|output| output.get("bytes")?.as_u64());
            total += outputs.map(beginning).sum::<u64>();
        }
        if !kept.is_empty() && total > TEXT_BYTES {
            break;
        }
        kept.push((row.try_get("attempt_id")?, row.try_get("block_index")?));
    }
    Ok(kept)
}

/// Makes things of the rows, with the attempts of the nodes and the beginnings of the texts.
async fn fill(
    connection: &mut PgConnection,
    run_id: &RunId,
    snapshot: &mut Snapshot,
    nodes: &[PgRow],
    blocks: &[PgRow],
) -> Result<(), StoreError> {
    let mut subjects: Vec<String> = Vec::with_capacity(nodes.len() + blocks.len());
    for row in nodes {
        subjects.push(row.try_get("node_id")?);
    }
    let attempts = sqlx::query("select * from attempts where run_id = $1 and node_id = any($2) order by seq")
        .bind(run_id.as_str())
        .bind(&subjects)
        .fetch_all(&mut *connection)
        .await?;
    for row in blocks {
        subjects.push(row.try_get("block_id")?);
    }
    let texts = Texts::beginnings(content::beginnings(connection, &subjects, PREVIEW_BYTES).await?);
    let edges = read::edges(connection, run_id).await?;
    snapshot.nodes = nodes
        .iter()
        .map(|row| read::node(row, &texts, &edges))
        .collect::<Result<_, _>>()?;
    snapshot.attempts = attempts.iter().map(read::attempt).collect::<Result<_, _>>()?;
    snapshot.blocks = blocks
        .iter()
        .map(|row| read::block(row, &texts))
        .collect::<Result<_, _>>()?;
    Ok(())
}

/// How many places for blocks each attempt has of which no block is in the window.
async fn counts(
    connection: &mut PgConnection,
    snapshot: &Snapshot,
) -> Result<HashMap<String, i32>, StoreError> {
    let shown: HashSet<&AttemptId> = snapshot.blocks.iter().map(|block| &block.attempt_id).collect();
    let others: Vec<&str> = snapshot
        .attempts
        .iter()
        .map(|attempt| &attempt.attempt_id)
        .filter(|attempt| !shown.contains(attempt))
        .map(AttemptId::as_str)
        .collect();
    let rows: Vec<(String, i32)> = sqlx::query_as(
        "select attempt_id, max(block_index) + 1 from blocks where attempt_id = any($1) group by attempt_id",
    )
    .bind(others)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}
