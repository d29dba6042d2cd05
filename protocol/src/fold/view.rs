//! Reading the state.

use super::RunState;
use crate::id::{ApprovalId, AttemptId, BlockId, MessageId, NodeId, OccurrenceId};
use crate::model::{Approval, Attempt, Block, BlockBody, Message, Node, Notice, Run, StreamState};
use crate::state::NodeKind;

impl RunState {
    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The last op that this state holds.
    pub fn seq(&self) -> u64 {
        self.run.last_seq
    }

    /// Counts the owners of the run.
    pub fn generation(&self) -> u64 {
        self.run.generation
    }

    /// People's messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// A message.
    pub fn message(&self, id: &MessageId) -> Option<&Message> {
        self.index
            .messages
            .get(id)
            .and_then(|&place| self.messages.get(place))
    }

    /// All nodes, in the order of their announcement.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.index.nodes.get(id).and_then(|&place| self.nodes.get(place))
    }

    /// The run's root.
    pub fn root(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.kind == NodeKind::Root)
    }

    /// The children of a node, in order.
    pub fn children(&self, id: &NodeId) -> impl DoubleEndedIterator<Item = &Node> {
        self.index
            .children
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|&place| self.nodes.get(place))
    }

    /// All attempts, in the order of their start.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// An attempt.
    pub fn attempt(&self, id: &AttemptId) -> Option<&Attempt> {
        self.index
            .attempts
            .get(id)
            .and_then(|&place| self.attempts.get(place))
    }

    /// The attempts of a node, in order; the last one is the current one.
    pub fn attempts_of(&self, id: &NodeId) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.index
            .attempts_of
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|&place| self.attempts.get(place))
    }

    /// All blocks, in the order of their start.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// A block.
    pub fn block(&self, id: &BlockId) -> Option<&Block> {
        self.index
            .blocks
            .get(id)
            .and_then(|&place| self.blocks.get(place))
    }

    /// The block that shows a call.
    pub fn block_of_occurrence(&self, id: &OccurrenceId) -> Option<&Block> {
        self.index.occurrences.get(id).and_then(|block| self.block(block))
    }

    /// The block that points at a node: its row in the content of the node that called it.
    pub fn block_of_node(&self, id: &NodeId) -> Option<&Block> {
        self.index.references.get(id).and_then(|block| self.block(block))
    }

    /// The block of an attempt at an index.
    pub fn block_at(&self, id: &AttemptId, block_index: u32) -> Option<&Block> {
        let blocks = self.index.blocks_of.get(id)?;
        let found = blocks.binary_search_by_key(&Some(block_index), |&place| {
            self.blocks.get(place).map(|block| block.block_index)
        });
        found
            .ok()
            .and_then(|at| blocks.get(at))
            .and_then(|&place| self.blocks.get(place))
    }

    /// The blocks of an attempt, in order.
    pub fn blocks_of(&self, id: &AttemptId) -> impl DoubleEndedIterator<Item = &Block> {
        self.index
            .blocks_of
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|&place| self.blocks.get(place))
    }

    /// Requests for approval, in order.
    pub fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    /// A request for approval.
    pub fn approval(&self, id: &ApprovalId) -> Option<&Approval> {
        self.index
            .approvals
            .get(id)
            .and_then(|&place| self.approvals.get(place))
    }

    /// Notices, in order.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Ops that were not known.
    pub fn unknown(&self) -> &[serde_json::Value] {
        &self.unknown
    }

    /// What the live stream of a node is doing.
    pub fn stream(&self, id: &NodeId) -> Option<&StreamState> {
        self.streams.get(id)
    }

    /// What all live streams are doing.
    pub fn streams(&self) -> impl Iterator<Item = &StreamState> {
        self.streams.values()
    }

    /// The current attempt of a node and those that it continues, oldest first.
    pub fn chain(&self, id: &NodeId) -> Vec<&Attempt> {
        let mut chain = Vec::<&Attempt>::new();
        let mut attempt = self.attempts_of(id).next_back();
        while let Some(current) = attempt {
            // A chain that bites its own tail is cut.
            if chain.iter().any(|known| known.attempt_id == current.attempt_id) {
                break;
            }
            chain.push(current);
            attempt = current
                .continues_attempt_id
                .as_ref()
                .and_then(|before| self.attempt(before));
        }
        chain.reverse();
        chain
    }

    /// A node's answer: the kept text along `continues_attempt_id` and the last attempt's text blocks, joined by a
    /// blank line. What *Copy text*, an inner call's return value and the next request use.
    pub fn answer(&self, id: &NodeId) -> String {
        let chain = self.chain(id);
        let mut parts: Vec<&str> = Vec::new();
        for (place, attempt) in chain.iter().enumerate() {
            // What an attempt kept of the one before is the start of that one's text.
            let mut kept = chain
                .get(place + 1)
                .and_then(|next| next.kept)
                .map_or(u64::MAX, |kept| kept.bytes);
            for block in self.blocks_of(&attempt.attempt_id) {
                let BlockBody::Text(content) = &block.body else {
                    continue;
                };
                let length = usize::try_from(kept)
                    .unwrap_or(usize::MAX)
                    .min(content.text.len());
                let text = &content.text[..content.text.floor_char_boundary(length)];
                kept = kept.saturating_sub(content.text.len() as u64);
                if !text.trim().is_empty() {
                    parts.push(text);
                }
            }
        }
        parts.join("\n\n")
    }
}
