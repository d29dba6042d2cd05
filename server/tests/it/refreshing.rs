//! A refresh in the middle of a run: whoever comes, from whatever place, reaches the same state.

use protocol::fold::RunState;
use protocol::state::BlockStatus;

use crate::harness::TestServer;
use crate::provider::PROVIDERS;
use crate::states::{assert_equal, text};
use crate::viewer::Viewer;

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_from_the_start_one_from_the_middle_and_one_from_a_snapshot_reach_the_same_state() {
    for provider in PROVIDERS {
        let server = TestServer::start().await;
        server.provider.arm("welcome:middle").await;
        let run = server.run("Show me what Runloom does", provider).await;
        let mut first = server.watch(&run).await;
        let middle = first.until_text(&run, "what went on before the").await.clone();

        // Those who refresh now: with nothing, with what the page had, and with what the server rendered.
        let mut fresh = server.watch(&run).await;
        let mut resumed = Viewer::connect(&server.base).await;
        resumed.resume(middle.clone()).await;
        let rendered = RunState::from_snapshot(server.snapshot(&run).await);
        assert_equal(&rendered, &middle);
        assert_eq!(
            rendered.blocks().last().unwrap().state.status(),
            BlockStatus::Streaming
        );
        let mut hydrated = Viewer::connect(&server.base).await;
        hydrated.resume(rendered).await;
        fresh.until_text(&run, "what went on before the").await;
        assert_equal(fresh.state(&run), &middle);

        server.provider.open("welcome:middle").await;
        let seen = first.until_end(&run).await.clone();
        for viewer in [&mut fresh, &mut resumed, &mut hydrated] {
            assert_equal(viewer.until_end(&run).await, &seen);
        }
        assert_eq!(resumed.runs[&run].snapshots, 0, "few ops are sent as ops");
        assert!(
            resumed.runs[&run].ops < first.runs[&run].ops,
            "only what was missing"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_leaves_and_comes_back_many_times_loses_and_doubles_nothing() {
    let server = TestServer::start().await;
    let run = server.run("long characters=60000 rate=100000", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    viewer.next().await;
    let is_over = |viewer: &Viewer| {
        let known = viewer.runs.get(&run);
        known.is_some_and(|known| known.state.run().status.is_final())
    };
    let mut visits = 0;
    while !is_over(&viewer) && visits < 25 {
        for _ in 0..3 {
            if !is_over(&viewer) {
                viewer.next().await;
            }
        }
        let known = viewer.runs.get(&run).map(|known| known.state.clone());
        viewer.close().await;
        viewer = Viewer::connect(&server.base).await;
        match known {
            Some(state) if state.run().status.is_final() => {
                viewer.resume(state).await;
                break;
            }
            Some(state) => viewer.resume(state).await,
            None => viewer.subscribe(&run, 0).await,
        }
        visits += 1;
    }
    assert!(visits > 3, "{visits} visits");
    let seen = viewer.until_end(&run).await.clone();
    server.assert_same(&seen).await;
    assert!(text(&seen).len() > 50_000);
}
