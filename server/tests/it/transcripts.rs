//! Transcripts: files beside the owner while a run executes, in the database once it is over, followed while they grow.

use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use futures::StreamExt as _;
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::state::NodeKind;
use serde_json::Value;

use crate::attempts::attempts;
use crate::harness::{PATIENCE, Setup, TestServer};
use crate::states::end;
use crate::watching_elsewhere::beside;

fn path_of(state: &RunState) -> String {
    let model = state
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Model)
        .unwrap();
    format!(
        "/api/runs/{}/transcripts/chat/{}.ndjson",
        state.run().run_id,
        model.node_id
    )
}

fn kinds(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

fn count(text: &str, kind: &str) -> usize {
    kinds(text).iter().filter(|known| *known == kind).count()
}

/// Waits until nothing of the run is in the data folder any more.
async fn moved(server: &TestServer, data: &Path, run: &RunId) {
    let folder = data.join("transcripts").join(run.as_str());
    let store = server.execution.store();
    let gone = async { while folder.exists() || store.transcripts(run).await.unwrap().is_empty() {} };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

async fn server_at(data: PathBuf) -> TestServer {
    TestServer::start_with(Setup {
        data: Some(data),
        ..Setup::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_recorded_of_a_run_that_is_over_is_in_the_database_and_every_server_has_it() {
    let data = tempfile::tempdir().unwrap();
    let server = server_at(data.path().to_owned()).await;
    server.provider.arm("welcome:after-list").await;
    let run = server.run("welcome", "anthropic").await;
    server.provider.reached("welcome:after-list").await;
    let mut viewer = server.watch(&run).await;
    let state = viewer.until_text(&run, "toy key-value store").await.clone();
    let path = path_of(&state);
    let growing = server.text(&path).await;
    assert_eq!(count(&growing, "request"), 2, "as far as it has come");
    let other = beside(&server, Setup::default()).await;
    let elsewhere = other.get(&path).await;
    assert_eq!(elsewhere.status(), StatusCode::CONFLICT);
    let problem: Value = elsewhere.json().await.unwrap();
    assert_eq!(problem["code"], "transcript_elsewhere");

    server.provider.open("welcome:after-list").await;
    let seen = server.ended(&run).await;
    moved(&server, data.path(), &run).await;
    let whole = server.text(&path).await;
    assert!(whole.starts_with(&growing), "it begins as it was");
    assert_eq!((count(&whole, "request"), count(&whole, "end")), (4, 4));
    assert_eq!(other.text(&path).await, whole);
    let list: Value =
        serde_json::from_str(&other.text(&format!("/api/runs/{run}/transcripts")).await).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert!(list[0]["bytes"].as_u64().unwrap() >= whole.len() as u64);

    let part = server
        .http
        .get(format!("{}{path}", server.base))
        .header("range", "bytes=0-9");
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.text().await.unwrap(), whole[..10]);
    let saved = server.get(&format!("{path}?download")).await;
    let disposition = saved.headers()["content-disposition"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        disposition.starts_with("attachment; filename=\"chat-call_"),
        "{disposition}"
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_followed_while_it_grows_and_ends_with_the_run() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    server.provider.reached("slow:middle").await;
    let mut viewer = server.watch(&run).await;
    let state = viewer.until_text(&run, "takes its time. ").await.clone();
    let path = path_of(&state);
    let there = server.text(&path).await;
    let answer = server.get(&format!("{path}?follow")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let mut pieces = answer.bytes_stream();
    let mut followed = String::new();
    while followed.len() < there.len() {
        followed.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(followed, there);
    server.provider.open("slow:middle").await;
    while let Some(piece) = pieces.next().await {
        followed.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert_eq!(count(&followed, "end"), 1);
    server.ended(&run).await;
    assert_eq!(server.text(&path).await, followed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_goes_on_writes_on_in_the_transcript_that_was_moved() {
    let data = tempfile::tempdir().unwrap();
    let server = server_at(data.path().to_owned()).await;
    let seen = server.finish("Cut the connection once", "anthropic").await;
    let run = seen.run().run_id.clone();
    moved(&server, data.path(), &run).await;
    let path = path_of(&seen);
    let before = server.text(&path).await;
    assert_eq!(count(&before, "request"), 1);
    assert_eq!(server.resume(&run).await, StatusCode::ACCEPTED);
    let mut viewer = server.watch(&run).await;
    let over = |state: &RunState| state.run().status.is_final() && state.attempts().len() == 2;
    let again = viewer.until(&run, over).await.clone();
    assert_eq!(end(&again).1, None, "{:?}", attempts(&again));
    moved(&server, data.path(), &run).await;
    let after = server.text(&path).await;
    assert!(after.starts_with(&before));
    assert_eq!(count(&after, "request"), 2);
}
