//! Attempts and blocks: order, closing, groups, occurrences.

use protocol::fold::{Change, Refusal};
use serde_json::{Value, json};

use crate::support::{
    Story, attempt, block, delta, end_attempt, end_block, end_node, id, node, run_status, through_json,
    tool_ref,
};

fn closed(thing: &str) -> Refusal {
    Refusal::Closed(thing.to_owned())
}

fn update(block: &str, field: &str, value: Value) -> Value {
    json!({ "op": "block_updated", "block_id": block, field: value })
}

fn group(id: &str, index: u32, group: &str, members: &[&str]) -> Value {
    let mut value = block("att_1", id, index, "parallel_group");
    value["group_id"] = json!(group);
    value["members"] = json!(members);
    value
}

#[test]
fn blocks_are_ordered_by_index_not_by_arrival() {
    let mut story = Story::begun();
    for (name, index) in [("blk_c", 2), ("blk_a", 0), ("blk_b", 1)] {
        story.ok(block("att_1", name, index, "text"));
    }
    let order: Vec<&str> = story
        .state
        .blocks_of(&id("att_1"))
        .map(|block| block.block_id.as_str())
        .collect();
    assert_eq!(order, ["blk_a", "blk_b", "blk_c"]);
    assert_eq!(
        story.state.block_at(&id("att_1"), 1).unwrap().block_id,
        id("blk_b")
    );
    assert!(story.state.block_at(&id("att_1"), 3).is_none());
}

#[test]
fn a_place_that_another_block_has_is_refused() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    assert_eq!(
        story.refused(block("att_1", "blk_2", 0, "text")),
        Refusal::TakenPlace(id("blk_2"))
    );
}

#[test]
fn a_thing_that_is_started_twice_is_one() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "kept"));
    assert_eq!(story.ok(block("att_1", "blk_1", 0, "text")), vec![]);
    assert_eq!(story.ok(attempt("call_1", "att_1", 0, "initial")), vec![]);
    assert_eq!(story.ok(node("call_1", "root_1", "model", "occ_m1", 0)), vec![]);
    assert_eq!(story.at("/blocks/0/content"), "kept");
    assert_eq!(story.at("/blocks/1"), Value::Null);
}

#[test]
fn a_repeated_occurrence_makes_one_row() {
    let mut story = Story::begun();
    story.ok(tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1"));
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    let repeated = Refusal::RepeatedOccurrence(id("occ_1"));
    assert_eq!(
        story.refused(tool_ref("att_1", "blk_2", 1, "occ_1", "exec_2")),
        repeated
    );
    assert_eq!(
        story.refused(node("exec_2", "call_1", "function", "occ_1", 1)),
        repeated
    );
    story.state = through_json(&story.state);
    assert_eq!(
        story.refused(tool_ref("att_1", "blk_2", 1, "occ_1", "exec_2")),
        repeated
    );
    assert_eq!(
        story.refused(node("exec_2", "call_1", "function", "occ_1", 1)),
        repeated
    );
}

#[test]
fn a_repeated_tool_call_id_makes_two_rows() {
    let mut story = Story::begun();
    story.ok(tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1"));
    story.ok(tool_ref("att_1", "blk_2", 1, "occ_2", "exec_2"));
    assert_eq!(
        story.at("/blocks/0/tool_call_id"),
        story.at("/blocks/1/tool_call_id")
    );
    assert_eq!(
        story.state.block_of_occurrence(&id("occ_2")).unwrap().block_id,
        id("blk_2")
    );
}

#[test]
fn a_placeholder_row_is_filled_when_its_node_comes() {
    let mut story = Story::begun();
    story.ok(tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1"));
    assert!(story.state.node(&id("exec_1")).is_none());
    assert_eq!(
        story.state.block_of_node(&id("exec_1")).unwrap().block_id,
        id("blk_1")
    );
    let changes = story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    assert_eq!(
        changes,
        [Change::NodeAdded(id("exec_1")), Change::Block(id("blk_1"))]
    );
    assert_eq!(story.at("/blocks/0/block_id"), "blk_1");
    assert_eq!(story.at("/blocks/1"), Value::Null);
}

#[test]
fn a_reference_that_is_set_later_points_at_its_node() {
    let mut story = Story::begun();
    let mut unresolved = tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1");
    unresolved.as_object_mut().unwrap().remove("ref_node_id");
    story.ok(unresolved);
    assert!(story.state.block_of_node(&id("exec_1")).is_none());
    story.ok(update("blk_1", "ref_node_id", json!("exec_1")));
    assert_eq!(
        story.state.block_of_node(&id("exec_1")).unwrap().block_id,
        id("blk_1")
    );
}

#[test]
fn pointer_blocks_are_complete_when_they_are_published() {
    let mut story = Story::begun();
    story.ok(tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1"));
    story.ok(group("blk_2", 1, "par_1", &["blk_1"]));
    for (place, name) in [(0, "blk_1"), (1, "blk_2")] {
        assert_eq!(story.at(&format!("/blocks/{place}/status")), "complete");
        assert_eq!(story.refused(end_block(name, "complete", "")), closed(name));
        assert_eq!(story.refused(delta(name, 0, "x")), closed(name));
    }
    story.ok(block("att_1", "blk_3", 2, "text"));
    assert_eq!(story.at("/blocks/2/status"), "streaming");
}

#[test]
fn a_pointer_block_joins_its_group_late_also_after_its_attempt_closed() {
    let mut story = Story::begun();
    story.ok(tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1"));
    story.ok(end_attempt("call_1", "att_1", "completed"));
    assert_eq!(
        story.ok(update("blk_1", "group_id", json!("par_1"))),
        [Change::Block(id("blk_1"))]
    );
    assert_eq!(story.at("/blocks/0/group_id"), "par_1");
}

#[test]
fn the_members_of_a_group_never_change() {
    let mut story = Story::begun();
    story.ok(group("blk_1", 0, "par_1", &["blk_2", "blk_3"]));
    story.ok(update("blk_1", "members", json!(["blk_2", "blk_3"])));
    assert_eq!(
        story.refused(update("blk_1", "members", json!(["blk_3", "blk_2"]))),
        closed("blk_1")
    );
    assert_eq!(
        story.refused(update("blk_1", "group_id", json!("par_2"))),
        closed("blk_1")
    );
}

#[test]
fn an_update_of_a_block_never_blanks_a_field_that_it_leaves_out() {
    let mut story = Story::begun();
    let mut value = tool_ref("att_1", "blk_1", 0, "occ_1", "exec_1");
    value["group_id"] = json!("par_1");
    story.ok(value);
    let before = story.at("/blocks/0");
    story.ok(json!({ "op": "block_updated", "block_id": "blk_1" }));
    assert_eq!(story.at("/blocks/0"), before);
    story.ok(update("blk_1", "tool_name", json!("list_dir")));
    for field in ["group_id", "ref_node_id", "occurrence_id", "tool_call_id"] {
        assert_eq!(story.at(&format!("/blocks/0/{field}")), before[field], "{field}");
    }
    story.ok(block("att_1", "blk_2", 1, "reasoning"));
    story.ok(update("blk_2", "retention", json!("not_saved")));
    story.ok(update("blk_2", "note", json!("later")));
    assert_eq!(story.at("/blocks/1/retention"), "not_saved");
}

#[test]
fn late_ops_for_a_closed_block_are_refused() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "reasoning"));
    story.ok(delta("blk_1", 0, "whole"));
    story.ok(end_block("blk_1", "cut", "whole"));
    for late in [
        delta("blk_1", 5, "x"),
        delta("blk_1", 0, "whole"),
        end_block("blk_1", "complete", "whole"),
        update("blk_1", "retention", json!("not_saved")),
    ] {
        assert_eq!(story.refused(late), closed("blk_1"));
    }
}

#[test]
fn late_ops_for_a_closed_attempt_are_refused() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "a"));
    story.ok(end_attempt("call_1", "att_1", "stalled"));
    assert_eq!(story.refused(block("att_1", "blk_2", 1, "text")), closed("att_1"));
    assert_eq!(story.refused(delta("blk_1", 1, "b")), closed("att_1"));
    assert_eq!(
        story.refused(end_attempt("call_1", "att_1", "completed")),
        closed("att_1")
    );
    story.ok(end_block("blk_1", "cut", "a"));
}

#[test]
fn a_block_that_never_came_cannot_change() {
    let mut story = Story::begun();
    let unknown = Refusal::Unknown("blk_9".to_owned());
    assert_eq!(story.refused(delta("blk_9", 0, "x")), unknown);
    assert_eq!(story.refused(end_block("blk_9", "cut", "")), unknown);
    assert_eq!(story.refused(update("blk_9", "tool_name", json!("x"))), unknown);
    assert_eq!(
        story.refused(block("att_9", "blk_9", 0, "text")),
        Refusal::Unknown("att_9".to_owned())
    );
    assert_eq!(
        story.refused(attempt("call_9", "att_9", 0, "initial")),
        Refusal::Unknown("call_9".to_owned())
    );
}

#[test]
fn only_a_final_state_ends_a_block_or_an_attempt() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    let ends = [
        end_block("blk_1", "streaming", ""),
        end_attempt("call_1", "att_1", "running"),
    ];
    for value in ends {
        assert!(matches!(story.refused(value), Refusal::Transition { .. }));
    }
}

#[test]
fn a_closed_attempt_may_become_superseded_once_and_keeps_what_it_was() {
    let mut story = Story::begun();
    let mut end = end_attempt("call_1", "att_1", "completed");
    end["stop_reason"] = json!("end_turn");
    end["usage"] = json!({ "input_tokens": 3, "output_tokens": 5 });
    story.ok(end);
    let before = story.at("/attempts/0");
    story.ok(end_attempt("call_1", "att_1", "superseded"));
    assert_eq!(story.at("/attempts/0/status"), "superseded");
    for field in ["stop_reason", "usage", "finished_at", "started_at"] {
        assert_eq!(
            story.at(&format!("/attempts/0/{field}")),
            before[field],
            "{field}"
        );
    }
    assert_eq!(
        story.refused(end_attempt("call_1", "att_1", "superseded")),
        closed("att_1")
    );
    assert_eq!(
        story.refused(end_attempt("call_1", "att_1", "completed")),
        closed("att_1")
    );
}

#[test]
fn attempts_are_ordered_by_index_and_never_share_blocks() {
    let mut story = Story::begun();
    story.ok(attempt("call_1", "att_3", 2, "error_retry"));
    story.ok(attempt("call_1", "att_2", 1, "stall_retry"));
    story.ok(block("att_2", "blk_1", 0, "text"));
    story.ok(block("att_3", "blk_2", 0, "text"));
    let order: Vec<&str> = story
        .state
        .attempts_of(&id("call_1"))
        .map(|one| one.attempt_id.as_str())
        .collect();
    assert_eq!(order, ["att_1", "att_2", "att_3"]);
    assert_eq!(story.state.blocks_of(&id("att_2")).count(), 1);
}

#[test]
fn a_model_node_and_its_run_reopen_only_by_resume_or_regenerate() {
    for reason in ["resume", "regenerate"] {
        let mut story = Story::begun();
        story.ok(end_attempt("call_1", "att_1", "interrupted"));
        story.ok(end_node("call_1", "interrupted"));
        story.ok(end_node("root_1", "interrupted"));
        story.ok(json!({ "op": "run_updated", "status": "interrupted",
                         "error": { "code": "owner_gone", "message": "gone" } }));
        for other in [
            "initial",
            "stall_retry",
            "error_retry",
            "provider_rotation",
            "output_repair",
            "legacy",
        ] {
            assert_eq!(
                story.refused(attempt("call_1", "att_2", 1, other)),
                closed("call_1")
            );
        }
        for status in ["running", "queued", "waiting"] {
            assert_eq!(story.refused(run_status(status)), closed("run_1"));
        }
        let changes = story.ok(attempt("call_1", "att_2", 1, reason));
        assert!(changes.contains(&Change::Run) && changes.contains(&Change::Node(id("call_1"))));
        for pointer in ["/run/status", "/nodes/0/status", "/nodes/1/status"] {
            assert_eq!(story.at(pointer), "running", "{pointer}");
        }
        assert_eq!(story.at("/run/error"), Value::Null);
        story.ok(end_attempt("call_1", "att_2", "completed"));
        story.ok(end_node("call_1", "succeeded"));
        story.ok(run_status("succeeded"));
    }
}

#[test]
fn a_function_node_never_reopens() {
    let mut story = Story::begun();
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    story.ok(node("call_2", "exec_1", "model", "occ_2", 0));
    story.ok(attempt("call_2", "att_2", 0, "initial"));
    story.ok(end_attempt("call_2", "att_2", "interrupted"));
    story.ok(end_node("call_2", "interrupted"));
    story.ok(end_node("exec_1", "interrupted"));
    assert_eq!(
        story.refused(attempt("exec_1", "att_3", 0, "resume")),
        closed("exec_1")
    );
    story.ok(attempt("call_2", "att_4", 1, "resume"));
    assert_eq!(story.at("/nodes/2/status"), "interrupted");
    assert_eq!(story.at("/nodes/3/status"), "running");
}

#[test]
fn content_that_did_not_all_come_says_where_the_whole_is() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "the start"));
    story.ok(end_block("blk_1", "complete", "the start and the rest"));
    assert_eq!(story.at("/blocks/0/content_ref/bytes"), 22);
    assert_eq!(story.at("/blocks/0/content"), "the start");
    let mut unsaved = block("att_1", "blk_2", 1, "reasoning");
    unsaved["retention"] = json!("not_saved");
    story.ok(unsaved);
    story.ok(end_block("blk_2", "complete", "shown live only"));
    assert_eq!(
        story.at("/blocks/1/content_ref"),
        Value::Null,
        "there is no whole"
    );
}

#[test]
fn reasoning_that_is_not_saved_goes_on_after_a_hole() {
    let mut story = Story::begun();
    let mut unsaved = block("att_1", "blk_1", 0, "reasoning");
    unsaved["retention"] = json!("not_saved");
    story.ok(unsaved);
    story.ok(delta("blk_1", 0, "seen, "));
    story.ok(json!({"op": "withheld"}));
    story.ok(delta("blk_1", 20, "seen "));
    story.ok(delta("blk_1", 25, "again"));
    assert_eq!(story.at("/blocks/0/content"), "seen, seen again");
}

#[test]
fn the_times_of_attempts_and_blocks_are_those_of_their_ops() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(end_block("blk_1", "complete", ""));
    story.ok(end_attempt("call_1", "att_1", "completed"));
    let at: Vec<i64> = story.entries.iter().map(|entry| entry.at).collect();
    assert_eq!(story.at("/attempts/0/started_at"), at[2]);
    assert_eq!(story.at("/blocks/0/started_at"), at[3]);
    assert_eq!(story.at("/blocks/0/finished_at"), at[4]);
    assert_eq!(story.at("/attempts/0/finished_at"), at[5]);
}
