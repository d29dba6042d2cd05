//! A node's answer: the kept text along `continues_attempt_id` and the last attempt's, joined by a blank line.

use serde_json::json;

use crate::support::{Story, attempt, block, delta, end_attempt, end_block, id, tool_ref};

/// Writes a whole text block.
fn text(story: &mut Story, attempt: &str, name: &str, index: u32, text: &str) {
    story.ok(block(attempt, name, index, "text"));
    story.ok(delta(name, 0, text));
    story.ok(end_block(name, "complete", text));
}

fn answer(story: &Story) -> String {
    story.state.answer(&id("call_1"))
}

#[test]
fn a_node_without_attempts_has_an_empty_answer() {
    let mut story = Story::new();
    story.ok(crate::support::root());
    assert_eq!(story.state.answer(&id("root_1")), "");
    assert_eq!(story.state.answer(&id("call_unknown")), "");
}

#[test]
fn text_blocks_are_joined_by_a_blank_line_and_other_kinds_are_left_out() {
    let mut story = Story::begun();
    text(&mut story, "att_1", "blk_0", 0, "First.");
    story.ok(block("att_1", "blk_1", 1, "reasoning"));
    story.ok(delta("blk_1", 0, "thinking"));
    story.ok(tool_ref("att_1", "blk_2", 2, "occ_1", "exec_1"));
    text(&mut story, "att_1", "blk_3", 3, " \n ");
    text(&mut story, "att_1", "blk_4", 4, "Second.");
    story.ok(block("att_1", "blk_5", 5, "refusal"));
    story.ok(delta("blk_5", 0, "no"));
    assert_eq!(answer(&story), "First.\n\nSecond.");
}

#[test]
fn text_counts_by_index_not_by_arrival() {
    let mut story = Story::begun();
    text(&mut story, "att_1", "blk_b", 7, "Later.");
    text(&mut story, "att_1", "blk_a", 3, "Earlier.");
    assert_eq!(answer(&story), "Earlier.\n\nLater.");
}

#[test]
fn text_of_an_attempt_that_is_not_continued_is_left_out() {
    let mut story = Story::begun();
    text(&mut story, "att_1", "blk_0", 0, "Lost.");
    story.ok(end_attempt("call_1", "att_1", "stalled"));
    story.ok(attempt("call_1", "att_2", 1, "stall_retry"));
    text(&mut story, "att_2", "blk_1", 0, "Whole.");
    assert_eq!(answer(&story), "Whole.");
}

#[test]
fn only_the_kept_text_of_a_continued_attempt_is_used() {
    let mut story = Story::begun();
    text(&mut story, "att_1", "blk_0", 0, "One.");
    text(&mut story, "att_1", "blk_1", 1, "Two, and a tail");
    story.ok(end_attempt("call_1", "att_1", "stalled"));
    let mut next = attempt("call_1", "att_2", 1, "stall_retry");
    next["continues_attempt_id"] = json!("att_1");
    next["kept"] = json!({ "bytes": 8, "tokens": 2 });
    story.ok(next);
    text(&mut story, "att_2", "blk_2", 0, "Three.");
    assert_eq!(answer(&story), "One.\n\nTwo,\n\nThree.");
}

#[test]
fn kept_text_ends_at_a_character() {
    let mut story = Story::begun();
    text(&mut story, "att_1", "blk_0", 0, "a€b");
    story.ok(end_attempt("call_1", "att_1", "stalled"));
    let mut next = attempt("call_1", "att_2", 1, "stall_retry");
    next["continues_attempt_id"] = json!("att_1");
    next["kept"] = json!({ "bytes": 2, "tokens": 1 });
    story.ok(next);
    assert_eq!(answer(&story), "a");
}

#[test]
fn a_chain_of_several_attempts_is_followed_to_its_start() {
    let mut story = Story::begun();
    text(&mut story, "att_1", "blk_0", 0, "A");
    for (index, before, this, words) in [(1, "att_1", "att_2", "B"), (2, "att_2", "att_3", "C")] {
        story.ok(end_attempt("call_1", before, "interrupted"));
        let mut next = attempt("call_1", this, index, "resume");
        next["continues_attempt_id"] = json!(before);
        story.ok(next);
        text(&mut story, this, &format!("blk_{index}"), 0, words);
    }
    assert_eq!(answer(&story), "A\n\nB\n\nC");
}

#[test]
fn a_chain_that_bites_its_own_tail_is_cut() {
    let mut story = Story::begun();
    story.ok(end_attempt("call_1", "att_1", "failed"));
    let mut own = attempt("call_1", "att_2", 1, "error_retry");
    own["continues_attempt_id"] = json!("att_2");
    story.ok(own);
    text(&mut story, "att_2", "blk_0", 0, "Once.");
    assert_eq!(answer(&story), "Once.");
}
