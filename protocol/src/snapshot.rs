//! The state of a run at one `seq`, flat; and its parts on the wire.

mod parts;
mod window;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use parts::{Assembler, AssemblyError, Continuation, SnapshotPart, Target, split};
pub use window::LeftOut;

use crate::model::{Approval, Attempt, Block, Message, Node, Notice, Run, StreamState};
use crate::op::Op;
use crate::{Extra, SCHEMA_VERSION};

/// The state of a run at `seq`. Content is whole, or has a `content_ref` beside a preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// Always `snapshot`.
    #[serde(rename = "type")]
    pub kind: SnapshotKind,
    /// The version of the protocol.
    #[serde(deserialize_with = "crate::op::known_version")]
    pub schema_version: u32,
    /// The run.
    pub run: Run,
    /// Counts the owners of the run.
    pub generation: u64,
    /// The last op that this state holds.
    pub seq: u64,
    /// People's messages, in order.
    pub messages: Vec<Message>,
    /// Nodes, in the order of their announcement.
    pub nodes: Vec<Node>,
    /// Attempts, in the order of their start.
    pub attempts: Vec<Attempt>,
    /// Blocks, in the order of their start; `block_index` orders those of one attempt.
    pub blocks: Vec<Block>,
    /// Requests for approval, in order.
    pub approvals: Vec<Approval>,
    /// Notices, in order.
    pub notices: Vec<Notice>,
    /// Ops that were not known, as they came.
    pub unknown: Vec<Value>,
    /// Updates that wait for their node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldOp>,
    /// Blocks that this snapshot does not hold, with all that they called; empty when it is whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What the live streams are doing; in no comparison of states.
    #[serde(default)]
    pub streams: Vec<StreamState>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Snapshot {
    /// The state of a run of which nothing is known but itself.
    pub fn empty(run: Run) -> Self {
        Self {
            kind: SnapshotKind::Snapshot,
            schema_version: SCHEMA_VERSION,
            generation: run.generation,
            seq: run.last_seq,
            run,
            messages: Vec::new(),
            nodes: Vec::new(),
            attempts: Vec::new(),
            blocks: Vec::new(),
            approvals: Vec::new(),
            notices: Vec::new(),
            unknown: Vec::new(),
            held: Vec::new(),
            left_out: Vec::new(),
            streams: Vec::new(),
            extra: Extra::new(),
        }
    }
}

/// The word in the field `type` of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SnapshotKind {
    /// `snapshot`.
    #[default]
    #[serde(rename = "snapshot")]
    Snapshot,
}

/// An update that came before its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldOp {
    /// The `at` of its entry.
    pub at: i64,
    /// The op.
    pub held: Op,
}
