//! Ids: opaque text with a prefix, each kind a type of its own.
//!
//! An id is its prefix and the 22 base62 digits of a UUID. Sessions, runs, attempts, approvals and messages get a
//! UUIDv7 from whoever creates them. All others are UUIDv5 over what they stand for, so that an id is known before
//! its thing is written and ensuring it twice gives one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The namespace of all derived ids: UUIDv5 of the name `runloom.execution_stream.v1` in the nil namespace.
fn namespace() -> Uuid {
    Uuid::new_v5(&Uuid::nil(), b"runloom.execution_stream.v1")
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Writes a UUID as 22 base62 digits.
fn base62(uuid: Uuid) -> String {
    let mut value = uuid.as_u128();
    let mut digits = [b'0'; 22];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(value % 62) as usize];
        value /= 62;
    }
    digits.iter().map(|&digit| char::from(digit)).collect()
}

/// Derives a UUID from the parts of what it stands for. Parts are joined by a character that no id holds.
fn derive(parts: &[&str]) -> Uuid {
    Uuid::new_v5(&namespace(), parts.join("\u{1f}").as_bytes())
}

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {what}: expected {prefixes} and at most 128 letters, digits, '_' or '-'")]
pub struct InvalidId {
    what: &'static str,
    prefixes: &'static str,
    found: String,
}

fn check(
    text: &str,
    what: &'static str,
    prefixes: &[&str],
    listed: &'static str,
) -> Result<Arc<str>, InvalidId> {
    let known = prefixes
        .iter()
        .any(|prefix| text.len() > prefix.len() && text.starts_with(prefix));
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if known && plain && text.len() <= 128 {
        Ok(text.into())
    } else {
        Err(InvalidId {
            what,
            prefixes: listed,
            found: text.chars().take(140).collect(),
        })
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $what:literal, [$($prefix:literal),+];)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as it is written everywhere.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                check(text, $what, &[$($prefix),+], concat!($($prefix, "… "),+)).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^(", $($prefix, "|",)+ "$^)[A-Za-z0-9_-]+$"),
                    "maxLength": 128,
                })
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// What a team member opens: a conversation or a mission, with its runs in order.
    SessionId, "a session id", ["ses_"];
    /// One execution, started by one request.
    RunId, "a run id", ["run_"];
    /// One vertex of the execution DAG.
    NodeId, "a node id", ["call_", "exec_", "phase_", "root_"];
    /// One try of a model node.
    AttemptId, "an attempt id", ["att_"];
    /// One ordered piece of an attempt's content.
    BlockId, "a block id", ["blk_"];
    /// One call, qualified, so that it is never taken for another.
    OccurrenceId, "an occurrence id", ["occ_"];
    /// One concurrent batch whose membership the executor knows.
    GroupId, "a group id", ["par_"];
    /// A person's prompt or steering.
    MessageId, "a message id", ["msg_"];
    /// One request for a person's approval.
    ApprovalId, "an approval id", ["apr_"];
}

macro_rules! created {
    ($($name:ident $prefix:literal),+) => {$(
        impl $name {
            /// Makes the id of a new thing from a fresh UUIDv7.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(format!(concat!($prefix, "{}"), base62(uuid)).into())
            }
        }
    )+};
}

created!(SessionId "ses_", RunId "run_", AttemptId "att_", MessageId "msg_", ApprovalId "apr_");

impl OccurrenceId {
    /// A model's tool call: by its node, attempt, provider round (from 0) and position in the round (from 0).
    pub fn tool_call(node: &NodeId, attempt: &AttemptId, round: u32, position: u32) -> Self {
        Self::derived(&[
            "tool_call",
            node.as_str(),
            attempt.as_str(),
            &round.to_string(),
            &position.to_string(),
        ])
    }

    /// A sub-call of a `run_code` program: by its code node and the order of submission (from 0).
    pub fn sub_call(code_node: &NodeId, submission: u32) -> Self {
        Self::derived(&["sub_call", code_node.as_str(), &submission.to_string()])
    }

    /// A model call inside another node: by that node and the order of the calls (from 0).
    pub fn inner_model_call(parent: &NodeId, ordinal: u32) -> Self {
        Self::derived(&["inner_model_call", parent.as_str(), &ordinal.to_string()])
    }

    fn derived(parts: &[&str]) -> Self {
        Self(format!("occ_{}", base62(derive(parts))).into())
    }
}

impl NodeId {
    /// The one root of a run.
    pub fn root(run: &RunId) -> Self {
        Self(format!("root_{}", base62(derive(&["root", run.as_str()]))).into())
    }

    /// A model node, by who called it and which call it was.
    pub fn model(parent: &NodeId, occurrence: &OccurrenceId) -> Self {
        Self::derived("call_", parent, occurrence)
    }

    /// A function or code node, by who called it and which call it was.
    pub fn function(parent: &NodeId, occurrence: &OccurrenceId) -> Self {
        Self::derived("exec_", parent, occurrence)
    }

    fn derived(prefix: &str, parent: &NodeId, occurrence: &OccurrenceId) -> Self {
        let uuid = derive(&["node", parent.as_str(), occurrence.as_str()]);
        Self(format!("{prefix}{}", base62(uuid)).into())
    }
}

impl BlockId {
    /// The block of an attempt at an index.
    pub fn at(attempt: &AttemptId, block_index: u32) -> Self {
        let uuid = derive(&["block", attempt.as_str(), &block_index.to_string()]);
        Self(format!("blk_{}", base62(uuid)).into())
    }
}

impl GroupId {
    /// A concurrent batch of a node's provider round, of which it is the one with this number (from 0).
    pub fn of_batch(node: &NodeId, attempt: &AttemptId, round: u32, batch: u32) -> Self {
        let (round, batch) = (round.to_string(), batch.to_string());
        let uuid = derive(&["group", node.as_str(), attempt.as_str(), &round, &batch]);
        Self(format!("par_{}", base62(uuid)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::from_uuid(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001))
    }

    #[test]
    fn an_id_is_its_prefix_and_twenty_two_digits() {
        let id = run();
        assert_eq!(id.as_str().len(), 4 + 22);
        assert_eq!(
            RunId::from_uuid(Uuid::nil()).as_str(),
            "run_0000000000000000000000"
        );
        assert_eq!(
            RunId::from_uuid(Uuid::max()).as_str(),
            "run_7n42DGM5Tflk9n8mt7Fhc7"
        );
    }

    #[test]
    fn the_same_thing_has_the_same_id_and_another_thing_another() {
        let root = NodeId::root(&run());
        let first = OccurrenceId::inner_model_call(&root, 0);
        assert_eq!(first, OccurrenceId::inner_model_call(&root, 0));
        assert_ne!(first, OccurrenceId::inner_model_call(&root, 1));
        assert_ne!(first, OccurrenceId::sub_call(&root, 0));
        assert_ne!(NodeId::model(&root, &first), NodeId::root(&run()));
    }

    #[test]
    fn a_text_of_another_kind_is_refused_with_what_was_found() {
        let error = "ses_1".parse::<RunId>().unwrap_err();
        assert!(error.to_string().contains("\"ses_1\""), "{error}");
        assert!("run_".parse::<RunId>().is_err());
        assert!("run_a/b".parse::<RunId>().is_err());
        assert!(serde_json::from_str::<NodeId>("\"exec_1\"").is_ok());
        assert!(serde_json::from_str::<NodeId>("\"blk_1\"").is_err());
    }
}
