//! Frames of the WebSocket `GET /api/stream`.

use serde::{Deserialize, Serialize};

use crate::api::SessionSummary;
use crate::id::RunId;
use crate::model::{Run, StreamState, Timestamp};
use crate::op::{Entry, Op};
use crate::snapshot::SnapshotPart;

/// What the server sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerFrame {
    /// Ops that share an envelope; the i-th has `seq` + i.
    ExecutionStream(OpsFrame),
    /// What a live stream is doing.
    StreamState(StreamState),
    /// A snapshot begins; its parts follow, and it is swapped in when whole.
    SnapshotBegin {
        /// The version of the protocol.
        #[serde(deserialize_with = "crate::op::known_version")]
        schema_version: u32,
        /// The run, as it is at the snapshot's `seq`.
        run: Run,
        /// Whether it replaces the state even where that is newer.
        reset: bool,
    },
    /// One part of it.
    SnapshotPart {
        /// The run.
        run_id: RunId,
        /// Its number, from 0.
        number: u32,
        /// What it holds.
        part: Box<SnapshotPart>,
    },
    /// It is whole.
    SnapshotEnd {
        /// The run.
        run_id: RunId,
        /// How many parts there were.
        parts: u32,
    },
    /// A session changed (topic `sessions`).
    SessionUpdated {
        /// The session, as the list shows it.
        session: Box<SessionSummary>,
    },
    /// To be answered with `pong`.
    Ping {
        /// The server's clock.
        at: Timestamp,
    },
    /// Something went wrong; the connection stays open.
    Error {
        /// The run whose subscription has ended with it; none when it ends nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        /// A stable code in snake case.
        code: String,
        /// In plain words.
        detail: String,
    },
}

/// Ops that share an envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpsFrame {
    /// The version of the protocol.
    #[serde(deserialize_with = "crate::op::known_version")]
    pub schema_version: u32,
    /// The run.
    pub run_id: RunId,
    /// Counts the owners of the run.
    pub generation: u64,
    /// The `seq` of the first op.
    pub seq: u64,
    /// The server's clock.
    pub at: Timestamp,
    /// The ops, without gaps.
    pub ops: Vec<Op>,
}

impl OpsFrame {
    /// The ops with their envelopes.
    pub fn into_entries(self) -> impl Iterator<Item = Entry> {
        let Self {
            run_id,
            generation,
            seq,
            at,
            ops,
            ..
        } = self;
        ops.into_iter().zip(0u64..).map(move |(op, place)| Entry {
            run_id: run_id.clone(),
            generation,
            seq: seq.saturating_add(place),
            at,
            op,
        })
    }
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClientFrame {
    /// Begins to follow something.
    Subscribe(Subject),
    /// Ends it.
    Unsubscribe(Subject),
    /// Says up to where a run has been taken in; at most once a second.
    Ack {
        /// The run.
        run: RunId,
        /// The last op that was taken in.
        seq: u64,
    },
    /// Answers a ping, with its time.
    Pong(Timestamp),
}

/// What can be followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, deny_unknown_fields)]
pub enum Subject {
    /// A run, from after an op.
    Run {
        /// The run.
        run: RunId,
        /// The last op that the client has; 0 when it has none.
        #[serde(default)]
        after: u64,
        /// Snapshots may leave out all but about so many of the newest blocks, and the rest of long texts; whole ones
        /// where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u32>,
    },
    /// A topic.
    Topic {
        /// Which one.
        topic: Topic,
    },
}

/// What is not one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Summaries of sessions.
    Sessions,
}
