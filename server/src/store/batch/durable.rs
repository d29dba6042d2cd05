//! The durable snapshot of a model node: `nodes.metadata.stream.snapshot`, from which a reader that knows neither
//! journal nor rows can show the node's content.
//!
//! It is written at the end of rounds and of every attempt (which is what a take-over writes, too). Two bounds keep
//! the cost of a node linear in its content. The newest texts stand in it whole, together at most [`WHOLE_BYTES`];
//! the others by their length and hash, and `content_parts` has them. And of many rounds not each one writes
//! ([`is_due`]): the sizes of all snapshots of a node add up to a fixed multiple of the last one's.

use std::collections::BTreeSet;

use protocol::SCHEMA_VERSION;
use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::model::{Attempt, Block, BlockState, ContentRef};
use protocol::op::Op;
use protocol::state::{NodeKind, NodeStatus};
use serde::Serialize;
use sqlx::PgConnection;

use super::RunBatch;
use super::upsert::body_without_text;
use crate::store::StoreError;
use crate::store::rows::AsJson;

/// The most bytes of text that stand in one snapshot.
pub const WHOLE_BYTES: usize = 32 * 1024;

#[derive(Debug, Serialize)]
struct Metadata<'a> {
    stream: Stream<'a>,
}

#[derive(Debug, Serialize)]
struct Stream<'a> {
    snapshot: NodeSnapshot<'a>,
}

/// Attempts and closed blocks of one node, with the field names of a snapshot.
#[derive(Debug, Serialize)]
struct NodeSnapshot<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema_version: u32,
    generation: u64,
    seq: u64,
    node_id: &'a NodeId,
    attempts: Vec<&'a Attempt>,
    blocks: Vec<Block>,
}

/// Writes the snapshots that are due after this batch.
pub(super) async fn write(connection: &mut PgConnection, batch: &RunBatch<'_>) -> Result<(), StoreError> {
    let mut due = BTreeSet::new();
    for (entry, changes) in batch.steps {
        // An op that was refused ended nothing.
        if !changes.is_empty()
            && let Some(node) = ended(batch.state, &entry.op)
        {
            due.insert(node);
        }
    }
    for node in due {
        sqlx::query("update nodes set metadata = $2 where node_id = $1")
            .bind(node.as_str())
            .bind(AsJson(metadata(batch.state, node)))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// The model node of which an op says that an attempt, or a round whose turn it is, has ended.
fn ended<'a>(state: &'a RunState, op: &'a Op) -> Option<&'a NodeId> {
    match op {
        Op::AttemptFinished(op) => Some(&op.node_id),
        // The first call of a round begins to run: the round is whole.
        Op::NodeUpdated(op) if op.status == Some(NodeStatus::Running) => {
            let row = state.block_of_node(&op.node_id)?;
            let is_first = calls(state, row).next()?.block_id == row.block_id;
            (is_first && is_due(row.round)).then_some(&row.node_id)
        }
        // Where the round before has called nothing, the next one says that it has ended.
        Op::BlockStarted(op) => {
            let block = state.block(&op.block_id)?;
            let before = state
                .blocks_of(&op.attempt_id)
                .rev()
                .find(|other| other.block_index < op.block_index)?;
            let is_end = before.round < block.round && calls(state, before).next().is_none();
            (is_end && is_due(before.round)).then_some(&block.node_id)
        }
        _ => None,
    }
}

/// The rows of the calls that this server was asked for in the round of a block.
fn calls<'a>(state: &'a RunState, block: &'a Block) -> impl Iterator<Item = &'a Block> {
    state.blocks_of(&block.attempt_id).filter(move |other| {
        let protocol::model::BlockBody::ToolRef(reference) = &other.body else {
            return false;
        };
        let node = reference.ref_node_id.as_ref().and_then(|id| state.node(id));
        other.round == block.round
            && node.is_some_and(|node| {
                matches!(node.kind, NodeKind::Function | NodeKind::Code)
                    && node.executor == protocol::state::Executor::Runloom
            })
    })
}

/// Whether the end of this round (from 0) writes: each of the first eight, then eight in each doubling.
fn is_due(round: u32) -> bool {
    let count = round.saturating_add(1);
    let step = (count >> 3).checked_ilog2().map_or(1, |doublings| 1 << doublings);
    count.is_multiple_of(step)
}

fn metadata<'a>(state: &'a RunState, node_id: &'a NodeId) -> Metadata<'a> {
    let attempts: Vec<&Attempt> = state.attempts_of(node_id).collect();
    let closed: Vec<&Block> = attempts
        .iter()
        .flat_map(|attempt| state.blocks_of(&attempt.attempt_id))
        .filter(|block| block.state != BlockState::Streaming)
        .collect();
    let mut left = WHOLE_BYTES;
    let mut blocks: Vec<Block> = closed
        .into_iter()
        .rev()
        .map(|block| bounded(block, &mut left))
        .collect();
    blocks.reverse();
    Metadata {
        stream: Stream {
            snapshot: NodeSnapshot {
                kind: "snapshot",
                schema_version: SCHEMA_VERSION,
                generation: state.generation(),
                seq: state.seq(),
                node_id,
                attempts,
                blocks,
            },
        },
    }
}

/// The block with its text where there is room for it, else with its length and hash.
fn bounded(block: &Block, left: &mut usize) -> Block {
    let mut bounded = body_without_text(block);
    bounded.extra.clone_from(&block.extra);
    if block.body.is_unsaved() {
        return bounded;
    }
    let (Some(content), Some(known), BlockState::Ended(end)) =
        (bounded.body.content_mut(), block.body.content(), &block.state)
    else {
        return bounded;
    };
    // Of a text that is long the beginning alone may be at hand.
    if known.content_ref.is_none() && known.text.len() <= *left {
        *left -= known.text.len();
        content.clone_from(known);
    } else {
        content.content_ref = end.sha256.clone().map(|sha256| ContentRef {
            bytes: end.bytes,
            sha256,
        });
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_of_many_rounds_add_up_to_a_fixed_multiple_of_the_last() {
        let due = |rounds: u32| (0..rounds).filter(|&round| is_due(round));
        assert_eq!(due(8).count(), 8);
        assert_eq!(due(16).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert_eq!(
            due(32).skip(16).collect::<Vec<_>>(),
            [17, 19, 21, 23, 25, 27, 29, 31]
        );
        for rounds in [1_u32, 10, 100, 1_000, 10_000] {
            // A snapshot after n rounds is as large as n rounds.
            let written: u64 = due(rounds).map(|round| u64::from(round) + 1).sum();
            assert!(written <= u64::from(rounds) * 16, "{rounds}: {written}");
        }
    }
}
