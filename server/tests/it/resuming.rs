//! Runs that go on: a person resumes one, or its policy does.

use std::sync::Arc;

use axum::http::StatusCode;
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::state::{AttemptReason, AttemptStatus, MessageState, NodeKind, NodeStatus, RunStatus};
use serde_json::json;
use server::provider::GO_ON;
use server::store::test_support::TestDatabase;

use crate::attempts::{answer, attempts, conversation};
use crate::command_line::Process;
use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, Provider};
use crate::states::{end, text};
use crate::tool_settlement::{Waiting, waiting_scenario};
use crate::viewer::Viewer;

/// Waits until the run is over with this many attempts.
async fn ended_with(server: &TestServer, run: &RunId, count: usize) -> RunState {
    let mut viewer = server.watch(run).await;
    let over = |state: &RunState| state.run().status.is_final() && state.attempts().len() == count;
    viewer.until(run, over).await.clone()
}

/// A server on the database of another one.
async fn next_to(database: &Arc<TestDatabase>, provider: &Provider, has_neighbours: bool) -> TestServer {
    TestServer::start_with(Setup {
        database: Some(Arc::clone(database)),
        provider: Some(provider.clone()),
        has_neighbours,
        ..Setup::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_a_run_is_resumed_with_what_is_kept_and_nothing_runs_twice() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let mut process = Process::serve(&database, &provider.base, "").await;
    provider.arm("welcome:after-list").await;
    let run = process.run("Show me what Runloom does").await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    provider.reached("welcome:after-list").await;
    viewer.until_text(&run, "a toy key-value store in Python. ").await;
    process.kill();
    provider.open("welcome:after-list").await;

    let server = next_to(&database, &provider, false).await;
    let interrupted = server.ended(&run).await;
    assert_eq!(end(&interrupted), (RunStatus::Interrupted, Some("owner_gone")));
    let before = provider.requests().await.len();
    assert_eq!(server.resume(&run).await, StatusCode::ACCEPTED);
    let seen = ended_with(&server, &run, 2).await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(
        attempts(&seen),
        [
            (AttemptReason::Initial, AttemptStatus::Interrupted),
            (AttemptReason::Resume, AttemptStatus::Completed)
        ]
    );
    let (first, second) = (&seen.attempts()[0], &seen.attempts()[1]);
    assert_eq!(second.continues_attempt_id.as_ref(), Some(&first.attempt_id));
    // What was there stays as it was.
    for block in interrupted.blocks() {
        assert_eq!(seen.block(&block.block_id).unwrap(), block);
    }
    let calls = |state: &RunState, name: &str| {
        let nodes = state.nodes().iter();
        nodes.filter(|node| node.name == name).count()
    };
    assert_eq!(calls(&interrupted, "list_dir"), 1);
    assert_eq!(calls(&seen, "list_dir"), 1, "its result is known");
    let request = conversation(&provider.requests().await[before]);
    let said = format!("{request:?}");
    for part in ["Show me what Runloom does", "Welcome to Runloom", "acorn"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(text(&interrupted).contains("key-value store"));
    assert!(answer(&seen).contains("Welcome to Runloom"));
    assert!(answer(&seen).contains("That was the tour"));
    assert_eq!(seen.generation(), interrupted.generation() + 1);
    server.assert_same(&seen).await;

    assert_eq!(
        server.resume(&run).await,
        StatusCode::CONFLICT,
        "it has succeeded"
    );
    let unknown = RunId::from_uuid(uuid::Uuid::now_v7());
    assert_eq!(server.resume(&unknown).await, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_so_far_is_sent_and_the_model_is_told_to_go_on() {
    for provider in PROVIDERS {
        let server = TestServer::start().await;
        server.provider.arm("cut_once:before").await;
        let run = server.run("cut_once", provider).await;
        let mut viewer = server.watch(&run).await;
        viewer.until_text(&run, "line.sp").await;
        server.cancel(&run).await;
        let cancelled = viewer.until_end(&run).await.clone();
        assert_eq!(end(&cancelled), (RunStatus::Cancelled, None));
        server.provider.open("cut_once:before").await;
        server.provider.arm("cut_once:again").await;

        assert_eq!(server.resume(&run).await, StatusCode::ACCEPTED);
        let runs = |state: &RunState| state.attempts().len() == 2;
        viewer.until(&run, runs).await;
        assert_eq!(
            server.resume(&run).await,
            StatusCode::ACCEPTED,
            "it goes on already"
        );
        server.provider.reached("cut_once:again").await;
        server.provider.open("cut_once:again").await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            attempts(&seen),
            [
                (AttemptReason::Initial, AttemptStatus::Cancelled),
                (AttemptReason::Resume, AttemptStatus::Completed)
            ]
        );
        let kept = "The log is a file of lines, each one a record.\n\nIt is read like this:";
        let request = conversation(&server.provider.requests().await.pop().unwrap());
        assert_eq!(request[1].1, kept, "{provider}");
        assert_eq!(request[2].1, GO_ON, "{provider}");
        assert!(answer(&seen).starts_with(&format!("{kept}\n\n```python")));
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ran_when_its_owner_went_away_is_told_as_interrupted_and_never_run_again() {
    let tool = Arc::new(Waiting::default());
    let owner = TestServer::start_with(Setup {
        tools: vec![tool.clone()],
        scenarios: vec![waiting_scenario()],
        ..Setup::default()
    })
    .await;
    let run = owner.run("waiting", "anthropic").await;
    let mut viewer = owner.watch(&run).await;
    let runs = |state: &RunState| {
        let mut calls = state
            .nodes()
            .iter()
            .filter(|node| node.kind == NodeKind::Function);
        calls.any(|call| call.state.status() == NodeStatus::Running)
    };
    viewer.until(&run, runs).await;
    // As after a long pause of its process: its lease is over, and it does not know.
    let ended = sqlx::query("update runs set lease_expires_at = now() - interval '1 second', owner = 'gone'");
    ended.execute(owner.execution.store().pool()).await.unwrap();
    let other = TestServer::start_with(Setup {
        database: Some(Arc::clone(&owner.database)),
        provider: Some(owner.provider.clone()),
        tools: vec![tool.clone()],
        has_neighbours: true,
        ..Setup::default()
    })
    .await;
    let store = other.execution.store();
    while store.run_status(&run).await.unwrap() != Some(RunStatus::Interrupted) {
        tokio::task::yield_now().await;
    }
    assert_eq!(other.resume(&run).await, StatusCode::ACCEPTED);
    // Either server may take it up: the rows say how it ended.
    while store.run_status(&run).await.unwrap() != Some(RunStatus::Succeeded) {
        tokio::task::yield_now().await;
    }
    let seen = ended_with(&other, &run, 2).await;
    let call = seen
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Function)
        .unwrap();
    assert_eq!(call.state.status(), NodeStatus::Interrupted);
    assert_eq!(tool.calls(), 1, "never again");
    let said = owner.provider.requests().await.pop().unwrap().to_string();
    assert!(said.contains("The call was interrupted"), "{said}");
    other.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_and_one_that_was_cancelled_before_it_began_can_be_resumed() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let failed = server.submit(&session, "server_error_once", "openai").await;
    assert_eq!(end(&server.ended(&failed).await).0, RunStatus::Failed);
    assert_eq!(server.resume(&failed).await, StatusCode::ACCEPTED);
    let seen = ended_with(&server, &failed, 2).await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(answer(&seen), "The second time it worked.");
    server.assert_same(&seen).await;

    server.provider.arm("slow:middle").await;
    let first = server.submit(&session, "slow", "openai").await;
    server.provider.reached("slow:middle").await;
    let waiting = server.submit(&session, "max_tokens", "openai").await;
    assert_eq!(
        server.resume(&waiting).await,
        StatusCode::ACCEPTED,
        "it is queued"
    );
    server.cancel(&waiting).await;
    let seen = server.ended(&waiting).await;
    assert_eq!((end(&seen).0, seen.attempts().len()), (RunStatus::Cancelled, 0));
    assert_eq!(server.resume(&waiting).await, StatusCode::ACCEPTED);
    server.provider.open("slow:middle").await;
    let seen = ended_with(&server, &waiting, 1).await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(
        attempts(&seen),
        [(AttemptReason::Resume, AttemptStatus::Completed)]
    );
    assert_eq!(seen.messages()[0].state, MessageState::Delivered);
    let before = server.snapshot(&first).await.run;
    assert_eq!(before.status, RunStatus::Succeeded, "one after another");
    let said = server.provider.requests().await.pop().unwrap();
    assert_eq!(conversation(&said).last().unwrap().1, "max_tokens");
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_to_go_on_survives_the_server_and_waits_for_its_session_and_can_be_taken_back() {
    let owner = TestServer::start_with(Setup {
        more_config: "[server]\ngrace_seconds = 0\n",
        ..Setup::default()
    })
    .await;
    let session = owner.session().await;
    let mut failed = Vec::new();
    for _ in 0..2 {
        let run = owner.submit(&session, "cut", "openai").await;
        assert_eq!(end(&owner.ended(&run).await).0, RunStatus::Failed);
        failed.push(run);
    }
    owner.provider.arm("slow:middle").await;
    let busy = owner.submit(&session, "slow", "openai").await;
    owner.provider.reached("slow:middle").await;
    for run in &failed {
        assert_eq!(owner.resume(run).await, StatusCode::ACCEPTED);
        assert_eq!(owner.resume(run).await, StatusCode::ACCEPTED, "twice is once");
    }
    assert_eq!(owner.cancel(&failed[1]).await, StatusCode::ACCEPTED);
    assert_eq!(owner.execution.store().reopen_of(&failed[1]).await.unwrap(), None);
    assert_eq!(
        owner.snapshot(&failed[0]).await.attempts.len(),
        1,
        "its session executes another run"
    );
    owner.execution.shut_down().await;
    owner.provider.open("slow:middle").await;

    let server = next_to(&owner.database, &owner.provider, false).await;
    let seen = ended_with(&server, &failed[0], 2).await;
    assert_eq!(seen.attempts()[1].reason, AttemptReason::Resume);
    assert_eq!(
        server.execution.store().reopen_of(&failed[0]).await.unwrap(),
        None
    );
    assert_eq!(server.snapshot(&failed[1]).await.attempts.len(), 1);
    assert_eq!(
        server.snapshot(&busy).await.run.error.unwrap().code,
        "server_stopped"
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_came_too_late_does_not_stop_the_resumed_run() {
    let server = TestServer::start().await;
    let run = server.run("server_error_once", "openai").await;
    assert_eq!(end(&server.ended(&run).await).0, RunStatus::Failed);
    let store = server.execution.store();
    let kind = server::store::commands::CommandKind::Cancel;
    store.leave_command(&run, &kind, 1).await.unwrap();
    assert_eq!(server.resume(&run).await, StatusCode::ACCEPTED);
    let seen = ended_with(&server, &run, 2).await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
}

/// A run with the policy `resume`, whose owner is killed in the middle of it.
async fn abandoned(provider: &Provider, database: &Arc<TestDatabase>) -> RunId {
    let mut process = Process::serve(database, &provider.base, "").await;
    provider.arm("welcome:after-list").await;
    let session = process.session().await;
    let body = json!({ "prompt": "welcome", "on_interruption": "resume" });
    let run = process.submit_body(&session, body).await;
    // What is written down is what another one finds.
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    viewer.until_text(&run, "a toy key-value store in Python. ").await;
    process.kill();
    provider.open("welcome:after-list").await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_policy_is_to_resume_goes_on_by_itself() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let run = abandoned(&provider, &database).await;
    let server = next_to(&database, &provider, false).await;
    let seen = ended_with(&server, &run, 2).await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(
        attempts(&seen),
        [
            (AttemptReason::Initial, AttemptStatus::Interrupted),
            (AttemptReason::Resume, AttemptStatus::Completed)
        ]
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_resumed_by_itself_too_often_is_left_for_a_person() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let run = abandoned(&provider, &database).await;
    let store = server::store::Store::connect(database.options.clone())
        .await
        .unwrap();
    let spent = sqlx::query("update runs set automatic_resumes = 3");
    spent.execute(store.pool()).await.unwrap();
    let server = next_to(&database, &provider, false).await;
    let seen = server.ended(&run).await;
    assert_eq!(end(&seen), (RunStatus::Interrupted, Some("owner_gone")));
    assert_eq!(store.reopen_of(&run).await.unwrap(), None);
    assert_eq!(
        server.resume(&run).await,
        StatusCode::ACCEPTED,
        "a person still can"
    );
    assert_eq!(end(&ended_with(&server, &run, 2).await).0, RunStatus::Succeeded);
}
