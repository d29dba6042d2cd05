//! Applying one entry.

use super::content::{Growth, growth};
use super::{Applied, Change, FoldError, MAX_HELD, Refusal, RunState};
use crate::id::NodeId;
use crate::model::{
    Approval, ApprovalResolution, Attempt, AttemptEnd, AttemptState, Block, BlockBody, BlockEnd, BlockState,
    ContentRef, Message, Node, NodeEnd, NodeState, Notice, Output, Timestamp,
};
use crate::op::{self, Entry, Op};
use crate::snapshot::HeldOp;
use crate::state::{AttemptReason, AttemptStatus, BlockStatus, MessageState, NodeKind, NodeStatus};

/// Why an op of the next `seq` does not change the state.
enum Stop {
    Refused(Refusal),
    Error(FoldError),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

type Outcome = Result<Vec<Change>, Stop>;

fn closed(thing: impl ToString) -> Stop {
    Refusal::Closed(thing.to_string()).into()
}

fn unknown(thing: impl ToString) -> Stop {
    Refusal::Unknown(thing.to_string()).into()
}

/// Appends to a text what an op adds to it.
fn grow(thing: &dyn std::fmt::Display, known: &mut String, offset: u64, text: &str) -> Result<bool, Stop> {
    match growth(known, offset, text) {
        Growth::Append(rest) => {
            known.push_str(rest);
            Ok(!rest.is_empty())
        }
        Growth::Gap => Err(Stop::Error(FoldError::TextGap {
            thing: thing.to_string(),
            known: known.len() as u64,
            offset,
        })),
        Growth::Differs => Err(Refusal::OverlapDiffers(thing.to_string()).into()),
    }
}

impl RunState {
    /// Takes in one entry of the journal.
    ///
    /// # Errors
    /// On an error nothing has changed, and the caller has to fetch what is missing (or to stop).
    pub fn apply(&mut self, entry: &Entry) -> Result<Applied, FoldError> {
        if entry.run_id != self.run.run_id {
            return Err(FoldError::OtherRun {
                expected: self.run.run_id.clone(),
                found: entry.run_id.clone(),
            });
        }
        let known = self.run.last_seq;
        if entry.seq <= known {
            return Ok(Applied::Duplicate);
        }
        if entry.seq - known > 1 {
            return Err(FoldError::Gap {
                known,
                found: entry.seq,
            });
        }
        if entry.generation < self.run.generation {
            return Err(FoldError::OldGeneration {
                known: self.run.generation,
                found: entry.generation,
            });
        }
        let applied = match self.apply_op(entry) {
            Ok(changes) => Applied::Changed(changes),
            Err(Stop::Refused(refusal)) => Applied::Refused(refusal),
            Err(Stop::Error(error)) => return Err(error),
        };
        self.run.last_seq = entry.seq;
        self.run.generation = entry.generation;
        Ok(applied)
    }

    fn apply_op(&mut self, entry: &Entry) -> Outcome {
        let at = entry.at;
        match &entry.op {
            Op::RunUpdated(op) => Ok(self.run_updated(op)),
            Op::MessageAdded(op) => Ok(self.message_added(op, at)),
            Op::MessageUpdated(op) => self.message_updated(op),
            Op::NodeStarted(op) => self.node_started(op, at),
            Op::NodeUpdated(_) | Op::NodeOutput(_) | Op::NodeFinished(_) => self.node_op(&entry.op, at),
            Op::ApprovalRequested(op) => Ok(self.approval_requested(op, at)),
            Op::ApprovalResolved(op) => self.approval_resolved(op, at),
            Op::AttemptStarted(op) => self.attempt_started(op, at),
            Op::AttemptFinished(op) => self.attempt_finished(op, at),
            Op::BlockStarted(op) => self.block_started(op, at),
            Op::BlockDelta(op) => self.block_delta(op),
            Op::BlockUpdated(op) => self.block_updated(op),
            Op::BlockFinished(op) => self.block_finished(op, at),
            Op::Notice(op) => {
                self.notices.push(Notice {
                    seq: entry.seq,
                    at,
                    node_id: op.node_id.clone(),
                    code: op.code.clone(),
                    detail: op.detail.clone(),
                    extra: op.extra.clone(),
                });
                Ok(vec![Change::Notice])
            }
            Op::Withheld(_) => Ok(Vec::new()),
            Op::Unknown(op) => {
                self.unknown.push(serde_json::Value::Object(op.clone()));
                Ok(vec![Change::Unknown])
            }
        }
    }

    fn run_updated(&mut self, op: &op::RunUpdated) -> Vec<Change> {
        self.run.status = op.status;
        // An error belongs to an end; a run that goes on has none.
        if op.error.is_some() || !op.status.is_final() {
            self.run.error = op.error.clone();
        }
        if op.usage.is_some() {
            self.run.usage = op.usage.clone();
        }
        self.run.extra.extend(op.extra.clone());
        vec![Change::Run]
    }

    fn message_added(&mut self, op: &op::MessageAdded, at: Timestamp) -> Vec<Change> {
        if self.index.messages.contains_key(&op.message_id) {
            return Vec::new();
        }
        self.insert_message(Message {
            message_id: op.message_id.clone(),
            role: op.role,
            text: op.text.clone(),
            state: MessageState::Queued,
            at,
            extra: op.extra.clone(),
        });
        vec![Change::MessageAdded(op.message_id.clone())]
    }

    fn message_updated(&mut self, op: &op::MessageUpdated) -> Outcome {
        let message = self
            .index
            .messages
            .get(&op.message_id)
            .and_then(|&place| self.messages.get_mut(place))
            .ok_or_else(|| unknown(&op.message_id))?;
        message.state = op.state;
        message.extra.extend(op.extra.clone());
        Ok(vec![Change::Message(op.message_id.clone())])
    }

    fn node_started(&mut self, op: &op::NodeStarted, at: Timestamp) -> Outcome {
        if self.index.nodes.contains_key(&op.node_id) {
            return Ok(Vec::new());
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
            extra: op.extra.clone(),
        });
        let mut changes = vec![Change::NodeAdded(op.node_id.clone())];
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
    fn node_op(&mut self, op: &Op, at: Timestamp) -> Outcome {
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
                let output = node.outputs.entry(op.channel).or_default();
                let thing = format_args!("{} {}", op.node_id, op.channel).to_string();
                let grown = grow(&thing, &mut output.text, op.offset, &op.text)?;
                output.bytes = output.text.len() as u64;
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

    fn approval_requested(&mut self, op: &op::ApprovalRequested, at: Timestamp) -> Vec<Change> {
        if self.index.approvals.contains_key(&op.approval_id) {
            return Vec::new();
        }
        self.insert_approval(Approval {
            approval_id: op.approval_id.clone(),
            node_id: op.node_id.clone(),
            what: op.what.clone(),
            requested_at: at,
            resolution: None,
            extra: op.extra.clone(),
        });
        vec![
            Change::Approval(op.approval_id.clone()),
            Change::Node(op.node_id.clone()),
        ]
    }

    fn approval_resolved(&mut self, op: &op::ApprovalResolved, at: Timestamp) -> Outcome {
        let approval = self
            .index
            .approvals
            .get(&op.approval_id)
            .and_then(|&place| self.approvals.get_mut(place))
            .ok_or_else(|| unknown(&op.approval_id))?;
        if approval.resolution.is_some() {
            return Err(closed(&op.approval_id));
        }
        approval.resolution = Some(ApprovalResolution {
            answer: op.answer.clone(),
            by: op.by.clone(),
            words: op.words.clone(),
            at,
        });
        approval.extra.extend(op.extra.clone());
        Ok(vec![
            Change::Approval(op.approval_id.clone()),
            Change::Node(op.node_id.clone()),
        ])
    }

    fn attempt_started(&mut self, op: &op::AttemptStarted, at: Timestamp) -> Outcome {
        if self.index.attempts.contains_key(&op.attempt_id) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        let node = self
            .index
            .nodes
            .get(&op.node_id)
            .and_then(|&place| self.nodes.get_mut(place))
            .ok_or_else(|| unknown(&op.node_id))?;
        if node.state.end().is_some() {
            // The only way back: a person asks for more of a model node.
            let reopens = matches!(op.reason, AttemptReason::Resume | AttemptReason::Regenerate);
            if node.kind != NodeKind::Model || !reopens {
                return Err(closed(&op.node_id));
            }
            node.state = NodeState::Running;
            changes.push(Change::Node(op.node_id.clone()));
        }
        self.insert_attempt(Attempt {
            attempt_id: op.attempt_id.clone(),
            node_id: op.node_id.clone(),
            attempt_index: op.attempt_index,
            reason: op.reason,
            state: AttemptState::Running,
            provider: op.provider.clone(),
            model: op.model.clone(),
            continues_attempt_id: op.continues_attempt_id.clone(),
            kept: op.kept,
            started_at: at,
            extra: op.extra.clone(),
        });
        changes.push(Change::AttemptAdded(op.node_id.clone(), op.attempt_id.clone()));
        Ok(changes)
    }

    fn attempt_finished(&mut self, op: &op::AttemptFinished, at: Timestamp) -> Outcome {
        let attempt = self
            .index
            .attempts
            .get(&op.attempt_id)
            .and_then(|&place| self.attempts.get_mut(place))
            .ok_or_else(|| unknown(&op.attempt_id))?;
        if !op.status.is_final() {
            return Err(transition(&op.attempt_id, op.status));
        }
        match &mut attempt.state {
            AttemptState::Running => {
                attempt.state = AttemptState::Ended(AttemptEnd {
                    status: op.status,
                    finished_at: at,
                    stop_reason: op.stop_reason.clone(),
                    usage: op.usage.clone(),
                    error: op.error.clone(),
                });
            }
            AttemptState::Ended(end) if op.status == AttemptStatus::Superseded && end.status != op.status => {
                end.status = op.status;
            }
            AttemptState::Ended(_) => return Err(closed(&op.attempt_id)),
        }
        attempt.extra.extend(op.extra.clone());
        Ok(vec![Change::Attempt(op.attempt_id.clone())])
    }

    fn block_started(&mut self, op: &op::BlockStarted, at: Timestamp) -> Outcome {
        if self.index.blocks.contains_key(&op.block_id) {
            return Ok(Vec::new());
        }
        match self.attempt(&op.attempt_id) {
            None => return Err(unknown(&op.attempt_id)),
            Some(attempt) if attempt.state.end().is_some() => return Err(closed(&op.attempt_id)),
            Some(_) => {}
        }
        if let BlockBody::ToolRef(reference) = &op.body
            && self.index.occurrences.contains_key(&reference.occurrence_id)
        {
            return Err(Refusal::RepeatedOccurrence(reference.occurrence_id.clone()).into());
        }
        if self
            .blocks_of(&op.attempt_id)
            .any(|block| block.block_index == op.block_index)
        {
            return Err(Refusal::TakenPlace(op.block_id.clone()).into());
        }
        let state = if op.body.is_pointer() {
            BlockState::Ended(BlockEnd {
                status: BlockStatus::Complete,
                finished_at: at,
                bytes: 0,
                sha256: None,
            })
        } else {
            BlockState::Streaming
        };
        self.insert_block(Block {
            block_id: op.block_id.clone(),
            attempt_id: op.attempt_id.clone(),
            node_id: op.node_id.clone(),
            block_index: op.block_index,
            round: op.round,
            body: op.body.clone(),
            state,
            started_at: at,
            extra: op.extra.clone(),
        });
        Ok(vec![Change::BlockAdded(
            op.attempt_id.clone(),
            op.block_id.clone(),
        )])
    }

    fn block_mut(&mut self, id: &crate::id::BlockId) -> Result<&mut Block, Stop> {
        self.index
            .blocks
            .get(id)
            .and_then(|&place| self.blocks.get_mut(place))
            .ok_or_else(|| unknown(id))
    }

    fn block_delta(&mut self, op: &op::BlockDelta) -> Outcome {
        let block = self.block_mut(&op.block_id)?;
        if block.state != BlockState::Streaming {
            return Err(closed(&op.block_id));
        }
        let Some(content) = block.body.content_mut() else {
            return Err(closed(&op.block_id));
        };
        let grown = grow(&op.block_id, &mut content.text, op.offset, &op.delta)?;
        Ok(if grown {
            vec![Change::BlockContent(op.block_id.clone())]
        } else {
            Vec::new()
        })
    }

    fn block_updated(&mut self, op: &op::BlockUpdated) -> Outcome {
        let block = self.block_mut(&op.block_id)?;
        match &mut block.body {
            BlockBody::ToolRef(reference) => {
                reference.group_id = op.group_id.clone().or(reference.group_id.take());
                reference.ref_node_id = op.ref_node_id.clone().or(reference.ref_node_id.take());
                if let Some(name) = &op.tool_name {
                    reference.tool_name.clone_from(name);
                }
            }
            BlockBody::ParallelGroup { group_id, members } => {
                if let Some(group) = &op.group_id {
                    *group_id = group.clone();
                }
                if let Some(blocks) = &op.members {
                    members.clone_from(blocks);
                }
            }
            BlockBody::Reasoning { retention, .. } if block.state == BlockState::Streaming => {
                *retention = op.retention.unwrap_or(*retention);
            }
            BlockBody::Text(_)
            | BlockBody::Reasoning { .. }
            | BlockBody::Refusal(_)
            | BlockBody::Unsupported { .. } => {
                return Err(closed(&op.block_id));
            }
        }
        block.extra.extend(op.extra.clone());
        Ok(vec![Change::Block(op.block_id.clone())])
    }

    fn block_finished(&mut self, op: &op::BlockFinished, at: Timestamp) -> Outcome {
        let block = self.block_mut(&op.block_id)?;
        if block.state != BlockState::Streaming {
            return Err(closed(&op.block_id));
        }
        if !op.status.is_final() {
            return Err(transition(&op.block_id, op.status));
        }
        block.state = BlockState::Ended(BlockEnd {
            status: op.status,
            finished_at: at,
            bytes: op.bytes,
            sha256: Some(op.sha256.clone()),
        });
        block.extra.extend(op.extra.clone());
        Ok(vec![Change::Block(op.block_id.clone())])
    }
}

fn transition(thing: &dyn std::fmt::Display, status: impl std::fmt::Display) -> Stop {
    Refusal::Transition {
        thing: thing.to_string(),
        status: status.to_string(),
    }
    .into()
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
        Some(NodeStatus::Pending) => node.state = NodeState::Pending,
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
    node.extra.extend(op.extra.clone());
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
        if output.text.len() as u64 != summary.bytes {
            // What came is not the whole: a preview, which says where the whole is.
            output.content_ref = Some(ContentRef {
                bytes: summary.bytes,
                sha256: summary.sha256.clone(),
            });
        }
        output.bytes = summary.bytes;
    }
    node.state = NodeState::Ended(NodeEnd {
        status: op.status,
        finished_at: op.finished_at,
        error: op.error.clone(),
        exit_code: op.exit_code,
    });
    node.extra.extend(op.extra.clone());
    Ok(vec![Change::Node(node.node_id.clone())])
}
