//! A state of which a part is left out: the ops that follow, and what is added later, lead to the whole.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::Index;
use protocol::digest::digest;
use protocol::fold::{AddError, Applied, FoldError, RunState};
use protocol::id::{AttemptId, NodeId};
use protocol::model::{Block, BlockBody, BlockState};
use protocol::snapshot::{Assembler, LeftOut, Snapshot, split};
use protocol::state::Channel;
use serde_json::json;

use crate::history;
use crate::support::{
    Story, attempt, block, config, delta, end_block, end_node_with, fresh, id, node, output, seen, tool_ref,
};

/// A node with all that it called.
fn below(state: &RunState, node: &NodeId) -> Vec<NodeId> {
    let mut all = vec![node.clone()];
    let mut place = 0;
    while let Some(next) = all.get(place).cloned() {
        all.extend(state.children(&next).map(|child| child.node_id.clone()));
        place += 1;
    }
    all
}

/// The nodes that a block called; none when anything of it may still change.
fn called(state: &RunState, block: &Block) -> Option<Vec<NodeId>> {
    if block.state == BlockState::Streaming {
        return None;
    }
    let BlockBody::ToolRef(reference) = &block.body else {
        return Some(Vec::new());
    };
    let nodes = below(state, reference.ref_node_id.as_ref()?);
    let is_closed = |id| {
        state
            .node(id)
            .is_some_and(|node: &protocol::model::Node| node.state.end().is_some())
    };
    nodes.iter().all(is_closed).then_some(nodes)
}

/// Leaves out of a whole state the first blocks of its attempts, as many as a choice says and may be left out.
fn window(state: &RunState, choice: &Index) -> Snapshot {
    let mut snapshot = state.to_snapshot();
    let mut gone: HashSet<NodeId> = HashSet::new();
    for attempt in state.attempts() {
        if gone.contains(&attempt.node_id) {
            continue;
        }
        let count = state.blocks_of(&attempt.attempt_id).count();
        let mut to = 0;
        for block in state.blocks_of(&attempt.attempt_id).take(choice.index(count + 1)) {
            let Some(nodes) = called(state, block) else { break };
            gone.extend(nodes);
            to = block.block_index + 1;
        }
        if to > 0 {
            snapshot.left_out.push(LeftOut {
                attempt_id: attempt.attempt_id.clone(),
                from: 0,
                to,
            });
        }
    }
    snapshot.left_out.retain(|gap| {
        let attempt = state.attempt(&gap.attempt_id).unwrap();
        !gone.contains(&attempt.node_id)
    });
    let is_left_out = |block: &Block| {
        let mut gaps = snapshot.left_out.iter();
        gone.contains(&block.node_id)
            || gaps.any(|gap| gap.attempt_id == block.attempt_id && block.block_index < gap.to)
    };
    snapshot.blocks.retain(|block| !is_left_out(block));
    snapshot
        .attempts
        .retain(|attempt| !gone.contains(&attempt.node_id));
    snapshot.nodes.retain(|node| !gone.contains(&node.node_id));
    snapshot
}

/// The last blocks of what is left out of an attempt, with all that they called.
fn page(whole: &RunState, gap: &LeftOut, most: u32) -> Snapshot {
    let from = gap.to.saturating_sub(most).max(gap.from);
    let mut snapshot = whole.to_snapshot();
    let is_in = |block: &&Block| block.block_index >= from && block.block_index < gap.to;
    let nodes: HashSet<NodeId> = whole
        .blocks_of(&gap.attempt_id)
        .filter(is_in)
        .flat_map(|block| called(whole, block).unwrap())
        .collect();
    snapshot.blocks.retain(|block| {
        nodes.contains(&block.node_id) || (block.attempt_id == gap.attempt_id && is_in(&block))
    });
    snapshot.nodes.retain(|node| nodes.contains(&node.node_id));
    snapshot
        .attempts
        .retain(|attempt| nodes.contains(&attempt.node_id));
    snapshot.left_out = [(0, from), (gap.to, u32::MAX)]
        .into_iter()
        .map(|(from, to)| LeftOut {
            attempt_id: gap.attempt_id.clone(),
            from,
            to,
        })
        .collect();
    snapshot
}

/// Sends a snapshot over the wire in parts.
fn sent(snapshot: Snapshot) -> RunState {
    let parts = split(snapshot.clone(), 1024);
    let count = u32::try_from(parts.len()).unwrap();
    let mut assembler = Assembler::new(snapshot.run);
    for (number, part) in (0..).zip(parts) {
        let text = serde_json::to_string(&part).unwrap();
        assembler
            .add(number, serde_json::from_str(&text).unwrap())
            .unwrap();
    }
    RunState::from_snapshot(assembler.finish(count).unwrap())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_window_and_the_rest_and_what_was_left_out_are_the_whole(
        history in history::any(), cut in any::<Index>(), choice in any::<Index>(), most in 1_u32..4, first in any::<bool>(),
    ) {
        let cut = cut.index(history.entries.len() + 1);
        let mut whole = fresh();
        for entry in &history.entries[..cut] {
            whole.apply(entry).unwrap();
        }
        let mut state = sent(window(&whole, &choice));
        let fill = |state: &mut RunState, whole: &RunState| {
            while let Some(gap) = state.left_out().first().cloned() {
                state.add(page(whole, &gap, most)).unwrap();
            }
        };
        if first {
            fill(&mut state, &whole);
        }
        for entry in &history.entries[cut..] {
            whole.apply(entry).unwrap();
            match state.apply(entry) {
                Ok(Applied::Refused(refusal)) => panic!("{refusal}"),
                Ok(_) => {}
                // What is asked for more than it holds gets another window.
                Err(FoldError::LeftOut { .. }) => {
                    let known = std::mem::replace(&mut state, sent(window(&whole, &choice)));
                    state.keep_from(known);
                }
                Err(error) => panic!("{error}"),
            }
        }
        fill(&mut state, &whole);
        prop_assert_eq!(state.blocks().len(), whole.blocks().len());
        prop_assert_eq!(state.nodes().len(), whole.nodes().len());
        prop_assert!(state.is_whole());
        prop_assert_eq!(digest(&state), digest(&whole));
    }

    #[test]
    fn a_newer_window_keeps_what_an_older_state_holds(
        history in history::any(), cut in any::<Index>(), choice in any::<Index>(), limit in 0_usize..8,
    ) {
        let whole = history.straight();
        let mut known = fresh();
        for entry in &history.entries[..cut.index(history.entries.len() + 1)] {
            known.apply(entry).unwrap();
        }
        let mut snapshot = window(&whole, &choice);
        snapshot.shorten(limit);
        let mut state = sent(snapshot.clone());
        state.keep_from(known);
        prop_assert!(state.left_out().iter().all(|gap| snapshot.left_out.iter().any(|old| old.common(gap).as_ref() == Some(gap))));
        while let Some(gap) = state.left_out().first().cloned() {
            state.add(page(&whole, &gap, 3)).unwrap();
        }
        prop_assert_eq!(digest(&state), digest(&whole));
        // From a state that is as new nothing is missing.
        let mut same = sent(snapshot);
        same.keep_from(whole.clone());
        prop_assert!(same.left_out().is_empty());
        prop_assert_eq!(digest(&same), digest(&whole));
        let texts = |state: &RunState| -> usize {
            state.blocks().iter().filter_map(|block| block.body.content()).map(|content| content.text.len()).sum()
        };
        prop_assert_eq!(texts(&same), texts(&whole));
    }

    #[test]
    fn previews_and_the_rest_have_the_digest_of_the_whole(
        history in history::any(), cut in any::<Index>(), limit in 0_usize..8,
    ) {
        let cut = cut.index(history.entries.len() + 1);
        let mut state = fresh();
        for entry in &history.entries[..cut] {
            state.apply(entry).unwrap();
        }
        let mut snapshot = state.to_snapshot();
        snapshot.shorten(limit);
        let mut state = sent(snapshot);
        // What still grows may be shortened too, where it is counted on.
        let nodes: Vec<NodeId> = state.nodes().iter().map(|node| node.node_id.clone()).collect();
        for node in &nodes {
            for channel in Channel::ALL {
                state.shorten_output(node, *channel, limit);
            }
        }
        let mut state = sent(state.to_snapshot());
        for entry in &history.entries[cut..] {
            state.apply(entry).unwrap();
        }
        let straight = history.straight();
        for (short, whole) in state.nodes().iter().zip(straight.nodes()) {
            let bytes = |node: &protocol::model::Node| -> Vec<u64> { node.outputs.values().map(|output| output.bytes).collect() };
            prop_assert_eq!(bytes(short), bytes(whole));
        }
        if state.is_whole() {
            prop_assert_eq!(digest(&state), digest(&straight));
        }
    }
}

/// A story with three texts, the second of which called a node.
fn told() -> Story {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_0", 0, "text"));
    story.ok(delta("blk_0", 0, "hello"));
    story.ok(end_block("blk_0", "complete", "hello"));
    story.ok(tool_ref("att_1", "blk_1", 1, "occ_1", "exec_1"));
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    story.ok(output("exec_1", "result", 0, "hello"));
    story.ok(end_node_with("exec_1", "succeeded", "hello"));
    story.ok(block("att_1", "blk_2", 2, "text"));
    story
}

fn without(story: &Story, to: u32) -> RunState {
    let mut snapshot = story.state.to_snapshot();
    snapshot.blocks.retain(|block| block.block_index >= to);
    snapshot.nodes.retain(|node| node.node_id.as_str() != "exec_1");
    snapshot.left_out.push(LeftOut {
        attempt_id: id("att_1"),
        from: 0,
        to,
    });
    RunState::from_snapshot(snapshot)
}

#[test]
fn an_op_about_a_block_that_is_left_out_moves_on_and_makes_older_windows_stale() {
    let mut story = told();
    let mut state = without(&story, 2);
    let older = story.state.to_snapshot();
    let joins = json!({ "op": "block_updated", "block_id": "blk_1", "group_id": "par_1" });
    let entry = story.entry(joins.clone());
    story.ok(joins);
    assert_eq!(state.apply(&entry), Ok(Applied::Changed(Vec::new())));
    assert_eq!(state.add(older), Err(AddError::Stale));
    assert!(!state.is_whole());
    state.add(story.state.to_snapshot()).unwrap();
    assert!(state.is_whole());
    assert_eq!(digest(&state), digest(&story.state));
}

#[test]
fn an_attempt_of_a_node_that_is_left_out_asks_for_another_window() {
    let story = told();
    let mut state = without(&story, 2);
    let entry = story.entry(attempt("exec_1", "att_9", 0, "resume"));
    let before = seen(&state);
    let error = state.apply(&entry).unwrap_err();
    assert_eq!(
        error,
        FoldError::LeftOut {
            thing: "exec_1".to_owned()
        }
    );
    assert_eq!(seen(&state), before);
}

#[test]
fn a_window_of_another_run_is_not_added() {
    let mut state = without(&told(), 2);
    let mut other = told().state.to_snapshot();
    other.run.run_id = id("run_9");
    assert_eq!(state.add(other), Err(AddError::OtherRun));
    assert_eq!(state.left_out_of(&id::<AttemptId>("att_1")).len(), 1);
}

#[test]
fn a_shortened_text_ends_at_a_character_and_says_where_the_whole_is() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_0", 0, "text"));
    story.ok(delta("blk_0", 0, "aéb"));
    story.ok(end_block("blk_0", "complete", "aéb"));
    let mut snapshot = story.state.to_snapshot();
    snapshot.shorten(4);
    assert_eq!(snapshot, story.state.to_snapshot(), "what is short stays");
    snapshot.shorten(2);
    let value = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(value["blocks"][0]["content"], "a");
    assert_eq!(value["blocks"][0]["bytes"], 4);
    assert_eq!(value["blocks"][0]["content_ref"]["bytes"], 4);
    assert_eq!(digest(&RunState::from_snapshot(snapshot)), digest(&story.state));
}
