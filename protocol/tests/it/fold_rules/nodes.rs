//! Nodes, approvals, messages and the run.

use protocol::fold::{Change, MAX_HELD, Refusal};
use protocol::id::NodeId;
use protocol::state::Channel;
use serde_json::{Value, json};

use crate::support::{
    Story, end_node, end_node_with, id, node, node_status, output, root, run_status, through_json,
};

fn closed(thing: &str) -> Refusal {
    Refusal::Closed(thing.to_owned())
}

/// A run with a function node below the model node.
fn with_function() -> Story {
    let mut story = Story::begun();
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    story
}

#[test]
fn children_are_in_the_order_of_their_ordinal() {
    let mut story = Story::begun();
    for (name, ordinal) in [("exec_c", 2), ("exec_a", 0), ("exec_b", 1)] {
        story.ok(node(
            name,
            "call_1",
            "function",
            &format!("occ_{ordinal}"),
            ordinal,
        ));
    }
    let order: Vec<&NodeId> = story
        .state
        .children(&id("call_1"))
        .map(|node| &node.node_id)
        .collect();
    assert_eq!(order, [&id("exec_a"), &id("exec_b"), &id("exec_c")]);
    assert_eq!(story.state.root().unwrap().node_id, id("root_1"));
}

#[test]
fn completion_changes_the_state_only_and_never_the_order() {
    let mut story = Story::begun();
    for (name, ordinal) in [("exec_a", 0), ("exec_b", 1), ("exec_c", 2)] {
        story.ok(node(
            name,
            "call_1",
            "function",
            &format!("occ_{ordinal}"),
            ordinal,
        ));
    }
    for name in ["exec_c", "exec_a", "exec_b"] {
        story.ok(end_node(name, "succeeded"));
    }
    let order: Vec<&NodeId> = story
        .state
        .children(&id("call_1"))
        .map(|node| &node.node_id)
        .collect();
    assert_eq!(order, [&id("exec_a"), &id("exec_b"), &id("exec_c")]);
}

#[test]
fn updates_that_come_before_their_node_are_held_and_applied_when_it_comes() {
    let mut story = Story::begun();
    assert_eq!(story.ok(node_status("exec_1", "running")), vec![]);
    story.ok(output("exec_1", "log", 0, "early"));
    story.ok(end_node("exec_1", "failed"));
    story.state = through_json(&story.state);
    assert_eq!(story.at("/held").as_array().unwrap().len(), 3);
    let changes = story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    assert!(changes.contains(&Change::Output(id("exec_1"), Channel::Log)));
    assert_eq!(story.at("/nodes/2/status"), "failed");
    assert_eq!(story.at("/nodes/2/outputs/log/text"), "early");
    assert_eq!(
        story.at("/nodes/2/started_at"),
        story.entries[3].at,
        "the time of its own op"
    );
    assert_eq!(story.at("/held"), Value::Null);
}

#[test]
fn held_updates_of_other_nodes_go_on_waiting() {
    let mut story = Story::begun();
    story.ok(node_status("exec_1", "running"));
    story.ok(node_status("exec_2", "running"));
    story.ok(node("exec_2", "call_1", "function", "occ_2", 0));
    assert_eq!(story.at("/held/0/held/node_id"), "exec_1");
    assert_eq!(story.at("/held/1"), Value::Null);
}

#[test]
fn held_updates_are_bounded() {
    let mut story = Story::begun();
    for place in 0..MAX_HELD {
        let entry = story.entry(node_status(&format!("exec_{place}"), "running"));
        story.apply(serde_json::to_value(&entry.op).unwrap()).unwrap();
    }
    assert_eq!(
        story.refused(node_status("exec_x", "running")),
        Refusal::TooManyHeld
    );
    story.ok(node("exec_7", "call_1", "function", "occ_7", 0));
    story.ok(node_status("exec_x", "running"));
}

#[test]
fn late_ops_for_a_closed_node_are_refused() {
    let mut story = with_function();
    story.ok(output("exec_1", "result", 0, "done"));
    story.ok(end_node_with("exec_1", "succeeded", "done"));
    for late in [
        node_status("exec_1", "running"),
        json!({ "op": "node_updated", "node_id": "exec_1", "title": "late" }),
        output("exec_1", "result", 4, "!"),
        output("exec_1", "result", 0, "done"),
        end_node("exec_1", "failed"),
        json!({ "op": "approval_requested", "node_id": "exec_1", "approval_id": "apr_1", "what": "?" }),
    ] {
        assert_eq!(story.refused(late), closed("exec_1"));
    }
}

#[test]
fn an_update_of_a_node_never_blanks_a_field_that_it_leaves_out() {
    let mut story = with_function();
    story.ok(
        json!({ "op": "node_updated", "node_id": "exec_1", "status": "running", "title": "Reads a file",
                     "progress": { "done": 1, "total": 2, "note": "half" }, "started_at": 5 }),
    );
    let before = story.at("/nodes/2");
    story.ok(json!({ "op": "node_updated", "node_id": "exec_1" }));
    assert_eq!(story.at("/nodes/2"), before);
    story.ok(json!({ "op": "node_updated", "node_id": "exec_1", "title": "Reads on" }));
    for field in ["status", "progress", "started_at", "name", "occurrence_id"] {
        assert_eq!(story.at(&format!("/nodes/2/{field}")), before[field], "{field}");
    }
    assert_eq!(story.at("/nodes/2/title"), "Reads on");
}

#[test]
fn a_node_that_runs_is_never_pending_again_and_no_update_ends_it() {
    let mut story = with_function();
    story.ok(node_status("exec_1", "pending"));
    story.ok(node_status("exec_1", "awaiting_approval"));
    story.ok(node_status("exec_1", "running"));
    for status in ["pending", "succeeded", "failed", "not_run"] {
        let refusal = Refusal::Transition {
            thing: "exec_1".to_owned(),
            status: status.to_owned(),
        };
        assert_eq!(story.refused(node_status("exec_1", status)), refusal);
    }
    assert!(matches!(
        story.refused(end_node("exec_1", "running")),
        Refusal::Transition { .. }
    ));
}

#[test]
fn the_start_of_a_node_is_when_it_first_ran() {
    let mut story = with_function();
    story.ok(node_status("exec_1", "awaiting_approval"));
    assert_eq!(story.at("/nodes/2/started_at"), Value::Null);
    story.ok(node_status("exec_1", "running"));
    let first = story.entries[5].at;
    story.ok(node_status("exec_1", "running"));
    assert_eq!(story.at("/nodes/2/started_at"), first);
    assert_eq!(story.at("/nodes/2/announced_at"), story.entries[3].at);
}

#[test]
fn an_end_keeps_its_error_and_exit_code() {
    let mut story = with_function();
    let mut end = end_node("exec_1", "failed");
    end["error"] = json!({ "code": "exit", "message": "it failed" });
    end["exit_code"] = json!(3);
    story.ok(end);
    assert_eq!(story.at("/nodes/2/error/code"), "exit");
    assert_eq!(story.at("/nodes/2/exit_code"), 3);
    assert_eq!(story.at("/nodes/2/finished_at"), 1_790_000_009_000_i64);
}

#[test]
fn output_that_did_not_all_come_says_where_the_whole_is() {
    let mut story = with_function();
    story.ok(output("exec_1", "result", 0, "the start"));
    story.ok(end_node_with("exec_1", "succeeded", "the start and the rest"));
    assert_eq!(story.at("/nodes/2/outputs/result/text"), "the start");
    assert_eq!(story.at("/nodes/2/outputs/result/bytes"), 22);
    assert_eq!(story.at("/nodes/2/outputs/result/content_ref/bytes"), 22);
}

#[test]
fn output_that_came_whole_is_closed_with_its_hash_and_needs_no_reference() {
    let mut story = with_function();
    story.ok(output("exec_1", "result", 0, "whole"));
    story.ok(end_node_with("exec_1", "succeeded", "whole"));
    assert_eq!(
        story.at("/nodes/2/outputs/result"),
        json!({ "text": "whole", "bytes": 5, "media_type": "text/plain",
                "sha256": protocol::digest::sha256(b"whole") })
    );
}

#[test]
fn an_approval_is_answered_once() {
    let mut story = with_function();
    let request =
        json!({ "op": "approval_requested", "node_id": "exec_1", "approval_id": "apr_1", "what": "Run it?" });
    let mut answer = json!({ "op": "approval_resolved", "node_id": "exec_1", "approval_id": "apr_1",
                             "answer": "approve", "by": "ada", "words": "go on" });
    assert_eq!(
        story.refused(answer.clone()),
        Refusal::Unknown("apr_1".to_owned())
    );
    story.ok(request.clone());
    assert_eq!(story.ok(request), vec![], "asked twice is one request");
    story.ok(answer.clone());
    assert_eq!(story.at("/approvals/0/resolution/words"), "go on");
    answer["answer"] = json!("deny");
    assert_eq!(story.refused(answer), closed("apr_1"));
}

#[test]
fn messages_stay_in_order_and_change_their_state_only() {
    let mut story = Story::new();
    for (name, text) in [("msg_1", "first"), ("msg_2", "second")] {
        story.ok(json!({ "op": "message_added", "message_id": name, "role": "user", "text": text }));
    }
    story.ok(json!({ "op": "message_added", "message_id": "msg_1", "role": "user", "text": "other" }));
    story.ok(json!({ "op": "message_updated", "message_id": "msg_1", "state": "delivered" }));
    assert_eq!(story.at("/messages/0/text"), "first");
    assert_eq!(story.at("/messages/0/state"), "delivered");
    assert_eq!(story.at("/messages/1/state"), "queued");
    let never = json!({ "op": "message_updated", "message_id": "msg_9", "state": "delivered" });
    assert_eq!(story.refused(never), Refusal::Unknown("msg_9".to_owned()));
}

#[test]
fn an_update_of_the_run_never_blanks_its_usage_and_an_error_ends_with_its_end() {
    let mut story = Story::new();
    story.ok(root());
    story.ok(json!({ "op": "run_updated", "status": "running", "usage": { "input_tokens": 1, "output_tokens": 2 } }));
    story.ok(run_status("waiting"));
    assert_eq!(story.at("/run/usage/output_tokens"), 2);
    story.ok(json!({ "op": "run_updated", "status": "failed", "error": { "code": "limit_rounds", "message": "50" } }));
    story.ok(run_status("failed"));
    assert_eq!(story.at("/run/error/code"), "limit_rounds");
    assert_eq!(story.at("/run/usage/output_tokens"), 2);
}

#[test]
fn a_withheld_op_takes_its_seq_and_changes_nothing() {
    let mut story = Story::begun();
    let before = crate::support::seen_without_seq(&story.state);
    assert_eq!(story.ok(json!({ "op": "withheld" })), vec![]);
    assert_eq!(crate::support::seen_without_seq(&story.state), before);
    assert_eq!(story.state.seq(), 4);
}
