//! Writing what happened: journal, rows and contents of any number of runs in one transaction.
//!
//! Every row is written from the folded state, so that there is one reducer for what is shown and what is kept.

pub mod durable;
mod upsert;

use std::collections::{HashMap, HashSet};

use protocol::fold::{Change, RunState};
use protocol::id::{NodeId, RunId};
use protocol::model::Node;
use protocol::op::{Entry, Op, Withheld};
use sqlx::PgConnection;

use super::rows::AsJson;
use super::{StoreError, content, words};
use protocol::state::{AttemptReason, Channel, RunStatus};

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
    let lengths = lengths_before(batch);
    let began = batch.steps.iter().any(|(entry, _)| begins(&entry.op));
    let mut written = HashSet::new();
    for (entry, changes) in batch.steps {
        for change in changes {
            // Rows are written from the state after the batch: once is enough.
            if matches!(change, Change::Notice | Change::Unknown) || written.insert(change) {
                project_change(connection, state, &lengths, began, entry, change).await?;
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

/// Whether a run begins to execute with this op, or goes on again.
fn begins(op: &Op) -> bool {
    match op {
        Op::RunUpdated(op) => op.status == RunStatus::Running,
        Op::AttemptStarted(op) => matches!(op.reason, AttemptReason::Resume | AttemptReason::Regenerate),
        _ => false,
    }
}

/// Lengths of the texts that grew, before they did: by subject and channel.
type Lengths<'a> = HashMap<(&'a str, &'static str), u64>;

/// The channel of a block's text.
const CONTENT: &str = "content";

fn lengths_before<'a>(batch: &'a RunBatch<'_>) -> Lengths<'a> {
    let mut lengths = Lengths::new();
    for (entry, _) in batch.steps {
        match &entry.op {
            Op::BlockDelta(op) => {
                lengths
                    .entry((op.block_id.as_str(), CONTENT))
                    .or_insert(op.offset);
            }
            Op::NodeOutput(op) => {
                lengths
                    .entry((op.node_id.as_str(), op.channel.as_str()))
                    .or_insert(op.offset);
            }
            _ => {}
        }
    }
    lengths
}

/// Writes the pieces of a text that became full, or, once it is closed, all that is not written yet.
async fn project_text(
    connection: &mut PgConnection,
    lengths: &Lengths<'_>,
    place: content::Place<'_>,
    text: &str,
    is_closed: bool,
) -> Result<(), StoreError> {
    let before = lengths.get(&(place.subject, place.channel)).copied();
    match (is_closed, before) {
        (true, before) => {
            content::close(
                connection,
                place,
                text.as_bytes(),
                before.unwrap_or(text.len() as u64),
            )
            .await
        }
        (false, Some(before)) => content::grow(connection, place, text.as_bytes(), before).await,
        (false, None) => Ok(()),
    }
}

async fn project_change(
    connection: &mut PgConnection,
    state: &RunState,
    lengths: &Lengths<'_>,
    began: bool,
    entry: &Entry,
    change: &Change,
) -> Result<(), StoreError> {
    let run_id = &entry.run_id;
    match change {
        Change::Run => upsert::run(connection, state, entry.at, began).await,
        Change::MessageAdded(id) | Change::Message(id) => match state.message(id) {
            Some(message) => {
                upsert::message(connection, run_id, entry.seq, message).await?;
                words::index(connection, run_id, id.as_str(), &message.text).await
            }
            None => Ok(()),
        },
        Change::NodeAdded(id) | Change::Node(id) => project_node(connection, state, lengths, entry, id).await,
        Change::AttemptAdded(_, id) | Change::Attempt(id) => match state.attempt(id) {
            Some(attempt) => upsert::attempt(connection, run_id, entry.seq, attempt).await,
            None => Ok(()),
        },
        Change::BlockAdded(_, id) | Change::Block(id) => match state.block(id) {
            Some(block) => {
                upsert::block(connection, run_id, entry.seq, block).await?;
                match block.body.content() {
                    Some(text) if block.state.status().is_final() && !block.body.is_unsaved() => {
                        let place = content::Place {
                            run_id,
                            subject: id.as_str(),
                            channel: CONTENT,
                        };
                        project_text(connection, lengths, place, &text.text, true).await?;
                        words::index(connection, run_id, id.as_str(), &text.text).await
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
        // The end of a text that is open is in the journal alone until it closes.
        Change::Output(id, channel) => match state.node(id).filter(|node| node.state.end().is_none()) {
            Some(node) => project_outputs(connection, lengths, run_id, node, Some(*channel)).await,
            None => Ok(()),
        },
        Change::BlockContent(id) => match state.block(id) {
            Some(block) if !block.state.status().is_final() && !block.body.is_unsaved() => {
                let text = block.body.content().map_or("", |content| &content.text);
                let place = content::Place {
                    run_id,
                    subject: id.as_str(),
                    channel: CONTENT,
                };
                project_text(connection, lengths, place, text, false).await
            }
            _ => Ok(()),
        },
    }
}

async fn project_node(
    connection: &mut PgConnection,
    state: &RunState,
    lengths: &Lengths<'_>,
    entry: &Entry,
    id: &NodeId,
) -> Result<(), StoreError> {
    let Some(node) = state.node(id) else { return Ok(()) };
    upsert::node(connection, &entry.run_id, entry.seq, node).await?;
    if node.state.end().is_none() {
        return Ok(());
    }
    project_outputs(connection, lengths, &entry.run_id, node, None).await
}

/// Writes what a node's channels hold, or one of them.
async fn project_outputs(
    connection: &mut PgConnection,
    lengths: &Lengths<'_>,
    run_id: &RunId,
    node: &Node,
    only: Option<Channel>,
) -> Result<(), StoreError> {
    let is_closed = node.state.end().is_some();
    for (channel, output) in &node.outputs {
        if only.is_none_or(|only| only == *channel) {
            let place = content::Place {
                run_id,
                subject: node.node_id.as_str(),
                channel: channel.as_str(),
            };
            project_text(connection, lengths, place, &output.text, is_closed).await?;
        }
    }
    Ok(())
}
