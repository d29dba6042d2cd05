//! A run from its prompt to its end, over the real HTTP of each wire format.

use protocol::digest::digest;
use protocol::state::{AttemptStatus, BlockStatus, MessageState, NodeKind, NodeStatus, RunStatus};

use crate::harness::TestServer;
use crate::provider::{PROVIDER_KEY, PROVIDERS, SIGNATURE};
use crate::states::{assert_equal, end, kinds, text};

#[tokio::test(flavor = "multi_thread")]
async fn the_folded_ops_the_snapshot_the_rows_and_what_a_viewer_saw_are_one_record() {
    for provider in PROVIDERS {
        let server = TestServer::start().await;
        let run = server.run("Show me what Runloom does", provider).await;
        let mut viewer = server.watch(&run).await;
        viewer.until_end(&run).await;
        let seen = viewer.state(&run);

        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
        let order = [
            "reasoning",
            "text",
            "tool_ref",
            "text",
            "tool_ref",
            "text",
            "tool_ref",
            "reasoning",
            "text",
        ];
        assert_eq!(kinds(seen), order, "{provider}");
        assert!(text(seen).contains("# Welcome to Runloom") && text(seen).contains("# What came out"));
        assert!(
            seen.blocks()
                .iter()
                .all(|block| block.state.status() == BlockStatus::Complete)
        );
        assert_eq!(seen.attempts().len(), 1);
        assert_eq!(seen.attempts()[0].state.status(), AttemptStatus::Completed);
        assert_eq!(seen.messages()[0].state, MessageState::Delivered);
        let usage = seen.run().usage.as_ref().unwrap();
        assert!(usage.input_tokens > 0 && usage.output_tokens > 0);

        let calls: Vec<_> = seen
            .nodes()
            .iter()
            .filter(|node| node.kind == NodeKind::Function)
            .collect();
        let names: Vec<&str> = calls.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["list_dir", "search_files", "read_file"]);
        for (call, expected) in calls.iter().zip(["acorn", "TODO", "def records"]) {
            assert_eq!(call.state.status(), NodeStatus::Succeeded, "{}", call.name);
            let result = &call.outputs[&protocol::state::Channel::Result].text;
            assert!(result.contains(expected), "{}: {result}", call.name);
            assert!(seen.block_of_node(&call.node_id).is_some());
        }

        let verified = server.assert_same(seen).await;
        assert_eq!(verified, digest(seen));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_provider_may_see_is_nowhere() {
    let server = TestServer::start().await;
    let run = server.run("Show me what Runloom does", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until_end(&run).await.clone();
    // Else the test shows nothing: the second request has brought the signature back to the provider.
    assert!(
        server.provider.requests().await[1]
            .to_string()
            .contains(SIGNATURE)
    );

    let node = &seen.nodes()[1].node_id;
    let mut places = vec![
        format!("/api/runs/{run}/ops"),
        format!("/api/runs/{run}/snapshot"),
        format!("/api/nodes/{node}"),
        format!("/s/{}", server.snapshot(&run).await.run.session_id),
        "/api/sessions".to_owned(),
        "/api/setup".to_owned(),
    ];
    let transcripts: Vec<serde_json::Value> =
        serde_json::from_str(&server.text(&format!("/api/runs/{run}/transcripts")).await).unwrap();
    assert_eq!(transcripts.len(), 1);
    let transcript = format!(
        "/api/runs/{run}/transcripts/{}",
        transcripts[0]["path"].as_str().unwrap()
    );
    assert!(server.text(&transcript).await.contains("signature_delta"));
    places.push(transcript);
    let mut shown = vec![("the socket".to_owned(), viewer.raw)];
    for place in places {
        shown.push((place.clone(), server.text(&place).await));
    }
    for (place, shown) in shown {
        assert!(shown.len() > 100, "{place}: {shown}");
        for secret in [SIGNATURE, PROVIDER_KEY] {
            assert!(!shown.contains(secret), "{place} shows {secret}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_session_shows_its_content_without_script() {
    let server = TestServer::start().await;
    let seen = server.finish("max_tokens", "openai").await;
    let session = server.snapshot(&seen.run().run_id).await.run.session_id;
    let page = server.text(&format!("/s/{session}")).await;
    assert!(
        page.contains("This answer is longer than the limit allows"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_idempotency_key_gives_the_same_run_and_one_execution() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let url = format!("{}/api/sessions/{session}/runs", server.base);
    let body = serde_json::json!({ "prompt": "max_tokens" });
    let ask = async |key: &str| {
        let request = server.http.post(&url).header("idempotency-key", key).json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 202);
        answer.text().await.unwrap()
    };
    let (first, second) = tokio::join!(ask("one"), ask("one"));
    assert_eq!(first, second);
    assert_ne!(first, ask("two").await);
    assert_eq!(
        server
            .execution
            .store()
            .session(&session)
            .await
            .unwrap()
            .unwrap()
            .runs
            .len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_at_once_stay_apart() {
    let server = TestServer::start().await;
    let mut runs = Vec::new();
    for number in 0..12 {
        let provider = PROVIDERS[number % 2];
        runs.push(server.run("Call several tools at once", provider).await);
    }
    let mut viewer = server.watch(&runs[0]).await;
    for run in &runs[1..] {
        viewer.subscribe(run, 0).await;
    }
    for run in &runs {
        let seen = viewer.until_end(run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None));
        let expected = [
            "text",
            "tool_ref",
            "tool_ref",
            "tool_ref",
            "parallel_group",
            "text",
        ];
        assert_eq!(kinds(&seen), expected);
        assert_equal(&seen, &server.folded(run).await);
    }
}
