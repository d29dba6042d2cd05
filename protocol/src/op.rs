//! Ops: what happens to a run, one after another; and the envelope in which the journal keeps them.

mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use read::known_version;
pub use read::{InvalidEntry, InvalidOp};

use crate::Extra;
use crate::id::{ApprovalId, AttemptId, BlockId, GroupId, MessageId, NodeId, OccurrenceId, RunId};
use crate::model::{BlockBody, ErrorInfo, Kept, Progress, Timestamp, Usage};
use crate::state::{
    AttemptReason, AttemptStatus, BlockStatus, Channel, Executor, MessageRole, MessageState, NodeKind,
    NodeStatus, Retention, RunStatus,
};

/// One op of the journal: everything that a reader of one line needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The run.
    pub run_id: RunId,
    /// Counts the owners of the run.
    pub generation: u64,
    /// Counts the ops of the run from 1, without gaps.
    pub seq: u64,
    /// The server's clock.
    pub at: Timestamp,
    /// What happened.
    pub op: Op,
}

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// The run changed its state.
    RunUpdated(RunUpdated),
    /// A person said something.
    MessageAdded(MessageAdded),
    /// A person's message changed its state.
    MessageUpdated(MessageUpdated),
    /// A node was announced.
    NodeStarted(NodeStarted),
    /// A node changed.
    NodeUpdated(NodeUpdated),
    /// A node wrote something.
    NodeOutput(NodeOutput),
    /// A node ended.
    NodeFinished(NodeFinished),
    /// A person is asked.
    ApprovalRequested(ApprovalRequested),
    /// A person answered.
    ApprovalResolved(ApprovalResolved),
    /// An attempt began.
    AttemptStarted(AttemptStarted),
    /// An attempt ended.
    AttemptFinished(AttemptFinished),
    /// A block began.
    BlockStarted(BlockStarted),
    /// A block grew.
    BlockDelta(BlockDelta),
    /// A block changed.
    BlockUpdated(BlockUpdated),
    /// A block ended.
    BlockFinished(BlockFinished),
    /// Something that everybody should know.
    Notice(Notice),
    /// Stands for an op that this audience may not see.
    Withheld(Withheld),
    /// An op that this version does not know, as it came.
    #[serde(untagged)]
    Unknown(Extra),
}

/// See [`Op::RunUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunUpdated {
    /// Its new state.
    pub status: RunStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Tokens of all its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::MessageAdded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageAdded {
    /// Its id.
    pub message_id: MessageId,
    /// Who wrote it.
    pub role: MessageRole,
    /// Its text, whole: at most [`crate::MAX_PROMPT`] bytes.
    pub text: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::MessageUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageUpdated {
    /// The message.
    pub message_id: MessageId,
    /// Its new state.
    pub state: MessageState,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::NodeStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeStarted {
    /// Its id.
    pub node_id: NodeId,
    /// Who called it; the root has none.
    #[serde(default)]
    pub parent_id: Option<NodeId>,
    /// Whom it reads from.
    #[serde(default)]
    pub after: Vec<NodeId>,
    /// What it is.
    pub kind: NodeKind,
    /// The tool's or model's name.
    pub name: String,
    /// A few words for people.
    #[serde(default)]
    pub title: String,
    /// Its place among its siblings, from 0.
    pub ordinal: u32,
    /// Who executes it.
    pub executor: Executor,
    /// The call that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence_id: Option<OccurrenceId>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::NodeUpdated`]. A field that is left out stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeUpdated {
    /// The node.
    pub node_id: NodeId,
    /// Its new state; never a final one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    /// A few words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// When it began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::NodeOutput`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeOutput {
    /// The node.
    pub node_id: NodeId,
    /// Which of its texts grows.
    pub channel: Channel,
    /// UTF-8 bytes of the channel so far.
    pub offset: u64,
    /// What is appended.
    pub text: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::NodeFinished`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeFinished {
    /// The node.
    pub node_id: NodeId,
    /// A final state.
    pub status: NodeStatus,
    /// When it ended.
    pub finished_at: Timestamp,
    /// What each of its channels holds.
    #[serde(default)]
    pub outputs: BTreeMap<Channel, OutputSummary>,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Length, hash and type of a closed channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputSummary {
    /// Length in UTF-8 bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// Its type, such as `application/json`.
    pub media_type: String,
}

/// See [`Op::ApprovalRequested`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRequested {
    /// The node that waits.
    pub node_id: NodeId,
    /// Its id.
    pub approval_id: ApprovalId,
    /// What is asked, in plain words.
    pub what: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::ApprovalResolved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalResolved {
    /// The node that waited.
    pub node_id: NodeId,
    /// The request.
    pub approval_id: ApprovalId,
    /// `approve`, `deny` or `always`.
    pub answer: String,
    /// Who answered.
    pub by: String,
    /// What they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::AttemptStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptStarted {
    /// The model node.
    pub node_id: NodeId,
    /// Its id.
    pub attempt_id: AttemptId,
    /// Its place among the attempts of its node, from 0.
    pub attempt_index: u32,
    /// Why it was started.
    pub reason: AttemptReason,
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The attempt whose text it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues_attempt_id: Option<AttemptId>,
    /// What it kept of that text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::AttemptFinished`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptFinished {
    /// The model node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// A final state.
    pub status: AttemptStatus,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::BlockStarted`]. On the wire the body's fields stand beside the others. A text grows by deltas: it is
/// among them only where the block began with some.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockStarted {
    /// The model node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Its id.
    pub block_id: BlockId,
    /// Its place in the attempt: the only order.
    pub block_index: u32,
    /// The provider round that made it, from 0.
    pub round: u32,
    /// What it is.
    pub body: BlockBody,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// See [`Op::BlockDelta`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockDelta {
    /// The block.
    pub block_id: BlockId,
    /// UTF-8 bytes of the block so far.
    pub offset: u64,
    /// What is appended.
    pub delta: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::BlockUpdated`]. A field that is left out stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockUpdated {
    /// The block.
    pub block_id: BlockId,
    /// The batch that it is a member of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<GroupId>,
    /// The node of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_node_id: Option<NodeId>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The blocks of the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<BlockId>>,
    /// Whether reasoning is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::BlockFinished`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockFinished {
    /// The block.
    pub block_id: BlockId,
    /// `complete` or `cut`.
    pub status: BlockStatus,
    /// Length of its content in UTF-8 bytes.
    pub bytes: u64,
    /// SHA-256 of its content in lower-case hexadecimal.
    pub sha256: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::Notice`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// The node that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// A stable code in snake case.
    pub code: String,
    /// In plain words, or more.
    pub detail: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// See [`Op::Withheld`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Withheld {
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Op {
    /// UTF-8 bytes of text that it carries: what limits of frames and merging count.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::BlockDelta(op) => op.delta.len(),
            Self::NodeOutput(op) => op.text.len(),
            Self::MessageAdded(op) => op.text.len(),
            Self::BlockStarted(op) => op.body.content().map_or(0, |content| content.text.len()),
            _ => 0,
        }
    }
}
