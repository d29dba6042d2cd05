//! Fields that this version does not know, on their way from an op to its thing.
//!
//! An op may carry a field that is not its own but is one of its thing's, such as `session_id` in `run_updated`. Kept
//! as unknown it would stand twice in the snapshot; the thing's own field wins, and the other is dropped.

use crate::Extra;
use crate::model::{BlockBody, own_fields};

/// The fields of a run.
pub(super) const RUN: &[&str] = &[
    "run_id",
    "session_id",
    "status",
    "generation",
    "last_seq",
    "error",
    "usage",
];

/// The fields of a message.
pub(super) const MESSAGE: &[&str] = &["message_id", "role", "text", "state", "at"];

/// The fields of a node.
pub(super) const NODE: &[&str] = &[
    "node_id",
    "parent_id",
    "after",
    "kind",
    "name",
    "title",
    "ordinal",
    "executor",
    "occurrence_id",
    "status",
    "announced_at",
    "started_at",
    "finished_at",
    "progress",
    "error",
    "exit_code",
    "outputs",
];

/// The fields of an attempt.
pub(super) const ATTEMPT: &[&str] = &[
    "attempt_id",
    "node_id",
    "attempt_index",
    "reason",
    "status",
    "provider",
    "model",
    "continues_attempt_id",
    "kept",
    "stop_reason",
    "usage",
    "error",
    "started_at",
    "finished_at",
];

/// The fields of a block of any kind.
const BLOCK: &[&str] = &[
    "block_id",
    "attempt_id",
    "node_id",
    "block_index",
    "round",
    "status",
    "started_at",
    "finished_at",
    "sha256",
];

/// The fields of a request for approval.
pub(super) const APPROVAL: &[&str] = &["approval_id", "node_id", "what", "requested_at", "resolution"];

/// The fields of a notice.
pub(super) const NOTICE: &[&str] = &["seq", "at", "node_id", "code", "detail"];

/// Adds unknown fields of an op to those of its thing, which has `own` fields.
pub(super) fn keep(extra: &mut Extra, own: &[&str], from: &Extra) {
    for (name, value) in from {
        if !own.contains(&name.as_str()) {
            extra.insert(name.clone(), value.clone());
        }
    }
}

/// The unknown fields of an op that makes a thing with `own` fields.
pub(super) fn kept(own: &[&str], from: &Extra) -> Extra {
    let mut extra = Extra::new();
    keep(&mut extra, own, from);
    extra
}

/// Adds unknown fields of an op to those of a block of this body.
pub(super) fn keep_of_block(extra: &mut Extra, body: &BlockBody, from: &Extra) {
    let own = own_fields(body.kind());
    for (name, value) in from {
        if !BLOCK.contains(&name.as_str()) && !own.contains(&name.as_str()) {
            extra.insert(name.clone(), value.clone());
        }
    }
}
