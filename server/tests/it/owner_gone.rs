//! The owner of a run is gone in the middle of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::fold::RunState;
use protocol::state::{AttemptStatus, BlockStatus, NodeKind, NodeStatus, RunStatus};
use server::store::test_support::TestDatabase;

use crate::command_line::Process;
use crate::harness::{Setup, TestServer};
use crate::provider::Provider;
use crate::states::{end, kinds, text};
use crate::viewer::Viewer;

/// A run that a process executes, held at a gate, with what a viewer has seen of it.
struct Held {
    process: Process,
    database: Arc<TestDatabase>,
    provider: Provider,
    seen: RunState,
}

/// Starts a run and waits until a viewer has seen enough of it.
async fn hold(prompt: &str, gate: &str, enough: impl Fn(&RunState) -> bool) -> Held {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let process = Process::serve(&database, &provider.base, "").await;
    provider.arm(gate).await;
    let run = process.run(prompt).await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    provider.reached(gate).await;
    let seen = viewer.until(&run, enough).await.clone();
    Held {
        process,
        database,
        provider,
        seen,
    }
}

/// Everything that was seen is in `after`, in its place.
pub(crate) fn assert_kept(seen: &RunState, after: &RunState) {
    assert!(after.seq() > seen.seq());
    for block in seen.blocks() {
        let kept = after.block(&block.block_id).unwrap();
        assert_eq!(
            (kept.block_index, kept.body.kind()),
            (block.block_index, block.body.kind())
        );
        if let (Some(before), Some(now)) = (block.body.content(), kept.body.content()) {
            assert!(
                now.text.starts_with(&before.text),
                "{:?} {:?}",
                before.text,
                now.text
            );
        }
    }
    for node in seen.nodes() {
        let kept = after.node(&node.node_id).unwrap();
        for (channel, output) in &node.outputs {
            assert!(kept.outputs[channel].text.starts_with(&output.text));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_everything_that_was_seen_is_there_and_nothing_runs_any_more() {
    let mut held = hold("Show me what Runloom does", "welcome:after-list", |state| {
        text(state).contains("a toy key-value store in Python. ")
    })
    .await;
    held.process.kill();
    assert!(
        held.provider.is_idle_within(1000).await,
        "its connections are closed"
    );

    let begin = Instant::now();
    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(&held.database)),
        provider: Some(held.provider.clone()),
        ..Setup::default()
    })
    .await;
    let mut viewer = Viewer::connect(&server.base).await;
    let run = held.seen.run().run_id.clone();
    viewer.resume(held.seen.clone()).await;
    let after = viewer.until_end(&run).await.clone();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(end(&after), (RunStatus::Interrupted, Some("owner_gone")));
    assert_kept(&held.seen, &after);
    assert_eq!(kinds(&after), kinds(&held.seen));
    assert_eq!(after.generation(), held.seen.generation() + 1);
    assert_eq!(after.attempts()[0].state.status(), AttemptStatus::Interrupted);
    assert_eq!(after.blocks().last().unwrap().state.status(), BlockStatus::Cut);
    let call = after
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Function)
        .unwrap();
    assert_eq!(
        call.state.status(),
        NodeStatus::Succeeded,
        "what had ended stays as it was"
    );
    server.assert_same(&after).await;
    let session = server.snapshot(&run).await.run.session_id;
    let next = server.submit(&session, "max_tokens", "anthropic").await;
    assert_eq!(
        end(&server.ended(&next).await).0,
        RunStatus::Succeeded,
        "the session goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_announced_when_the_owner_was_killed_did_not_run() {
    let mut held = hold("Call several tools at once", "parallel:between", |state| {
        state.nodes().len() == 3
    })
    .await;
    held.process.kill();
    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(&held.database)),
        provider: Some(held.provider.clone()),
        ..Setup::default()
    })
    .await;
    let after = server.ended(&held.seen.run().run_id).await;
    assert_kept(&held.seen, &after);
    let call = after
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Function)
        .unwrap();
    assert_eq!(call.state.status(), NodeStatus::NotRun);
    server.assert_same(&after).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waited_when_the_owner_was_killed_is_executed_by_the_next_one() {
    let mut held = hold("slow", "slow:middle", |state| {
        text(state).contains("takes its time. ")
    })
    .await;
    let session = held.process.session_of(&held.seen.run().run_id).await;
    let waiting = held.process.submit(&session, "max_tokens").await;
    held.process.kill();
    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(&held.database)),
        provider: Some(held.provider.clone()),
        ..Setup::default()
    })
    .await;
    assert_eq!(end(&server.ended(&waiting).await).0, RunStatus::Succeeded);
}
