//! A run that reaches one of its limits ends with that limit's own reason.

use protocol::state::{AttemptStatus, BlockStatus, NodeKind, NodeStatus, RunStatus};

use crate::harness::{Setup, TestServer};
use crate::states::{end, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_long_fails_with_its_text_kept() {
    let server = TestServer::start_with(Setup {
        more_config: "[limits]\nrun_seconds = 1\n",
        ..Setup::default()
    })
    .await;
    server.provider.arm("slow:middle").await;
    let seen = server.finish("slow", "openai").await;
    assert_eq!(end(&seen), (RunStatus::Failed, Some("limit_time")));
    assert_eq!(text(&seen), "This answer takes its time. ");
    assert_eq!(seen.blocks()[0].state.status(), BlockStatus::Cut);
    assert_eq!(seen.attempts()[0].state.status(), AttemptStatus::Failed);
    assert!(server.provider.is_idle_within(1000).await);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_uses_too_many_tokens_asks_no_more() {
    let server = TestServer::start_with(Setup {
        more_config: "[limits]\ntotal_tokens = 1\n",
        ..Setup::default()
    })
    .await;
    let seen = server.finish("Call several tools at once", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Failed, Some("limit_tokens")));
    assert_eq!(server.provider.requests().await.len(), 1);
    let mut calls = seen.nodes().iter().filter(|node| node.kind == NodeKind::Function);
    assert!(calls.all(|call| call.state.status() == NodeStatus::Succeeded));
    server.assert_same(&seen).await;
}
