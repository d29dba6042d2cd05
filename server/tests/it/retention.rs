//! Reasoning that is not saved: who watches sees it, and nothing of it is kept anywhere.

use axum::http::StatusCode;
use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::id::SessionId;
use protocol::model::BlockBody;
use protocol::state::{Retention, RunStatus};
use serde_json::{Value, json};

use crate::harness::{Setup, TestServer};
use crate::provider::PROVIDERS;

/// Words of the reasoning before and behind the gate `welcome:reasoning`.
const BEFORE: &str = "for the first time";
const BEHIND: &str = "look around in the workspace";

fn reasoning(state: &RunState) -> String {
    let texts = state.blocks().iter().filter_map(|block| match &block.body {
        BlockBody::Reasoning { content, retention } => {
            assert_eq!(*retention, Retention::NotSaved);
            Some(content.text.as_str())
        }
        _ => None,
    });
    texts.collect()
}

async fn not_saving(server: &TestServer) -> SessionId {
    let answer = server
        .post("/api/sessions", json!({"settings": {"reasoning": "not_saved"}}))
        .await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let body: Value = answer.json().await.unwrap();
    body["session_id"].as_str().unwrap().parse().unwrap()
}

/// Everything that the database holds, as text.
async fn database(server: &TestServer) -> String {
    let mut all = String::new();
    for query in [
        "select string_agg(op::text, ' ') from ops",
        "select string_agg(convert_from(bytes, 'UTF8'), ' ') from content_parts",
        "select string_agg(body::text || extra::text, ' ') from blocks",
        "select string_agg(metadata::text || outputs::text, ' ') from nodes",
        "select string_agg(state::text, ' ') from provider_state",
    ] {
        let (text,): (Option<String>,) = sqlx::query_as(query)
            .fetch_one(server.execution.store().pool())
            .await
            .unwrap();
        all.push_str(&text.unwrap_or_default());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_that_is_not_saved_is_shown_live_and_found_nowhere_afterwards() {
    for provider in PROVIDERS {
        let server = TestServer::start().await;
        let session = not_saving(&server).await;
        server.provider.arm("welcome:reasoning").await;
        let run = server
            .submit(&session, "Show me what Runloom does", provider)
            .await;
        server.provider.reached("welcome:reasoning").await;
        let mut viewer = server.watch(&run).await;
        viewer
            .until(&run, |state| {
                state.run().status == RunStatus::Running && !state.blocks().is_empty()
            })
            .await;
        server.provider.open("welcome:reasoning").await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(seen.run().status, RunStatus::Succeeded);
        assert!(
            reasoning(&seen).contains(BEHIND),
            "{provider}: {}",
            reasoning(&seen)
        );

        let kept = RunState::from_snapshot(server.snapshot(&run).await);
        assert_eq!(reasoning(&kept), "", "{provider}");
        assert_eq!(digest(&kept), digest(&seen), "{provider}");
        assert_eq!(digest(&server.folded(&run).await), digest(&seen), "{provider}");
        let verified = server::verify::verify(server.execution.store(), &run)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (verified.problems, verified.rows),
            (Vec::new(), digest(&seen)),
            "{provider}"
        );

        let record = database(&server).await;
        let path = format!("/api/runs/{run}/transcripts");
        let list: Value = serde_json::from_str(&server.text(&path).await).unwrap();
        let transcript = server
            .text(&format!("{path}/{}", list[0]["path"].as_str().unwrap()))
            .await;
        let told = server.text(&format!("/s/{session}")).await;
        for (place, text) in [("database", record), ("transcript", transcript), ("page", told)] {
            assert!(
                !text.contains(BEFORE) && !text.contains(BEHIND),
                "{provider}: {place}"
            );
        }
        // The provider, whose words they are, gets them back within the turn.
        let requests = json!(server.provider.requests().await).to_string();
        assert!(provider != "anthropic" || requests.contains(BEHIND), "{requests}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_keep_reasoning_counts_for_every_session() {
    let server = TestServer::start_with(Setup {
        reasoning: "reasoning = \"not_saved\"",
        ..Setup::default()
    })
    .await;
    let state = server.finish("Show me what Runloom does", "anthropic").await;
    let kept = RunState::from_snapshot(server.snapshot(&state.run().run_id).await);
    assert_eq!(reasoning(&kept), "");
    assert!(!database(&server).await.contains(BEHIND));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_does_not_exist_is_refused() {
    let server = TestServer::start().await;
    for settings in [json!({"reasoning": "sometimes"}), json!({"reason": "saved"})] {
        let answer = server
            .post("/api/sessions", json!({ "settings": settings }))
            .await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    }
}
