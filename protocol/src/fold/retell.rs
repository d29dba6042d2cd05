//! A state as ops again: how a record is told of which there is no journal.

use std::collections::{BTreeMap, HashMap};

use super::RunState;
use crate::digest::sha256;
use crate::id::NodeId;
use crate::model::{
    Approval, Attempt, AttemptState, Block, BlockBody, BlockState, Content, Message, Node, NodeState, Output,
    Timestamp,
};
use crate::op::{self, Op, OutputSummary};
use crate::state::{Channel, MessageState, NodeStatus, Retention, RunStatus};
use crate::{Extra, MAX_OP_TEXT};

impl RunState {
    /// Ops that lead from nothing to this state, each with its time. They are in the order of time, and nothing comes
    /// before what it stands on: a time that says otherwise is moved.
    pub fn retold(&self) -> Vec<(Timestamp, Op)> {
        let mut telling = Telling {
            state: self,
            ops: Vec::new(),
            ends: Vec::new(),
        };
        telling.tell();
        telling.ops
    }
}

struct Telling<'a> {
    state: &'a RunState,
    ops: Vec<(Timestamp, Op)>,
    /// Ends of nodes: at the same time they come after all that begins.
    ends: Vec<(Timestamp, Op)>,
}

impl Telling<'_> {
    fn tell(&mut self) {
        let state = self.state;
        let begin = self.begin();
        for message in state.messages() {
            self.message(message);
        }
        self.run(begin, RunStatus::Queued);
        if state.run.status != RunStatus::Queued {
            self.run(begin, RunStatus::Running);
        }
        let mut starts: HashMap<&NodeId, Timestamp> = HashMap::new();
        for node in state.nodes() {
            let parent = node.parent_id.as_ref().and_then(|parent| starts.get(parent));
            let start = node.announced_at.max(parent.copied().unwrap_or(begin));
            starts.insert(&node.node_id, start);
            self.node(node, start);
        }
        for approval in state
            .approvals()
            .iter()
            .filter(|approval| state.node(&approval.node_id).is_none())
        {
            self.approval(approval, approval.requested_at);
        }
        for held in &state.held {
            self.ops.push((held.at, held.held.clone()));
        }
        for notice in state.notices() {
            let op = Op::Notice(op::Notice {
                node_id: notice.node_id.clone(),
                code: notice.code.clone(),
                detail: notice.detail.clone(),
                extra: notice.extra.clone(),
            });
            self.ops.push((notice.at, op));
        }
        // Inner nodes end before those that hold them.
        self.ops.extend(std::mem::take(&mut self.ends).into_iter().rev());
        self.ops.sort_by_key(|(at, _)| *at);
        let end = self.ops.last().map_or(begin, |(at, _)| *at);
        for unknown in &state.unknown {
            if let serde_json::Value::Object(fields) = unknown {
                self.ops.push((end, Op::Unknown(fields.clone())));
            }
        }
        if !matches!(state.run.status, RunStatus::Queued | RunStatus::Running) {
            self.run(end, state.run.status);
        }
    }

    fn begin(&self) -> Timestamp {
        let messages = self.state.messages().iter().map(|message| message.at);
        let nodes = self.state.nodes().iter().map(|node| node.announced_at);
        messages.chain(nodes).min().unwrap_or_default()
    }

    fn run(&mut self, at: Timestamp, status: RunStatus) {
        let run = &self.state.run;
        let is_last = status == run.status;
        let op = op::RunUpdated {
            status,
            error: run.error.clone().filter(|_| is_last),
            usage: run.usage.clone().filter(|_| is_last),
            extra: if is_last { run.extra.clone() } else { Extra::new() },
        };
        self.ops.push((at, Op::RunUpdated(op)));
    }

    fn message(&mut self, message: &Message) {
        let added = op::MessageAdded {
            message_id: message.message_id.clone(),
            role: message.role,
            text: message.text.clone(),
            extra: message.extra.clone(),
        };
        self.ops.push((message.at, Op::MessageAdded(added)));
        if message.state != MessageState::Queued {
            let updated = op::MessageUpdated {
                message_id: message.message_id.clone(),
                state: message.state,
                extra: Extra::new(),
            };
            self.ops.push((message.at, Op::MessageUpdated(updated)));
        }
    }

    fn node(&mut self, node: &Node, start: Timestamp) {
        let state = self.state;
        let begun = op::NodeStarted {
            node_id: node.node_id.clone(),
            parent_id: node.parent_id.clone(),
            after: node.after.clone(),
            kind: node.kind,
            name: node.name.clone(),
            title: node.title.clone(),
            ordinal: node.ordinal,
            executor: node.executor,
            occurrence_id: node.occurrence_id.clone(),
            extra: node.extra.clone(),
        };
        self.ops.push((start, Op::NodeStarted(begun)));
        let mut last = start;
        for approval in state
            .approvals()
            .iter()
            .filter(|approval| approval.node_id == node.node_id)
        {
            last = last.max(self.approval(approval, start));
        }
        let status = match &node.state {
            NodeState::Ended(_) => node.started_at.map(|_| NodeStatus::Running),
            NodeState::Pending => None,
            open => Some(open.status()),
        };
        if status.is_some() || node.progress.is_some() || node.started_at.is_some() {
            let at = node.started_at.unwrap_or(start).max(start);
            last = last.max(at);
            let updated = op::NodeUpdated {
                node_id: node.node_id.clone(),
                status,
                title: None,
                progress: node.progress.clone(),
                started_at: node.started_at,
                extra: Extra::new(),
            };
            self.ops.push((at, Op::NodeUpdated(updated)));
        }
        for attempt in state.attempts_of(&node.node_id) {
            last = last.max(self.attempt(attempt, start));
        }
        let end = node.state.end();
        let finished = end.map_or(last, |end| end.finished_at.max(last));
        for (channel, output) in &node.outputs {
            let at = if *channel == Channel::Arguments {
                start
            } else {
                finished
            };
            self.output(node, *channel, output, at);
        }
        if let Some(end) = end {
            let outputs: BTreeMap<Channel, OutputSummary> = node
                .outputs
                .iter()
                .map(|(channel, output)| (*channel, summary(output)))
                .collect();
            let op = op::NodeFinished {
                node_id: node.node_id.clone(),
                status: end.status,
                finished_at: end.finished_at,
                outputs,
                error: end.error.clone(),
                exit_code: end.exit_code,
                extra: Extra::new(),
            };
            self.ends.push((finished, Op::NodeFinished(op)));
        }
    }

    fn output(&mut self, node: &Node, channel: Channel, output: &Output, at: Timestamp) {
        for (offset, text) in pieces(&output.text) {
            let op = op::NodeOutput {
                node_id: node.node_id.clone(),
                channel,
                offset,
                text: text.to_owned(),
                extra: Extra::new(),
            };
            self.ops.push((at, Op::NodeOutput(op)));
        }
    }

    fn approval(&mut self, approval: &Approval, start: Timestamp) -> Timestamp {
        let asked = approval.requested_at.max(start);
        let requested = op::ApprovalRequested {
            node_id: approval.node_id.clone(),
            approval_id: approval.approval_id.clone(),
            what: approval.what.clone(),
            extra: approval.extra.clone(),
        };
        self.ops.push((asked, Op::ApprovalRequested(requested)));
        let Some(resolution) = &approval.resolution else {
            return asked;
        };
        let at = resolution.at.max(asked);
        let resolved = op::ApprovalResolved {
            node_id: approval.node_id.clone(),
            approval_id: approval.approval_id.clone(),
            answer: resolution.answer.clone(),
            by: resolution.by.clone(),
            words: resolution.words.clone(),
            extra: Extra::new(),
        };
        self.ops.push((at, Op::ApprovalResolved(resolved)));
        at
    }

    /// Gives the time of its last op.
    fn attempt(&mut self, attempt: &Attempt, start: Timestamp) -> Timestamp {
        let state = self.state;
        let start = attempt.started_at.max(start);
        let begun = op::AttemptStarted {
            node_id: attempt.node_id.clone(),
            attempt_id: attempt.attempt_id.clone(),
            attempt_index: attempt.attempt_index,
            reason: attempt.reason,
            provider: attempt.provider.clone(),
            model: attempt.model.clone(),
            continues_attempt_id: attempt.continues_attempt_id.clone(),
            kept: attempt.kept,
            extra: attempt.extra.clone(),
        };
        self.ops.push((start, Op::AttemptStarted(begun)));
        let mut last = start;
        for block in state.blocks_of(&attempt.attempt_id) {
            last = last.max(self.block(block, start));
        }
        if let AttemptState::Ended(end) = &attempt.state {
            last = last.max(end.finished_at);
            let op = op::AttemptFinished {
                node_id: attempt.node_id.clone(),
                attempt_id: attempt.attempt_id.clone(),
                status: end.status,
                stop_reason: end.stop_reason.clone(),
                usage: end.usage.clone(),
                error: end.error.clone(),
                extra: Extra::new(),
            };
            self.ops.push((last, Op::AttemptFinished(op)));
        }
        last
    }

    fn block(&mut self, block: &Block, start: Timestamp) -> Timestamp {
        let start = block.started_at.max(start);
        let mut body = block.body.clone();
        if let Some(content) = body.content_mut() {
            *content = Content::default();
        }
        let is_pointer = body.is_pointer();
        let begun = op::BlockStarted {
            node_id: block.node_id.clone(),
            attempt_id: block.attempt_id.clone(),
            block_id: block.block_id.clone(),
            block_index: block.block_index,
            round: block.round,
            body,
            extra: block.extra.clone(),
        };
        self.ops.push((start, Op::BlockStarted(begun)));
        let BlockState::Ended(end) = &block.state else {
            self.content(block, start);
            return start;
        };
        if is_pointer {
            return start;
        }
        let at = end.finished_at.max(start);
        self.content(block, at);
        let text = block.body.content().map_or("", |content| &content.text);
        let op = op::BlockFinished {
            block_id: block.block_id.clone(),
            status: end.status,
            bytes: end.bytes,
            sha256: end.sha256.clone().unwrap_or_else(|| sha256(text.as_bytes())),
            extra: Extra::new(),
        };
        self.ops.push((at, Op::BlockFinished(op)));
        at
    }

    fn content(&mut self, block: &Block, at: Timestamp) {
        let is_kept = !matches!(
            block.body,
            BlockBody::Reasoning {
                retention: Retention::NotSaved,
                ..
            }
        );
        let Some(content) = block.body.content().filter(|_| is_kept) else {
            return;
        };
        for (offset, delta) in pieces(&content.text) {
            let op = op::BlockDelta {
                block_id: block.block_id.clone(),
                offset,
                delta: delta.to_owned(),
                extra: Extra::new(),
            };
            self.ops.push((at, Op::BlockDelta(op)));
        }
    }
}

fn summary(output: &Output) -> OutputSummary {
    OutputSummary {
        bytes: output.bytes.max(output.text.len() as u64),
        sha256: output
            .sha256
            .clone()
            .unwrap_or_else(|| sha256(output.text.as_bytes())),
        media_type: output
            .media_type
            .clone()
            .unwrap_or_else(|| "text/plain; charset=utf-8".to_owned()),
    }
}

/// A text in pieces that an op may carry, each with its offset.
fn pieces(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = text.get(offset..).filter(|rest| !rest.is_empty())?;
        let piece = &rest[..rest.floor_char_boundary(MAX_OP_TEXT)];
        let at = offset as u64;
        offset += piece.len();
        Some((at, piece))
    })
}
