//! Runs, op by op. Times go on by a second with each op.

use protocol::fold::{Applied, RunState};
use protocol::id::{AttemptId, BlockId, NodeId};
use protocol::model::{BlockBody, Content, ErrorInfo, Kept, ToolRef};
use protocol::op::{self, Entry, Op};
use protocol::state::{
    AttemptReason, AttemptStatus, BlockStatus, Channel, Executor, MessageRole, NodeKind, NodeStatus,
    RunStatus,
};
use protocol::{Extra, digest::sha256};

pub(crate) fn node(id: &str) -> NodeId {
    id.parse().unwrap()
}

fn block_id(id: &str) -> BlockId {
    id.parse().unwrap()
}

fn attempt_id(id: &str) -> AttemptId {
    id.parse().unwrap()
}

/// A run that is being told. Each step is an op that the fold takes in.
pub(crate) struct Script(RunState);

impl Script {
    /// A running run with one model node and its first attempt.
    pub(crate) fn started() -> Self {
        Self::with_prompt("Why?")
    }

    pub(super) fn with_prompt(prompt: &str) -> Self {
        let mut script = Self(RunState::new("run_1".parse().unwrap(), "ses_1".parse().unwrap()));
        script.push(Op::MessageAdded(op::MessageAdded {
            message_id: "msg_1".parse().unwrap(),
            role: MessageRole::User,
            text: prompt.to_owned(),
            extra: Extra::new(),
        }));
        script.run_status(RunStatus::Running);
        script.start_node("root_1", None, NodeKind::Root, "run");
        script.node("call_1", "root_1", NodeKind::Model, "answer");
        script.attempt("att_1", 0, AttemptReason::Initial, "demo");
        script
    }

    pub(crate) fn state(&self) -> RunState {
        self.0.clone()
    }

    /// Appends an op. What the fold refuses (a repeated call) is left out, as it is everywhere.
    pub(super) fn push(&mut self, op: Op) {
        let seq = self.0.seq() + 1;
        let run_id = self.0.run().run_id.clone();
        let entry = Entry {
            run_id,
            generation: 1,
            seq,
            at: i64::try_from(seq).unwrap() * 1_000,
            op,
        };
        let applied = self.0.apply(&entry).unwrap();
        assert_ne!(applied, Applied::Duplicate);
    }

    pub(super) fn run_status(&mut self, status: RunStatus) {
        self.push(Op::RunUpdated(op::RunUpdated {
            status,
            error: None,
            usage: None,
            extra: Extra::new(),
        }));
    }

    fn start_node(&mut self, id: &str, parent: Option<&str>, kind: NodeKind, name: &str) {
        let parent_id = parent.map(node);
        let ordinal = parent_id
            .as_ref()
            .map_or(0, |parent| self.0.children(parent).count());
        self.push(Op::NodeStarted(op::NodeStarted {
            node_id: node(id),
            parent_id,
            after: Vec::new(),
            kind,
            name: name.to_owned(),
            title: String::new(),
            ordinal: u32::try_from(ordinal).unwrap(),
            executor: Executor::Runloom,
            occurrence_id: None,
            extra: Extra::new(),
        }));
    }

    pub(crate) fn node(&mut self, id: &str, parent: &str, kind: NodeKind, name: &str) {
        self.start_node(id, Some(parent), kind, name);
    }

    pub(crate) fn node_status(&mut self, id: &str, status: NodeStatus) {
        if status.is_final() {
            self.finish_node(id, status, None);
        } else {
            self.push(Op::NodeUpdated(op::NodeUpdated {
                node_id: node(id),
                status: Some(status),
                title: None,
                progress: None,
                started_at: None,
                extra: Extra::new(),
            }));
        }
    }

    fn finish_node(&mut self, id: &str, status: NodeStatus, error: Option<ErrorInfo>) {
        let finished_at = i64::try_from(self.0.seq() + 1).unwrap() * 1_000;
        self.push(Op::NodeFinished(op::NodeFinished {
            node_id: node(id),
            status,
            finished_at,
            outputs: std::collections::BTreeMap::new(),
            error,
            exit_code: None,
            extra: Extra::new(),
        }));
    }

    pub(crate) fn fail(&mut self, id: &str, message: &str) {
        self.finish_node(
            id,
            NodeStatus::Failed,
            Some(ErrorInfo::new("no_such_file", message)),
        );
    }

    pub(crate) fn output(&mut self, id: &str, channel: Channel, text: &str) {
        let known = self.0.node(&node(id)).and_then(|node| node.outputs.get(&channel));
        let offset = known.map_or(0, |output| output.text.len() as u64);
        self.push(Op::NodeOutput(op::NodeOutput {
            node_id: node(id),
            channel,
            offset,
            text: text.to_owned(),
            extra: Extra::new(),
        }));
    }

    pub(crate) fn attempt(&mut self, id: &str, index: u32, reason: AttemptReason, provider: &str) {
        self.attempt_of("call_1", id, index, reason, provider);
    }

    /// An attempt that goes on from another one, of whose text so many tokens are kept.
    pub(super) fn attempt_after(
        &mut self,
        id: &str,
        index: u32,
        reason: AttemptReason,
        before: &str,
        tokens: u64,
    ) {
        self.push(Op::AttemptStarted(op::AttemptStarted {
            node_id: node("call_1"),
            attempt_id: attempt_id(id),
            attempt_index: index,
            reason,
            provider: "demo".to_owned(),
            model: "demo-large".to_owned(),
            continues_attempt_id: Some(attempt_id(before)),
            kept: Some(Kept {
                bytes: tokens * 4,
                tokens,
            }),
            extra: Extra::new(),
        }));
    }

    pub(super) fn attempt_of(
        &mut self,
        of: &str,
        id: &str,
        index: u32,
        reason: AttemptReason,
        provider: &str,
    ) {
        self.push(Op::AttemptStarted(op::AttemptStarted {
            node_id: node(of),
            attempt_id: attempt_id(id),
            attempt_index: index,
            reason,
            provider: provider.to_owned(),
            model: "demo-large".to_owned(),
            continues_attempt_id: None,
            kept: None,
            extra: Extra::new(),
        }));
    }

    pub(super) fn finish_attempt(&mut self, id: &str, status: AttemptStatus, error: Option<ErrorInfo>) {
        self.push(Op::AttemptFinished(op::AttemptFinished {
            node_id: node("call_1"),
            attempt_id: attempt_id(id),
            status,
            stop_reason: None,
            usage: None,
            error,
            extra: Extra::new(),
        }));
    }

    pub(super) fn block(&mut self, id: &str, index: u32, body: BlockBody) {
        self.block_of("call_1", "att_1", id, index, body);
    }

    fn block_of(&mut self, of: &str, attempt: &str, id: &str, index: u32, body: BlockBody) {
        self.push(Op::BlockStarted(op::BlockStarted {
            node_id: node(of),
            attempt_id: attempt_id(attempt),
            block_id: block_id(id),
            block_index: index,
            round: 0,
            body,
            extra: Extra::new(),
        }));
    }

    pub(super) fn delta(&mut self, id: &str, delta: &str) {
        let known = self.0.block(&block_id(id)).and_then(|block| block.body.content());
        let offset = known.map_or(0, |content| content.text.len() as u64);
        self.push(Op::BlockDelta(op::BlockDelta {
            block_id: block_id(id),
            offset,
            delta: delta.to_owned(),
            extra: Extra::new(),
        }));
    }

    pub(super) fn text(&mut self, id: &str, index: u32, text: &str) {
        self.text_of("att_1", id, index, text);
    }

    pub(super) fn text_of(&mut self, attempt: &str, id: &str, index: u32, text: &str) {
        self.text_of_node("call_1", attempt, id, index, text);
    }

    pub(super) fn text_of_node(&mut self, of: &str, attempt: &str, id: &str, index: u32, text: &str) {
        self.block_of(of, attempt, id, index, BlockBody::Text(Content::default()));
        self.delta(id, text);
    }

    pub(super) fn finish_block(&mut self, id: &str, status: BlockStatus, text: &str) {
        self.push(Op::BlockFinished(op::BlockFinished {
            block_id: block_id(id),
            status,
            bytes: text.len() as u64,
            sha256: sha256(text.as_bytes()),
            extra: Extra::new(),
        }));
    }

    pub(super) fn tool_ref(&mut self, block: &str, id: &str, tool: &str, index: u32) {
        let reference = ToolRef {
            tool_call_id: format!("call_{block}"),
            occurrence_id: format!("occ_{block}").parse().unwrap(),
            ref_node_id: Some(node(id)),
            tool_name: tool.to_owned(),
            group_id: None,
        };
        self.block(block, index, BlockBody::ToolRef(reference));
    }

    /// A call with its row and its node. The block's id is `blk_` and the node's.
    pub(crate) fn tool(&mut self, id: &str, tool: &str, index: u32) {
        self.tool_of_kind(id, tool, index, NodeKind::Function);
    }

    pub(super) fn tool_of_kind(&mut self, id: &str, tool: &str, index: u32, kind: NodeKind) {
        self.tool_ref(&format!("blk_{id}"), id, tool, index);
        self.node(id, "call_1", kind, tool);
    }

    pub(super) fn group(&mut self, id: &str, index: u32, members: &[&str]) {
        for member in members {
            self.push(Op::BlockUpdated(op::BlockUpdated {
                block_id: block_id(member),
                group_id: Some(id.parse().unwrap()),
                ref_node_id: None,
                tool_name: None,
                members: None,
                retention: None,
                extra: Extra::new(),
            }));
        }
        let members = members.iter().map(|member| block_id(member)).collect();
        self.block(
            "blk_group",
            index,
            BlockBody::ParallelGroup {
                group_id: id.parse().unwrap(),
                members,
            },
        );
    }

    pub(super) fn notice(&mut self, detail: &str) {
        self.push(Op::Notice(op::Notice {
            node_id: None,
            code: "provider_mismatch".to_owned(),
            detail: detail.into(),
            extra: Extra::new(),
        }));
    }
}
