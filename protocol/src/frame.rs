//! Frames of the WebSocket `GET /api/stream`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Extra;
use crate::api::SessionSummary;
use crate::id::RunId;
use crate::model::{Run, StreamState, Timestamp};
use crate::op::{Entry, Op};
use crate::snapshot::SnapshotPart;

/// What the server sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// By hand, since serde's own way to read a tagged enum would bring a second reader of everything into the page.
impl<'de> Deserialize<'de> for ServerFrame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Extra::deserialize(deserializer)?;
        let Some(Value::String(kind)) = object.shift_remove("type") else {
            return Err(D::Error::missing_field("type"));
        };
        Self::read(&kind, Value::Object(object)).map_err(D::Error::custom)
    }
}

impl ServerFrame {
    fn read(kind: &str, fields: Value) -> Result<Self, serde_json::Error> {
        use serde_json::from_value;

        Ok(match kind {
            "execution_stream" => Self::ExecutionStream(from_value(fields)?),
            "stream_state" => Self::StreamState(from_value(fields)?),
            "snapshot_begin" => {
                #[derive(Deserialize)]
                struct Fields {
                    #[serde(deserialize_with = "crate::op::known_version")]
                    schema_version: u32,
                    run: Run,
                    reset: bool,
                }
                let Fields {
                    schema_version,
                    run,
                    reset,
                } = from_value(fields)?;
                Self::SnapshotBegin {
                    schema_version,
                    run,
                    reset,
                }
            }
            "snapshot_part" => {
                #[derive(Deserialize)]
                struct Fields {
                    run_id: RunId,
                    number: u32,
                    part: Box<SnapshotPart>,
                }
                let Fields { run_id, number, part } = from_value(fields)?;
                Self::SnapshotPart { run_id, number, part }
            }
            "snapshot_end" => {
                #[derive(Deserialize)]
                struct Fields {
                    run_id: RunId,
                    parts: u32,
                }
                let Fields { run_id, parts } = from_value(fields)?;
                Self::SnapshotEnd { run_id, parts }
            }
            "session_updated" => {
                #[derive(Deserialize)]
                struct Fields {
                    session: Box<SessionSummary>,
                }
                let Fields { session } = from_value(fields)?;
                Self::SessionUpdated { session }
            }
            "ping" => {
                #[derive(Deserialize)]
                struct Fields {
                    at: Timestamp,
                }
                let Fields { at } = from_value(fields)?;
                Self::Ping { at }
            }
            "error" => {
                #[derive(Deserialize)]
                struct Fields {
                    #[serde(default)]
                    run_id: Option<RunId>,
                    code: String,
                    detail: String,
                }
                let Fields { run_id, code, detail } = from_value(fields)?;
                Self::Error { run_id, code, detail }
            }
            unknown => return Err(serde_json::Error::custom(format!("unknown frame {unknown:?}"))),
        })
    }
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
        /// What changed at this time or later, by the server's clock, is told at once; without it only what changes
        /// from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
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
