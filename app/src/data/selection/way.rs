//! The way to a node's row: what has to be open, and which blocks have to be drawn, for it to be there.

use std::collections::HashSet;

use protocol::fold::RunState;
use protocol::id::{AttemptId, NodeId};
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

/// What leads to the row of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// The node and those that it lies within, the innermost first.
    pub path: Vec<NodeId>,
    /// The keys of what has to be open.
    pub open: Vec<String>,
    /// The blocks that have to be drawn: their attempts and their indexes.
    blocks: Vec<(AttemptId, u32)>,
}

impl Way {
    /// To a node of a run.
    pub fn to(state: &RunState, node: &NodeId) -> Self {
        let path = path(state, node);
        let mut way = Self {
            open: vec![state.run().run_id.to_string()],
            ..Self::default()
        };
        for (place, id) in path.iter().enumerate() {
            let block = state.block_of_node(id);
            // Its own row may be closed: it is what is looked for.
            if place > 0 {
                let own = block.map(|block| (&block.attempt_id, &block.block_id));
                let holder = block.map_or(id, |block| &block.node_id);
                if state.node(id).is_some_and(|node| node.kind != NodeKind::Root) {
                    way.open.push(expansion::key(holder, own));
                }
            }
            if let Some(block) = block {
                let is_last = state
                    .attempts_of(&block.node_id)
                    .next_back()
                    .is_none_or(|last| last.attempt_id == block.attempt_id);
                if !is_last {
                    way.open.push(block.attempt_id.to_string());
                }
                way.blocks.push((block.attempt_id.clone(), block.block_index));
            }
        }
        way.path = path;
        way
    }

    /// The index of the block of an attempt that the way leads through.
    pub fn index_in(&self, attempt: &AttemptId) -> Option<u32> {
        let mut blocks = self.blocks.iter();
        blocks.find(|(of, _)| of == attempt).map(|(_, index)| *index)
    }
}
