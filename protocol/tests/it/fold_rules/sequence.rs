//! `seq`, `generation`, offsets, versions, live state.

use protocol::fold::{Applied, Change, FoldError, Refusal};
use protocol::frame::{OpsFrame, ServerFrame};
use protocol::model::StreamState;
use protocol::op::{Entry, InvalidEntry};
use protocol::snapshot::Snapshot;
use serde_json::{Value, json};

use crate::support::{Story, block, delta, fresh, id, node, output, root, seen};

#[test]
fn a_known_seq_changes_nothing() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "a"));
    let before = seen(&story.state);
    for entry in story.entries.clone() {
        assert_eq!(story.state.apply(&entry), Ok(Applied::Duplicate));
    }
    assert_eq!(seen(&story.state), before);
}

#[test]
fn a_known_seq_changes_nothing_even_with_another_op() {
    let mut story = Story::begun();
    let mut entry = story.entry(node("exec_1", "call_1", "function", "occ_1", 0));
    entry.seq = 2;
    let before = seen(&story.state);
    assert_eq!(story.state.apply(&entry), Ok(Applied::Duplicate));
    assert_eq!(seen(&story.state), before);
}

#[test]
fn a_later_seq_is_a_gap_and_changes_nothing() {
    let mut state = fresh();
    let mut entry = Story::new().entry(root());
    entry.seq = 2;
    let before = seen(&state);
    assert_eq!(state.apply(&entry), Err(FoldError::Gap { known: 0, found: 2 }));
    entry.seq = u64::MAX;
    assert!(matches!(state.apply(&entry), Err(FoldError::Gap { .. })));
    assert_eq!(seen(&state), before);
}

#[test]
fn a_lower_generation_with_a_higher_seq_is_a_protocol_error() {
    let mut story = Story::new();
    story.generation = 3;
    story.ok(root());
    story.generation = 2;
    let error = FoldError::OldGeneration { known: 3, found: 2 };
    assert_eq!(story.error(node("call_1", "root_1", "model", "occ_1", 0)), error);
    let mut later = story.entry(root());
    later.seq = 9;
    assert_eq!(
        story.state.apply(&later),
        Err(error),
        "also where ops are missing"
    );
}

#[test]
fn an_entry_of_another_run_is_an_error() {
    let mut entry = Story::new().entry(root());
    entry.run_id = id("run_2");
    assert!(matches!(fresh().apply(&entry), Err(FoldError::OtherRun { .. })));
}

#[test]
fn a_refused_op_has_its_place_in_the_journal() {
    let mut story = Story::begun();
    story.refused(delta("blk_never", 0, "x"));
    assert_eq!(story.state.seq(), 4);
    story.ok(block("att_1", "blk_1", 0, "text"));
}

#[test]
fn a_smaller_offset_adds_only_what_is_not_known() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "añb"));
    assert_eq!(story.ok(delta("blk_1", 1, "ñ")), vec![]);
    assert_eq!(
        story.ok(delta("blk_1", 3, "bc")),
        vec![Change::BlockContent(id("blk_1"))]
    );
    assert_eq!(story.at("/blocks/0/content"), "añbc");
}

#[test]
fn an_overlap_that_differs_is_refused() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "añ"));
    let differs = Refusal::OverlapDiffers("blk_1".to_owned());
    assert_eq!(story.refused(delta("blk_1", 0, "xñz")), differs);
    assert_eq!(
        story.refused(delta("blk_1", 2, "z")),
        differs,
        "inside a character"
    );
}

#[test]
fn a_larger_offset_is_a_gap_and_changes_nothing() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    let gap = |thing: &str, known, offset| FoldError::TextGap {
        thing: thing.to_owned(),
        known,
        offset,
    };
    assert_eq!(story.error(delta("blk_1", 1, "x")), gap("blk_1", 0, 1));
    assert_eq!(
        story.error(output("exec_1", "log", 5, "x")),
        gap("exec_1 log", 0, 5)
    );
    story.ok(output("exec_1", "log", 0, "ab"));
    assert_eq!(
        story.error(output("exec_1", "log", 3, "x")),
        gap("exec_1 log", 2, 3)
    );
}

#[test]
fn each_channel_has_its_own_offset() {
    let mut story = Story::begun();
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    story.ok(output("exec_1", "arguments", 0, "{}"));
    story.ok(output("exec_1", "log", 0, "one"));
    story.ok(output("exec_1", "arguments", 2, " "));
    story.ok(output("exec_1", "log", 3, "two"));
    assert_eq!(
        story.at("/nodes/2/outputs/log"),
        json!({ "text": "onetwo", "bytes": 6 })
    );
    assert_eq!(story.at("/nodes/2/outputs/arguments/text"), "{} ");
}

/// The message with which an entry, a frame and a snapshot of another version stop.
const STOPS: &str = "schema_version 2 is not known; this reader speaks version 1";

#[test]
fn an_unknown_schema_version_of_an_entry_stops_with_a_clear_message() {
    let mut line = serde_json::to_value(Story::new().entry(root())).unwrap();
    line["schema_version"] = json!(2);
    let error = Entry::from_json(&line.to_string()).unwrap_err();
    assert_eq!(
        error,
        InvalidEntry::SchemaVersion {
            found: "2".to_owned()
        }
    );
    assert_eq!(error.to_string(), STOPS);
    for odd in [json!("1"), json!(null), json!(1.5)] {
        line["schema_version"] = odd;
        assert!(matches!(
            Entry::from_json(&line.to_string()),
            Err(InvalidEntry::SchemaVersion { .. })
        ));
    }
}

#[test]
fn an_unknown_schema_version_of_a_frame_or_snapshot_stops_with_a_clear_message() {
    fn message<T: serde::de::DeserializeOwned>(mut value: Value) -> String {
        assert!(serde_json::from_value::<T>(value.clone()).is_ok());
        value["schema_version"] = json!(2);
        serde_json::from_value::<T>(value).err().unwrap().to_string()
    }
    let story = Story::begun();
    let ops = ServerFrame::ExecutionStream(OpsFrame {
        schema_version: 1,
        run_id: id("run_1"),
        generation: 1,
        seq: 1,
        at: 0,
        ops: story.entries.iter().map(|entry| entry.op.clone()).collect(),
    });
    assert_eq!(message::<ServerFrame>(serde_json::to_value(ops).unwrap()), STOPS);
    let begin = ServerFrame::SnapshotBegin {
        schema_version: 1,
        run: story.state.run().clone(),
        reset: false,
    };
    assert_eq!(
        message::<ServerFrame>(serde_json::to_value(begin).unwrap()),
        STOPS
    );
    assert_eq!(
        message::<Snapshot>(serde_json::to_value(story.state.to_snapshot()).unwrap()),
        STOPS
    );
}

#[test]
fn the_ops_of_a_frame_have_consecutive_seq_from_its_first() {
    let frame = OpsFrame {
        schema_version: 1,
        run_id: id("run_1"),
        generation: 4,
        seq: 7,
        at: 99,
        ops: vec![
            crate::support::op(root()),
            crate::support::op(delta("blk_1", 0, "x")),
        ],
    };
    let entries: Vec<Entry> = frame.clone().into_entries().collect();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [7, 8]);
    assert!(
        entries
            .iter()
            .all(|entry| entry.generation == 4 && entry.at == 99)
    );
    let last = OpsFrame {
        seq: u64::MAX,
        ..frame
    };
    assert_eq!(last.into_entries().count(), 2, "no number is too large");
}

#[test]
fn a_lower_live_state_is_ignored_and_none_is_compared() {
    let mut story = Story::begun();
    let stream = |n: u64, state: &str| -> StreamState {
        serde_json::from_value(
            json!({ "run_id": "run_1", "node_id": "call_1", "attempt_id": "att_1",
                                       "state": state, "n": n }),
        )
        .unwrap()
    };
    let (before, digest) = (seen(&story.state), protocol::digest::digest(&story.state));
    assert!(story.state.set_stream(stream(2, "streaming")));
    assert!(!story.state.set_stream(stream(1, "waiting_first_token")));
    assert!(!story.state.set_stream(stream(2, "settled")));
    let known = story.state.stream(&id("call_1")).unwrap();
    assert_eq!(known.state.as_str(), "streaming");
    assert_eq!(seen(&story.state), before);
    assert_eq!(protocol::digest::digest(&story.state), digest);
    assert_eq!(story.state.to_snapshot().streams.len(), 1);
}
