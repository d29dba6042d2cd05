//! Blocks: the ordered pieces of an attempt's content.

use serde::{Deserialize, Serialize};

use super::{ContentRef, Timestamp, wire};
use crate::Extra;
use crate::id::{AttemptId, BlockId, GroupId, NodeId, OccurrenceId};
use crate::state::{BlockStatus, Retention};

/// One ordered piece of an attempt's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "wire::Block", into = "wire::Block")]
pub struct Block {
    /// Its id.
    pub block_id: BlockId,
    /// The attempt that it belongs to.
    pub attempt_id: AttemptId,
    /// The model node.
    pub node_id: NodeId,
    /// Its place in the attempt: the only order.
    pub block_index: u32,
    /// The provider round that made it, from 0.
    pub round: u32,
    /// What it is.
    pub body: BlockBody,
    /// Its state, with what belongs to it.
    pub state: BlockState,
    /// When it started.
    pub started_at: Timestamp,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockBody {
    /// Markdown.
    Text(Content),
    /// Displayable reasoning.
    Reasoning {
        /// Its text; empty when it was not saved.
        content: Content,
        /// Whether it is kept.
        retention: Retention,
    },
    /// A pointer to a tool call's node.
    ToolRef(ToolRef),
    /// A concurrent batch; it draws nothing at its own index.
    ParallelGroup {
        /// Its id.
        group_id: GroupId,
        /// Its blocks, in the order of the calls.
        members: Vec<BlockId>,
    },
    /// The model declined.
    Refusal(Content),
    /// A kind that is not known.
    Unsupported {
        /// The word for it.
        raw_kind: String,
        /// Its size in bytes.
        bytes: u64,
    },
}

/// A pointer to a tool call's node: it holds no arguments, state or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRef {
    /// The provider's id of the call, which may repeat.
    pub tool_call_id: String,
    /// The call, which never repeats.
    pub occurrence_id: OccurrenceId,
    /// The node of the call; unknown in some records of an older form.
    pub ref_node_id: Option<NodeId>,
    /// The tool's name.
    pub tool_name: String,
    /// The batch that it is a member of.
    pub group_id: Option<GroupId>,
}

/// Text that grows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The text so far, or a preview where `content_ref` says so.
    pub text: String,
    /// Where the whole is, when `text` is a preview.
    pub content_ref: Option<ContentRef>,
}

impl Content {
    /// Leaves a beginning of at most `limit` bytes, which ends at a character and says where the whole is.
    pub fn shorten(&mut self, end: &BlockEnd, limit: usize) {
        let Some(sha256) = &end.sha256 else { return };
        if self.text.len() > limit {
            self.text.truncate(self.text.floor_char_boundary(limit));
            self.text.shrink_to_fit();
            self.content_ref = Some(ContentRef {
                bytes: end.bytes,
                sha256: sha256.clone(),
            });
        }
    }
}

impl BlockBody {
    /// The word of its kind on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::ToolRef(_) => "tool_ref",
            Self::ParallelGroup { .. } => "parallel_group",
            Self::Refusal(_) => "refusal",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// Its text, where it has one.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Text(content) | Self::Refusal(content) | Self::Reasoning { content, .. } => Some(content),
            Self::ToolRef(_) | Self::ParallelGroup { .. } | Self::Unsupported { .. } => None,
        }
    }

    /// Its text, to be changed.
    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            Self::Text(content) | Self::Refusal(content) | Self::Reasoning { content, .. } => Some(content),
            Self::ToolRef(_) | Self::ParallelGroup { .. } | Self::Unsupported { .. } => None,
        }
    }

    /// Whether its text is shown live only.
    pub fn is_unsaved(&self) -> bool {
        matches!(
            self,
            Self::Reasoning {
                retention: Retention::NotSaved,
                ..
            }
        )
    }

    /// Whether it is complete as soon as it is published.
    pub fn is_pointer(&self) -> bool {
        matches!(self, Self::ToolRef(_) | Self::ParallelGroup { .. })
    }
}

/// State of a block, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockState {
    /// More may come.
    Streaming,
    /// It is closed.
    Ended(BlockEnd),
}

/// How a block ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEnd {
    /// `complete` or `cut`.
    pub status: BlockStatus,
    /// When.
    pub finished_at: Timestamp,
    /// Length of its content in UTF-8 bytes.
    pub bytes: u64,
    /// SHA-256 of its content in lower-case hexadecimal; none for a pointer.
    pub sha256: Option<String>,
}

impl BlockState {
    /// Its word on the wire.
    pub fn status(&self) -> BlockStatus {
        match self {
            Self::Streaming => BlockStatus::Streaming,
            Self::Ended(end) => end.status,
        }
    }
}
