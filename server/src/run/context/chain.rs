//! What the attempts of one model node said and did, as messages: for a later run, and for the attempt that goes on.

use std::collections::HashMap;

use app::markdown::closed_length;
use protocol::fold::RunState;
use protocol::id::{AttemptId, NodeId};
use protocol::model::{Attempt, Block, BlockBody, Kept, Node, ToolRef};
use protocol::state::{BlockStatus, Channel, Executor, NodeStatus};

use super::{CHARACTERS_PER_TOKEN, bounded};
use crate::provider::{AssistantPart, ModelMessage, Replay, ToolResult};
use crate::run::STREAM_ENDED;

/// The most bytes of a broken text that are sent back; of a longer one only the end.
const MAX_KEPT: usize = 32 * 1024;

/// What a model is told of a call that a person cancelled.
pub(in crate::run) const CANCELLED: &str =
    "The call was cancelled (cancelled) while it ran. It may have had an effect. It was not run again.";

/// Rounds as their provider sent them.
pub(super) type Replays = HashMap<(AttemptId, u32), Replay>;

/// What a chain of attempts said and did.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its rounds, oldest first.
    pub(super) messages: Vec<ModelMessage>,
    /// The kept text of the round in which the chain broke off; empty when no text was kept.
    pub(super) open: String,
}

/// What a node said by its current attempt and those that it continues.
pub(super) fn whole(state: &RunState, node_id: &NodeId, replays: Replays) -> Said {
    let mut said = said(state, &state.chain(node_id), None, replays);
    if !said.open.is_empty() {
        let text = std::mem::take(&mut said.open);
        said.messages.push(ModelMessage::Assistant {
            parts: vec![AssistantPart::Text { text }],
            replay: None,
        });
    }
    said
}

/// What a further attempt goes on from: the node's last attempt, and how much of its text is kept. None when the node
/// has no attempt.
pub(super) fn to_continue(
    state: &RunState,
    node_id: &NodeId,
    replays: Replays,
) -> Option<(AttemptId, Kept, Said)> {
    let chain = state.chain(node_id);
    let last = chain.last()?;
    let kept = kept_of(state, last);
    let mut said = said(state, &chain, Some(kept.bytes), replays);
    said.open = tail(&said.open).to_owned();
    Some((last.attempt_id.clone(), kept, said))
}

/// The text of an attempt up to the last closed piece of what was cut.
fn kept_of(state: &RunState, attempt: &Attempt) -> Kept {
    let (mut bytes, mut characters) = (0, 0);
    for block in state.blocks_of(&attempt.attempt_id) {
        let BlockBody::Text(content) = &block.body else {
            continue;
        };
        let is_whole = block.state.status() == BlockStatus::Complete;
        let length = if is_whole {
            content.text.len()
        } else {
            closed_length(&content.text)
        };
        bytes += length as u64;
        characters += content.text.get(..length).map_or(0, |text| text.chars().count());
        if !is_whole {
            break;
        }
    }
    Kept {
        bytes,
        tokens: characters.div_ceil(CHARACTERS_PER_TOKEN) as u64,
    }
}

/// The end of a long text, from the start of a line.
fn tail(text: &str) -> &str {
    let Some(from) = text.len().checked_sub(MAX_KEPT).filter(|from| *from > 0) else {
        return text;
    };
    let end = text.get(text.ceil_char_boundary(from)..).unwrap_or(text);
    end.split_once('\n').map_or(end, |(_, lines)| lines)
}

/// `kept_of_last`: bytes of the last attempt's text that count, when another attempt is to go on from it.
fn said(state: &RunState, chain: &[&Attempt], kept_of_last: Option<u64>, mut replays: Replays) -> Said {
    let mut said = Said::default();
    for (place, attempt) in chain.iter().enumerate() {
        let next = chain.get(place + 1);
        let goes_on = next.is_some() || kept_of_last.is_some();
        let mut left = match next {
            Some(next) => next.kept.map(|kept| kept.bytes),
            None => kept_of_last,
        }
        .unwrap_or(u64::MAX);
        let blocks: Vec<&Block> = state.blocks_of(&attempt.attempt_id).collect();
        let mut rounds = blocks
            .chunk_by(|left, right| left.round == right.round)
            .peekable();
        while let Some(round) = rounds.next() {
            let (parts, results) = of_round(state, round, &mut left);
            let breaks_off = goes_on && rounds.peek().is_none() && results.is_empty();
            if breaks_off {
                for part in parts {
                    if let AssistantPart::Text { text } = part {
                        join(&mut said.open, &text);
                    }
                }
                continue;
            }
            let number = round.first().map_or(0, |block| block.round);
            let replay = replays.remove(&(attempt.attempt_id.clone(), number));
            said.push(parts, replay, results);
        }
    }
    said
}

impl Said {
    /// Adds a whole round. What was kept before it is the start of its text.
    fn push(&mut self, mut parts: Vec<AssistantPart>, replay: Option<Replay>, results: Vec<ToolResult>) {
        let mut replay = replay;
        if !self.open.is_empty() {
            let mut text = std::mem::take(&mut self.open);
            match parts.first_mut() {
                Some(AssistantPart::Text { text: first }) => {
                    join(&mut text, first);
                    *first = text;
                }
                Some(AssistantPart::ToolCall { .. }) | None => {
                    parts.insert(0, AssistantPart::Text { text });
                }
            }
            // The provider has sent the second half only.
            replay = None;
        }
        if !parts.is_empty() {
            self.messages.push(ModelMessage::Assistant { parts, replay });
        }
        if !results.is_empty() {
            self.messages.push(ModelMessage::ToolResults { results });
        }
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

fn of_round(state: &RunState, blocks: &[&Block], left: &mut u64) -> (Vec<AssistantPart>, Vec<ToolResult>) {
    let mut parts = Vec::new();
    let mut results = Vec::new();
    for block in blocks {
        match &block.body {
            BlockBody::Text(content) => {
                let length = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(content.text.len());
                *left = left.saturating_sub(content.text.len() as u64);
                let text = &content.text[..content.text.floor_char_boundary(length)];
                if !text.trim().is_empty() {
                    parts.push(AssistantPart::Text {
                        text: text.to_owned(),
                    });
                }
            }
            BlockBody::Refusal(content) if !content.text.trim().is_empty() => {
                parts.push(AssistantPart::Text {
                    text: content.text.clone(),
                });
            }
            BlockBody::ToolRef(reference) => {
                let node = reference.ref_node_id.as_ref().and_then(|id| state.node(id));
                if let Some(node) = node.filter(|node| node.executor == Executor::Runloom && counts(node)) {
                    parts.push(call_part(reference, node));
                    results.push(call_result(reference, node));
                }
            }
            BlockBody::Refusal(_)
            | BlockBody::Reasoning { .. }
            | BlockBody::ParallelGroup { .. }
            | BlockBody::Unsupported { .. } => {}
        }
    }
    (parts, results)
}

/// Arguments that are an object; what was cut is not.
fn whole_arguments(node: &Node) -> Option<&str> {
    let arguments = &node.outputs.get(&Channel::Arguments)?.text;
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments)
        .is_ok()
        .then_some(arguments)
}

/// Whether a call is told of: one that was not written to its end, or whose stream broke before it could be run, never
/// was.
fn counts(node: &Node) -> bool {
    let Some(end) = node.state.end().filter(|end| end.status == NodeStatus::NotRun) else {
        return true;
    };
    match &end.error {
        Some(error) => error.code != STREAM_ENDED,
        None => whole_arguments(node).is_some(),
    }
}

fn call_part(reference: &ToolRef, node: &Node) -> AssistantPart {
    AssistantPart::ToolCall {
        id: reference.tool_call_id.clone(),
        name: reference.tool_name.clone(),
        // Arguments that were cut are not an object that a provider takes back.
        arguments: whole_arguments(node).unwrap_or("{}").to_owned(),
    }
}

/// What the model is told of a call. One that did not end is never run again: it is told that it was interrupted.
fn call_result(reference: &ToolRef, node: &Node) -> ToolResult {
    let end = node.state.end();
    let status = node.state.status();
    let error = end.and_then(|end| end.error.as_ref());
    let content = match (status, error) {
        (NodeStatus::Succeeded, _) => node
            .outputs
            .get(&Channel::Result)
            .map_or(String::new(), |output| bounded(&output.text)),
        (NodeStatus::Interrupted, _) => {
            "The call was interrupted (interrupted): it had begun, and its result is lost. \
            It may have had an effect. It was not run again."
                .to_owned()
        }
        (NodeStatus::NotRun, None) => {
            "The call was interrupted before it began (not_run). It had no effect.".to_owned()
        }
        (NodeStatus::Cancelled, None) => CANCELLED.to_owned(),
        (_, Some(error)) => format!("Error ({status}): {}", error.message),
        (_, None) => format!("The call did not end: {status}."),
    };
    ToolResult {
        tool_call_id: reference.tool_call_id.clone(),
        tool_name: reference.tool_name.clone(),
        content,
        is_error: status != NodeStatus::Succeeded,
    }
}

#[cfg(test)]
mod tests;
