use protocol::fold::Applied;
use protocol::op::{Entry, Op};
use serde_json::{Value, json};

use super::*;

const MODEL: &str = "call_answer";

fn apply(state: &mut RunState, op: Value) {
    let op: Op = serde_json::from_value(op).unwrap();
    let entry = Entry {
        run_id: state.run().run_id.clone(),
        generation: 1,
        seq: state.seq() + 1,
        at: 1000,
        op,
    };
    let applied = state.apply(&entry).unwrap();
    assert!(matches!(applied, Applied::Changed(_)), "{entry:?}: {applied:?}");
}

fn story(ops: Vec<Value>) -> RunState {
    let mut state = RunState::new("run_1".parse().unwrap(), "ses_1".parse().unwrap());
    apply(
        &mut state,
        json!({ "op": "node_started", "node_id": MODEL, "after": [], "kind": "model", "name": "answer",
            "title": "", "ordinal": 0, "executor": "runloom" }),
    );
    for op in ops {
        apply(&mut state, op);
    }
    state
}

fn attempt(id: &str, index: u32, continues: Option<(&str, u64)>) -> Value {
    let mut op = json!({ "op": "attempt_started", "node_id": MODEL, "attempt_id": id, "attempt_index": index,
        "reason": "initial", "provider": "p", "model": "m" });
    if let Some((before, bytes)) = continues {
        op["continues_attempt_id"] = json!(before);
        op["kept"] = json!({ "bytes": bytes, "tokens": 1 });
    }
    op
}

/// A text block that ended.
fn text(attempt: &str, index: u32, round: u32, text: &str, status: &str) -> Vec<Value> {
    let block = format!("blk_{attempt}_{index}");
    vec![
        json!({ "op": "block_started", "node_id": MODEL, "attempt_id": attempt, "block_id": block,
            "block_index": index, "round": round, "kind": "text" }),
        json!({ "op": "block_delta", "block_id": block, "offset": 0, "delta": text }),
        json!({ "op": "block_finished", "block_id": block, "status": status, "bytes": text.len(),
            "sha256": protocol::digest::sha256(text.as_bytes()) }),
    ]
}

/// A call that ended.
fn call(
    attempt: &str,
    index: u32,
    round: u32,
    arguments: &str,
    status: &str,
    error: Option<&str>,
) -> Vec<Value> {
    let node = format!("exec_{attempt}_{index}");
    let mut ops = vec![
        json!({ "op": "node_started", "node_id": node, "parent_id": MODEL, "after": [], "kind": "function",
            "name": "tool", "title": "", "ordinal": index, "executor": "runloom" }),
        json!({ "op": "block_started", "node_id": MODEL, "attempt_id": attempt,
            "block_id": format!("blk_{attempt}_{index}"), "block_index": index, "round": round,
            "kind": "tool_ref", "tool_call_id": "same", "occurrence_id": format!("occ_{attempt}_{index}"),
            "ref_node_id": node, "tool_name": "tool" }),
    ];
    if !arguments.is_empty() {
        ops.push(
            json!({ "op": "node_output", "node_id": node, "channel": "arguments", "offset": 0, "text": arguments }),
        );
    }
    if status == "succeeded" {
        ops.push(
            json!({ "op": "node_output", "node_id": node, "channel": "result", "offset": 0, "text": "found" }),
        );
    }
    let mut end =
        json!({ "op": "node_finished", "node_id": node, "status": status, "finished_at": 1, "outputs": {} });
    if let Some(code) = error {
        end["error"] = json!({ "code": code, "message": "In words." });
    }
    ops.push(end);
    ops
}

fn continued(state: &RunState) -> (u64, Vec<ModelMessage>, String) {
    let node = MODEL.parse().unwrap();
    let (_, kept, said) = to_continue(state, &node, Replays::new()).unwrap();
    (kept.bytes, said.messages, said.open)
}

fn spoken(parts: &[&str]) -> ModelMessage {
    let text = |text: &&str| AssistantPart::Text {
        text: (*text).to_owned(),
    };
    ModelMessage::Assistant {
        parts: parts.iter().map(text).collect(),
        replay: None,
    }
}

#[test]
fn a_round_that_broke_keeps_its_whole_pieces_and_loses_its_calls() {
    let ops = [
        vec![attempt("att_1", 0, None)],
        text("att_1", 0, 0, "First.\n\nhalf", "complete"),
        call("att_1", 1, 0, "{\"a\":1}", "not_run", Some("stream_ended")),
        text("att_1", 2, 0, "Second.\n\nhal", "cut"),
    ];
    let state = story(ops.concat());
    let (bytes, messages, open) = continued(&state);
    assert_eq!(open, "First.\n\nhalf\n\nSecond.");
    assert_eq!(bytes, ("First.\n\nhalf".len() + "Second.".len()) as u64);
    assert_eq!(messages, []);
}

#[test]
fn whole_rounds_stand_as_they_were_with_a_result_for_each_call() {
    let ops = [
        vec![attempt("att_1", 0, None)],
        text("att_1", 0, 0, "I look.", "complete"),
        call("att_1", 1, 0, "{\"a\":1}", "succeeded", None),
        call("att_1", 2, 0, "{}", "interrupted", Some("owner_gone")),
        call("att_1", 3, 0, "{}", "not_run", None),
        call("att_1", 4, 0, "{\"ha", "not_run", None),
        call("att_1", 5, 0, "{\"ha", "not_run", Some("invalid_arguments")),
    ];
    let (_, messages, open) = continued(&story(ops.concat()));
    assert_eq!(open, "");
    let [
        ModelMessage::Assistant { parts, .. },
        ModelMessage::ToolResults { results },
    ] = &messages[..]
    else {
        panic!("{messages:?}");
    };
    assert_eq!(parts.len(), 5, "the half-written call is dropped: {parts:?}");
    let told: Vec<_> = results
        .iter()
        .map(|result| (result.content.as_str(), result.is_error))
        .collect();
    assert_eq!(told[0], ("found", false));
    assert!(told[1].0.contains("interrupted") && told[1].1);
    assert!(told[2].0.contains("before it began") && told[2].1);
    assert_eq!(told[3], ("Error (not_run): In words.", true));
}

#[test]
fn what_was_kept_is_the_start_of_the_next_whole_round() {
    let mut ops = [
        vec![attempt("att_1", 0, None)],
        text("att_1", 0, 0, "One.\n\nhalf", "cut"),
        vec![
            json!({ "op": "attempt_finished", "node_id": MODEL, "attempt_id": "att_1", "status": "failed" }),
            attempt("att_2", 1, Some(("att_1", 4))),
        ],
        text("att_2", 0, 0, "Two.", "complete"),
        call("att_2", 1, 0, "{}", "succeeded", None),
    ]
    .concat();
    let state = story(ops.clone());
    let messages = whole(&state, &MODEL.parse().unwrap(), Replays::new()).messages;
    let ModelMessage::Assistant { parts, .. } = &messages[0] else {
        panic!("{messages:?}");
    };
    let first = AssistantPart::Text {
        text: "One.\n\nTwo.".to_owned(),
    };
    assert_eq!((parts.len(), &parts[0]), (2, &first));

    // A later round that breaks is on its own.
    ops.extend(text("att_2", 2, 1, "Three.\n\nha", "cut"));
    let state = story(ops);
    let (bytes, messages, open) = continued(&state);
    assert_eq!((messages.len(), open.as_str()), (2, "Three."));
    assert_eq!(bytes, "Two.Three.".len() as u64);
    assert_eq!(
        whole(&state, &MODEL.parse().unwrap(), Replays::new()).messages[2],
        spoken(&["Three.\n\nha"]),
        "a later run hears what is shown"
    );
}

#[test]
fn a_provider_hears_its_own_round_again_but_not_in_the_place_of_two_halves() {
    let ops = |continues| {
        [
            vec![
                attempt("att_1", 0, None),
                json!({ "op": "attempt_finished", "node_id": MODEL, "attempt_id": "att_1", "status": "failed" }),
                attempt("att_2", 1, continues),
            ],
            text("att_2", 0, 0, "Two.", "complete"),
        ]
        .concat()
    };
    let replay = Replay {
        provider_id: "p".to_owned(),
        model: "m".to_owned(),
        message: json!({}),
    };
    let replays = || Replays::from([(("att_2".parse().unwrap(), 0), replay.clone())]);
    let node = MODEL.parse().unwrap();
    let has_replay = |state: &RunState| {
        let said = whole(state, &node, replays());
        matches!(
            said.messages.last(),
            Some(ModelMessage::Assistant { replay: Some(_), .. })
        )
    };
    assert!(has_replay(&story(ops(None))));
    assert!(has_replay(&story(ops(Some(("att_1", 0))))), "nothing was kept");
    let mut halves = text("att_1", 0, 0, "One.\n\nhalf", "cut");
    let mut all = ops(Some(("att_1", 4)));
    halves.insert(0, all.remove(0));
    halves.extend(all);
    assert!(!has_replay(&story(halves)));
}

#[test]
fn of_a_long_text_the_end_is_sent_from_the_start_of_a_line() {
    let line = format!("{}\n\n", "é".repeat(99));
    let long = format!("{}half", line.repeat(400));
    let ops = [vec![attempt("att_1", 0, None)], text("att_1", 0, 0, &long, "cut")];
    let (bytes, _, open) = continued(&story(ops.concat()));
    assert_eq!(bytes as usize, long.trim_end_matches("half").trim_end().len());
    assert!(
        open.len() <= MAX_KEPT && open.len() > MAX_KEPT - 300,
        "{}",
        open.len()
    );
    assert!(open.starts_with('é') || open.starts_with('\n'));
    assert!(open.trim_start().starts_with(&line));
}
