//! Writing what happened: journal, rows and contents of any number of runs in one transaction.
//!
//! Every row is written from the folded state, so that there is one reducer for what is shown and what is kept.

pub mod durable;
mod upsert;

use std::collections::HashSet;

use protocol::fold::{Change, RunState};
use protocol::id::{NodeId, RunId};
use protocol::op::{Entry, Op, Withheld};
use sqlx::PgConnection;

use super::rows::AsJson;
use super::{StoreError, content};
use protocol::state::Channel;

/// What one run adds in one transaction.
#[derive(Debug)]
pub struct RunBatch<'a> {
    /// The state with all of `steps` applied.
    pub state: &'a RunState,
    /// The last op before them.
    pub previous_seq: u64,
    /// The ops, each with what it changed.
    pub steps: &'a [(Entry, Vec<Change>)],
}

/// Writes the batches of those runs whose generation still holds and whose last op is the one before; gives these
/// runs. The others were taken over: nothing of them is written.
pub async fn write(
    connection: &mut PgConnection,
    batches: &[RunBatch<'_>],
) -> Result<HashSet<RunId>, StoreError> {
    let held = advance(connection, batches).await?;
    let written: Vec<&RunBatch<'_>> = batches
        .iter()
        .filter(|batch| held.contains(batch.state.run().run_id.as_str()))
        .collect();
    append(connection, &written).await?;
    for batch in &written {
        project(connection, batch).await?;
    }
    Ok(written
        .iter()
        .map(|batch| batch.state.run().run_id.clone())
        .collect())
}

/// Moves `last_seq` of every run that is still ours; this is the fence against owners of an older generation.
async fn advance(
    connection: &mut PgConnection,
    batches: &[RunBatch<'_>],
) -> Result<HashSet<String>, StoreError> {
    let ids: Vec<String> = batches
        .iter()
        .map(|batch| batch.state.run().run_id.to_string())
        .collect();
    let generations: Vec<i64> = batches
        .iter()
        .map(|batch| batch.state.generation() as i64)
        .collect();
    let before: Vec<i64> = batches.iter().map(|batch| batch.previous_seq as i64).collect();
    let after: Vec<i64> = batches.iter().map(|batch| batch.state.seq() as i64).collect();
    let held: Vec<(String,)> = sqlx::query_as(
        "update runs set last_seq = new.after
         from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) as new(run_id, generation, before, after)
         where runs.run_id = new.run_id and runs.generation = new.generation and runs.last_seq = new.before
         returning runs.run_id",
    )
    .bind(ids)
    .bind(generations)
    .bind(before)
    .bind(after)
    .fetch_all(connection)
    .await?;
    Ok(held.into_iter().map(|(run_id,)| run_id).collect())
}

/// Whether an op carries text that is shown live and not kept: its place in the journal says that it is withheld.
fn is_unsaved(state: &RunState, op: &Op) -> bool {
    match op {
        Op::BlockDelta(op) => state
            .block(&op.block_id)
            .is_some_and(|block| block.body.is_unsaved()),
        _ => false,
    }
}

/// Appends to the journal.
async fn append(connection: &mut PgConnection, batches: &[&RunBatch<'_>]) -> Result<(), StoreError> {
    let withheld = Op::Withheld(Withheld::default());
    let (mut ids, mut seqs, mut generations, mut times, mut ops) = (vec![], vec![], vec![], vec![], vec![]);
    for batch in batches {
        for (entry, _) in batch.steps {
            ids.push(entry.run_id.as_str());
            seqs.push(entry.seq as i64);
            generations.push(entry.generation as i64);
            times.push(entry.at);
            ops.push(AsJson(if is_unsaved(batch.state, &entry.op) {
                &withheld
            } else {
                &entry.op
            }));
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into ops (run_id, seq, generation, at, op)
         select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::json[])",
    )
    .bind(ids)
    .bind(seqs)
    .bind(generations)
    .bind(times)
    .bind(ops)
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes the rows of all that changed.
async fn project(connection: &mut PgConnection, batch: &RunBatch<'_>) -> Result<(), StoreError> {
    let state = batch.state;
    let mut written = HashSet::new();
    for (entry, changes) in batch.steps {
        for change in changes {
            // Rows are written from the state after the batch: once is enough.
            if matches!(change, Change::Notice | Change::Unknown) || written.insert(change) {
                project_change(connection, state, entry, change).await?;
            }
        }
    }
    durable::write(connection, batch).await?;
    if let Some((last, _)) = batch.steps.last() {
        sqlx::query("update sessions set updated_at = greatest(updated_at, $2) where session_id = $1 and updated_at < $2 - 500")
            .bind(state.run().session_id.as_str())
            .bind(last.at)
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn project_change(
    connection: &mut PgConnection,
    state: &RunState,
    entry: &Entry,
    change: &Change,
) -> Result<(), StoreError> {
    let run_id = &entry.run_id;
    match change {
        Change::Run => upsert::run(connection, state, entry.at).await,
        Change::MessageAdded(id) | Change::Message(id) => match state.message(id) {
            Some(message) => upsert::message(connection, run_id, entry.seq, message).await,
            None => Ok(()),
        },
        Change::NodeAdded(id) | Change::Node(id) => project_node(connection, state, entry, id).await,
        Change::AttemptAdded(_, id) | Change::Attempt(id) => match state.attempt(id) {
            Some(attempt) => upsert::attempt(connection, run_id, entry.seq, attempt).await,
            None => Ok(()),
        },
        Change::BlockAdded(_, id) | Change::Block(id) => match state.block(id) {
            Some(block) => {
                upsert::block(connection, run_id, entry.seq, block).await?;
                match block.body.content() {
                    Some(text) if block.state.status().is_final() && !block.body.is_unsaved() => {
                        content::write(connection, run_id, id.as_str(), "content", text.text.as_bytes()).await
                    }
                    _ => Ok(()),
                }
            }
            None => Ok(()),
        },
        Change::Approval(id) => match state.approval(id) {
            Some(approval) => upsert::approval(connection, run_id, entry.seq, approval).await,
            None => Ok(()),
        },
        Change::Notice => match state
            .notices()
            .iter()
            .rev()
            .find(|notice| notice.seq == entry.seq)
        {
            Some(notice) => upsert::notice(connection, run_id, entry.seq, "notice", notice).await,
            None => Ok(()),
        },
        Change::Unknown => upsert::notice(connection, run_id, entry.seq, "unknown", &entry.op).await,
        // Text of what is open is in the journal until it closes.
        Change::Output(..) | Change::BlockContent(_) => Ok(()),
    }
}

async fn project_node(
    connection: &mut PgConnection,
    state: &RunState,
    entry: &Entry,
    id: &NodeId,
) -> Result<(), StoreError> {
    let Some(node) = state.node(id) else { return Ok(()) };
    upsert::node(connection, &entry.run_id, entry.seq, node).await?;
    if node.state.end().is_none() {
        return Ok(());
    }
    for (channel, output) in &node.outputs {
        content::write(
            connection,
            &entry.run_id,
            id.as_str(),
            Channel::as_str(*channel),
            output.text.as_bytes(),
        )
        .await?;
    }
    Ok(())
}
