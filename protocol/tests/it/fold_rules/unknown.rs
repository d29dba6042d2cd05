//! What this version does not know is kept and shown, never dropped and never in the way.

use protocol::fold::Change;
use protocol::op::Entry;
use serde_json::{Value, json};

use crate::support::{
    Story, attempt, block, delta, end_block, end_node, id, node, node_status, op, root, run_status, seen,
    through_json,
};

/// Adds a field that no version knows.
fn with(mut op: Value, name: &str) -> Value {
    op[name] = json!({ "deep": [1, "two", null] });
    op
}

#[test]
fn an_unknown_op_is_kept_as_it_came_and_survives_a_snapshot() {
    let mut story = Story::begun();
    let unknown = json!({ "op": "hologram_projected", "node_id": "call_1", "volume": [1, 2, 3] });
    assert_eq!(story.ok(unknown.clone()), [Change::Unknown]);
    assert_eq!(story.at("/unknown/0"), unknown);
    assert_eq!(seen(&through_json(&story.state)), seen(&story.state));
}

#[test]
fn an_unknown_field_is_kept_in_its_thing_and_survives_a_snapshot() {
    let mut story = Story::new();
    story.ok(with(run_status("running"), "x_run"));
    story.ok(with(
        json!({ "op": "message_added", "message_id": "msg_1", "role": "user", "text": "hi" }),
        "x_message",
    ));
    story.ok(with(root(), "x_root"));
    story.ok(with(node("call_1", "root_1", "model", "occ_1", 0), "x_node"));
    story.ok(with(node_status("call_1", "running"), "x_node_update"));
    story.ok(with(attempt("call_1", "att_1", 0, "initial"), "x_attempt"));
    story.ok(with(block("att_1", "blk_1", 0, "text"), "x_block"));
    story.ok(with(end_block("blk_1", "complete", ""), "x_block_end"));
    story.ok(with(
        json!({ "op": "approval_requested", "node_id": "call_1", "approval_id": "apr_1", "what": "?" }),
        "x_approval",
    ));
    story.ok(with(
        json!({ "op": "notice", "code": "outage", "detail": "wait" }),
        "x_notice",
    ));
    story.ok(with(end_node("call_1", "succeeded"), "x_node_end"));
    story.state = through_json(&story.state);
    for pointer in [
        "/run/x_run",
        "/messages/0/x_message",
        "/nodes/0/x_root",
        "/nodes/1/x_node",
        "/nodes/1/x_node_update",
        "/nodes/1/x_node_end",
        "/attempts/0/x_attempt",
        "/blocks/0/x_block",
        "/blocks/0/x_block_end",
        "/approvals/0/x_approval",
        "/notices/0/x_notice",
    ] {
        assert_eq!(story.at(pointer)["deep"][1], "two", "{pointer}");
    }
}

/// A field that is not an op's own, but its thing's, would stand twice in a snapshot, which no reader takes.
#[test]
fn a_field_of_the_thing_that_is_not_the_op_s_own_changes_nothing() {
    let mut story = Story::new();
    let mut run = run_status("running");
    run["session_id"] = json!("ses_other");
    run["last_seq"] = json!(99);
    story.ok(run);
    let mut message = json!({ "op": "message_added", "message_id": "msg_1", "role": "user", "text": "hi" });
    message["state"] = json!("returned");
    story.ok(message);
    story.ok(root());
    let mut model = node("call_1", "root_1", "model", "occ_1", 0);
    model["status"] = json!("succeeded");
    model["finished_at"] = json!(1);
    story.ok(model);
    let mut first = attempt("call_1", "att_1", 0, "initial");
    first["stop_reason"] = json!("end_turn");
    story.ok(first);
    let mut text = block("att_1", "blk_1", 0, "text");
    text["status"] = json!("cut");
    text["sha256"] = json!("00");
    story.ok(text);
    let mut end = end_block("blk_1", "complete", "");
    end["content"] = json!("smuggled");
    story.ok(end);
    let mut asked =
        json!({ "op": "approval_requested", "node_id": "call_1", "approval_id": "apr_1", "what": "?" });
    asked["resolution"] = json!({ "answer": "approve", "by": "nobody", "at": 0 });
    story.ok(asked);
    assert_eq!(story.at("/run/session_id"), "ses_1");
    assert_eq!(story.at("/messages/0/state"), "queued");
    assert_eq!(story.at("/nodes/1/status"), "pending");
    assert_eq!(story.at("/attempts/0/stop_reason"), Value::Null);
    assert_eq!(story.at("/blocks/0/content"), "");
    assert_eq!(story.at("/approvals/0/resolution"), Value::Null);
    assert_eq!(seen(&through_json(&story.state)), seen(&story.state));
}

#[test]
fn an_op_never_contradicts_its_envelope() {
    let inner = op(
        json!({ "op": "notice", "code": "outage", "detail": "", "seq": 99, "run_id": "run_other", "at": 0 }),
    );
    let mut entry = Story::new().entry(root());
    entry.op = inner;
    let read = Entry::from_json(&serde_json::to_string(&entry).unwrap()).unwrap();
    assert_eq!(read, entry);
    assert_eq!((read.seq, read.run_id), (1, id("run_1")));
}

#[test]
fn a_block_of_an_unknown_kind_is_shown_as_unsupported_with_its_fields_and_size() {
    let mut story = Story::begun();
    let mut chart = block("att_1", "blk_1", 0, "chart");
    chart["axes"] = json!(["x", "y"]);
    chart["members"] = json!("not what a group has");
    story.ok(chart);
    story.ok(delta("blk_1", 0, "1,2,"));
    story.ok(delta("blk_1", 4, "3"));
    assert_eq!(story.at("/blocks/0/kind"), "unsupported");
    assert_eq!(story.at("/blocks/0/raw_kind"), "chart");
    assert_eq!(story.at("/blocks/0/bytes"), 5);
    story.ok(end_block("blk_1", "complete", "1,2,3"));
    story.state = through_json(&story.state);
    assert_eq!(story.at("/blocks/0/axes"), json!(["x", "y"]));
    assert_eq!(story.at("/blocks/0/members"), "not what a group has");
    assert_eq!(story.at("/blocks/0/bytes"), 5);
    assert_eq!(story.at("/blocks/0/status"), "complete");
}

#[test]
fn an_unsupported_block_keeps_its_size_when_it_ends() {
    let mut story = Story::begun();
    let mut image = block("att_1", "blk_1", 0, "unsupported");
    image["raw_kind"] = json!("image");
    image["bytes"] = json!(1_000);
    story.ok(image);
    story.ok(end_block("blk_1", "complete", ""));
    assert_eq!(story.at("/blocks/0/bytes"), 1_000);
    assert_eq!(seen(&through_json(&story.state)), seen(&story.state));
}

#[test]
fn a_block_that_began_with_text_keeps_it_in_the_journal() {
    let mut started = block("att_1", "blk_1", 0, "text");
    started["content"] = json!("from an older record");
    let mut story = Story::begun();
    story.ok(started);
    let entry = story.entries.last().unwrap();
    let read = Entry::from_json(&serde_json::to_string(entry).unwrap()).unwrap();
    assert_eq!(&read, entry);
    assert_eq!(entry.op.text_bytes(), 20);
    story.ok(delta("blk_1", 20, "."));
    assert_eq!(story.at("/blocks/0/content"), "from an older record.");
}
