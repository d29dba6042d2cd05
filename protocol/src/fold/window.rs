//! A state of which a part is left out: what it does not hold, and how that is added later.
//!
//! A window leaves out closed blocks with all that they called, and the rest of long texts. Everything that is still
//! open is in it, so the ops that follow are applied to it as to the whole. What was left out is added by windows of the
//! same run: what is left out in both stays left out.

use std::collections::HashSet;

use super::RunState;
use crate::id::{AttemptId, BlockId, NodeId};
use crate::model::{Block, BlockBody, BlockState, Content, Output};
use crate::snapshot::{LeftOut, Snapshot};
use crate::state::Channel;

/// Why a window cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// It is of another run.
    #[error("the window is of another run")]
    OtherRun,
    /// Something in it may have changed since: ask for it again.
    #[error("the window is older than the state")]
    Stale,
}

impl RunState {
    /// Blocks that are not here, by attempt; empty when all are.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Blocks of an attempt that are not here, in the order of their index.
    pub fn left_out_of(&self, id: &AttemptId) -> Vec<LeftOut> {
        let mut gaps: Vec<LeftOut> = self
            .left_out
            .iter()
            .filter(|gap| gap.attempt_id == *id)
            .cloned()
            .collect();
        gaps.sort_by_key(|gap| gap.from);
        gaps
    }

    /// Whether the digest can be computed from this state: no block is left out, and no text that still grows.
    pub fn is_whole(&self) -> bool {
        let outputs = self.nodes.iter().flat_map(|node| node.outputs.values());
        self.left_out.is_empty() && !outputs.into_iter().any(Output::is_open_preview)
    }

    /// Adds what another window of the same run holds and this state does not. What both hold stays as it is here.
    ///
    /// # Errors
    /// When the window is of another run, or does not hold all that changed here in what is left out.
    pub fn add(&mut self, window: Snapshot) -> Result<(), AddError> {
        if window.run.run_id != self.run.run_id {
            return Err(AddError::OtherRun);
        }
        if window.seq < self.passed_over {
            return Err(AddError::Stale);
        }
        let nodes: HashSet<&NodeId> = window.nodes.iter().map(|node| &node.node_id).collect();
        let added: HashSet<AttemptId> = window
            .attempts
            .iter()
            .filter(|attempt| {
                !self.index.attempts.contains_key(&attempt.attempt_id)
                    && (nodes.contains(&attempt.node_id) || self.index.nodes.contains_key(&attempt.node_id))
            })
            .map(|attempt| attempt.attempt_id.clone())
            .collect();
        // Of an attempt that the window says nothing about and holds nothing of, all that is left out stays so.
        let told: HashSet<&AttemptId> = window
            .left_out
            .iter()
            .map(|gap| &gap.attempt_id)
            .chain(window.blocks.iter().map(|block| &block.attempt_id))
            .collect();
        let mut left_out = Vec::new();
        for gap in &self.left_out {
            if told.contains(&gap.attempt_id) {
                left_out.extend(window.left_out.iter().filter_map(|other| gap.common(other)));
            } else {
                left_out.push(gap.clone());
            }
        }
        left_out.extend(
            window
                .left_out
                .iter()
                .filter(|gap| added.contains(&gap.attempt_id))
                .cloned(),
        );
        let passed_over = self.passed_over;
        let index = std::mem::take(&mut self.index);
        let mut merged = Snapshot::empty(self.run.clone());
        merged.nodes = window.nodes;
        merged
            .nodes
            .retain(|node| !index.nodes.contains_key(&node.node_id));
        merged.nodes.append(&mut self.nodes);
        merged.attempts = window.attempts;
        merged
            .attempts
            .retain(|attempt| added.contains(&attempt.attempt_id));
        merged.attempts.append(&mut self.attempts);
        merged.blocks = window.blocks;
        merged.blocks.retain(|block| {
            let has_attempt =
                added.contains(&block.attempt_id) || index.attempts.contains_key(&block.attempt_id);
            has_attempt && !index.blocks.contains_key(&block.block_id)
        });
        merged.blocks.append(&mut self.blocks);
        merged.messages = std::mem::take(&mut self.messages);
        merged.approvals = std::mem::take(&mut self.approvals);
        merged.notices = std::mem::take(&mut self.notices);
        merged.unknown = std::mem::take(&mut self.unknown);
        merged.held = std::mem::take(&mut self.held);
        merged.streams = std::mem::take(&mut self.streams).into_values().collect();
        merged.left_out = left_out;
        *self = Self::from_snapshot(merged);
        self.passed_over = passed_over;
        Ok(())
    }

    /// Takes over from an older state of the same run what this window leaves out: whole texts and closed blocks.
    pub fn keep_from(&mut self, known: RunState) {
        if known.run.run_id != self.run.run_id || known.seq() > self.seq() {
            return;
        }
        for node in &mut self.nodes {
            let Some(older) = known.node(&node.node_id) else {
                continue;
            };
            for (channel, output) in &mut node.outputs {
                if let (Some(whole), Some(older)) = (&output.content_ref, older.outputs.get(channel))
                    && older.text.len() as u64 == whole.bytes
                {
                    output.text.clone_from(&older.text);
                    output.content_ref = None;
                }
            }
        }
        for block in &mut self.blocks {
            let older = known
                .block(&block.block_id)
                .and_then(|block| block.body.content());
            if let (Some(Content { text, content_ref }), Some(older)) = (block.body.content_mut(), older)
                && let Some(whole) = content_ref
                && older.text.len() as u64 == whole.bytes
            {
                text.clone_from(&older.text);
                *content_ref = None;
            }
        }
        if !self.left_out.is_empty() {
            let window = known.closed_part();
            // It is of this run, and nothing was passed over yet.
            let _ = self.add(window);
        }
    }

    /// What is closed for good, as a window: of each attempt the blocks before the first that is not.
    fn closed_part(self) -> Snapshot {
        let mut snapshot = self.to_snapshot();
        let mut ends: std::collections::HashMap<AttemptId, u32> = std::collections::HashMap::new();
        for attempt in &self.attempts {
            let blocks = || self.blocks_of(&attempt.attempt_id);
            let end = blocks()
                .find(|block| !self.is_closed(block))
                .map(|block| block.block_index)
                .or_else(|| {
                    blocks()
                        .next_back()
                        .map(|block| block.block_index.saturating_add(1))
                })
                .unwrap_or(0);
            ends.insert(attempt.attempt_id.clone(), end);
        }
        snapshot.blocks.retain(|block| {
            ends.get(&block.attempt_id)
                .is_some_and(|&end| block.block_index < end)
        });
        // Nodes, and with them attempts, only as far as such a block called them.
        let mut called: HashSet<NodeId> = HashSet::new();
        for block in &snapshot.blocks {
            if let BlockBody::ToolRef(reference) = &block.body
                && let Some(node) = &reference.ref_node_id
            {
                self.below(node, |node| {
                    called.insert(node.clone());
                });
            }
        }
        snapshot.nodes.retain(|node| called.contains(&node.node_id));
        snapshot
            .attempts
            .retain(|attempt| called.contains(&attempt.node_id));
        // What a closed call did is all there; other attempts may have gone on.
        for attempt in self
            .attempts
            .iter()
            .filter(|attempt| !called.contains(&attempt.node_id))
        {
            snapshot.left_out.push(LeftOut {
                attempt_id: attempt.attempt_id.clone(),
                from: ends.get(&attempt.attempt_id).copied().unwrap_or(0),
                to: u32::MAX,
            });
        }
        snapshot
    }

    /// Whether nothing of a block, and of what it called, can change any more.
    fn is_closed(&self, block: &Block) -> bool {
        if block.state == BlockState::Streaming {
            return false;
        }
        let BlockBody::ToolRef(reference) = &block.body else {
            return true;
        };
        let Some(node) = &reference.ref_node_id else {
            return true;
        };
        let mut is_closed = self.node(node).is_some();
        self.below(node, |id| {
            is_closed &= self.node(id).is_some_and(|node| node.state.end().is_some());
        });
        is_closed
    }

    /// Visits a node and all that it called.
    fn below(&self, node: &NodeId, mut visit: impl FnMut(&NodeId)) {
        let (mut seen, mut pending) = (HashSet::new(), vec![node.clone()]);
        while let Some(id) = pending.pop() {
            if seen.insert(id.clone()) {
                pending.extend(self.children(&id).map(|node| node.node_id.clone()));
                visit(&id);
            }
        }
    }

    /// Leaves of a node's channel a beginning of at most `limit` bytes. What still grows goes on being counted.
    pub fn shorten_output(&mut self, node: &NodeId, channel: Channel, limit: usize) {
        let node = self
            .index
            .nodes
            .get(node)
            .and_then(|&place| self.nodes.get_mut(place));
        if let Some(node) = node {
            let is_closed = node.state.end().is_some();
            if let Some(output) = node.outputs.get_mut(&channel)
                // A closed one whose hash was not told could not be found again.
                && (!is_closed || output.sha256.is_some())
            {
                output.shorten(limit);
            }
        }
    }

    /// Leaves of a closed block's text a beginning of at most `limit` bytes.
    pub fn shorten_block(&mut self, block: &BlockId, limit: usize) {
        let block = self
            .index
            .blocks
            .get(block)
            .and_then(|&place| self.blocks.get_mut(place));
        if let Some(Block {
            state: BlockState::Ended(end),
            body:
                BlockBody::Text(content) | BlockBody::Refusal(content) | BlockBody::Reasoning { content, .. },
            ..
        }) = block.filter(|block| !block.body.is_unsaved())
        {
            content.shorten(end, limit);
        }
    }
}
