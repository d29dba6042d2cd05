//! Stopping a run, and the queue of a session.

use axum::http::StatusCode;
use protocol::state::{AttemptStatus, BlockStatus, MessageState, NodeKind, NodeStatus, RunStatus};

use crate::harness::TestServer;
use crate::provider::PROVIDERS;
use crate::states::{end, text};

#[tokio::test(flavor = "multi_thread")]
async fn cancel_closes_the_providers_socket_within_a_second_and_keeps_the_text() {
    for provider in PROVIDERS {
        let server = TestServer::start().await;
        server.provider.arm("slow:middle").await;
        let run = server.run("slow", provider).await;
        let mut viewer = server.watch(&run).await;
        let before = text(viewer.until_text(&run, "takes its time. ").await);
        server.provider.reached("slow:middle").await;

        assert_eq!(server.cancel(&run).await, StatusCode::ACCEPTED);
        assert!(server.provider.is_idle_within(1000).await, "{provider}");
        assert_eq!(server.provider.look("connections").await["client_closed"], 1);
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Cancelled, None));
        assert_eq!(text(&seen), before);
        assert!(
            seen.blocks()
                .iter()
                .all(|block| block.state.status() == BlockStatus::Cut)
        );
        assert_eq!(seen.attempts()[0].state.status(), AttemptStatus::Cancelled);
        assert!(
            seen.nodes()
                .iter()
                .all(|node| node.state.status() == NodeStatus::Cancelled)
        );
        server.assert_same(&seen).await;

        assert_eq!(
            server.cancel(&run).await,
            StatusCode::ACCEPTED,
            "repeating it is harmless"
        );
        assert_eq!(server.snapshot(&run).await.seq, seen.seq());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_announced_and_never_began_is_not_run_when_the_run_is_cancelled() {
    let server = TestServer::start().await;
    server.provider.arm("parallel:between").await;
    let run = server.run("Call several tools at once", "openai").await;
    let mut viewer = server.watch(&run).await;
    let is_announced = |state: &protocol::fold::RunState| state.nodes().len() == 3;
    viewer.until(&run, is_announced).await;
    server.cancel(&run).await;
    let seen = viewer.until_end(&run).await.clone();
    let call = seen
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Function)
        .unwrap();
    assert_eq!(call.state.status(), NodeStatus::NotRun);
    assert_eq!(
        seen.block_of_node(&call.node_id).unwrap().state.status(),
        BlockStatus::Complete
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_executes_one_run_at_a_time_and_the_next_one_by_itself() {
    let server = TestServer::start().await;
    server.provider.arm("slow:begin").await;
    let session = server.session().await;
    let first = server.submit(&session, "slow", "anthropic").await;
    server.provider.reached("slow:begin").await;
    let second = server.submit(&session, "max_tokens", "anthropic").await;
    let other = server.finish("max_tokens", "anthropic").await;
    assert_eq!(
        end(&other).0,
        RunStatus::Succeeded,
        "another session does not wait"
    );
    assert_eq!(server.snapshot(&second).await.run.status, RunStatus::Queued);
    assert_eq!(server.snapshot(&second).await.seq, 2);

    server.provider.open("slow:begin").await;
    let second = server.ended(&second).await;
    let first = server.ended(&first).await;
    assert_eq!(
        (end(&first).0, end(&second).0),
        (RunStatus::Succeeded, RunStatus::Succeeded)
    );
    let first_end = first.root().unwrap().state.end().unwrap().finished_at;
    assert!(second.root().unwrap().announced_at >= first_end);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_run_is_cancelled_before_it_starts_and_its_prompt_comes_back() {
    let server = TestServer::start().await;
    server.provider.arm("slow:begin").await;
    let session = server.session().await;
    let first = server.submit(&session, "slow", "anthropic").await;
    server.provider.reached("slow:begin").await;
    let second = server.submit(&session, "this was taken back", "anthropic").await;
    let third = server.submit(&session, "max_tokens", "anthropic").await;
    let mut viewer = server.watch(&second).await;
    for _ in 0..2 {
        assert_eq!(server.cancel(&second).await, StatusCode::ACCEPTED);
    }
    let seen = viewer.until_end(&second).await.clone();
    assert_eq!(end(&seen), (RunStatus::Cancelled, None));
    assert_eq!(seen.messages()[0].state, MessageState::Returned);
    assert!(seen.nodes().is_empty());
    server.assert_same(&seen).await;
    assert_eq!(server.snapshot(&first).await.run.status, RunStatus::Running);

    server.provider.open("slow:begin").await;
    assert_eq!(end(&server.ended(&third).await).0, RunStatus::Succeeded);
    let last = server.provider.requests().await.pop().unwrap().to_string();
    assert!(
        !last.contains("taken back"),
        "what was taken back was never said: {last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_at_any_moment_ends_the_run_once() {
    let server = TestServer::start().await;
    let mut runs = Vec::new();
    for number in 0..20 {
        let run = server
            .run("Call several tools at once", PROVIDERS[number % 2])
            .await;
        if number % 3 == 0 {
            let mut viewer = server.watch(&run).await;
            for _ in 0..number % 5 {
                viewer.next().await;
            }
        }
        assert_eq!(server.cancel(&run).await, StatusCode::ACCEPTED);
        runs.push(run);
    }
    for run in runs {
        let seen = server.ended(&run).await;
        assert!(
            matches!(end(&seen).0, RunStatus::Cancelled | RunStatus::Succeeded),
            "{:?}",
            end(&seen)
        );
        assert!(seen.nodes().iter().all(|node| node.state.end().is_some()));
        server.assert_same(&seen).await;
    }
    assert!(server.provider.is_idle_within(1000).await);
}
