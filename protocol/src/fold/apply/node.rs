//! Ops about nodes.

use super::{Outcome, Stop, closed, grow, transition};
use crate::fold::extra::{NODE, keep, kept};
use crate::fold::{Change, FoldError, MAX_HELD, Refusal, RunState};
use crate::id::NodeId;
use crate::model::{ContentRef, Node, NodeEnd, NodeState, Output, Timestamp};
use crate::op::{self, Op};
use crate::snapshot::HeldOp;
use crate::state::NodeStatus;

impl RunState {
    pub(super) fn node_started(&mut self, op: &op::NodeStarted, at: Timestamp) -> Outcome {
        if self.index.nodes.contains_key(&op.node_id) {
            return Ok(Vec::new());
        }
        if let Some(occurrence) = &op.occurrence_id
            && self.index.called.contains_key(occurrence)
        {
            return Err(Refusal::RepeatedOccurrence(occurrence.clone()).into());
        }
        self.insert_node(Node {
            node_id: op.node_id.clone(),
            parent_id: op.parent_id.clone(),
            after: op.after.clone(),
            kind: op.kind,
            name: op.name.clone(),
            title: op.title.clone(),
            ordinal: op.ordinal,
            executor: op.executor,
            occurrence_id: op.occurrence_id.clone(),
            state: NodeState::Pending,
            announced_at: at,
            started_at: None,
            progress: None,
            outputs: std::collections::BTreeMap::new(),
            extra: kept(NODE, &op.extra),
        });
        let mut changes = vec![Change::NodeAdded(op.node_id.clone())];
        // The row that stood for the node until now.
        if let Some(block) = self.block_of_node(&op.node_id) {
            changes.push(Change::Block(block.block_id.clone()));
        }
        let (waiting, others) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| node_of(&held.held) == Some(&op.node_id));
        self.held = others;
        for held in waiting {
            // What does not fit any more is dropped: it was refused when it waited too long.
            if let Ok(more) = self.node_op(&held.held, held.at) {
                changes.extend(more);
            }
        }
        Ok(changes)
    }

    /// An op about a node, which waits when the node is not there yet.
    pub(super) fn node_op(&mut self, op: &Op, at: Timestamp) -> Outcome {
        let Some(node) = node_of(op)
            .and_then(|id| self.index.nodes.get(id))
            .and_then(|&place| self.nodes.get_mut(place))
        else {
            if self.held.len() >= MAX_HELD {
                return Err(Refusal::TooManyHeld.into());
            }
            self.held.push(HeldOp { at, held: op.clone() });
            return Ok(Vec::new());
        };
        if node.state.end().is_some() {
            return Err(closed(&node.node_id));
        }
        match op {
            Op::NodeUpdated(op) => node_updated(node, op, at),
            Op::NodeOutput(op) => {
                // Only a text that does grow may leave a channel behind.
                let mut first = Output::default();
                let output = node.outputs.get_mut(&op.channel).unwrap_or(&mut first);
                let thing = format_args!("{} {}", op.node_id, op.channel);
                let grown = if output.is_open_preview() {
                    count(&thing, output, op)?
                } else {
                    let grown = grow(&thing, &mut output.text, op.offset, &op.text)?;
                    output.bytes = output.text.len() as u64;
                    grown
                };
                if grown {
                    node.outputs.entry(op.channel).or_insert(first);
                }
                Ok(if grown {
                    vec![Change::Output(op.node_id.clone(), op.channel)]
                } else {
                    Vec::new()
                })
            }
            Op::NodeFinished(op) => node_finished(node, op),
            _ => Ok(Vec::new()),
        }
    }
}

/// Counts what an op adds to a text of which only the beginning is here.
fn count(thing: &dyn std::fmt::Display, output: &mut Output, op: &op::NodeOutput) -> Result<bool, Stop> {
    if op.offset > output.bytes {
        return Err(Stop::Error(FoldError::TextGap {
            thing: thing.to_string(),
            known: output.bytes,
            offset: op.offset,
        }));
    }
    let end = op.offset.saturating_add(op.text.len() as u64);
    let grown = end > output.bytes;
    output.bytes = end.max(output.bytes);
    Ok(grown)
}

/// The node of an op that may wait for it.
fn node_of(op: &Op) -> Option<&NodeId> {
    match op {
        Op::NodeUpdated(op) => Some(&op.node_id),
        Op::NodeOutput(op) => Some(&op.node_id),
        Op::NodeFinished(op) => Some(&op.node_id),
        _ => None,
    }
}

fn node_updated(node: &mut Node, op: &op::NodeUpdated, at: Timestamp) -> Outcome {
    match op.status {
        None => {}
        Some(NodeStatus::Pending) if node.state != NodeState::Pending => {
            return Err(transition(&node.node_id, NodeStatus::Pending));
        }
        Some(NodeStatus::Pending) => {}
        Some(NodeStatus::AwaitingApproval) => node.state = NodeState::AwaitingApproval,
        Some(NodeStatus::Running) => {
            node.state = NodeState::Running;
            node.started_at = node.started_at.or(Some(at));
        }
        Some(status) => return Err(transition(&node.node_id, status)),
    }
    node.started_at = op.started_at.or(node.started_at);
    if let Some(title) = &op.title {
        node.title.clone_from(title);
    }
    node.progress = op.progress.clone().or(node.progress.take());
    keep(&mut node.extra, NODE, &op.extra);
    Ok(vec![Change::Node(node.node_id.clone())])
}

fn node_finished(node: &mut Node, op: &op::NodeFinished) -> Outcome {
    if !op.status.is_final() {
        return Err(transition(&node.node_id, op.status));
    }
    for (channel, summary) in &op.outputs {
        let output = node.outputs.entry(*channel).or_default();
        output.sha256 = Some(summary.sha256.clone());
        output.media_type = Some(summary.media_type.clone());
        // Where what came is not the whole, it is a preview, which says where the whole is.
        output.content_ref = (output.text.len() as u64 != summary.bytes).then(|| ContentRef {
            bytes: summary.bytes,
            sha256: summary.sha256.clone(),
        });
        output.bytes = summary.bytes;
    }
    node.state = NodeState::Ended(NodeEnd {
        status: op.status,
        finished_at: op.finished_at,
        error: op.error.clone(),
        exit_code: op.exit_code,
    });
    keep(&mut node.extra, NODE, &op.extra);
    Ok(vec![Change::Node(node.node_id.clone())])
}
