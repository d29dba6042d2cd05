//! The digest: what it is computed over, what it is equal for, and what it tells apart.

use proptest::prelude::*;
use proptest::sample::Index;
use protocol::digest::{canonical, digest, sha256};
use protocol::fold::RunState;
use protocol::model::{BlockBody, ContentRef};
use protocol::snapshot::Snapshot;
use protocol::state::Retention;
use serde_json::{Value, json};

use crate::history;
use crate::support::{
    Story, attempt, block, config, delta, end_attempt, end_block, end_node, end_node_with, fresh, node,
    node_status, output, root, run_status, seen, through_json, tool_ref,
};

/// SHA-256 of nothing.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn prompt(text: &str) -> Value {
    json!({ "op": "message_added", "message_id": "msg_1", "role": "user", "text": text })
}

/// Holds the canonical JSON and the digest of a story.
fn vector(story: &Story, expected: &str, expected_digest: &str) {
    let found = String::from_utf8(canonical(&story.state)).unwrap();
    assert_eq!(found, expected);
    assert_eq!(digest(&story.state), expected_digest);
    assert_eq!(sha256(found.as_bytes()), expected_digest);
}

#[test]
fn the_hash_of_a_content_is_its_sha_256_in_lower_case() {
    assert_eq!(sha256(b""), EMPTY);
    assert_eq!(sha256(b"hello"), HELLO);
    let mut stream = protocol::digest::Sha256Stream::default();
    stream.update(b"he");
    stream.update(b"llo");
    assert_eq!(stream.finish(), HELLO);
}

#[test]
fn vector_1_a_run_before_its_first_op() {
    vector(
        &Story::new(),
        r#"{"messages":[],"nodes":[]}"#,
        "8f4c60343e5896b9f090e08fada2a92dea26cb47a5356389afd261e077e10980",
    );
}

#[test]
fn vector_2_a_prompt_and_an_open_answer() {
    let mut story = Story::new();
    story.ok(prompt("hello"));
    story.ok(root());
    story.ok(node("call_1", "root_1", "model", "occ_m1", 0));
    story.ok(attempt("call_1", "att_1", 0, "initial"));
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "hel"));
    story.ok(delta("blk_1", 3, "lo"));
    vector(
        &story,
        concat!(
            r#"{"messages":[{"role":"user","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}],"#,
            r#""nodes":[{"attempts":[],"kind":"root","name":"run","ordinal":0,"outputs":{},"parent":null,"status":"pending"},"#,
            r#"{"attempts":[{"blocks":[{"kind":"text","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","#,
            r#""status":"streaming"}],"reason":"initial","status":"running"}],"kind":"model","name":"model","ordinal":0,"#,
            r#""outputs":{},"parent":"root_1","status":"pending"}]}"#,
        ),
        "50ff611218e982ae1a0510e2159de9d5019cb95fc38b5b9857a2c96a7ce9c3fd",
    );
}

#[test]
fn vector_3_two_calls_in_a_group_that_end_in_the_other_order() {
    let mut story = Story::begun();
    for (place, row) in ["blk_1", "blk_2"].into_iter().enumerate() {
        let place = u32::try_from(place).unwrap();
        let (call, exec) = (format!("occ_{place}"), format!("exec_{place}"));
        let mut reference = tool_ref("att_1", row, place, &call, &exec);
        reference["group_id"] = json!("par_1");
        story.ok(reference);
        story.ok(node(&exec, "call_1", "function", &call, place));
    }
    let mut group = block("att_1", "blk_3", 2, "parallel_group");
    group["group_id"] = json!("par_1");
    group["members"] = json!(["blk_1", "blk_2"]);
    story.ok(group);
    story.ok(output("exec_1", "result", 0, "hello"));
    story.ok(end_node_with("exec_1", "succeeded", "hello"));
    story.ok(end_node("exec_0", "timed_out"));
    vector(
        &story,
        concat!(
            r#"{"messages":[],"nodes":[{"attempts":[],"kind":"root","name":"run","ordinal":0,"outputs":{},"parent":null,"status":"pending"},"#,
            r#"{"attempts":[{"blocks":[{"group":"par_1","kind":"tool_ref","occurrence":"occ_0","status":"complete"},"#,
            r#"{"group":"par_1","kind":"tool_ref","occurrence":"occ_1","status":"complete"},"#,
            r#"{"group":"par_1","kind":"parallel_group","members":["blk_1","blk_2"],"status":"complete"}],"#,
            r#""reason":"initial","status":"running"}],"kind":"model","name":"model","ordinal":0,"outputs":{},"parent":"root_1","status":"pending"},"#,
            r#"{"attempts":[],"kind":"function","name":"function","ordinal":0,"outputs":{},"parent":"call_1","status":"timed_out"},"#,
            r#"{"attempts":[],"kind":"function","name":"function","ordinal":1,"outputs":{"result":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},"#,
            r#""parent":"call_1","status":"succeeded"}]}"#,
        ),
        "22b63a51eabac1d2335d25421335b74fc2031051b54eaacf24ebd8c89313a1b3",
    );
}

#[test]
fn vector_4_reasoning_that_is_not_saved_and_a_kind_that_is_not_known() {
    let mut story = Story::begun();
    let mut reasoning = block("att_1", "blk_1", 0, "reasoning");
    reasoning["retention"] = json!("not_saved");
    story.ok(reasoning);
    story.ok(delta("blk_1", 0, "seen live"));
    story.ok(end_block("blk_1", "complete", "seen live"));
    let mut image = block("att_1", "blk_2", 1, "unsupported");
    image["raw_kind"] = json!("image");
    image["bytes"] = json!(2048);
    story.ok(image);
    story.ok(end_block("blk_2", "complete", ""));
    vector(
        &story,
        concat!(
            r#"{"messages":[],"nodes":[{"attempts":[],"kind":"root","name":"run","ordinal":0,"outputs":{},"parent":null,"status":"pending"},"#,
            r#"{"attempts":[{"blocks":[{"kind":"reasoning","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","status":"complete"},"#,
            r#"{"bytes":2048,"kind":"unsupported","raw_kind":"image","status":"complete"}],"reason":"initial","status":"running"}],"#,
            r#""kind":"model","name":"model","ordinal":0,"outputs":{},"parent":"root_1","status":"pending"}]}"#,
        ),
        "7cbdb3ff49c938588373e3fe8f15cd39364399261a7fc86f4160d0c37d7326d4",
    );
}

#[test]
fn vector_5_a_stalled_attempt_and_the_one_that_goes_on() {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, "hello"));
    story.ok(end_block("blk_1", "cut", "hello"));
    story.ok(end_attempt("call_1", "att_1", "stalled"));
    let mut next = attempt("call_1", "att_2", 1, "stall_retry");
    next["continues_attempt_id"] = json!("att_1");
    story.ok(next);
    story.ok(block("att_2", "blk_2", 0, "refusal"));
    story.ok(end_block("blk_2", "complete", ""));
    story.ok(end_attempt("call_1", "att_2", "completed"));
    story.ok(end_node("call_1", "succeeded"));
    vector(
        &story,
        concat!(
            r#"{"messages":[],"nodes":[{"attempts":[],"kind":"root","name":"run","ordinal":0,"outputs":{},"parent":null,"status":"pending"},"#,
            r#"{"attempts":[{"blocks":[{"kind":"text","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","status":"cut"}],"#,
            r#""reason":"initial","status":"stalled"},"#,
            r#"{"blocks":[{"kind":"refusal","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","status":"complete"}],"#,
            r#""reason":"stall_retry","status":"completed"}],"kind":"model","name":"model","ordinal":0,"outputs":{},"parent":"root_1","status":"succeeded"}]}"#,
        ),
        "c121c870432aecfbe95d0179c048257ba0b506eaae6197866db637b62d6e6856",
    );
}

/// A state whose closed content was left out of its snapshot: hashes and lengths are known, no text is.
fn without_content(state: &RunState) -> RunState {
    let mut snapshot = state.to_snapshot();
    for block in &mut snapshot.blocks {
        let protocol::model::BlockState::Ended(end) = &block.state else {
            continue;
        };
        let (bytes, hash) = (end.bytes, end.sha256.clone());
        let unsaved = matches!(
            block.body,
            BlockBody::Reasoning {
                retention: Retention::NotSaved,
                ..
            }
        );
        if let (Some(content), Some(sha256)) = (block.body.content_mut(), hash) {
            content.text.clear();
            content.content_ref = (!unsaved).then_some(ContentRef { bytes, sha256 });
        }
    }
    for node in snapshot
        .nodes
        .iter_mut()
        .filter(|node| node.state.end().is_some())
    {
        for output in node.outputs.values_mut() {
            if let Some(sha256) = output.sha256.clone() {
                output.text.clear();
                output.content_ref = Some(ContentRef {
                    bytes: output.bytes,
                    sha256,
                });
            }
        }
    }
    let text = serde_json::to_string(&snapshot).unwrap();
    RunState::from_snapshot(serde_json::from_str::<Snapshot>(&text).unwrap())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_reader_computes_the_same_digest(history in history::any(), cut in any::<Index>()) {
        let live = history.straight();
        let expected = digest(&live);
        prop_assert_eq!(&digest(&through_json(&live)), &expected, "from a snapshot");
        prop_assert_eq!(&digest(&without_content(&live)), &expected, "without its content");
        let mut state = fresh();
        let cut = cut.index(history.entries.len());
        // The end comes first; what is missing is fetched.
        prop_assert!(state.apply(&history.entries[history.entries.len() - 1]).is_err());
        for entry in &history.entries[..cut] {
            state.apply(entry).unwrap();
        }
        let mut state = without_content(&state);
        for entry in &history.entries[cut..] {
            state.apply(entry).unwrap();
        }
        prop_assert_eq!(&digest(&state), &expected, "from a snapshot without content, and the rest");
    }

    #[test]
    fn times_seq_generation_and_usage_do_not_count(history in history::any()) {
        use protocol::op::Op;
        let mut state = fresh();
        let mut later = history.entries[0].clone();
        later.op = crate::support::op(json!({ "op": "withheld" }));
        state.apply(&later).unwrap();
        for entry in &history.entries {
            let mut entry = entry.clone();
            entry.seq += 1;
            entry.generation += 7;
            entry.at += 86_400_000;
            match &mut entry.op {
                Op::RunUpdated(op) => op.usage = None,
                Op::AttemptFinished(op) => op.usage = None,
                Op::NodeFinished(op) => op.finished_at += 1,
                _ => {}
            }
            state.apply(&entry).unwrap();
        }
        prop_assert_eq!(digest(&state), digest(&history.straight()));
    }
}

/// A run with something of everything that is displayed.
fn rich() -> Story {
    let mut story = Story::new();
    story.ok(prompt("hello"));
    story.ok(root());
    story.ok(node("call_1", "root_1", "model", "occ_m1", 0));
    story.ok(attempt("call_1", "att_1", 0, "initial"));
    for (place, name, kind) in [
        (0, "blk_0", "text"),
        (1, "blk_1", "reasoning"),
        (2, "blk_2", "refusal"),
    ] {
        story.ok(block("att_1", name, place, kind));
        story.ok(delta(name, 0, "hello"));
        story.ok(end_block(name, "complete", "hello"));
    }
    let mut reference = tool_ref("att_1", "blk_3", 3, "occ_1", "exec_1");
    reference["group_id"] = json!("par_1");
    story.ok(reference);
    story.ok(tool_ref("att_1", "blk_4", 4, "occ_2", "exec_2"));
    let mut image = block("att_1", "blk_5", 5, "unsupported");
    image["raw_kind"] = json!("image");
    story.ok(image);
    story.ok(node("exec_1", "call_1", "function", "occ_1", 0));
    story.ok(node("exec_2", "call_1", "function", "occ_2", 1));
    story.ok(output("exec_1", "result", 0, "hello"));
    story.ok(end_node_with("exec_1", "succeeded", "hello"));
    story.ok(node_status("exec_2", "running"));
    story.ok(run_status("running"));
    story
}

#[test]
fn anything_displayed_that_differs_makes_another_digest() {
    let changes: [(&str, &str, Value); 23] = [
        ("a prompt", "/messages/0/text", json!("hello!")),
        ("who wrote it", "/messages/0/role", json!("system")),
        ("a text", "/blocks/0/content", json!("hello!")),
        ("a reasoning", "/blocks/1/content", json!("hell")),
        ("whether it is saved", "/blocks/1/retention", json!("not_saved")),
        ("a refusal", "/blocks/2/content", json!("")),
        ("a block's state", "/blocks/0/status", json!("cut")),
        ("a block's kind", "/blocks/0/kind", json!("refusal")),
        ("the order of blocks", "/blocks/0/block_index", json!(9)),
        ("a call", "/blocks/3/occurrence_id", json!("occ_9")),
        ("a group", "/blocks/3/group_id", json!("par_2")),
        ("a member more", "/blocks/4/group_id", json!("par_1")),
        ("an unknown kind", "/blocks/5/raw_kind", json!("sound")),
        ("its size", "/blocks/5/bytes", json!(1)),
        ("an attempt's reason", "/attempts/0/reason", json!("resume")),
        ("a node's state", "/nodes/2/status", json!("failed")),
        ("an open node's state", "/nodes/3/status", json!("pending")),
        ("a node's name", "/nodes/2/name", json!("list_dir")),
        ("a node's kind", "/nodes/2/kind", json!("code")),
        ("the order of nodes", "/nodes/2/ordinal", json!(5)),
        ("a node's parent", "/nodes/2/parent_id", json!("root_1")),
        ("a result", "/nodes/2/outputs/result/text", json!("bye")),
        ("a channel", "/nodes/2/outputs", json!({})),
    ];
    let story = rich();
    let mut digests = std::collections::HashMap::from([(digest(&story.state), "nothing")]);
    for (what, pointer, value) in changes {
        let mut snapshot = serde_json::to_value(story.state.to_snapshot()).unwrap();
        match snapshot.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => {
                let (thing, field) = pointer.rsplit_once('/').unwrap();
                snapshot.pointer_mut(thing).unwrap()[field] = value;
            }
        }
        let state = RunState::from_snapshot(serde_json::from_value(snapshot).unwrap());
        assert_ne!(seen(&state), seen(&story.state), "{what}");
        if let Some(same) = digests.insert(digest(&state), what) {
            panic!("{what} has the digest of {same}");
        }
    }
    let mut ended = rich();
    ended.ok(end_attempt("call_1", "att_1", "completed"));
    assert!(!digests.contains_key(&digest(&ended.state)), "an attempt's state");
}

#[test]
fn what_is_not_displayed_content_does_not_count() {
    let changes: [(&str, Value); 6] = [
        ("/seq", json!(99)),
        ("/generation", json!(99)),
        ("/nodes/2/title", json!("other words")),
        ("/nodes/2/finished_at", json!(1)),
        ("/blocks/0/started_at", json!(1)),
        ("/attempts/0/provider", json!("spare")),
    ];
    let story = rich();
    for (pointer, value) in changes {
        let mut snapshot = serde_json::to_value(story.state.to_snapshot()).unwrap();
        *snapshot.pointer_mut(pointer).unwrap() = value;
        let state = RunState::from_snapshot(serde_json::from_value(snapshot).unwrap());
        assert_eq!(digest(&state), digest(&story.state), "{pointer}");
    }
}

#[test]
fn unsaved_reasoning_counts_as_empty_with_and_without_its_live_text() {
    let mut live = Story::begun();
    let mut reasoning = block("att_1", "blk_1", 0, "reasoning");
    reasoning["retention"] = json!("not_saved");
    live.ok(reasoning);
    let before = digest(&live.state);
    live.ok(delta("blk_1", 0, "seen live"));
    assert_eq!(digest(&live.state), before);
    live.ok(end_block("blk_1", "complete", "seen live"));
    assert_eq!(digest(&without_content(&live.state)), digest(&live.state));
}

#[test]
fn nodes_in_a_circle_count_too() {
    let mut story = Story::new();
    story.ok(root());
    let alone = digest(&story.state);
    story.ok(node("exec_1", "exec_2", "function", "occ_1", 0));
    story.ok(node("exec_2", "exec_1", "function", "occ_2", 0));
    assert_ne!(digest(&story.state), alone);
    assert_eq!(digest(&through_json(&story.state)), digest(&story.state));
}
