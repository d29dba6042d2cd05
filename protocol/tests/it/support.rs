//! What the tests share: stories told in JSON ops, and how long generated tests run.

use std::fmt::Debug;
use std::str::FromStr;

use proptest::test_runner::{Config, RngSeed};
use protocol::digest::sha256;
use protocol::fold::{Applied, Change, FoldError, Refusal, RunState};
use protocol::op::{Entry, Op};
use protocol::snapshot::Snapshot;
use serde_json::{Value, json};

/// The same moderate sample each time; with `RUNLOOM_TEST_LONG=1` a large one that differs each time.
pub(crate) fn config() -> Config {
    let long = std::env::var("RUNLOOM_TEST_LONG").is_ok_and(|value| value == "1");
    Config {
        cases: if long { 20_000 } else { 256 },
        rng_seed: if long { RngSeed::Random } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        ..Config::default()
    }
}

/// Makes an id from its text.
pub(crate) fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// The state of the run `run_1` before its first op.
pub(crate) fn fresh() -> RunState {
    RunState::new(id("run_1"), id("ses_1"))
}

/// Reads an op.
pub(crate) fn op(value: Value) -> Op {
    serde_json::from_value(value).unwrap()
}

/// The state as a snapshot shows it, without what no comparison includes.
pub(crate) fn seen(state: &RunState) -> Value {
    let mut value = serde_json::to_value(state.to_snapshot()).unwrap();
    value.as_object_mut().unwrap().remove("streams");
    value
}

/// The same without `seq` and `generation`, which differ where ops were merged or taken over.
pub(crate) fn seen_without_seq(state: &RunState) -> Value {
    let mut value = seen(state);
    let object = value.as_object_mut().unwrap();
    object.remove("seq");
    object.remove("generation");
    for name in ["last_seq", "generation"] {
        object["run"].as_object_mut().unwrap().remove(name);
    }
    for notice in object["notices"].as_array_mut().unwrap() {
        notice.as_object_mut().unwrap().remove("seq");
    }
    value
}

/// The state after its snapshot went over the wire.
pub(crate) fn through_json(state: &RunState) -> RunState {
    let text = serde_json::to_string(&state.to_snapshot()).unwrap();
    let snapshot: Snapshot = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    RunState::from_snapshot(snapshot)
}

/// A run that is told op by op.
pub(crate) struct Story {
    pub(crate) state: RunState,
    pub(crate) entries: Vec<Entry>,
    pub(crate) generation: u64,
    seq: u64,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self {
            state: fresh(),
            entries: Vec::new(),
            generation: 1,
            seq: 0,
        }
    }

    /// A run with its root, one model node and its first attempt.
    pub(crate) fn begun() -> Self {
        let mut story = Self::new();
        story.ok(root());
        story.ok(node("call_1", "root_1", "model", "occ_m1", 0));
        story.ok(attempt("call_1", "att_1", 0, "initial"));
        story
    }

    /// The entry of an op at the next `seq`.
    pub(crate) fn entry(&self, value: Value) -> Entry {
        Entry {
            run_id: id("run_1"),
            generation: self.generation,
            seq: self.seq + 1,
            at: 1_790_000_000_000 + i64::try_from(self.seq).unwrap(),
            op: op(value),
        }
    }

    pub(crate) fn apply(&mut self, value: Value) -> Result<Applied, FoldError> {
        let entry = self.entry(value);
        let applied = self.state.apply(&entry)?;
        self.seq += 1;
        self.entries.push(entry);
        Ok(applied)
    }

    /// Applies an op that has to be taken.
    pub(crate) fn ok(&mut self, value: Value) -> Vec<Change> {
        match self.apply(value.clone()) {
            Ok(Applied::Changed(changes)) => changes,
            other => panic!("{value}: {other:?}"),
        }
    }

    /// Applies an op that has to be refused, and holds that nothing but `seq` changes.
    pub(crate) fn refused(&mut self, value: Value) -> Refusal {
        let before = seen_without_seq(&self.state);
        let refusal = match self.apply(value.clone()) {
            Ok(Applied::Refused(refusal)) => refusal,
            other => panic!("{value}: {other:?}"),
        };
        assert_eq!(before, seen_without_seq(&self.state), "{value}");
        refusal
    }

    /// Applies an op that cannot be taken, and holds that nothing at all changes.
    pub(crate) fn error(&mut self, value: Value) -> FoldError {
        let before = seen(&self.state);
        let error = self.apply(value).unwrap_err();
        assert_eq!(before, seen(&self.state));
        error
    }

    /// A field of a thing in the snapshot, by a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Value {
        seen(&self.state).pointer(pointer).cloned().unwrap_or(Value::Null)
    }
}

pub(crate) fn root() -> Value {
    json!({ "op": "node_started", "node_id": "root_1", "parent_id": null, "after": [], "kind": "root",
            "name": "run", "title": "", "ordinal": 0, "executor": "runloom" })
}

pub(crate) fn node(node: &str, parent: &str, kind: &str, occurrence: &str, ordinal: u32) -> Value {
    json!({ "op": "node_started", "node_id": node, "parent_id": parent, "after": [], "kind": kind,
            "name": kind, "title": "", "ordinal": ordinal, "executor": "runloom", "occurrence_id": occurrence })
}

pub(crate) fn node_status(node: &str, status: &str) -> Value {
    json!({ "op": "node_updated", "node_id": node, "status": status })
}

pub(crate) fn output(node: &str, channel: &str, offset: u64, text: &str) -> Value {
    json!({ "op": "node_output", "node_id": node, "channel": channel, "offset": offset, "text": text })
}

pub(crate) fn end_node(node: &str, status: &str) -> Value {
    json!({ "op": "node_finished", "node_id": node, "status": status, "finished_at": 1_790_000_009_000_i64,
            "outputs": {} })
}

/// Ends a node whose channel `result` holds `text`.
pub(crate) fn end_node_with(node: &str, status: &str, text: &str) -> Value {
    let mut value = end_node(node, status);
    value["outputs"] = json!({ "result":
        { "bytes": text.len(), "sha256": sha256(text.as_bytes()), "media_type": "text/plain" } });
    value
}

pub(crate) fn attempt(node: &str, attempt: &str, index: u32, reason: &str) -> Value {
    json!({ "op": "attempt_started", "node_id": node, "attempt_id": attempt, "attempt_index": index,
            "reason": reason, "provider": "main", "model": "some-model" })
}

pub(crate) fn end_attempt(node: &str, attempt: &str, status: &str) -> Value {
    json!({ "op": "attempt_finished", "node_id": node, "attempt_id": attempt, "status": status })
}

/// A block of `call_1`, of a kind without fields of its own.
pub(crate) fn block(attempt: &str, block: &str, index: u32, kind: &str) -> Value {
    json!({ "op": "block_started", "node_id": "call_1", "attempt_id": attempt, "block_id": block,
            "block_index": index, "round": 0, "kind": kind })
}

pub(crate) fn tool_ref(attempt: &str, id: &str, index: u32, occurrence: &str, node: &str) -> Value {
    let mut value = block(attempt, id, index, "tool_ref");
    value["tool_call_id"] = json!("toolu_1");
    value["occurrence_id"] = json!(occurrence);
    value["ref_node_id"] = json!(node);
    value["tool_name"] = json!("read_file");
    value
}

pub(crate) fn delta(block: &str, offset: u64, text: &str) -> Value {
    json!({ "op": "block_delta", "block_id": block, "offset": offset, "delta": text })
}

/// Ends a block whose content is `text`.
pub(crate) fn end_block(block: &str, status: &str, text: &str) -> Value {
    json!({ "op": "block_finished", "block_id": block, "status": status,
            "bytes": text.len(), "sha256": sha256(text.as_bytes()) })
}

pub(crate) fn run_status(status: &str) -> Value {
    json!({ "op": "run_updated", "status": status })
}
