//! Reading the journal.

use protocol::id::RunId;
use protocol::op::{Entry, Op};
use sqlx::PgExecutor;
use sqlx::types::Json;

use super::StoreError;

/// Ops of a run after `after`, in order, at most `limit`.
pub async fn after(
    executor: impl PgExecutor<'_>,
    run_id: &RunId,
    after: u64,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    let rows: Vec<(i64, i64, i64, Json<Op>)> = sqlx::query_as(
        "select seq, generation, at, op from ops where run_id = $1 and seq > $2 order by seq limit $3",
    )
    .bind(run_id.as_str())
    .bind(i64::try_from(after).unwrap_or(i64::MAX))
    .bind(i64::from(limit))
    .fetch_all(executor)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(seq, generation, at, Json(op))| Entry {
            run_id: run_id.clone(),
            generation: generation as u64,
            seq: seq as u64,
            at,
            op,
        })
        .collect())
}

/// How much there is to read after `after`: ops, and bytes of them.
pub async fn size_after(
    executor: impl PgExecutor<'_>,
    run_id: &RunId,
    after: u64,
) -> Result<(u64, u64), StoreError> {
    let (ops, bytes): (i64, i64) = sqlx::query_as(
        "select count(*), coalesce(sum(octet_length(op::text)), 0)::bigint from ops where run_id = $1 and seq > $2",
    )
    .bind(run_id.as_str())
    .bind(i64::try_from(after).unwrap_or(i64::MAX))
    .fetch_one(executor)
    .await?;
    Ok((ops as u64, bytes as u64))
}

/// How many of the ops up to `end` there are.
pub async fn count_to(executor: impl PgExecutor<'_>, run_id: &RunId, end: u64) -> Result<u64, StoreError> {
    let (count,): (i64,) = sqlx::query_as("select count(*) from ops where run_id = $1 and seq <= $2")
        .bind(run_id.as_str())
        .bind(i64::try_from(end).unwrap_or(i64::MAX))
        .fetch_one(executor)
        .await?;
    Ok(count as u64)
}
