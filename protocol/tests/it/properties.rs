//! What holds for every history: the way in which it reaches a reader never shows in what the reader sees.

use proptest::prelude::*;
use proptest::sample::Index;
use protocol::fold::{Applied, FoldError, Refusal, RunState};
use protocol::op::{Entry, Op};
use protocol::snapshot::{Assembler, Snapshot, SnapshotPart, split};
use serde_json::{Value, json};

use crate::history::{self, History};
use crate::support::{config, fresh, op, seen, seen_without_seq, through_json};

/// The text in a part of a snapshot: what the limit of a frame counts.
fn text_of(part: &SnapshotPart) -> usize {
    let outputs = part.nodes.iter().flat_map(|node| node.outputs.values());
    let blocks = part.blocks.iter().filter_map(|block| block.body.content());
    part.messages
        .iter()
        .map(|message| message.text.len())
        .sum::<usize>()
        + outputs.map(|output| output.text.len()).sum::<usize>()
        + blocks.map(|content| content.text.len()).sum::<usize>()
        + part
            .continues
            .iter()
            .map(|continuation| continuation.text.len())
            .sum::<usize>()
}

/// Sends a snapshot in parts over the wire.
fn through_parts(state: &RunState, limit: usize) -> RunState {
    let parts = split(state.to_snapshot(), limit);
    let count = u32::try_from(parts.len()).unwrap();
    let mut assembler = Assembler::new(state.run().clone());
    for (number, part) in (0..).zip(parts) {
        assert!(text_of(&part) <= limit.max(1024));
        let text = serde_json::to_string(&part).unwrap();
        assembler
            .add(number, serde_json::from_str(&text).unwrap())
            .unwrap();
    }
    RunState::from_snapshot(assembler.finish(count).unwrap())
}

/// Takes in an entry as a reader does: where ops are missing it asks the journal for them.
fn take(state: &mut RunState, history: &History, entry: &Entry) {
    match state.apply(entry) {
        Ok(Applied::Refused(refusal)) => panic!("{refusal}"),
        Ok(_) => {}
        Err(FoldError::Gap { known, found }) => {
            let missing = usize::try_from(found - known).unwrap();
            for entry in history.after(known, missing) {
                state.apply(entry).unwrap();
            }
        }
        Err(error) => panic!("{error}"),
    }
}

/// A second op whose text goes on where the first one's ends, in the same thing.
fn merged(first: &Op, second: &Op) -> Option<Op> {
    match (first, second) {
        (Op::BlockDelta(first), Op::BlockDelta(second)) if first.block_id == second.block_id => {
            let mut both = first.clone();
            both.delta.push_str(&second.delta);
            both.extra.extend(second.extra.clone());
            Some(Op::BlockDelta(both))
        }
        (Op::NodeOutput(first), Op::NodeOutput(second))
            if (&first.node_id, first.channel) == (&second.node_id, second.channel) =>
        {
            let mut both = first.clone();
            both.text.push_str(&second.text);
            both.extra.extend(second.extra.clone());
            Some(Op::NodeOutput(both))
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_snapshot_and_the_rest_equal_the_straight_run(history in history::any(), cut in any::<Index>()) {
        let straight = history.straight();
        let cut = cut.index(history.entries.len() + 1);
        let mut state = fresh();
        for entry in &history.entries[..cut] {
            state.apply(entry).unwrap();
        }
        let mut state = through_json(&state);
        for entry in &history.entries[cut..] {
            state.apply(entry).unwrap();
        }
        prop_assert_eq!(seen(&state), seen(&straight));
    }

    #[test]
    fn a_snapshot_in_parts_and_the_rest_equal_the_straight_run(
        history in history::any(), cut in any::<Index>(), limit in prop_oneof![1024usize..1100, 1024usize..20_000],
    ) {
        let straight = history.straight();
        let cut = cut.index(history.entries.len() + 1);
        let mut state = fresh();
        for entry in &history.entries[..cut] {
            state.apply(entry).unwrap();
        }
        let whole = seen(&state);
        let mut state = through_parts(&state, limit);
        prop_assert_eq!(seen(&state), whole);
        for entry in &history.entries[cut..] {
            state.apply(entry).unwrap();
        }
        prop_assert_eq!(seen(&state), seen(&straight));
    }

    #[test]
    fn duplicates_change_nothing(history in history::any(), again in proptest::collection::vec(any::<Index>(), 1..40)) {
        let straight = history.straight();
        let mut state = fresh();
        for (place, entry) in history.entries.iter().enumerate() {
            state.apply(entry).unwrap();
            for earlier in &again {
                let entry = &history.entries[earlier.index(place + 1)];
                prop_assert_eq!(state.apply(entry), Ok(Applied::Duplicate));
            }
        }
        prop_assert_eq!(seen(&state), seen(&straight));
    }

    #[test]
    fn any_order_with_repair_ends_equal(
        history in history::any(),
        order in proptest::collection::vec(any::<Index>(), 0..300),
    ) {
        let mut state = fresh();
        for index in order {
            take(&mut state, &history, index.get(&history.entries));
        }
        // The last reconnection asks for everything after the last known op.
        for entry in history.after(state.seq(), usize::MAX) {
            take(&mut state, &history, entry);
        }
        prop_assert_eq!(seen(&state), seen(&history.straight()));
    }

    #[test]
    fn neighbours_that_change_places_end_equal(history in history::any(), seed in any::<u64>()) {
        let mut entries: Vec<&Entry> = history.entries.iter().collect();
        let mut random = seed;
        for place in 1..entries.len() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random >> 63 == 1 {
                entries.swap(place - 1, place);
            }
        }
        let mut state = fresh();
        for entry in entries {
            take(&mut state, &history, entry);
        }
        prop_assert_eq!(seen(&state), seen(&history.straight()));
    }

    #[test]
    fn any_number_of_reconnections_ends_equal(
        history in history::any(),
        lengths in proptest::collection::vec((0usize..30, any::<bool>(), any::<bool>()), 0..20),
    ) {
        let mut state = fresh();
        for (length, lost, by_snapshot) in lengths {
            // What came after the last one that was taken in, with the last one of it lost on the way.
            let sent: Vec<&Entry> = history.after(state.seq(), length).collect();
            let arrived = sent.len().saturating_sub(usize::from(lost));
            for entry in &sent[..arrived] {
                state.apply(entry).unwrap();
            }
            if by_snapshot {
                state = through_json(&state);
            }
        }
        for entry in history.after(state.seq(), usize::MAX) {
            state.apply(entry).unwrap();
        }
        prop_assert_eq!(seen(&state), seen(&history.straight()));
    }

    #[test]
    fn merging_consecutive_text_of_one_thing_ends_equal(history in history::finished(), seed in any::<u64>()) {
        let straight = history.straight();
        let mut entries: Vec<Entry> = Vec::new();
        let mut random = seed;
        for entry in &history.entries {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let same_owner = entries.last().is_some_and(|last| last.generation == entry.generation);
            let both = entries.last().and_then(|last| merged(&last.op, &entry.op));
            match (entries.last_mut(), both) {
                (Some(last), Some(both)) if same_owner && random >> 62 != 0 => last.op = both,
                _ => entries.push(entry.clone()),
            }
        }
        let mut state = fresh();
        for (seq, mut entry) in (1..).zip(entries) {
            entry.seq = seq;
            let applied = state.apply(&entry);
            prop_assert!(matches!(applied, Ok(Applied::Changed(_))), "{applied:?}");
        }
        prop_assert_eq!(seen_without_seq(&state), seen_without_seq(&straight));
    }

    #[test]
    fn an_overlap_that_is_sent_again_is_dropped(history in history::any(), back in any::<Index>()) {
        let straight = history.straight();
        let mut state = fresh();
        for entry in &history.entries {
            let mut entry = entry.clone();
            let overlap = |known: &str| -> String {
                let from = known.floor_char_boundary(back.index(known.len() + 1));
                known[from..].to_owned()
            };
            match &mut entry.op {
                Op::BlockDelta(op) => {
                    if let Some(content) = state.block(&op.block_id).and_then(|block| block.body.content()) {
                        let again = overlap(&content.text);
                        op.offset -= again.len() as u64;
                        op.delta.insert_str(0, &again);
                    }
                }
                Op::NodeOutput(op) => {
                    let known = state.node(&op.node_id).and_then(|node| node.outputs.get(&op.channel));
                    if let Some(output) = known {
                        let again = overlap(&output.text);
                        op.offset -= again.len() as u64;
                        op.text.insert_str(0, &again);
                    }
                }
                _ => {}
            }
            state.apply(&entry).unwrap();
        }
        prop_assert_eq!(seen(&state), seen(&straight));
    }

    #[test]
    fn late_ops_for_closed_things_are_refused(history in history::finished()) {
        let mut state = history.straight();
        let before = seen_without_seq(&state);
        let mut late: Vec<Value> = Vec::new();
        for block in state.blocks() {
            late.push(json!({ "op": "block_delta", "block_id": block.block_id, "offset": 0, "delta": "late" }));
            late.push(json!({ "op": "block_finished", "block_id": block.block_id, "status": "cut", "bytes": 0,
                              "sha256": "" }));
            if !block.body.is_pointer() {
                late.push(json!({ "op": "block_updated", "block_id": block.block_id, "retention": "not_saved" }));
            }
        }
        for attempt in state.attempts() {
            late.push(json!({ "op": "attempt_finished", "node_id": attempt.node_id, "attempt_id": attempt.attempt_id,
                              "status": "completed" }));
            late.push(json!({ "op": "block_started", "node_id": attempt.node_id, "attempt_id": attempt.attempt_id,
                              "block_id": "blk_late", "block_index": 9_999, "kind": "text" }));
        }
        for node in state.nodes() {
            late.push(json!({ "op": "node_updated", "node_id": node.node_id, "title": "late" }));
            late.push(json!({ "op": "node_output", "node_id": node.node_id, "channel": "log", "offset": 0, "text": "" }));
            late.push(json!({ "op": "node_finished", "node_id": node.node_id, "status": "failed", "finished_at": 1 }));
            late.push(json!({ "op": "attempt_started", "node_id": node.node_id, "attempt_id": "att_late",
                "attempt_index": 99, "reason": "error_retry", "provider": "", "model": "" }));
        }
        late.push(json!({ "op": "run_updated", "status": "running" }));
        for value in late {
            let entry = Entry {
                run_id: state.run().run_id.clone(),
                generation: state.generation(),
                seq: state.seq() + 1,
                at: 0,
                op: op(value.clone()),
            };
            let applied = state.apply(&entry);
            prop_assert!(matches!(applied, Ok(Applied::Refused(Refusal::Closed(_)))), "{value}: {applied:?}");
        }
        prop_assert_eq!(seen_without_seq(&state), before);
    }

    #[test]
    fn every_entry_reads_back_from_its_line(history in history::any()) {
        for entry in &history.entries {
            let line = serde_json::to_string(entry).unwrap();
            prop_assert_eq!(&Entry::from_json(&line).unwrap(), entry);
        }
    }

    #[test]
    fn what_an_op_changed_is_all_that_changed(history in history::any()) {
        use protocol::fold::Change;
        let mut state = fresh();
        for entry in &history.entries {
            let before = state.to_snapshot();
            let Ok(Applied::Changed(changes)) = state.apply(entry) else { panic!("seq {}", entry.seq) };
            let named: std::collections::HashSet<String> = changes.iter().flat_map(|change| match change {
                Change::Node(node) | Change::NodeAdded(node) | Change::Output(node, _) => vec![node.to_string()],
                Change::AttemptAdded(node, attempt) => vec![node.to_string(), attempt.to_string()],
                Change::Attempt(attempt) => vec![attempt.to_string()],
                Change::BlockAdded(attempt, block) => vec![attempt.to_string(), block.to_string()],
                Change::Block(block) | Change::BlockContent(block) => vec![block.to_string()],
                Change::Message(message) | Change::MessageAdded(message) => vec![message.to_string()],
                Change::Approval(approval) => vec![approval.to_string()],
                Change::Run | Change::Notice | Change::Unknown => vec![],
            }).collect();
            let after = state.to_snapshot();
            for node in &after.nodes {
                let same = before.nodes.iter().find(|old| old.node_id == node.node_id) == Some(node);
                prop_assert!(same || named.contains(node.node_id.as_str()), "{}", node.node_id);
            }
            for attempt in &after.attempts {
                let same = before.attempts.iter().find(|old| old.attempt_id == attempt.attempt_id) == Some(attempt);
                prop_assert!(same || named.contains(attempt.attempt_id.as_str()), "{}", attempt.attempt_id);
            }
            for block in &after.blocks {
                let same = before.blocks.iter().find(|old| old.block_id == block.block_id) == Some(block);
                prop_assert!(same || named.contains(block.block_id.as_str()), "{}", block.block_id);
            }
            let mut run = after.run.clone();
            (run.last_seq, run.generation) = (before.run.last_seq, before.run.generation);
            prop_assert!(run == before.run || changes.contains(&Change::Run));
            prop_assert!(after.notices == before.notices || changes.contains(&Change::Notice));
            prop_assert!(after.unknown == before.unknown || changes.contains(&Change::Unknown));
        }
    }
}

#[test]
fn parts_keep_to_their_limit_also_for_a_node_with_several_long_outputs() {
    use crate::support::{Story, node, output};
    let mut story = Story::begun();
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    for channel in ["arguments", "log", "result"] {
        for piece in 0..20 {
            story.ok(output("exec_1", channel, piece * 300, &"é".repeat(150)));
        }
    }
    let parts = split(story.state.to_snapshot(), 1024);
    assert!(parts.len() > 17, "{} parts", parts.len());
    assert_eq!(seen(&through_parts(&story.state, 1024)), seen(&story.state));
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    use crate::support::{Story, block, delta};
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, &"x".repeat(5_000)));
    let parts = split(story.state.to_snapshot(), 1024);
    let begin = || Assembler::new(story.state.run().clone());
    assert!(begin().add(1, parts[1].clone()).is_err(), "the first is missing");
    assert!(begin().finish(1).is_err(), "one is missing");
    let mut assembler = begin();
    assembler.add(0, parts[0].clone()).unwrap();
    assert!(assembler.add(0, parts[0].clone()).is_err(), "one comes twice");
    let mut assembler = begin();
    assembler.add(0, SnapshotPart::default()).unwrap();
    let continued = parts
        .iter()
        .find(|part| !part.continues.is_empty() && part.blocks.is_empty())
        .unwrap();
    assert!(
        assembler.add(1, continued.clone()).is_err(),
        "text without its thing"
    );
}

#[test]
fn a_snapshot_whose_open_content_is_left_out_is_refused() {
    use crate::support::{Story, block, delta};
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "open"));
    let mut value = serde_json::to_value(story.state.to_snapshot()).unwrap();
    value["blocks"][0]["content_ref"] = json!({ "bytes": 9, "sha256": "" });
    let error = serde_json::from_value::<Snapshot>(value).unwrap_err().to_string();
    assert!(error.contains("blk_1") && error.contains("streaming"), "{error}");
}
