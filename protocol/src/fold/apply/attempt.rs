//! Ops about attempts and their blocks.

use super::{Outcome, Stop, closed, grow, transition, unknown};
use crate::fold::extra::{ATTEMPT, keep, keep_of_block, kept};
use crate::fold::{Change, Refusal, RunState};
use crate::id::{BlockId, NodeId};
use crate::model::{
    Attempt, AttemptEnd, AttemptState, Block, BlockBody, BlockEnd, BlockState, ContentRef, NodeState,
    Timestamp,
};
use crate::op;
use crate::state::{AttemptReason, AttemptStatus, BlockStatus, NodeKind, Retention, RunStatus};

impl RunState {
    pub(super) fn attempt_started(&mut self, op: &op::AttemptStarted, at: Timestamp) -> Outcome {
        if self.index.attempts.contains_key(&op.attempt_id) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        let node = self.node(&op.node_id).ok_or_else(|| self.missing(&op.node_id))?;
        // The only way back: a person asks for more of a model node.
        let reopens = node.kind == NodeKind::Model
            && matches!(op.reason, AttemptReason::Resume | AttemptReason::Regenerate);
        if node.state.end().is_some() && !reopens {
            return Err(closed(&op.node_id));
        }
        if reopens {
            self.reopen(&op.node_id, &mut changes);
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
            extra: kept(ATTEMPT, &op.extra),
        });
        changes.push(Change::AttemptAdded(op.node_id.clone(), op.attempt_id.clone()));
        Ok(changes)
    }

    /// Sets running again what was closed: a model node, the run, and the phases and the root that hold the node.
    /// Function nodes stay as they ended: a tool is never run again by itself.
    fn reopen(&mut self, model: &NodeId, changes: &mut Vec<Change>) {
        let mut next = Some(model.clone());
        // As many steps as there are nodes: a chain of parents that bites its own tail ends too.
        for _ in 0..self.nodes.len() {
            let Some(node) = next
                .and_then(|id| self.index.nodes.get(&id))
                .and_then(|&place| self.nodes.get_mut(place))
            else {
                break;
            };
            let holds = matches!(node.kind, NodeKind::Root | NodeKind::Phase) || node.node_id == *model;
            if holds && node.state.end().is_some() {
                node.state = NodeState::Running;
                for output in node.outputs.values_mut() {
                    output.content_ref = None;
                    output.sha256 = None;
                    output.media_type = None;
                    output.bytes = output.text.len() as u64;
                }
                changes.push(Change::Node(node.node_id.clone()));
            }
            next = node.parent_id.clone();
        }
        if self.run.status.is_final() {
            self.run.status = RunStatus::Running;
            self.run.error = None;
            changes.push(Change::Run);
        }
    }

    pub(super) fn attempt_finished(&mut self, op: &op::AttemptFinished, at: Timestamp) -> Outcome {
        let Some(attempt) = self
            .index
            .attempts
            .get(&op.attempt_id)
            .and_then(|&place| self.attempts.get_mut(place))
        else {
            return Err(self.missing(&op.attempt_id));
        };
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
        keep(&mut attempt.extra, ATTEMPT, &op.extra);
        Ok(vec![Change::Attempt(op.attempt_id.clone())])
    }

    pub(super) fn block_started(&mut self, op: &op::BlockStarted, at: Timestamp) -> Outcome {
        if self.index.blocks.contains_key(&op.block_id) {
            return Ok(Vec::new());
        }
        match self.attempt(&op.attempt_id) {
            None => return Err(self.missing(&op.attempt_id)),
            Some(attempt) if attempt.state.end().is_some() => return Err(closed(&op.attempt_id)),
            Some(_) => {}
        }
        if let BlockBody::ToolRef(reference) = &op.body
            && self.index.occurrences.contains_key(&reference.occurrence_id)
        {
            return Err(Refusal::RepeatedOccurrence(reference.occurrence_id.clone()).into());
        }
        if self.block_at(&op.attempt_id, op.block_index).is_some() {
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
        let mut body = op.body.clone();
        if let Some(content) = body.content_mut() {
            // What still grows is never left out.
            content.content_ref = None;
        }
        let mut extra = crate::Extra::new();
        keep_of_block(&mut extra, &body, &op.extra);
        self.insert_block(Block {
            block_id: op.block_id.clone(),
            attempt_id: op.attempt_id.clone(),
            node_id: op.node_id.clone(),
            block_index: op.block_index,
            round: op.round,
            body,
            state,
            started_at: at,
            extra,
        });
        Ok(vec![Change::BlockAdded(
            op.attempt_id.clone(),
            op.block_id.clone(),
        )])
    }

    fn block_mut(&mut self, id: &BlockId) -> Result<&mut Block, Stop> {
        if !self.left_out.is_empty() && !self.index.blocks.contains_key(id) {
            // Only what is closed is left out: nothing but its group or node can change.
            return Err(Stop::PassedOver);
        }
        self.index
            .blocks
            .get(id)
            .and_then(|&place| self.blocks.get_mut(place))
            .ok_or_else(|| unknown(id))
    }

    pub(super) fn block_delta(&mut self, op: &op::BlockDelta) -> Outcome {
        let attempt = self.block(&op.block_id).map(|block| &block.attempt_id);
        if let Some(attempt) = attempt.and_then(|id| self.attempt(id))
            && attempt.state.end().is_some()
        {
            return Err(closed(&attempt.attempt_id));
        }
        let block = self.block_mut(&op.block_id)?;
        if block.state != BlockState::Streaming {
            return Err(closed(&op.block_id));
        }
        let grown = match &mut block.body {
            // What is shown live only has a hole where a reader was away: what comes is what is new.
            BlockBody::Reasoning {
                content,
                retention: Retention::NotSaved,
            } if op.offset > content.text.len() as u64 => {
                content.text.push_str(&op.delta);
                !op.delta.is_empty()
            }
            BlockBody::Text(content) | BlockBody::Refusal(content) | BlockBody::Reasoning { content, .. } => {
                grow(&op.block_id, &mut content.text, op.offset, &op.delta)?
            }
            // Of a kind that is not known only the size can be told.
            BlockBody::Unsupported { bytes, .. } => {
                let end = op.offset.saturating_add(op.delta.len() as u64);
                let grown = end > *bytes;
                *bytes = end.max(*bytes);
                grown
            }
            BlockBody::ToolRef(_) | BlockBody::ParallelGroup { .. } => return Err(closed(&op.block_id)),
        };
        Ok(if grown {
            vec![Change::BlockContent(op.block_id.clone())]
        } else {
            Vec::new()
        })
    }

    pub(super) fn block_updated(&mut self, op: &op::BlockUpdated) -> Outcome {
        let block = self.block_mut(&op.block_id)?;
        let open = block.state == BlockState::Streaming;
        match &mut block.body {
            BlockBody::ToolRef(reference) => {
                reference.group_id = op.group_id.clone().or(reference.group_id.take());
                reference.ref_node_id = op.ref_node_id.clone().or(reference.ref_node_id.take());
                if let Some(name) = &op.tool_name {
                    reference.tool_name.clone_from(name);
                }
            }
            BlockBody::ParallelGroup { group_id, members } => {
                // A batch is declared when it starts; what it is never changes.
                let other_members = op
                    .members
                    .as_ref()
                    .is_some_and(|blocks| !members.is_empty() && blocks != members);
                if other_members || op.group_id.as_ref().is_some_and(|group| group != group_id) {
                    return Err(closed(&op.block_id));
                }
                if let Some(blocks) = &op.members {
                    members.clone_from(blocks);
                }
            }
            BlockBody::Reasoning { retention, .. } if open => {
                *retention = op.retention.unwrap_or(*retention);
            }
            BlockBody::Text(_) | BlockBody::Refusal(_) | BlockBody::Unsupported { .. } if open => {}
            BlockBody::Text(_)
            | BlockBody::Reasoning { .. }
            | BlockBody::Refusal(_)
            | BlockBody::Unsupported { .. } => {
                return Err(closed(&op.block_id));
            }
        }
        keep_of_block(&mut block.extra, &block.body, &op.extra);
        if let (BlockBody::ToolRef(_), Some(node)) = (&block.body, &op.ref_node_id) {
            let (node, block) = (node.clone(), op.block_id.clone());
            self.index.references.entry(node).or_insert(block);
        }
        Ok(vec![Change::Block(op.block_id.clone())])
    }

    pub(super) fn block_finished(&mut self, op: &op::BlockFinished, at: Timestamp) -> Outcome {
        let block = self.block_mut(&op.block_id)?;
        if block.state != BlockState::Streaming {
            return Err(closed(&op.block_id));
        }
        if !op.status.is_final() {
            return Err(transition(&op.block_id, op.status));
        }
        let mut length = op.bytes;
        match &mut block.body {
            // Shown live only: there is no whole to point at.
            BlockBody::Reasoning {
                retention: Retention::NotSaved,
                ..
            }
            | BlockBody::ToolRef(_)
            | BlockBody::ParallelGroup { .. } => {}
            // Where what came is not the whole, it is a preview, which says where the whole is.
            BlockBody::Text(content) | BlockBody::Refusal(content) | BlockBody::Reasoning { content, .. } => {
                content.content_ref = (content.text.len() as u64 != op.bytes).then(|| ContentRef {
                    bytes: op.bytes,
                    sha256: op.sha256.clone(),
                });
            }
            BlockBody::Unsupported { bytes, .. } => {
                *bytes = op.bytes.max(*bytes);
                length = *bytes;
            }
        }
        block.state = BlockState::Ended(BlockEnd {
            status: op.status,
            finished_at: at,
            bytes: length,
            sha256: Some(op.sha256.clone()),
        });
        keep_of_block(&mut block.extra, &block.body, &op.extra);
        Ok(vec![Change::Block(op.block_id.clone())])
    }
}
