//! What a snapshot may leave out: blocks of an attempt with all that they called, and the rest of long closed texts.

use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::id::AttemptId;
use crate::model::{BlockBody, BlockState};
use crate::state::Retention;

/// Blocks of one attempt that are not here. What they called, to any depth, is not here either. All of it is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The index of the first block that is not here.
    pub from: u32,
    /// The index after the last block that is not here.
    pub to: u32,
}

impl LeftOut {
    /// How many places for blocks that is.
    pub fn blocks(&self) -> u64 {
        u64::from(self.to.saturating_sub(self.from))
    }

    /// What is left out both here and there; none of another attempt.
    pub fn common(&self, other: &Self) -> Option<Self> {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        (self.attempt_id == other.attempt_id && from < to).then(|| Self {
            attempt_id: self.attempt_id.clone(),
            from,
            to,
        })
    }
}

impl Snapshot {
    /// Leaves a beginning of every closed content, argument and output that is longer than `limit` bytes, which says
    /// where the whole is. Of what still grows nothing is left out.
    pub fn shorten(&mut self, limit: usize) {
        for block in &mut self.blocks {
            if let (Some(content), BlockState::Ended(end)) = (
                match &mut block.body {
                    // Shown live only: there is no whole to point at.
                    BlockBody::Reasoning {
                        retention: Retention::NotSaved,
                        ..
                    } => None,
                    body => body.content_mut(),
                },
                &block.state,
            ) {
                content.shorten(end, limit);
            }
        }
        for output in self.nodes.iter_mut().flat_map(|node| node.outputs.values_mut()) {
            if output.sha256.is_some() {
                output.shorten(limit);
            }
        }
    }
}
