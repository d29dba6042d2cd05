//! Things, as the fold holds them and as a snapshot shows them.
//!
//! In Rust an end state carries its data, so that an impossible thing cannot be built. On the wire each thing is flat,
//! with the field names of the ops; [`wire`] holds those forms and the conversions between the two.

mod block;
mod wire;

pub use block::{Block, BlockBody, BlockEnd, BlockState, Content, ToolRef};
pub use wire::Inconsistent;
pub(crate) use wire::{BodyFields, own_fields, split_body, with_extra};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::id::{ApprovalId, AttemptId, MessageId, NodeId, OccurrenceId, RunId, SessionId};
use crate::state::{
    AttemptReason, AttemptStatus, Channel, Executor, LivenessClock, MessageRole, MessageState, NodeKind,
    NodeStatus, RunStatus, StreamActivity,
};

/// Milliseconds since the Unix epoch, UTC, by the server's clock.
pub type Timestamp = i64;

/// Why something failed, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorInfo {
    /// A stable code in snake case.
    pub code: String,
    /// In plain words.
    pub message: String,
}

/// The most bytes of an error's words: they are shown whole wherever the error is.
const MAX_MESSAGE: usize = 4 * 1024;

impl ErrorInfo {
    /// An error of a code, in plain words. An error cannot be given in parts: of words that repeat megabytes of what
    /// somebody sent, the beginning and the end are kept.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE {
            let first = message.floor_char_boundary(MAX_MESSAGE / 4 * 3);
            let last = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 8);
            message.replace_range(first..last, &format!(" […{} bytes…] ", last - first));
        }
        Self {
            code: code.into(),
            message,
        }
    }
}

/// Tokens and cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        fn sum<T>(left: Option<T>, right: Option<T>, add: fn(T, T) -> T) -> Option<T> {
            match (left, right) {
                (Some(left), Some(right)) => Some(add(left, right)),
                (left, right) => left.or(right),
            }
        }
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = sum(
            self.cache_read_tokens,
            other.cache_read_tokens,
            u64::saturating_add,
        );
        self.cache_write_tokens = sum(
            self.cache_write_tokens,
            other.cache_write_tokens,
            u64::saturating_add,
        );
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens, u64::saturating_add);
        self.cost = sum(self.cost, other.cost, |left, right| left + right);
    }
}

/// Where the whole of a content is, when only a preview is at hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentRef {
    /// Its length in UTF-8 bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Output {
    /// The text so far, or its beginning where `content_ref` says so or `bytes` is more.
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

impl Output {
    /// Whether `text` is only the beginning of what came so far, while more may come: then `bytes` tells how much came.
    pub fn is_open_preview(&self) -> bool {
        self.content_ref.is_none() && self.sha256.is_none() && self.bytes > self.text.len() as u64
    }

    /// Leaves a beginning of at most `limit` bytes, which ends at a character. Of a closed output it says where the whole
    /// is; of one that still grows `bytes` goes on counting.
    pub fn shorten(&mut self, limit: usize) {
        if self.text.len() <= limit {
            return;
        }
        self.text.truncate(self.text.floor_char_boundary(limit));
        self.text.shrink_to_fit();
        if let Some(sha256) = &self.sha256 {
            self.content_ref = Some(ContentRef {
                bytes: self.bytes,
                sha256: sha256.clone(),
            });
        }
    }
}

/// What was kept of the attempt before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// UTF-8 bytes of text.
    pub bytes: u64,
    /// Tokens, where known, else estimated as characters / 4.
    pub tokens: u64,
}

/// One try of a model node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// A request for a person's approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_errors_words_that_are_too_long_the_beginning_and_the_end_are_kept() {
        let whole = "é".repeat(MAX_MESSAGE / 2);
        assert_eq!(ErrorInfo::new("code", whole.as_str()).message, whole);
        let long = format!("begins {} ends", "é".repeat(5_000_000));
        let message = ErrorInfo::new("code", long).message;
        assert!(message.len() <= MAX_MESSAGE, "{}", message.len());
        assert!(message.starts_with("begins é") && message.ends_with("é ends"));
        assert!(message.contains(" […9996"), "it says how much is left out");
    }
}
