//! What an owner that is gone left waiting for a person: calls that are asked for, and what leads to them. The next
//! owner goes on with it, in the place where it stands.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use protocol::fold::RunState;
use protocol::id::{ApprovalId, AttemptId, BlockId, NodeId};
use protocol::model::{Attempt, BlockBody, Node};
use protocol::state::{Channel, Executor, NodeKind, NodeStatus};

use super::dispatch::Call;
use super::ops::OpenNode;
use crate::provider::RoundCall;
use crate::tool::{ToolRegistry, parse_arguments};

/// What goes on.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// What is not over: calls that wait or lead to one that does, their models, and the root.
    open: HashSet<NodeId>,
    /// The calls that had begun.
    begun: HashSet<NodeId>,
    /// The open requests, by their calls.
    requests: HashMap<NodeId, ApprovalId>,
    models: Mutex<HashMap<NodeId, LeftModel>>,
}

/// A model node whose calls are not over.
#[derive(Debug)]
pub(super) struct LeftModel {
    /// Its last attempt, which the end of its owner ended.
    pub(super) attempt_id: AttemptId,
    pub(super) attempt_index: u32,
    pub(super) next_ordinal: u32,
    pub(super) rounds: u32,
    /// The calls of its last round that are not over, in their order.
    pub(super) calls: Vec<Call>,
}

impl Left {
    /// Reads it from the record.
    pub(super) fn of(state: &RunState, tools: &ToolRegistry) -> Self {
        let mut left = Self::default();
        let mut models = HashSet::new();
        for approval in state.approvals().iter().filter(|one| one.resolution.is_none()) {
            let Some(call) = state.node(&approval.node_id) else {
                continue;
            };
            if call.state.status() != NodeStatus::AwaitingApproval {
                continue;
            }
            let Some(way) = way(state, call, tools) else {
                continue;
            };
            for node in way {
                let id = node.node_id.clone();
                match node.kind {
                    NodeKind::Model => drop(models.insert(id.clone())),
                    NodeKind::Function if node.state.status() == NodeStatus::Running => {
                        left.begun.insert(id.clone());
                    }
                    NodeKind::Function | NodeKind::Root | NodeKind::Phase | NodeKind::Code => {}
                }
                left.open.insert(id);
            }
            left.requests
                .insert(approval.node_id.clone(), approval.approval_id.clone());
        }
        let mut known = HashMap::new();
        for model in models {
            let attempt = state.attempts_of(&model).next_back();
            let found = attempt.map(|attempt| left.model(state, &model, attempt));
            known.extend(found.map(|found| (model, found)));
        }
        left.models = Mutex::new(known);
        left
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether a node is not over.
    pub(super) fn holds(&self, node_id: &NodeId) -> bool {
        self.open.contains(node_id)
    }

    /// Whether a call had begun: it is not asked for again.
    pub(super) fn has_begun(&self, node_id: &NodeId) -> bool {
        self.begun.contains(node_id)
    }

    /// The request that a call waits with.
    pub(super) fn request_of(&self, node_id: &NodeId) -> Option<&ApprovalId> {
        self.requests.get(node_id)
    }

    /// What is left of a model node; once.
    pub(super) fn take(&self, node_id: &NodeId) -> Option<LeftModel> {
        self.models
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(node_id)
    }

    fn model(&mut self, state: &RunState, model: &NodeId, attempt: &Attempt) -> LeftModel {
        let blocks: Vec<_> = state.blocks_of(&attempt.attempt_id).collect();
        let last_round = blocks.iter().map(|block| block.round).max().unwrap_or_default();
        let mut calls = Vec::new();
        for block in blocks.iter().filter(|block| block.round == last_round) {
            let BlockBody::ToolRef(reference) = &block.body else {
                continue;
            };
            let Some(node) = reference.ref_node_id.as_ref().and_then(|id| state.node(id)) else {
                continue;
            };
            let waits_its_turn =
                node.state.status() == NodeStatus::Pending && node.executor == Executor::Runloom;
            if waits_its_turn {
                self.open.insert(node.node_id.clone());
            }
            if self.open.contains(&node.node_id) {
                calls.push(call(
                    node,
                    &block.block_id,
                    &reference.tool_call_id,
                    &reference.tool_name,
                ));
            }
        }
        let ordinals = state.children(model).map(|node| node.ordinal.saturating_add(1));
        LeftModel {
            attempt_id: attempt.attempt_id.clone(),
            attempt_index: attempt.attempt_index,
            next_ordinal: ordinals.max().unwrap_or_default(),
            rounds: last_round.saturating_add(1),
            calls,
        }
    }
}

/// A call as it stands in the record.
fn call(node: &Node, block_id: &BlockId, tool_call_id: &str, tool_name: &str) -> Call {
    let arguments = node
        .outputs
        .get(&Channel::Arguments)
        .map(|output| output.text.clone())
        .unwrap_or_default();
    Call {
        node: OpenNode::of(node),
        block_id: block_id.clone(),
        call: RoundCall {
            position: node.ordinal,
            id: tool_call_id.to_owned(),
            name: tool_name.to_owned(),
            parsed: parse_arguments(&arguments).map_err(|error| error.to_string()),
            arguments,
        },
    }
}

/// From a call that waits up to the root, when all of it can go on: calls that did nothing but ask models.
fn way<'a>(state: &'a RunState, call: &'a Node, tools: &ToolRegistry) -> Option<Vec<&'a Node>> {
    let mut way = vec![call];
    let mut node = call;
    // As many steps as there are nodes: a chain of parents that bites its own tail ends too.
    for _ in 0..state.nodes().len() {
        let parent = state.node(node.parent_id.as_ref()?)?;
        if parent.state.end().is_some() {
            return None;
        }
        let fits = match parent.kind {
            NodeKind::Root => true,
            NodeKind::Model => state.attempts_of(&parent.node_id).next_back().is_some(),
            NodeKind::Function => {
                parent.executor == Executor::Runloom
                    && parent.state.status() == NodeStatus::Running
                    && tools.get(&parent.name).is_some_and(|tool| tool.can_go_on())
            }
            NodeKind::Phase | NodeKind::Code => false,
        };
        if !fits {
            return None;
        }
        way.push(parent);
        if parent.kind == NodeKind::Root {
            return Some(way);
        }
        node = parent;
    }
    None
}
