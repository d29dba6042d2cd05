//! The wire form of every op, frame and thing, held as JSON; each reads back to what was written.

mod frames;
mod samples;

pub(crate) use frames::server_frame_names;
use protocol::op::{Entry, Op};
use protocol::snapshot::Snapshot;
use serde_json::Value;

use crate::support::{Story, id, seen, through_json};

/// The wire name of an op. A new op does not build without its place here, and then has to have its samples.
pub(crate) fn name(op: &Op) -> &'static str {
    match op {
        Op::RunUpdated(_) => "run_updated",
        Op::MessageAdded(_) => "message_added",
        Op::MessageUpdated(_) => "message_updated",
        Op::NodeStarted(_) => "node_started",
        Op::NodeUpdated(_) => "node_updated",
        Op::NodeOutput(_) => "node_output",
        Op::NodeFinished(_) => "node_finished",
        Op::ApprovalRequested(_) => "approval_requested",
        Op::ApprovalResolved(_) => "approval_resolved",
        Op::AttemptStarted(_) => "attempt_started",
        Op::AttemptFinished(_) => "attempt_finished",
        Op::BlockStarted(_) => "block_started",
        Op::BlockDelta(_) => "block_delta",
        Op::BlockUpdated(_) => "block_updated",
        Op::BlockFinished(_) => "block_finished",
        Op::Notice(_) => "notice",
        Op::Withheld(_) => "withheld",
        Op::Unknown(_) => "unknown",
    }
}

/// All names of ops that this version knows.
pub(crate) const NAMES: [&str; 17] = [
    "run_updated",
    "message_added",
    "message_updated",
    "node_started",
    "node_updated",
    "node_output",
    "node_finished",
    "approval_requested",
    "approval_resolved",
    "attempt_started",
    "attempt_finished",
    "block_started",
    "block_delta",
    "block_updated",
    "block_finished",
    "notice",
    "withheld",
];

fn journal(op: Op) -> Entry {
    Entry {
        run_id: id("run_01"),
        generation: 1,
        seq: 57,
        at: 1_790_000_000_000,
        op,
    }
}

/// Writes, reads and compares.
fn round_trip(op: Op) -> Value {
    let entry = journal(op);
    let line = serde_json::to_string(&entry).unwrap();
    assert_eq!(Entry::from_json(&line).unwrap(), entry, "{line}");
    serde_json::from_str(&line).unwrap()
}

#[test]
fn every_op_has_its_journal_form_and_reads_back() {
    for (sample, op) in samples::all() {
        let expected = sample.split('.').next().unwrap();
        assert_eq!(name(&op), expected, "{sample}");
        insta::assert_json_snapshot!(sample, round_trip(op));
    }
}

#[test]
fn every_op_has_samples_full_and_least() {
    let samples: Vec<&str> = samples::all().into_iter().map(|(sample, _)| sample).collect();
    for name in NAMES.iter().chain(["unknown"].iter()) {
        for form in ["full", "least"] {
            assert!(
                samples
                    .iter()
                    .any(|sample| sample.starts_with(&format!("{name}.{form}"))),
                "{name}.{form}"
            );
        }
    }
}

#[test]
fn an_op_reads_from_its_least_fields() {
    for (sample, op) in samples::all() {
        let mut value = serde_json::to_value(&op).unwrap();
        let object = value.as_object_mut().unwrap();
        // What has a meaning when it is empty may be left out.
        for field in ["after", "title", "outputs"] {
            if object
                .get(field)
                .is_some_and(|value| matches!(value.to_string().as_str(), "[]" | "{}" | "\"\""))
            {
                object.remove(field);
            }
        }
        assert_eq!(serde_json::from_value::<Op>(value).unwrap(), op, "{sample}");
    }
}

#[test]
fn a_known_op_with_a_wrong_field_says_which_op_and_what() {
    let line = serde_json::to_string(&journal(samples::all().swap_remove(0).1)).unwrap();
    let wrong = line.replace("\"failed\"", "\"fine\"");
    let message = Entry::from_json(&wrong).unwrap_err().to_string();
    assert!(
        message.contains("run_updated") && message.contains("fine"),
        "{message}"
    );
    for not_an_entry in ["", "null", "[]", "{", "{}", "{\"type\":\"snapshot\"}"] {
        assert!(Entry::from_json(not_an_entry).is_err(), "{not_an_entry}");
    }
}

#[test]
fn a_snapshot_has_its_form_and_reads_back() {
    let mut story = Story::new();
    for (sample, op) in samples::all() {
        // In the order of the samples these make a whole run; those of `least` form stand for other runs.
        if sample.contains(".full") || sample.starts_with("block_started") {
            story.apply(serde_json::to_value(&op).unwrap()).unwrap();
        }
    }
    story.state.set_stream(samples::stream_state());
    let snapshot = story.state.to_snapshot();
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
    assert_eq!(seen(&through_json(&story.state)), seen(&story.state));
    insta::assert_json_snapshot!("snapshot", snapshot);
}
