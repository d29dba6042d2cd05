use super::*;
use protocol::Extra;
use protocol::id::{AttemptId, GroupId, NodeId, OccurrenceId, RunId, SessionId};
use protocol::model::BlockBody;
use protocol::op::{AttemptStarted, RunUpdated};
use protocol::state::{AttemptReason, BlockStatus, Channel, Executor, NodeKind, NodeStatus, RunStatus};
use uuid::Uuid;

use crate::provider::{BlockStart, StopReason, StreamEnd};
use crate::run::ops::{Announcement, BlockPlace, node_running};
use crate::run::recovery::{Ending, close};

const AT: i64 = 1_000;

fn run() -> RunId {
    RunId::from_uuid(Uuid::from_u128(1))
}

fn answer() -> NodeId {
    let root = NodeId::root(&run());
    NodeId::model(&root, &OccurrenceId::inner_model_call(&root, 0))
}

fn attempt() -> AttemptId {
    AttemptId::from_uuid(Uuid::from_u128(2))
}

fn started(position: u32, kind: BlockStart) -> ProviderEvent {
    ProviderEvent::BlockStart { position, kind }
}

fn text(position: u32, text: &str) -> ProviderEvent {
    let text = text.to_owned();
    ProviderEvent::Delta { position, text }
}

fn call(id: &str) -> BlockStart {
    BlockStart::ToolCall {
        id: id.to_owned(),
        name: "read_file".to_owned(),
    }
}

fn arguments(position: u32, json: &str) -> ProviderEvent {
    let json = json.to_owned();
    ProviderEvent::ArgumentsDelta { position, json }
}

fn ended(position: u32) -> ProviderEvent {
    ProviderEvent::BlockEnd { position }
}

/// Two rounds with every kind of content.
fn rounds() -> Vec<Vec<ProviderEvent>> {
    let search = BlockStart::ServerTool {
        id: "srv".to_owned(),
        name: "web_search".to_owned(),
    };
    let first = vec![
        ProviderEvent::Started {
            response_id: None,
            model: None,
        },
        started(0, BlockStart::Reasoning),
        text(0, "Thinking é"),
        text(0, " on"),
        ended(0),
        started(1, BlockStart::Text),
        text(1, "I look. 𝄞"),
        text(1, "Now."),
        ended(1),
        started(2, search),
        arguments(2, "{\"query\":\"x\"}"),
        ended(2),
        ProviderEvent::ServerToolResult {
            position: Some(2),
            tool_call_id: "srv".to_owned(),
            text: "found".to_owned(),
            is_error: false,
        },
        started(3, call("a")),
        arguments(3, "{\"path\":"),
        arguments(3, "\"README.md\"}"),
        ended(3),
        started(4, call("b")),
        ended(4),
        started(
            5,
            BlockStart::Unsupported {
                raw_kind: "hologram".to_owned(),
                bytes: 12,
            },
        ),
        ended(5),
        ProviderEvent::Stop {
            raw: "tool_use".to_owned(),
            reason: StopReason::ToolUse,
        },
        ProviderEvent::End(StreamEnd::Complete),
    ];
    let second = vec![
        started(0, BlockStart::Text),
        text(0, "Done: "),
        ProviderEvent::Contradiction {
            position: 0,
            text: "Done.".to_owned(),
        },
        text(0, "all of it."),
        ended(0),
        ProviderEvent::End(StreamEnd::Complete),
    ];
    vec![first, second]
}

/// The first `count` events.
fn cut(count: usize) -> Vec<Vec<ProviderEvent>> {
    let mut left = count;
    let mut parts = Vec::new();
    for round in rounds() {
        let taken: Vec<ProviderEvent> = round.into_iter().take(left).collect();
        left -= taken.len();
        if !taken.is_empty() {
            parts.push(taken);
        }
    }
    parts
}

async fn rebuilt(rounds: Vec<Vec<ProviderEvent>>) -> Vec<Op> {
    let nothing = RunState::new(run(), SessionId::from_uuid(Uuid::from_u128(3)));
    rebuild(&nothing, &answer(), &attempt(), rounds, AT).await
}

fn add(state: &mut RunState, op: &Op) {
    assert!(apply(state, AT, op), "{op:?}");
}

/// A run whose attempt has begun, and these ops of it.
fn state(ops: &[Op]) -> RunState {
    let mut state = RunState::new(run(), SessionId::from_uuid(Uuid::from_u128(3)));
    let running = Op::RunUpdated(RunUpdated {
        status: RunStatus::Running,
        error: None,
        usage: None,
        extra: Extra::new(),
    });
    add(&mut state, &running);
    let root = NodeId::root(&run());
    for (node_id, parent_id, kind) in [
        (root.clone(), None, NodeKind::Root),
        (answer(), Some(&root), NodeKind::Model),
    ] {
        let announcement = Announcement {
            node_id: node_id.clone(),
            parent_id,
            kind,
            name: "node",
            title: "",
            ordinal: 0,
            executor: Executor::Runloom,
            occurrence_id: None,
        };
        add(&mut state, &announcement.op());
        add(&mut state, &node_running(&node_id));
    }
    let begun = Op::AttemptStarted(AttemptStarted {
        node_id: answer(),
        attempt_id: attempt(),
        attempt_index: 0,
        reason: AttemptReason::Initial,
        provider: "p".to_owned(),
        model: "m".to_owned(),
        continues_attempt_id: None,
        kept: None,
        extra: Extra::new(),
    });
    add(&mut state, &begun);
    for op in ops {
        add(&mut state, op);
    }
    state
}

/// All that a comparison sees: what differs is only how many ops it took.
fn content(state: &RunState) -> serde_json::Value {
    let mut snapshot = state.to_snapshot();
    snapshot.seq = 0;
    snapshot.run.last_seq = 0;
    snapshot.notices.iter_mut().for_each(|notice| notice.seq = 0);
    serde_json::to_value(snapshot).expect("a snapshot is JSON")
}

/// The op, and the same with only a part of its text.
fn partly(op: &Op) -> Vec<Op> {
    match op {
        Op::BlockDelta(delta) => (1..delta.delta.len())
            .filter(|&end| delta.delta.is_char_boundary(end))
            .map(|end| {
                let mut part = delta.clone();
                part.delta.truncate(end);
                Op::BlockDelta(part)
            })
            .collect(),
        Op::NodeOutput(output) => (1..output.text.len())
            .filter(|&end| output.text.is_char_boundary(end))
            .map(|end| {
                let mut part = output.clone();
                part.text.truncate(end);
                Op::NodeOutput(part)
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn whatever_was_saved_and_wherever_the_transcript_ends_the_record_then_holds_all_of_the_transcript() {
    let total = rounds().iter().map(Vec::len).sum();
    for end in 0..=total {
        let received = rebuilt(cut(end)).await;
        let expected = content(&state(&received));
        for saved in 0..=received.len() {
            let mut starts = vec![received[..saved].to_vec()];
            for part in received.get(saved).map(partly).unwrap_or_default() {
                starts.push([&received[..saved], &[part]].concat());
            }
            for start in starts {
                let mut after = state(&start);
                let seq = after.seq();
                let ops = missing(&mut after, received.clone(), AT);
                assert_eq!(content(&after), expected, "{end} events, {saved} ops saved");
                assert_eq!(after.seq(), seq + ops.len() as u64);
                // What is written is exactly that.
                let mut written = state(&start);
                ops.iter().for_each(|op| add(&mut written, op));
                assert_eq!(content(&written), expected);
            }
        }
    }
}

#[tokio::test]
async fn a_transcript_that_ends_before_what_was_saved_adds_nothing() {
    let total = rounds().iter().map(Vec::len).sum();
    let all = rebuilt(rounds()).await;
    let saved = state(&all);
    for end in 0..=total {
        let mut after = saved.clone();
        assert_eq!(
            missing(&mut after, rebuilt(cut(end)).await, AT),
            [],
            "{end} events"
        );
        assert_eq!(content(&after), content(&saved));
    }
}

#[tokio::test]
async fn where_the_record_shows_something_else_the_transcript_adds_nothing_from_there_on() {
    let all = rebuilt(rounds()).await;
    for (place, op) in all.iter().enumerate() {
        let other = match op.clone() {
            Op::BlockDelta(mut op) => {
                op.delta = "another".to_owned();
                Op::BlockDelta(op)
            }
            Op::NodeOutput(mut op) => {
                op.text = "another".to_owned();
                Op::NodeOutput(op)
            }
            _ => continue,
        };
        let mut after = state(&all[..place]);
        add(&mut after, &other);
        let shown = content(&after);
        assert_eq!(missing(&mut after, all.clone(), AT), [], "{op:?}");
        assert_eq!(content(&after), shown);
    }
}

#[tokio::test]
async fn calls_after_which_the_model_was_asked_again_had_run_and_others_had_not() {
    for (events, expected) in [
        (rounds()[0].len(), NodeStatus::NotRun),
        (rounds()[0].len() + 1, NodeStatus::Interrupted),
    ] {
        let mut after = state(&[]);
        missing(&mut after, rebuilt(cut(events)).await, AT);
        let error = protocol::model::ErrorInfo::new("owner_gone", "gone");
        for op in close(&after, &Ending::Interrupted(error), AT) {
            add(&mut after, &op);
        }
        let calls: Vec<_> = after
            .children(&answer())
            .map(|node| (node.ordinal, node.state.status()))
            .collect();
        assert_eq!(calls, [(0, NodeStatus::Succeeded), (1, expected), (2, expected)]);
        let text = after.blocks().iter().find(|block| block.body.kind() == "text");
        assert_eq!(
            text.map(|block| block.state.status()),
            Some(BlockStatus::Complete)
        );
        assert!(after.run().status.is_final());
    }
}

#[tokio::test]
async fn calls_of_an_earlier_attempt_keep_their_ordinals() {
    let mut after = state(&[]);
    let earlier = OccurrenceId::inner_model_call(&answer(), 7);
    let announcement = Announcement {
        node_id: NodeId::function(&answer(), &earlier),
        parent_id: Some(&answer()),
        kind: NodeKind::Function,
        name: "list_dir",
        title: "",
        ordinal: 0,
        executor: Executor::Runloom,
        occurrence_id: Some(earlier),
    };
    add(&mut after, &announcement.op());
    missing(&mut after, rebuilt(cut(rounds()[0].len())).await, AT);
    let ordinals: Vec<_> = after.children(&answer()).map(|node| node.ordinal).collect();
    assert_eq!(ordinals, [0, 1, 2, 3]);
    let answer = answer();
    let arguments = after.children(&answer).map(|node| {
        node.outputs
            .get(&Channel::Arguments)
            .map(|output| output.text.as_str())
    });
    assert_eq!(
        arguments.collect::<Vec<_>>(),
        [
            None,
            Some("{\"query\":\"x\"}"),
            Some("{\"path\":\"README.md\"}"),
            Some("{}")
        ]
    );
}

#[test]
fn a_piece_adds_what_is_not_known_of_it() {
    assert_eq!(rest("", 0, "abc"), Some("abc"));
    assert_eq!(rest("ab", 0, "abc"), Some("c"));
    assert_eq!(rest("aé", 1, "éc"), Some("c"));
    assert_eq!(rest("abc", 1, "b"), Some(""));
    assert_eq!(rest("abc", 3, "d"), Some("d"));
    assert_eq!(rest("abx", 1, "bc"), None, "it differs");
    assert_eq!(rest("ab", 3, "d"), None, "a hole");
    assert_eq!(rest("é", 1, "c"), None, "in the middle of a character");
}

#[tokio::test]
async fn what_follows_on_a_concurrent_batch_stands_behind_it() {
    let mut known = state(&rebuilt(rounds().into_iter().take(1).collect()).await);
    let rows: Vec<_> = known.blocks_of(&attempt()).cloned().collect();
    let place = BlockPlace {
        node_id: &answer(),
        attempt_id: &attempt(),
        block_index: rows.last().unwrap().block_index + 1,
        round: 0,
    };
    let calls = rows.iter().filter(|block| block.body.kind() == "tool_ref");
    let group = BlockBody::ParallelGroup {
        group_id: GroupId::of_batch(&answer(), &attempt(), 0, 0),
        members: calls.map(|block| block.block_id.clone()).collect(),
    };
    add(&mut known, &place.started(group));
    let ops = rebuild(&known, &answer(), &attempt(), rounds(), AT).await;
    assert!(!missing(&mut known, ops, AT).is_empty());
    let last = known.blocks_of(&attempt()).next_back().unwrap();
    assert_eq!(last.block_index, place.block_index + 1);
    assert_eq!(last.body.content().unwrap().text, "Done: all of it.");
}
