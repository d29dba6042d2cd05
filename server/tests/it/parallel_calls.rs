//! Calls of one round that run at the same time: a declared group, in the order of the calls, each with its own end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::http::StatusCode;
use protocol::fold::RunState;
use protocol::id::{BlockId, GroupId, NodeId};
use protocol::model::{BlockBody, Node, ToolRef};
use protocol::op::Op;
use protocol::state::{NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};
use server::simulator::{Scenario, Speed};
use server::tool::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput};
use tokio_util::sync::CancellationToken;

use crate::harness::{Setup, TestServer, is_long};
use crate::provider::{PROVIDERS, Provider, scenario};
use crate::states::end;
use crate::watching_elsewhere::beside;

/// A tool whose calls stay until they are let go, by the name that they are given.
struct Hold {
    info: ToolInfo,
    doors: Mutex<HashMap<String, CancellationToken>>,
    running: Arc<AtomicUsize>,
    most: AtomicUsize,
}

/// Counts a call while it lives.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Hold {
    fn new(name: &str, concurrency: Concurrency, running: &Arc<AtomicUsize>) -> Arc<Self> {
        let info = ToolInfo {
            name: name.to_owned(),
            description: "Waits at a door.".to_owned(),
            parameters: json!({ "type": "object", "properties": { "door": { "type": "string" } } }),
            concurrency,
            mutating: false,
            exposure: Exposure::Full,
        };
        Arc::new(Self {
            info,
            doors: Mutex::default(),
            running: Arc::clone(running),
            most: AtomicUsize::new(0),
        })
    }

    fn door(&self, name: &str) -> CancellationToken {
        self.doors
            .lock()
            .unwrap()
            .entry(name.to_owned())
            .or_default()
            .clone()
    }

    /// Lets the call at this door go, now or when it comes.
    fn open(&self, name: &str) {
        self.door(name).cancel();
    }

    /// The most calls that ran at the same time as one of this tool, itself counted.
    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Tool for Hold {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, _: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let running = Running(Arc::clone(&self.running));
        Box::pin(async move {
            let _running = running;
            let name = arguments["door"].as_str().unwrap().to_owned();
            let door = self.door(&name);
            tokio::select! {
                () = door.cancelled() => Ok(ToolOutput {
                    text: format!("through {name}"),
                    media_type: "text/plain".to_owned(),
                    exit_code: None,
                }),
                () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            }
        })
    }
}

/// A round with these calls, each of a tool at a door, then a word.
fn calls(name: &str, calls: &[(&str, &str)]) -> Scenario {
    let mut source = format!(
        "name = \"{name}\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"{name}\"\n[[turns]]\n"
    );
    for (tool, door) in calls {
        source.push_str(&format!(
            "[[turns.steps]]\nstep = \"tool_call\"\nname = \"{tool}\"\narguments = '{{\"door\": \"{door}\"}}'\n"
        ));
    }
    source.push_str("[[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n");
    scenario(name, &source)
}

struct Held {
    server: TestServer,
    /// A tool that may run beside others.
    safe: Arc<Hold>,
    /// A tool that may not.
    alone: Arc<Hold>,
}

async fn held(scenarios: Vec<Scenario>, more_config: &'static str) -> Held {
    let running = Arc::default();
    let safe = Hold::new("hold", Concurrency::ParallelSafe, &running);
    let alone = Hold::new("alone", Concurrency::Exclusive, &running);
    let server = TestServer::start_with(Setup {
        tools: vec![safe.clone(), alone.clone()],
        scenarios,
        more_config,
        ..Setup::default()
    })
    .await;
    Held { server, safe, alone }
}

const FOUR: &[(&str, &str)] = &[("hold", "a"), ("hold", "b"), ("hold", "c"), ("hold", "d")];

fn nodes(state: &RunState) -> Vec<&Node> {
    let nodes = state.nodes().iter();
    nodes.filter(|node| node.kind == NodeKind::Function).collect()
}

fn states(state: &RunState) -> Vec<NodeStatus> {
    nodes(state).iter().map(|node| node.state.status()).collect()
}

fn running(state: &RunState) -> usize {
    states(state)
        .iter()
        .filter(|status| **status == NodeStatus::Running)
        .count()
}

/// The declared groups with their members, in order.
fn groups(state: &RunState) -> Vec<(&GroupId, &[BlockId])> {
    let blocks = state.blocks().iter();
    let groups = blocks.filter_map(|block| match &block.body {
        BlockBody::ParallelGroup { group_id, members } => Some((group_id, members.as_slice())),
        _ => None,
    });
    groups.collect()
}

fn rows(state: &RunState) -> Vec<(&BlockId, &ToolRef)> {
    let blocks = state.blocks().iter();
    let rows = blocks.filter_map(|block| match &block.body {
        BlockBody::ToolRef(reference) => Some((&block.block_id, reference)),
        _ => None,
    });
    rows.collect()
}

async fn cancel(server: &TestServer, node: &NodeId) -> StatusCode {
    let answer = server.post(&format!("/api/nodes/{node}/cancel"), json!({})).await;
    answer.status()
}

#[tokio::test(flavor = "multi_thread")]
async fn safe_calls_of_a_round_overlap_as_one_group_and_each_settles_by_itself() {
    let Held { server, safe, .. } = held(vec![calls("four", FOUR)], "").await;
    for provider in PROVIDERS {
        safe.doors.lock().unwrap().clear();
        let run = server.run("four", provider).await;
        let mut viewer = server.watch(&run).await;
        let seen = viewer.until(&run, |state| running(state) == 4).await;
        let (group, members) = groups(seen)[0];
        let shown: Vec<_> = rows(seen).iter().map(|(block, _)| (*block).clone()).collect();
        assert_eq!((members, groups(seen).len()), (shown.as_slice(), 1), "{provider}");
        assert!(
            rows(seen)
                .iter()
                .all(|(_, row)| row.group_id.as_ref() == Some(group))
        );

        // In another order than they were called in.
        for (door, place) in [("c", 2), ("a", 0), ("b", 1)] {
            safe.open(door);
            let ended = |state: &RunState| states(state)[place] == NodeStatus::Succeeded;
            let seen = viewer.until(&run, ended).await;
            assert_eq!(states(seen)[3], NodeStatus::Running, "{provider}");
            assert_eq!(
                running(seen),
                [3, 2, 1][["c", "a", "b"].iter().position(|name| *name == door).unwrap()]
            );
        }
        // One member is stopped alone, and the answer goes on.
        let last = nodes(&viewer.runs[&run].state)[3].node_id.clone();
        assert_eq!(cancel(&server, &last).await, StatusCode::ACCEPTED);
        assert_eq!(
            cancel(&server, &last).await,
            StatusCode::ACCEPTED,
            "repeating it is harmless"
        );
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let (succeeded, cancelled) = (NodeStatus::Succeeded, NodeStatus::Cancelled);
        assert_eq!(
            states(&seen),
            [succeeded, succeeded, succeeded, cancelled],
            "{provider}"
        );
        let after: Vec<_> = rows(&seen).iter().map(|(block, _)| (*block).clone()).collect();
        assert_eq!(after, shown, "rows stay where they are");
        assert_eq!(cancel(&server, &last).await, StatusCode::ACCEPTED, "it is over");
        server.assert_same(&seen).await;

        // The model is told in the order of its calls.
        let told = server.provider.requests().await.pop().unwrap().to_string();
        let mut place = 0;
        for words in [
            "through a",
            "through b",
            "through c",
            "The call was cancelled (cancelled)",
        ] {
            let found = told[place..].find(words);
            place += found.unwrap_or_else(|| panic!("{provider}: {words} in {told}"));
        }
    }
    assert_eq!(safe.most(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_declared_in_one_commit_with_all_its_rows() {
    let Held { server, safe, .. } = held(vec![calls("four", FOUR)], "").await;
    ["a", "b", "c", "d"].iter().for_each(|door| safe.open(door));
    let seen = server.finish("four", "openai").await;
    let ops = server.ops(&seen.run().run_id).await;
    let is_group = |op: &Op| matches!(op, Op::BlockStarted(op) if op.body.kind() == "parallel_group");
    let place = ops.iter().position(|entry| is_group(&entry.op)).unwrap();
    let updates = &ops[place - 4..place];
    for (entry, (block, _)) in updates.iter().zip(rows(&seen)) {
        let Op::BlockUpdated(op) = &entry.op else {
            panic!("{entry:?}")
        };
        assert_eq!(
            (&op.block_id, op.group_id.as_ref()),
            (block, Some(groups(&seen)[0].0))
        );
        assert_eq!(entry.at, ops[place].at, "one commit");
    }
    // Nothing runs before it is said what runs together.
    let runs = |op: &Op| matches!(op, Op::NodeUpdated(op) if nodes(&seen).iter().any(|node| node.node_id == op.node_id));
    assert!(ops.iter().position(|entry| runs(&entry.op)).unwrap() > place);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_calls_run_at_once_than_the_configuration_says_and_they_begin_in_their_order() {
    let Held { server, safe, .. } = held(vec![calls("four", FOUR)], "[limits]\nparallel_calls = 2\n").await;
    let run = server.run("four", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let (pending, runs, done) = (NodeStatus::Pending, NodeStatus::Running, NodeStatus::Succeeded);
    let is = |expected: [NodeStatus; 4]| move |state: &RunState| states(state) == expected;
    viewer.until(&run, is([runs, runs, pending, pending])).await;
    safe.open("b");
    let seen = viewer.until(&run, is([runs, done, runs, pending])).await;
    assert_eq!(groups(seen)[0].1.len(), 4, "those that wait belong to it");
    // A call that waits is stopped before it begins.
    let last = nodes(&viewer.runs[&run].state)[3].node_id.clone();
    assert_eq!(cancel(&server, &last).await, StatusCode::ACCEPTED);
    ["a", "c"].iter().for_each(|door| safe.open(door));
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(states(&seen), [done, done, done, NodeStatus::NotRun]);
    let ended = nodes(&seen)[3].state.end().unwrap().error.as_ref().unwrap();
    assert_eq!(ended.code, "cancelled");
    assert_eq!(safe.most(), 2);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_call_waits_for_what_runs_and_goes_alone() {
    let mixed = [
        ("hold", "a"),
        ("hold", "b"),
        ("alone", "x"),
        ("hold", "c"),
        ("hold", "d"),
    ];
    let Held { server, safe, alone } = held(vec![calls("mixed", &mixed)], "").await;
    let run = server.run("mixed", "openai").await;
    let mut viewer = server.watch(&run).await;
    let (pending, runs, done) = (NodeStatus::Pending, NodeStatus::Running, NodeStatus::Succeeded);
    let is = |expected: [NodeStatus; 5]| move |state: &RunState| states(state) == expected;
    viewer
        .until(&run, is([runs, runs, pending, pending, pending]))
        .await;
    safe.open("a");
    viewer
        .until(&run, is([done, runs, pending, pending, pending]))
        .await;
    safe.open("b");
    let seen = viewer.until(&run, is([done, done, runs, pending, pending])).await;
    assert_eq!(groups(seen).len(), 1, "what has not begun is no group yet");
    alone.open("x");
    viewer.until(&run, is([done, done, done, runs, runs])).await;
    ["c", "d"].iter().for_each(|door| safe.open(door));
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!((alone.most(), safe.most()), (1, 2));
    let blocks: Vec<_> = rows(&seen).iter().map(|(block, _)| (*block).clone()).collect();
    let members: Vec<_> = groups(&seen)
        .iter()
        .map(|(_, members)| members.to_vec())
        .collect();
    assert_eq!(members, [blocks[..2].to_vec(), blocks[3..].to_vec()]);
    assert_ne!(groups(&seen)[0].0, groups(&seen)[1].0);
    assert_eq!(rows(&seen)[2].1.group_id, None);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_do_not_run_at_once_are_never_a_group() {
    let cases: [(&'static str, &[(&str, &str)]); 3] = [
        // Exclusive ones, and a safe one between them.
        (
            "",
            &[("alone", "a"), ("alone", "b"), ("hold", "c"), ("alone", "d")],
        ),
        // Only one of two is run at all.
        ("", &[("hold", "a"), ("nothing", "b")]),
        ("[limits]\nparallel_calls = 1\n", FOUR),
    ];
    for (more_config, made) in cases {
        let Held { server, safe, alone } = held(vec![calls("made", made)], more_config).await;
        for door in ["a", "b", "c", "d"] {
            safe.open(door);
            alone.open(door);
        }
        let seen = server.finish("made", "anthropic").await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{made:?}");
        assert_eq!(groups(&seen), [], "{made:?}");
        assert!(
            rows(&seen).iter().all(|(_, row)| row.group_id.is_none()),
            "{made:?}"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_run_is_no_member() {
    let made = [("hold", "a"), ("nothing", "b"), ("hold", "c")];
    let Held { server, safe, .. } = held(vec![calls("made", &made)], "").await;
    ["a", "c"].iter().for_each(|door| safe.open(door));
    let seen = server.finish("made", "openai").await;
    let (done, not_run) = (NodeStatus::Succeeded, NodeStatus::NotRun);
    assert_eq!(states(&seen), [done, not_run, done]);
    let members: Vec<_> = [0, 2].map(|place: usize| rows(&seen)[place].0.clone()).to_vec();
    assert_eq!(groups(&seen)[0].1, members);
    assert_eq!(rows(&seen)[1].1.group_id, None);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_leaves_what_had_ended_and_runs_nothing_more() {
    let Held { server, safe, .. } = held(vec![calls("four", FOUR)], "[limits]\nparallel_calls = 3\n").await;
    let run = server.run("four", "openai").await;
    let mut viewer = server.watch(&run).await;
    viewer.until(&run, |state| running(state) == 3).await;
    safe.open("b");
    let all_run = |state: &RunState| states(state)[1] == NodeStatus::Succeeded && running(state) == 3;
    viewer.until(&run, all_run).await;
    server.cancel(&run).await;
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Cancelled, None));
    let (done, cancelled) = (NodeStatus::Succeeded, NodeStatus::Cancelled);
    assert_eq!(states(&seen), [cancelled, done, cancelled, cancelled]);
    assert_eq!(safe.running.load(Ordering::SeqCst), 0);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_is_stopped_from_another_server_too() {
    let Held { server, safe, .. } = held(vec![calls("two", &FOUR[..2])], "").await;
    let run = server.run("two", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until(&run, |state| running(state) == 2).await;
    let first = nodes(seen)[0].node_id.clone();
    let other = beside(&server, Setup::default()).await;
    assert!(!other.execution.owns(&run));
    assert_eq!(cancel(&other, &first).await, StatusCode::ACCEPTED);
    let stopped = |state: &RunState| states(state)[0] == NodeStatus::Cancelled;
    let seen = viewer.until(&run, stopped).await;
    assert_eq!(running(seen), 1);
    safe.open("b");
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    other.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_what_is_no_call_stops_the_run_or_says_why_not() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until_text(&run, "takes its time. ").await;
    let answer = seen.nodes()[1].node_id.clone();
    assert_eq!(cancel(&server, &answer).await, StatusCode::ACCEPTED);
    let seen = viewer.until_end(&run).await;
    assert_eq!(end(seen), (RunStatus::Cancelled, None));
    let unknown: NodeId = "exec_unknown".parse().unwrap();
    assert_eq!(cancel(&server, &unknown).await, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_two_hundred_keeps_its_order_and_all_its_results() {
    let server = TestServer::start().await;
    let seen = server.finish("many", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(nodes(&seen).len(), 200);
    assert!(
        states(&seen)
            .iter()
            .all(|status| *status == NodeStatus::Succeeded)
    );
    let (group, members) = groups(&seen)[0];
    let shown: Vec<_> = rows(&seen).iter().map(|(block, _)| (*block).clone()).collect();
    assert_eq!(members, shown);
    assert!(
        rows(&seen)
            .iter()
            .all(|(_, row)| row.group_id.as_ref() == Some(group))
    );
    let ordinals: Vec<_> = nodes(&seen).iter().map(|node| node.ordinal).collect();
    assert_eq!(ordinals, (0..200).collect::<Vec<_>>());
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_calls_at_once_of_which_one_asks_a_model_are_the_same_live_and_read_again() {
    let server = TestServer::start().await;
    for provider in PROVIDERS {
        server.provider.arm("reader:middle").await;
        let run = server.run("asking", provider).await;
        let mut viewer = server.watch(&run).await;
        let before = viewer.until_text(&run, "The log is read once, ").await.clone();
        assert_eq!(groups(&before)[0].1.len(), 2, "{provider}");
        let early = &nodes(&before)[0];
        assert_eq!(
            (early.name.as_str(), early.state.status()),
            ("search_files", NodeStatus::Succeeded)
        );
        // Who comes now sees what the others see.
        let again = server.snapshot(&run).await;
        assert_eq!(
            RunState::from_snapshot(again).blocks().len(),
            before.blocks().len()
        );
        server.provider.open("reader:middle").await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(rows(&seen).len(), nodes(&seen).len(), "one row for each call");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_four_ten_and_two_seconds_and_one_that_never_ends_overlap_until_a_stop_at_twelve() {
    let speed = if is_long() { 1.0 } else { 4.0 };
    let provider = Provider::start_at(speed.to_string().parse::<Speed>().unwrap(), Vec::new()).await;
    let server = TestServer::start_with(Setup {
        provider: Some(provider),
        ..Setup::default()
    })
    .await;
    let run = server.run("overlap", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let begin = viewer.until(&run, |state| running(state) == 4).await;
    let begin_ms = nodes(begin)[0].started_at.unwrap();
    let begun = Instant::now();
    let three = |state: &RunState| {
        let done = states(state)
            .iter()
            .filter(|status| **status == NodeStatus::Succeeded)
            .count();
        done == 3
    };
    viewer.until(&run, three).await;
    tokio::time::sleep_until((begun + std::time::Duration::from_secs_f64(12.0 / speed)).into()).await;
    server.cancel(&run).await;
    let seen = viewer.until_end(&run).await.clone();
    let (done, cancelled) = (NodeStatus::Succeeded, NodeStatus::Cancelled);
    assert_eq!(states(&seen), [done, done, done, cancelled]);
    // Each at its own time, in seconds of the scenario; what is above is the machine's.
    let ended: Vec<f64> = nodes(&seen)
        .iter()
        .map(|node| (node.state.end().unwrap().finished_at - begin_ms) as f64 / 1000.0 * speed)
        .collect();
    for (ended, expected) in ended.iter().zip([4.0, 10.0, 2.0, 12.0]) {
        assert!(
            (expected - 0.5..expected + 5.0).contains(ended),
            "{ended} of {expected}"
        );
    }
    assert!(
        ended[2] < ended[0] && ended[0] < ended[1] && ended[1] < ended[3],
        "{ended:?}"
    );
    server.assert_same(&seen).await;
}
