//! A part of a run: what it holds, what it says it leaves out, and how it becomes the whole.

use protocol::api::RunDigest;
use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::snapshot::Snapshot;

use crate::harness::TestServer;
use crate::viewer::Viewer;

async fn window(server: &TestServer, run: &RunId, most: u32) -> Snapshot {
    let path = format!("/api/runs/{run}/snapshot?window={most}");
    serde_json::from_str(&server.text(&path).await).unwrap()
}

/// Loads everything that is left out, a few blocks at a time; gives how often that took.
async fn fill(server: &TestServer, run: &RunId, state: &mut RunState, most: u32) -> u32 {
    let mut loaded = 0;
    while let Some(gap) = state.left_out().first().cloned() {
        let (attempt, before) = (gap.attempt_id, gap.to);
        let path = format!("/api/runs/{run}/snapshot?window={most}&attempt={attempt}&before={before}");
        let page: Snapshot = serde_json::from_str(&server.text(&path).await).unwrap();
        state.add(page).unwrap();
        loaded += 1;
        assert!(loaded < 1000, "nothing is loaded: {:?}", state.left_out());
    }
    loaded
}

async fn told(server: &TestServer, run: &RunId) -> RunDigest {
    serde_json::from_str(&server.text(&format!("/api/runs/{run}/digest")).await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_and_what_it_leaves_out_are_the_whole() {
    let server = TestServer::start().await;
    let seen = server.finish("Show me what Runloom does", "anthropic").await;
    let run = seen.run().run_id.clone();
    assert_eq!(told(&server, &run).await.digest, digest(&seen));
    let blocks = seen.blocks().len();
    for most in 0..=u32::try_from(blocks).unwrap() + 1 {
        let snapshot = window(&server, &run, most).await;
        assert_eq!(snapshot.blocks.len(), blocks.min(most as usize), "{most}");
        let left_out: u64 = snapshot
            .left_out
            .iter()
            .map(protocol::snapshot::LeftOut::blocks)
            .sum();
        assert_eq!(left_out as usize, blocks - snapshot.blocks.len(), "{most}");
        // What a left out block called is left out too.
        let references = snapshot
            .blocks
            .iter()
            .filter(|block| block.body.kind() == "tool_ref");
        let calls = snapshot
            .nodes
            .iter()
            .filter(|node| node.node_id.as_str().starts_with("exec_"));
        assert_eq!(calls.count(), references.count(), "{most}");
        let mut state = RunState::from_snapshot(snapshot);
        assert_eq!(state.is_whole(), left_out == 0);
        fill(&server, &run, &mut state, 2).await;
        assert!(state.is_whole());
        assert_eq!(state.nodes().len(), seen.nodes().len());
        assert_eq!(digest(&state), digest(&seen), "{most}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_goes_on_with_what_happens_and_holds_all_that_is_open() {
    let server = TestServer::start().await;
    server.provider.arm("welcome:after-list").await;
    let run = server.run("Show me what Runloom does", "openai").await;
    server.provider.reached("welcome:after-list").await;
    let mut watching = server.watch(&run).await;
    watching
        .until(&run, |state| {
            state.blocks().iter().any(|block| block.body.kind() == "tool_ref")
        })
        .await;
    let before = window(&server, &run, 0).await;
    assert!(before.left_out.iter().any(|gap| gap.from == 0 && gap.to > 1));
    let mut viewer = Viewer::connect(&server.base).await;
    viewer.resume(RunState::from_snapshot(before)).await;
    let mut from_nothing = Viewer::connect(&server.base).await;
    from_nothing.subscribe_window(&run, 0, Some(1)).await;
    from_nothing.until(&run, |state| !state.nodes().is_empty()).await;
    server.provider.open("welcome:after-list").await;
    let seen = viewer.until_end(&run).await.clone();
    assert!(!seen.is_whole());
    from_nothing.until_end(&run).await;
    assert_eq!(from_nothing.runs[&run].snapshots, 1);
    for mut state in [seen, from_nothing.state(&run).clone()] {
        fill(&server, &run, &mut state, 100).await;
        server
            .assert_same(&RunState::from_snapshot(server.snapshot(&run).await))
            .await;
        assert_eq!(digest(&state), told(&server, &run).await.digest);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_and_a_growing_text_are_in_every_window() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    server.provider.reached("slow:middle").await;
    let mut viewer = server.watch(&run).await;
    viewer.until_text(&run, "takes its time").await;
    let snapshot = window(&server, &run, 0).await;
    let text = snapshot
        .blocks
        .last()
        .unwrap()
        .body
        .content()
        .unwrap()
        .text
        .clone();
    assert!(text.contains("takes its time"), "{text}");
    // The digest of a run that goes on covers what is there.
    let state = RunState::from_snapshot(server.snapshot(&run).await);
    let told = told(&server, &run).await;
    assert_eq!((told.seq, told.digest), (state.seq(), digest(&state)));
    server.provider.open("slow:middle").await;
    viewer.until_end(&run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_leads_to_a_node_that_no_window_holds() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let run = server
        .submit(&session, "Show me what Runloom does", "openai")
        .await;
    let seen = server.ended(&run).await;
    // Of the first of eleven runs a page begins with nothing.
    for _ in 0..11 {
        let later = server.submit(&session, "max_tokens", "openai").await;
        server.ended(&later).await;
    }
    let node = seen
        .nodes()
        .iter()
        .find(|node| node.name == "search_files")
        .unwrap();
    let block = seen.block_of_node(&node.node_id).unwrap();
    let plain = server.text(&format!("/s/{session}")).await;
    assert!(!plain.contains(node.node_id.as_str()));
    for query in [
        format!("node={}", node.node_id),
        format!("block={}", block.block_id),
    ] {
        let page = server.text(&format!("/s/{session}?{query}")).await;
        assert!(
            page.contains(&format!("\\\"ref_node_id\\\":\\\"{}", node.node_id)),
            "{query}"
        );
    }
    let details = server.text(&format!("/s/{session}?node={}", node.node_id)).await;
    assert!(details.contains(&format!("data-details-node=\"{}\"", node.node_id)));
    let unknown = server.text(&format!("/s/{session}?node=exec_none")).await;
    assert!(unknown.contains("This session has no node exec_none"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_named_by_half_or_does_not_exist_is_told() {
    let server = TestServer::start().await;
    let seen = server.finish("max_tokens", "openai").await;
    let run = &seen.run().run_id;
    let attempt = &seen.attempts()[0].attempt_id;
    for (query, status) in [
        (format!("attempt={attempt}"), 422),
        ("before=1".to_owned(), 422),
        ("window=x".to_owned(), 422),
        ("attempt=att_none&before=1".to_owned(), 404),
        (format!("attempt={attempt}&before=0"), 200),
        (format!("attempt={attempt}&before=4000000000&window=99999"), 200),
    ] {
        let answer = server.get(&format!("/api/runs/{run}/snapshot?{query}")).await;
        assert_eq!(answer.status(), status, "{query}");
    }
    assert_eq!(server.get("/api/runs/run_none/digest").await.status(), 404);
}
