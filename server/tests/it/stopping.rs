//! Stopping the server as its operator does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use protocol::state::RunStatus;
use server::store::test_support::TestDatabase;

use crate::command_line::Process;
use crate::harness::{Setup, TestServer};
use crate::provider::Provider;
use crate::states::{end, text};
use crate::viewer::Viewer;

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_closes_what_runs_as_interrupted_and_ends_in_good_order() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let mut process = Process::serve(&database, &provider.base, "[server]\ngrace_seconds = 0\n").await;
    provider.arm("slow:middle").await;
    let run = process.run("slow").await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    viewer.until_text(&run, "takes its time. ").await;

    let begin = Instant::now();
    process.signal(Signal::SIGTERM);
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Interrupted, Some("server_stopped")));
    assert_eq!(text(&seen), "This answer takes its time. ");
    assert_eq!(process.wait().await, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    assert!(provider.is_idle_within(1000).await);
    let server = TestServer::start_with(Setup {
        database: Some(database),
        provider: Some(provider),
        ..Setup::default()
    })
    .await;
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_within_the_grace_period_ends_well() {
    let server = TestServer::start().await;
    server.provider.arm("slow:end").await;
    let run = server.run("slow", "openai").await;
    let mut viewer = server.watch(&run).await;
    server.provider.reached("slow:end").await;
    let stopped = tokio::spawn({
        let execution = Arc::clone(&server.execution);
        async move { execution.shut_down().await }
    });
    server.provider.open("slow:end").await;
    assert_eq!(end(viewer.until_end(&run).await), (RunStatus::Succeeded, None));
    tokio::time::timeout(Duration::from_secs(5), stopped)
        .await
        .expect("it ends")
        .unwrap();
    // What comes now waits for the next server.
    let waiting = server.run("max_tokens", "openai").await;
    assert_eq!(server.snapshot(&waiting).await.run.status, RunStatus::Queued);
}
