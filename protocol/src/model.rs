//! Things, as the fold holds them and as a snapshot shows them.
//!
//! In Rust an end state carries its data, so that an impossible thing cannot be built. On the wire each thing is flat,
//! with the field names of the ops; [`wire`] holds those forms and the conversions between the two.

mod wire;

pub use wire::Inconsistent;
pub(crate) use wire::{BodyFields, split_body};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::id::{ApprovalId, AttemptId, BlockId, GroupId, MessageId, NodeId, OccurrenceId, RunId, SessionId};
use crate::state::{
    AttemptReason, AttemptStatus, BlockStatus, Channel, Executor, LivenessClock, MessageRole, MessageState,
    NodeKind, NodeStatus, Retention, RunStatus, StreamActivity,
};

/// Milliseconds since the Unix epoch, UTC, by the server's clock.
pub type Timestamp = i64;

/// Why something failed, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// A stable code in snake case.
    pub code: String,
    /// In plain words.
    pub message: String,
}

impl ErrorInfo {
    /// An error of a code, in plain words.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// Tokens and cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input_tokens: u64,
    /// All output tokens.
    pub output_tokens: u64,
    /// Input tokens that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input tokens that were written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Output tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Cost in US dollars, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Adds the usage of another request.
    pub fn add(&mut self, other: &Usage) {
        fn sum<T: std::ops::Add<Output = T>>(left: Option<T>, right: Option<T>) -> Option<T> {
            match (left, right) {
                (Some(left), Some(right)) => Some(left + right),
                (left, right) => left.or(right),
            }
        }
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = sum(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.cost = sum(self.cost, other.cost);
    }
}

/// Where the whole of a content is, when only a preview is at hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRef {
    /// Its length in UTF-8 bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub run_id: RunId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// Its state.
    pub status: RunStatus,
    /// Counts its owners; 0 before the first.
    pub generation: u64,
    /// The last `seq` that this state holds.
    pub last_seq: u64,
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

/// A person's prompt or steering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its id.
    pub message_id: MessageId,
    /// Who wrote it.
    pub role: MessageRole,
    /// Its text, whole.
    pub text: String,
    /// Whether the model has it.
    pub state: MessageState,
    /// When it was added.
    pub at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How far a node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is done, in the tool's own unit.
    pub done: u64,
    /// What there is to do, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// A few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A vertex of the execution DAG: the only home of a tool's state, arguments and results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::Node", into = "wire::Node")]
pub struct Node {
    /// Its id.
    pub node_id: NodeId,
    /// Who called it; the root has none.
    pub parent_id: Option<NodeId>,
    /// Whom it read from (data dependency).
    pub after: Vec<NodeId>,
    /// What it is.
    pub kind: NodeKind,
    /// The tool's or model's name.
    pub name: String,
    /// A few words for people.
    pub title: String,
    /// Its place among its siblings, from 0.
    pub ordinal: u32,
    /// Who executes it.
    pub executor: Executor,
    /// The call that made it.
    pub occurrence_id: Option<OccurrenceId>,
    /// Its state, with what belongs to it.
    pub state: NodeState,
    /// When it was announced.
    pub announced_at: Timestamp,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// Its arguments, log and result.
    pub outputs: BTreeMap<Channel, Output>,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// State of a node, with what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeState {
    /// Announced; its arguments may still stream.
    Pending,
    /// It waits for a person.
    AwaitingApproval,
    /// It runs.
    Running,
    /// It is over.
    Ended(NodeEnd),
}

/// How a node ended.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeEnd {
    /// One of the final states.
    pub status: NodeStatus,
    /// When.
    pub finished_at: Timestamp,
    /// Why it did not end well.
    pub error: Option<ErrorInfo>,
    /// The exit code of a command.
    pub exit_code: Option<i32>,
}

impl NodeState {
    /// Its word on the wire.
    pub fn status(&self) -> NodeStatus {
        match self {
            Self::Pending => NodeStatus::Pending,
            Self::AwaitingApproval => NodeStatus::AwaitingApproval,
            Self::Running => NodeStatus::Running,
            Self::Ended(end) => end.status,
        }
    }

    /// How it ended, where it did.
    pub fn end(&self) -> Option<&NodeEnd> {
        match self {
            Self::Ended(end) => Some(end),
            Self::Pending | Self::AwaitingApproval | Self::Running => None,
        }
    }
}

/// What one channel of a node holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The text so far, or a preview where `content_ref` says so.
    pub text: String,
    /// Length of the whole in UTF-8 bytes.
    pub bytes: u64,
    /// SHA-256 of the whole in lower-case hexadecimal, once it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its type, once it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Where the whole is, when `text` is a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_ref: Option<ContentRef>,
}

/// What was kept of the attempt before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// UTF-8 bytes of text.
    pub bytes: u64,
    /// Tokens, where known, else estimated as characters / 4.
    pub tokens: u64,
}

/// One try of a model node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::Attempt", into = "wire::Attempt")]
pub struct Attempt {
    /// Its id.
    pub attempt_id: AttemptId,
    /// The model node.
    pub node_id: NodeId,
    /// Its place among the attempts of its node, from 0.
    pub attempt_index: u32,
    /// Why it was started.
    pub reason: AttemptReason,
    /// Its state, with what belongs to it.
    pub state: AttemptState,
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The attempt whose text it goes on from.
    pub continues_attempt_id: Option<AttemptId>,
    /// What it kept of that text.
    pub kept: Option<Kept>,
    /// When it was started.
    pub started_at: Timestamp,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// State of an attempt, with what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptState {
    /// It goes on.
    Running,
    /// It is closed.
    Ended(AttemptEnd),
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptEnd {
    /// One of the final states.
    pub status: AttemptStatus,
    /// When.
    pub finished_at: Timestamp,
    /// Why the model stopped, in the protocol's words.
    pub stop_reason: Option<String>,
    /// Its tokens.
    pub usage: Option<Usage>,
    /// Why it did not end well.
    pub error: Option<ErrorInfo>,
}

impl AttemptState {
    /// Its word on the wire.
    pub fn status(&self) -> AttemptStatus {
        match self {
            Self::Running => AttemptStatus::Running,
            Self::Ended(end) => end.status,
        }
    }

    /// How it ended, where it did.
    pub fn end(&self) -> Option<&AttemptEnd> {
        match self {
            Self::Running => None,
            Self::Ended(end) => Some(end),
        }
    }
}

/// One ordered piece of an attempt's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// A request for a person's approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The node that waits.
    pub node_id: NodeId,
    /// What is asked, in plain words.
    pub what: String,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ApprovalResolution>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalResolution {
    /// `approve`, `deny` or `always`.
    pub answer: String,
    /// Who answered.
    pub by: String,
    /// What they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// Something that everybody should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The op that said it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
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

/// What a live stream is doing: not an op, and in no comparison of states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamState {
    /// The run.
    pub run_id: RunId,
    /// The model node.
    pub node_id: NodeId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What it is doing.
    pub state: StreamActivity,
    /// Counts the states of this node; a lower one is ignored.
    pub n: u64,
    /// When anything last came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_byte_at: Option<Timestamp>,
    /// When content last came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_content_at: Option<Timestamp>,
    /// Output tokens in a second, estimated as characters / 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Which clock is silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<LivenessClock>,
    /// Since when it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Until when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The number of the attempt to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_number: Option<u32>,
    /// How many attempts there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_max: Option<u32>,
    /// Why, in plain words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The provider that takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}
