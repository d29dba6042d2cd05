//! What a new owner writes first for a run whose owner is gone: that it took over, and what the owner before had
//! received but not saved.
//!
//! A provider's bytes are in the transcript before anything is made of them, so it holds at least what the rows hold.
//! Its events are played again through the same code that executed them; of the ops that come out, the record gets
//! those that it lacks. What it has already is never contradicted: where both differ the transcript is left alone.

use protocol::fold::{Applied, RunState};
use protocol::model::{Attempt, BlockState};
use protocol::op::{BlockDelta, Entry, NodeOutput, Op};
use protocol::state::Retention;
use serde_json::json;

use super::Services;
use super::ops::{notice, stream_path};
use super::turn::rebuild;
use crate::provider::ProviderEvent;
use crate::store::StoreError;
use crate::store::queue::{Claim, Predecessor};
use crate::stream::replay;

/// The code of the notice that says so.
const TAKEN_OVER: &str = "taken_over";

/// The ops of a claim that takes a run over, and the state after them. A claim of a run that nobody had begun gives
/// none. Once they are written they are not given again.
pub(super) async fn begin(
    services: &Services,
    state: &RunState,
    claim: &Claim,
    at: i64,
) -> (RunState, Vec<Op>) {
    let mut after = state.clone();
    let mut ops = Vec::new();
    let Some(predecessor) = &claim.predecessor else {
        return (after, ops);
    };
    let said = says(claim.generation, predecessor);
    let is_said = state.notices().iter().any(|known| {
        known.code == TAKEN_OVER && known.detail.get("to_generation") == Some(&claim.generation.into())
    });
    if !is_said && apply(&mut after, at, &said) {
        ops.push(said);
    }
    let running: Vec<&Attempt> = state
        .attempts()
        .iter()
        .filter(|attempt| attempt.state.end().is_none())
        .collect();
    for attempt in running {
        let run_id = &state.run().run_id;
        let Some(rounds) = recorded(services, state, attempt).await else {
            continue;
        };
        let rebuilt = rebuild(state, &attempt.node_id, &attempt.attempt_id, rounds, at).await;
        let missing = missing(&mut after, rebuilt, at);
        if !missing.is_empty() {
            tracing::info!(run.id = %run_id, ops = missing.len(), "the transcript held more than was saved");
        }
        ops.extend(missing);
    }
    (after, ops)
}

fn says(generation: u64, predecessor: &Predecessor) -> Op {
    let before = generation.saturating_sub(1);
    let gone = match predecessor.gone_ms {
        Some(ms) => format!("had given no sign of life for {} s", ms.div_ceil(1_000)),
        None => "is gone".to_owned(),
    };
    let message = format!(
        "The server that executed this run {gone}. Another owner has taken it over (owner {generation}, after {before})."
    );
    let detail = json!({
        "message": message,
        "from_generation": before,
        "to_generation": generation,
        "gone_ms": predecessor.gone_ms,
    });
    notice(None, TAKEN_OVER, detail)
}

/// What the transcript holds of an attempt, where it can be reached. An attempt has one owner, so lines that name it
/// were written in its generation.
async fn recorded(
    services: &Services,
    state: &RunState,
    attempt: &Attempt,
) -> Option<Vec<Vec<ProviderEvent>>> {
    let provider = services.config.provider(&attempt.provider)?;
    let run_id = &state.run().run_id;
    match is_redacted(services, state, attempt, provider.reasoning).await {
        Ok(true) => return None,
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(run.id = %run_id, %error, "the session cannot be read; the rows are kept as they are");
            return None;
        }
    }
    let stream = stream_path(&attempt.node_id);
    let endpoint = provider.endpoint();
    let rounds = replay::rounds(
        &services.transcripts,
        run_id.as_str(),
        &stream,
        attempt.attempt_id.as_str(),
        &endpoint,
        &attempt.model,
    );
    match rounds.await {
        Ok(rounds) => rounds,
        Err(error) => {
            tracing::warn!(run.id = %run_id, %error, "the transcript cannot be replayed; the rows are kept as they are");
            None
        }
    }
}

/// Whether the transcript is not what the provider sent: reasoning that is not saved is replaced in it, wherever it
/// stands.
async fn is_redacted(
    services: &Services,
    state: &RunState,
    attempt: &Attempt,
    of_provider: Retention,
) -> Result<bool, StoreError> {
    let mut blocks = state.blocks_of(&attempt.attempt_id);
    if of_provider == Retention::NotSaved || blocks.any(|block| block.body.is_unsaved()) {
        return Ok(true);
    }
    let session = services.store.session(&state.run().session_id).await?;
    Ok(session.is_none_or(|session| session.settings.reasoning == Some(Retention::NotSaved)))
}

/// Those of the rebuilt ops that the state lacks, applied to it. They end where both differ.
fn missing(state: &mut RunState, rebuilt: Vec<Op>, at: i64) -> Vec<Op> {
    let mut ops = Vec::new();
    for op in rebuilt {
        match compare(state, op) {
            Ok(None) => {}
            Ok(Some(op)) => {
                if !apply(state, at, &op) {
                    break;
                }
                ops.push(op);
            }
            Err(Differs) => break,
        }
    }
    ops
}

/// Applies an op as the next one; `false` when it does not fit.
fn apply(state: &mut RunState, at: i64, op: &Op) -> bool {
    let entry = Entry {
        run_id: state.run().run_id.clone(),
        generation: state.generation(),
        seq: state.seq() + 1,
        at,
        op: op.clone(),
    };
    matches!(state.apply(&entry), Ok(Applied::Changed(_)))
}

/// A state knows something else in the place of an op.
struct Differs;

/// What a state lacks of an op: none when it knows all of it.
fn compare(state: &RunState, op: Op) -> Result<Option<Op>, Differs> {
    match op {
        Op::BlockStarted(op) => match state.block(&op.block_id) {
            None => Ok(Some(Op::BlockStarted(op))),
            Some(known) if known.body.kind() == op.body.kind() => Ok(None),
            Some(_) => Err(Differs),
        },
        Op::BlockDelta(op) => {
            let Some(block) = state.block(&op.block_id) else {
                return Err(Differs);
            };
            let Some(content) = block.body.content() else {
                return Err(Differs);
            };
            match rest(&content.text, op.offset, &op.delta) {
                Some("") => Ok(None),
                Some(rest) if block.state == BlockState::Streaming => Ok(Some(Op::BlockDelta(BlockDelta {
                    offset: content.text.len() as u64,
                    delta: rest.to_owned(),
                    ..op.clone()
                }))),
                Some(_) | None => Err(Differs),
            }
        }
        Op::BlockFinished(op) => match state.block(&op.block_id) {
            Some(block) if block.state != BlockState::Streaming => Ok(None),
            Some(block) => {
                let bytes = block.body.content().map(|content| content.text.len() as u64);
                match bytes.is_none_or(|bytes| bytes == op.bytes) {
                    true => Ok(Some(Op::BlockFinished(op))),
                    false => Err(Differs),
                }
            }
            None => Err(Differs),
        },
        Op::NodeStarted(mut op) => match state.node(&op.node_id) {
            Some(_) => Ok(None),
            None => {
                // Attempts before may have made calls, too.
                let siblings = op.parent_id.as_ref().map(|parent| state.children(parent));
                op.ordinal = siblings
                    .and_then(|siblings| siblings.map(|node| node.ordinal + 1).max())
                    .unwrap_or_default();
                Ok(Some(Op::NodeStarted(op)))
            }
        },
        Op::NodeOutput(op) => {
            let Some(node) = state.node(&op.node_id) else {
                return Err(Differs);
            };
            let known = node.outputs.get(&op.channel).map_or("", |output| &output.text);
            match rest(known, op.offset, &op.text) {
                Some("") => Ok(None),
                Some(rest) if node.state.end().is_none() => Ok(Some(Op::NodeOutput(NodeOutput {
                    offset: known.len() as u64,
                    text: rest.to_owned(),
                    ..op.clone()
                }))),
                Some(_) | None => Err(Differs),
            }
        }
        Op::NodeUpdated(op) => match state.node(&op.node_id) {
            Some(node) if node.started_at.is_some() || node.state.end().is_some() => Ok(None),
            Some(_) => Ok(Some(Op::NodeUpdated(op))),
            None => Err(Differs),
        },
        Op::NodeFinished(op) => match state.node(&op.node_id) {
            Some(node) if node.state.end().is_some() => Ok(None),
            Some(_) => Ok(Some(Op::NodeFinished(op))),
            None => Err(Differs),
        },
        Op::Notice(op) => {
            let is_known = state.notices().iter().any(|known| {
                known.code == op.code && known.node_id == op.node_id && known.detail == op.detail
            });
            match is_known {
                true => Ok(None),
                false => Ok(Some(Op::Notice(op))),
            }
        }
        // A round writes no others.
        _ => Ok(None),
    }
}

/// What a piece at this place adds to a known text; none when it leaves a hole or differs from what is known.
fn rest<'a>(known: &str, offset: u64, piece: &'a str) -> Option<&'a str> {
    let overlap = known.get(usize::try_from(offset).ok()?..)?;
    let shared = overlap.len().min(piece.len());
    (overlap.as_bytes().get(..shared) == piece.as_bytes().get(..shared)).then(|| piece.get(shared..))?
}

#[cfg(test)]
mod tests;
