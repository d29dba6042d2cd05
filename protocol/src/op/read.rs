//! Reading and writing ops and entries: an op that is not known is kept as it came.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{BlockStarted, Entry, Op};
use crate::id::{AttemptId, BlockId, NodeId, RunId};
use crate::model::{BodyFields, with_extra};
use crate::{Extra, SCHEMA_VERSION};

/// The fields of the envelope.
const ENVELOPE: &[&str] = &["type", "schema_version", "run_id", "generation", "seq", "at"];

/// Reads a `schema_version`, and refuses one that this reader does not know.
pub(crate) fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    check_version(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn check_version(version: &Value) -> Result<u32, InvalidEntry> {
    if *version == SCHEMA_VERSION {
        Ok(SCHEMA_VERSION)
    } else {
        Err(InvalidEntry::SchemaVersion {
            found: version.to_string(),
        })
    }
}

/// A known op whose fields are wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("op {op}: {problem}")]
pub struct InvalidOp {
    /// The op's name.
    pub op: String,
    /// What is wrong.
    pub problem: String,
}

/// A line that is not an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// It is not JSON, or not an object, or a field of the envelope is wrong.
    #[error("not an entry of execution_stream: {0}")]
    Envelope(String),
    /// Another version of the protocol: the stream stops here.
    #[error("schema_version {found} is not known; this reader speaks version {SCHEMA_VERSION}")]
    SchemaVersion {
        /// The version that was found.
        found: String,
    },
    /// The op is known, but its fields are wrong.
    #[error(transparent)]
    Op(#[from] InvalidOp),
}

impl Op {
    /// Reads an op from its object. Fields of the envelope are left aside.
    pub fn from_object(mut object: Extra) -> Result<Self, InvalidOp> {
        fn read<T: for<'de> Deserialize<'de>>(op: &str, object: Extra) -> Result<T, InvalidOp> {
            serde_json::from_value(Value::Object(object)).map_err(|error| InvalidOp {
                op: op.to_owned(),
                problem: error.to_string(),
            })
        }
        // The envelope's fields are never an op's own: kept as unknown they would contradict the envelope.
        for name in ENVELOPE {
            object.shift_remove(*name);
        }
        let Some(Value::String(name)) = object.shift_remove("op") else {
            return Err(InvalidOp {
                op: "?".to_owned(),
                problem: "it has no name in the field op".to_owned(),
            });
        };
        Ok(match name.as_str() {
            "run_updated" => Self::RunUpdated(read(&name, object)?),
            "message_added" => Self::MessageAdded(read(&name, object)?),
            "message_updated" => Self::MessageUpdated(read(&name, object)?),
            "node_started" => Self::NodeStarted(read(&name, object)?),
            "node_updated" => Self::NodeUpdated(read(&name, object)?),
            "node_output" => Self::NodeOutput(read(&name, object)?),
            "node_finished" => Self::NodeFinished(read(&name, object)?),
            "approval_requested" => Self::ApprovalRequested(read(&name, object)?),
            "approval_resolved" => Self::ApprovalResolved(read(&name, object)?),
            "attempt_started" => Self::AttemptStarted(read(&name, object)?),
            "attempt_finished" => Self::AttemptFinished(read(&name, object)?),
            "block_started" => Self::BlockStarted(read(&name, object)?),
            "block_delta" => Self::BlockDelta(read(&name, object)?),
            "block_updated" => Self::BlockUpdated(read(&name, object)?),
            "block_finished" => Self::BlockFinished(read(&name, object)?),
            "notice" => Self::Notice(read(&name, object)?),
            "withheld" => Self::Withheld(read(&name, object)?),
            _ => {
                object.shift_insert(0, "op".to_owned(), Value::String(name));
                Self::Unknown(object)
            }
        })
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_object(Extra::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BlockStartedWire {
    node_id: NodeId,
    attempt_id: AttemptId,
    block_id: BlockId,
    block_index: u32,
    #[serde(default)]
    round: u32,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "BodyFields"))]
    body: Extra,
}

impl Serialize for BlockStarted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = with_extra(BodyFields::of(self.body.clone(), false), self.extra.clone());
        BlockStartedWire {
            node_id: self.node_id.clone(),
            attempt_id: self.attempt_id.clone(),
            block_id: self.block_id.clone(),
            block_index: self.block_index,
            round: self.round,
            body,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlockStarted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let wire = BlockStartedWire::deserialize(deserializer)?;
        let (fields, extra) = crate::model::split_body(wire.body).map_err(D::Error::custom)?;
        Ok(Self {
            body: fields.body(&wire.block_id, &extra).map_err(D::Error::custom)?,
            node_id: wire.node_id,
            attempt_id: wire.attempt_id,
            block_id: wire.block_id,
            block_index: wire.block_index,
            round: wire.round,
            extra,
        })
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EntryWire<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = "execution_stream")))]
    r#type: &'static str,
    schema_version: u32,
    run_id: &'a RunId,
    generation: u64,
    seq: u64,
    at: i64,
    #[serde(flatten)]
    op: &'a Op,
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        EntryWire {
            r#type: "execution_stream",
            schema_version: SCHEMA_VERSION,
            run_id: &self.run_id,
            generation: self.generation,
            seq: self.seq,
            at: self.at,
            op: &self.op,
        }
        .serialize(serializer)
    }
}

impl Entry {
    /// Reads one line of a journal or an export.
    pub fn from_json(line: &str) -> Result<Self, InvalidEntry> {
        let object: Extra =
            serde_json::from_str(line).map_err(|error| InvalidEntry::Envelope(error.to_string()))?;
        Self::from_object(object)
    }

    /// Reads an entry from its object.
    pub fn from_object(mut object: Extra) -> Result<Self, InvalidEntry> {
        fn field<T: for<'de> Deserialize<'de>>(object: &mut Extra, name: &str) -> Result<T, InvalidEntry> {
            let value = object
                .shift_remove(name)
                .ok_or_else(|| InvalidEntry::Envelope(format!("the field {name} is missing")))?;
            serde_json::from_value(value).map_err(|error| InvalidEntry::Envelope(format!("{name}: {error}")))
        }
        let kind: String = field(&mut object, "type")?;
        if kind != "execution_stream" {
            return Err(InvalidEntry::Envelope(format!("its type is {kind:?}")));
        }
        check_version(&field::<Value>(&mut object, "schema_version")?)?;
        Ok(Self {
            run_id: field(&mut object, "run_id")?,
            generation: field(&mut object, "generation")?,
            seq: field(&mut object, "seq")?,
            at: field(&mut object, "at")?,
            op: Op::from_object(object)?,
        })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_object(Extra::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The schema of a thing is that of its form on the wire.
#[cfg(feature = "schema")]
macro_rules! schema_of_wire {
    ($($thing:ident: $wire:ty),+) => {$(
        impl schemars::JsonSchema for $thing {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($thing).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$wire>::json_schema(generator)
            }
        }
    )+};
}

#[cfg(feature = "schema")]
schema_of_wire!(BlockStarted: BlockStartedWire, Entry: EntryWire<'static>);
