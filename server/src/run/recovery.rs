//! What is written for a run whose execution ended from outside: its owner is gone, or a person stopped it.
//!
//! One pure function closes everything that is open, by the table of `protocol.md` §2. Nothing that was shown is lost:
//! open blocks are cut with their text kept.

use std::collections::{BTreeMap, HashSet};

use protocol::Extra;
use protocol::digest::sha256;
use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::model::{BlockState, ErrorInfo, Node};
use protocol::op::{
    AttemptFinished, BlockFinished, MessageUpdated, NodeFinished, Op, OutputSummary, RunUpdated,
};
use protocol::state::{AttemptStatus, BlockStatus, Channel, MessageState, NodeKind, NodeStatus, RunStatus};

use super::ops::default_media_type;

/// Why the execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The owner is gone, or it stops.
    Interrupted(ErrorInfo),
    /// A person stopped it.
    Cancelled,
    /// It cannot go on.
    Failed(ErrorInfo),
}

/// Why a run ends whose owner is gone.
pub fn owner_gone() -> ErrorInfo {
    ErrorInfo::new(
        "owner_gone",
        "The server that executed this run is gone. What it showed is kept.",
    )
}

impl Ending {
    fn attempt(&self) -> AttemptStatus {
        match self {
            Self::Interrupted(_) => AttemptStatus::Interrupted,
            Self::Cancelled => AttemptStatus::Cancelled,
            Self::Failed(_) => AttemptStatus::Failed,
        }
    }

    fn node(&self, node: &Node) -> NodeStatus {
        let is_call = matches!(node.kind, NodeKind::Function | NodeKind::Code);
        match self {
            // A call that was announced and never began did not run, whatever ended the run.
            _ if is_call && node.started_at.is_none() => NodeStatus::NotRun,
            Self::Interrupted(_) => NodeStatus::Interrupted,
            Self::Cancelled => NodeStatus::Cancelled,
            Self::Failed(_) if is_call => NodeStatus::Cancelled,
            Self::Failed(_) => NodeStatus::Failed,
        }
    }

    fn run(&self) -> RunStatus {
        match self {
            Self::Interrupted(_) => RunStatus::Interrupted,
            Self::Cancelled => RunStatus::Cancelled,
            Self::Failed(_) => RunStatus::Failed,
        }
    }

    fn error(&self) -> Option<ErrorInfo> {
        match self {
            Self::Interrupted(error) | Self::Failed(error) => Some(error.clone()),
            Self::Cancelled => None,
        }
    }
}

/// The ops that close everything that is open, children before their parents.
pub fn close(state: &RunState, ending: &Ending, at: i64) -> Vec<Op> {
    let mut ops = close_nodes(state, ending, at, |_| true);
    for message in state.messages() {
        if message.state == MessageState::Queued {
            ops.push(Op::MessageUpdated(MessageUpdated {
                message_id: message.message_id.clone(),
                state: MessageState::Returned,
                extra: Extra::new(),
            }));
        }
    }
    if !state.run().status.is_final() {
        ops.push(Op::RunUpdated(RunUpdated {
            status: ending.run(),
            error: ending.error(),
            usage: None,
            extra: Extra::new(),
        }));
    }
    ops
}

/// The ops that close what is open beside nodes that go on. Of a model among these the attempt ends: another one follows
/// when its calls are over.
pub fn close_beside(
    state: &RunState,
    goes_on: impl Fn(&NodeId) -> bool,
    ending: &Ending,
    at: i64,
) -> Vec<Op> {
    let mut ops = close_attempts(state, ending, &goes_on);
    ops.extend(close_nodes(state, ending, at, |node_id| !goes_on(node_id)));
    ops
}

/// The ops that close what is open of one node and of all below it.
pub fn close_within(state: &RunState, node_id: &NodeId, ending: &Ending, at: i64) -> Vec<Op> {
    let mut within = HashSet::from([node_id]);
    // A parent is always announced before its children.
    for node in state.nodes() {
        let parent = node.parent_id.as_ref();
        if parent.is_some_and(|parent| within.contains(parent)) {
            within.insert(&node.node_id);
        }
    }
    close_nodes(state, ending, at, |node_id| within.contains(node_id))
}

fn close_nodes(state: &RunState, ending: &Ending, at: i64, is_meant: impl Fn(&NodeId) -> bool) -> Vec<Op> {
    let mut ops = Vec::new();
    for block in state.blocks() {
        if block.state == BlockState::Streaming && is_meant(&block.node_id) {
            let text = block.body.content().map_or("", |content| &content.text);
            ops.push(Op::BlockFinished(BlockFinished {
                block_id: block.block_id.clone(),
                status: BlockStatus::Cut,
                bytes: text.len() as u64,
                sha256: sha256(text.as_bytes()),
                extra: Extra::new(),
            }));
        }
    }
    ops.extend(close_attempts(state, ending, &is_meant));
    // A parent is always announced before its children.
    for node in state.nodes().iter().rev() {
        if node.state.end().is_none() && is_meant(&node.node_id) {
            ops.push(Op::NodeFinished(finish(node, ending, at)));
        }
    }
    ops
}

fn close_attempts(state: &RunState, ending: &Ending, is_meant: &impl Fn(&NodeId) -> bool) -> Vec<Op> {
    let open = state
        .attempts()
        .iter()
        .filter(|attempt| attempt.state.end().is_none() && is_meant(&attempt.node_id));
    open.map(|attempt| {
        Op::AttemptFinished(AttemptFinished {
            node_id: attempt.node_id.clone(),
            attempt_id: attempt.attempt_id.clone(),
            status: ending.attempt(),
            stop_reason: None,
            usage: None,
            error: ending.error(),
            extra: Extra::new(),
        })
    })
    .collect()
}

fn finish(node: &Node, ending: &Ending, at: i64) -> NodeFinished {
    let outputs: BTreeMap<Channel, OutputSummary> = node
        .outputs
        .iter()
        .map(|(channel, output)| {
            let summary = OutputSummary {
                bytes: output.text.len() as u64,
                sha256: sha256(output.text.as_bytes()),
                media_type: default_media_type(*channel).to_owned(),
            };
            (*channel, summary)
        })
        .collect();
    let status = ending.node(node);
    NodeFinished {
        node_id: node.node_id.clone(),
        status,
        finished_at: at,
        outputs,
        error: if status == NodeStatus::NotRun {
            None
        } else {
            ending.error()
        },
        exit_code: None,
        extra: Extra::new(),
    }
}
