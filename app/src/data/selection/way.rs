//! The way to a node's row, or to a block: what has to be open, and which blocks have to be drawn, for it to be there.

use std::collections::HashSet;

use protocol::fold::RunState;
use protocol::id::{AttemptId, BlockId, NodeId};
use protocol::model::BlockBody;
use protocol::state::NodeKind;

use crate::data::expansion;

/// The nodes that a node lies within.
pub fn above(state: &RunState, node: &NodeId) -> HashSet<NodeId> {
    path(state, node).into_iter().skip(1).collect()
}

/// A node and those that it lies within, the innermost first.
fn path(state: &RunState, node: &NodeId) -> Vec<NodeId> {
    let mut path = Vec::new();
    let mut next = Some(node.clone());
    // A node is its own ancestor in no record, but a page does not hang on one that says so.
    while let Some(id) = next.filter(|id| !path.contains(id)) {
        next = state.node(&id).and_then(|node| node.parent_id.clone());
        path.push(id);
    }
    path
}

/// What leads to something in the content of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// The node and those that it lies within, the innermost first.
    pub path: Vec<NodeId>,
    /// The keys of what has to be open.
    pub open: Vec<String>,
    /// Whether all rows on it are known; others were left out with the blocks that they stand in.
    pub is_whole: bool,
    /// How many model nodes it leads through, the last one included.
    pub models: usize,
    /// The blocks that have to be drawn: their attempts and their indexes.
    blocks: Vec<(AttemptId, u32)>,
}

impl Way {
    /// To the row of a node of a run. It may be closed: it is what is looked for.
    pub fn to(state: &RunState, node: &NodeId) -> Self {
        Self::through(state, node, false)
    }

    /// To what stands within a node.
    pub fn within(state: &RunState, node: &NodeId) -> Self {
        Self::through(state, node, true)
    }

    /// To what stands within an attempt: its end, or a block of it.
    pub fn into_attempt(state: &RunState, attempt: &AttemptId) -> Option<Self> {
        let node = &state.attempt(attempt)?.node_id;
        let mut way = Self::within(state, node);
        way.unfold(state, node, attempt);
        Some(way)
    }

    /// To a block, opened where it can be.
    pub fn to_block(state: &RunState, block: &BlockId) -> Option<Self> {
        let block = state.block(block)?;
        let reference = match &block.body {
            BlockBody::ToolRef(reference) => reference.ref_node_id.as_ref(),
            _ => None,
        };
        if let Some(node) = reference.filter(|node| state.node(node).is_some()) {
            return Some(Self::within(state, node));
        }
        let mut way = Self::into_attempt(state, &block.attempt_id)?;
        way.blocks.push((block.attempt_id.clone(), block.block_index));
        way.open.push(expansion::key(
            &block.node_id,
            Some((&block.attempt_id, &block.block_id)),
        ));
        Some(way)
    }

    /// To the run alone.
    pub fn to_run(state: &RunState) -> Self {
        Self {
            open: vec![state.run().run_id.to_string()],
            is_whole: true,
            ..Self::default()
        }
    }

    fn through(state: &RunState, node: &NodeId, is_inside: bool) -> Self {
        let path = path(state, node);
        let mut way = Self::to_run(state);
        for (place, id) in path.iter().enumerate() {
            let block = state.block_of_node(id);
            let kind = state.node(id).map(|node| node.kind);
            let parent = path.get(place + 1).and_then(|parent| state.node(parent));
            way.is_whole &= block.is_some() || parent.is_none_or(|parent| parent.kind != NodeKind::Model);
            way.models += usize::from(kind == Some(NodeKind::Model));
            if place > 0 || is_inside {
                let own = block.map(|block| (&block.attempt_id, &block.block_id));
                let holder = block.map_or(id, |block| &block.node_id);
                if kind.is_some_and(|kind| kind != NodeKind::Root) {
                    way.open.push(expansion::key(holder, own));
                }
            }
            if let Some(block) = block {
                way.unfold(state, &block.node_id, &block.attempt_id);
                way.blocks.push((block.attempt_id.clone(), block.block_index));
            }
        }
        way.path = path;
        way
    }

    /// An older attempt is folded until it is opened.
    fn unfold(&mut self, state: &RunState, node: &NodeId, attempt: &AttemptId) {
        let last = state.attempts_of(node).next_back();
        if last.is_some_and(|last| last.attempt_id != *attempt) {
            self.open.push(attempt.to_string());
        }
    }

    /// The index of the block of an attempt that the way leads through.
    pub fn index_in(&self, attempt: &AttemptId) -> Option<u32> {
        let mut blocks = self.blocks.iter();
        blocks.find(|(of, _)| of == attempt).map(|(_, index)| *index)
    }
}
