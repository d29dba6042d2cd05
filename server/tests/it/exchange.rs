//! Records out of a server and into another one.

use std::io;
use std::time::Duration;

use axum::http::StatusCode;
use protocol::api::{ImportAnswer, Outcome};
use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::state::{BlockStatus, RunStatus};
use serde_json::{Value, json};
use server::exchange::import::{ImportError, import};
use server::simulator::{Simulator, SimulatorOptions};
use tokio::io::{AsyncReadExt as _, BufReader};

use crate::harness::TestServer;
use crate::provider::{PROVIDER_KEY, SIGNATURE};
use crate::states::text;

pub(crate) async fn exported(server: &TestServer, run: &RunId) -> String {
    server.text(&format!("/api/runs/{run}/export")).await
}

/// Runs a scenario; one that would never end is stopped in the middle.
async fn to_its_end(server: &TestServer, scenario: &str) -> RunState {
    let run = server.run(scenario, "anthropic").await;
    match tokio::time::timeout(Duration::from_secs(8), server.ended(&run)).await {
        Ok(state) => state,
        Err(_) => {
            assert_eq!(server.cancel(&run).await, StatusCode::ACCEPTED, "{scenario}");
            server.ended(&run).await
        }
    }
}

async fn post(server: &TestServer, file: impl Into<reqwest::Body>) -> reqwest::Response {
    let request = server.http.post(format!("{}/api/import", server.base)).body(file);
    request.send().await.unwrap()
}

pub(crate) async fn imported(server: &TestServer, file: impl Into<reqwest::Body>) -> ImportAnswer {
    let answer = post(server, file).await;
    let status = answer.status();
    let body = answer.text().await.unwrap();
    assert_eq!(status, StatusCode::OK, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The state of an imported run, whose rows and journal say the same.
pub(crate) async fn kept(server: &TestServer, run: &RunId) -> RunState {
    let state = RunState::from_snapshot(server.snapshot(run).await);
    server.assert_same(&state).await;
    state
}

pub(crate) fn notices<'a>(state: &'a RunState, code: &str) -> Vec<&'a Value> {
    let notices = state.notices().iter().filter(|notice| notice.code == code);
    notices.map(|notice| &notice.detail).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_that_is_exported_and_imported_elsewhere_has_its_digest() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let scenarios = Simulator::new(SimulatorOptions::default()).scenarios();
    assert!(scenarios.len() > 30);
    for scenario in scenarios {
        let seen = to_its_end(&here, &scenario.name).await;
        let run = &seen.run().run_id;
        let answer = imported(&there, exported(&here, run).await).await;
        let told = &answer.runs[0];
        assert_eq!(
            (told.run_id.clone(), told.outcome, told.quarantined),
            (run.clone(), Outcome::Imported, 0)
        );
        assert_eq!(told.digest, digest(&seen), "{}", scenario.name);
        let state = kept(&there, run).await;
        assert_eq!(digest(&state), digest(&seen), "{}", scenario.name);
        assert_eq!(state.run().status, seen.run().status);
        assert_eq!(state.run().session_id, here.snapshot(run).await.run.session_id);
        // What was imported can be handed on.
        let again = exported(&there, run).await;
        assert_eq!(imported(&here, again).await.runs[0].outcome, Outcome::Native);
    }
    assert_eq!(there.provider.requests().await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn importing_twice_changes_nothing_and_another_record_of_the_same_run_is_refused() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = here.finish("Call several tools at once", "anthropic").await;
    let run = &seen.run().run_id;
    let file = exported(&here, run).await;
    imported(&there, file.clone()).await;
    let before = there.text(&format!("/api/runs/{run}/ops")).await;
    let answer = imported(&there, file.clone()).await;
    assert_eq!(answer.runs[0].outcome, Outcome::Known);
    assert_eq!(there.text(&format!("/api/runs/{run}/ops")).await, before);

    let prompt = "Call several tools at once";
    let other = file.replace(prompt, "Call several tools at last");
    let refused = post(&there, other).await;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "record_differs");
    assert_eq!(there.text(&format!("/api/runs/{run}/ops")).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_breaks_off_anywhere_goes_on_where_it_stopped() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = here.finish("long characters=600000", "anthropic").await;
    let run = &seen.run().run_id;
    let file = exported(&here, run).await;
    let store = there.execution.store();
    let mut last = 0;
    for tenth in [4, 7, 9] {
        let begin = file.as_bytes()[..file.len() * tenth / 10].to_vec();
        let reader = io::Cursor::new(begin).chain(Broken);
        let broken = import(store, BufReader::new(reader), 1).await.unwrap_err();
        assert!(matches!(broken, ImportError::Read(_)), "{broken}");
        let there = store.last_seq(run).await.unwrap().unwrap();
        assert!(there >= last, "{there}");
        last = there;
    }
    assert!(last > 0 && last < seen.seq(), "{last} of {}", seen.seq());
    let answer = imported(&there, file).await;
    assert_eq!(
        (answer.runs[0].outcome, &answer.runs[0].digest),
        (Outcome::Imported, &digest(&seen))
    );
    kept(&there, run).await;
}

/// A connection that is gone.
struct Broken;

impl tokio::io::AsyncRead for Broken {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Err(io::Error::other("gone")))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut_off_is_shown_as_far_as_it_goes_and_a_whole_one_replaces_it() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = here.finish("Show me what Runloom does", "anthropic").await;
    let run = &seen.run().run_id;
    let file = exported(&here, run).await;
    let lines: Vec<&str> = file.lines().collect();
    let middle = (lines.len() / 2..lines.len())
        .find(|&place| lines[place].contains("\"block_delta\""))
        .unwrap();
    let half = lines[..=middle].join("\n");
    assert_eq!(imported(&there, half).await.runs[0].outcome, Outcome::Cut);
    let state = kept(&there, run).await;
    assert_eq!(state.run().status, RunStatus::Interrupted);
    assert_eq!(state.run().error.as_ref().unwrap().code, "record_ends");
    assert!(
        state
            .blocks()
            .iter()
            .any(|block| block.state.status() == BlockStatus::Cut)
    );

    let answer = imported(&there, file).await;
    assert_eq!(
        (answer.runs[0].outcome, &answer.runs[0].digest),
        (Outcome::Imported, &digest(&seen))
    );
    assert_eq!(kept(&there, run).await.run().status, RunStatus::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_record_is_told_in_the_run_and_the_rest_is_imported() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = here.finish("long characters=100000", "anthropic").await;
    let run = &seen.run().run_id;
    let file = exported(&here, run).await;
    let mut lines: Vec<String> = file.lines().map(str::to_owned).collect();
    let deltas: Vec<usize> = (0..lines.len())
        .filter(|&place| lines[place].contains("\"block_delta\""))
        .collect();
    assert!(deltas.len() > 4);
    // One that is no JSON, in the place of a piece of the text; and one too many.
    let lost = serde_json::from_str::<Value>(&lines[deltas[2]]).unwrap()["delta"]
        .as_str()
        .unwrap()
        .to_owned();
    lines[deltas[2]] = "{\"type\":\"execution_stream\",".to_owned();
    lines.insert(deltas[3], "not a record".to_owned());
    let answer = imported(&there, lines.join("\n")).await;
    let told = &answer.runs[0];
    assert_eq!(told.outcome, Outcome::Imported);
    let state = kept(&there, run).await;
    let reasons = notices(&state, "quarantined_record");
    assert_eq!(reasons.len(), told.quarantined);
    let words: Vec<&str> = reasons
        .iter()
        .map(|detail| detail["message"].as_str().unwrap())
        .collect();
    assert!(
        words
            .iter()
            .any(|words| words.starts_with(&format!("line {}: ", deltas[2] + 1))),
        "{words:?}"
    );
    assert!(
        words.iter().any(|words| words.contains("not a record")),
        "{words:?}"
    );
    // The hole is in the text itself, with its size, and what stands around it is there.
    let mark = format!(
        "[{} bytes of this text are missing in the imported record]",
        lost.len()
    );
    let (before, after) = (text(&state).find(&mark).unwrap(), text(&state).len());
    assert!(
        text(&seen).starts_with(text(&state)[..before].trim_end_matches('\n')),
        "{before} {after}"
    );
    assert!(
        state
            .blocks()
            .iter()
            .any(|block| block.state.status() == BlockStatus::Cut)
    );
    // The same file says the same.
    assert_eq!(
        imported(&there, lines.join("\n")).await.runs[0].outcome,
        Outcome::Known
    );
    assert_eq!(there.provider.requests().await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_records_say_what_they_are() {
    let server = TestServer::start().await;
    let begin = json!({"type": "runloom_export", "export_version": 2, "schema_version": 1});
    for (file, status, code, words) in [
        (
            "",
            StatusCode::UNPROCESSABLE_ENTITY,
            "not_a_record",
            "it is empty",
        ),
        (
            "a,b\n1,2\n",
            StatusCode::UNPROCESSABLE_ENTITY,
            "not_a_record",
            "a,b",
        ),
        (
            "{\"a\":1}",
            StatusCode::UNPROCESSABLE_ENTITY,
            "not_a_record",
            "Claude Code",
        ),
        (
            &begin.to_string(),
            StatusCode::UNPROCESSABLE_ENTITY,
            "unknown_version",
            "export_version 2",
        ),
    ] {
        let answer = post(&server, file.to_owned()).await;
        assert_eq!(answer.status(), status, "{file}");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["code"], code, "{file}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    let answer = server.get("/api/sessions").await;
    let list: Value = answer.json().await.unwrap();
    assert_eq!(list["sessions"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_run_never_goes_on() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = here.finish("cut", "anthropic").await;
    let run = &seen.run().run_id;
    assert_eq!(seen.run().status, RunStatus::Failed);
    let answer = imported(&there, exported(&here, run).await).await;
    assert_eq!(there.resume(run).await, StatusCode::CONFLICT);
    let model = &seen.attempts()[0].node_id;
    let refused = (StatusCode::CONFLICT, Some("imported_run".to_owned()));
    assert_eq!(there.regenerate(model).await, refused);
    // Its page shows it and offers neither.
    let page = there.text(&format!("/s/{}", answer.session_id)).await;
    assert!(page.contains("This run was executed elsewhere"), "{page}");
    assert!(!page.contains(&format!("/runs/{run}/resume")), "{page}");
    // A run that a person starts after it takes the next place.
    let next = there.submit(&answer.session_id, "echo", "anthropic").await;
    assert_eq!(there.ended(&next).await.run().status, RunStatus::Succeeded);
    assert_eq!(there.provider.requests().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_cannot_write_over_another_run() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = there.finish("echo", "anthropic").await;
    let other = here.finish("echo", "anthropic").await;
    let (theirs, ours) = (&seen.attempts()[0].attempt_id, &other.attempts()[0].attempt_id);
    let file = exported(&here, &other.run().run_id)
        .await
        .replace(ours.as_str(), theirs.as_str());
    let answer = post(&there, file).await;
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    assert_eq!(digest(&kept(&there, &seen.run().run_id).await), digest(&seen));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_export_shows_what_only_the_provider_may_see() {
    let server = TestServer::start().await;
    let seen = server.finish("Show me what Runloom does", "anthropic").await;
    let run = &seen.run().run_id;
    assert!(
        server.provider.requests().await[1]
            .to_string()
            .contains(SIGNATURE)
    );
    for format in ["json", "markdown", "html"] {
        let path = format!("/api/runs/{run}/export?format={format}");
        let file = server.text(&path).await;
        assert!(file.contains("What came out"), "{format}: {file}");
        for secret in [SIGNATURE, PROVIDER_KEY] {
            assert!(!file.contains(secret), "{format}");
        }
    }
    let missing = server.get("/api/runs/run_0000000000000000000000/export").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_markdown_of_a_run_holds_its_content_in_order() {
    let server = TestServer::start().await;
    let seen = server.finish("Show me what Runloom does", "anthropic").await;
    let path = format!("/api/runs/{}/export?format=markdown", seen.run().run_id);
    let file = server.text(&path).await;
    let mut rest = file.as_str();
    for words in [
        "## Prompt\n",
        "> Show me what Runloom does",
        "*Reasoning*",
        "# Welcome to Runloom",
        "**list\\_dir",
        "Arguments",
        "Result",
        "**search\\_files",
        "**read\\_file",
        "def records",
        "# What came out",
    ] {
        let place = rest
            .find(words)
            .unwrap_or_else(|| panic!("{words} is not in {rest}"));
        rest = &rest[place..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_html_of_a_run_holds_everything_opened_and_asks_for_nothing() {
    let server = TestServer::start().await;
    for prompt in [
        "Show me what Runloom does",
        "nested levels=11",
        "many calls=60",
        "long characters=200000",
    ] {
        let seen = server.finish(prompt, "anthropic").await;
        let run = &seen.run().run_id;
        let html = server.text(&format!("/api/runs/{run}/export?format=html")).await;
        // Pictures of the style stand in it as data.
        let html = html.replace("url('data:", "");
        for outside in [
            "<script",
            "<link",
            "src=\"http",
            "url(",
            "<iframe",
            " onclick",
            "href=\"?",
            "href=\"/",
            "action=\"/",
        ] {
            assert!(!html.contains(outside), "{prompt}: {outside}");
        }
        assert!(!html.contains("aria-expanded=\"false\""), "{prompt}");
        for block in seen
            .blocks()
            .iter()
            .filter(|block| block.body.kind() != "parallel_group")
        {
            assert!(
                html.contains(&format!("data-block-id=\"{}\"", block.block_id)),
                "{prompt}"
            );
        }
        for node in seen.nodes() {
            for line in node
                .outputs
                .values()
                .filter_map(|output| output.text.lines().last())
            {
                let words = line
                    .split(['<', '&', '>', '"', '\'', '`', '\\'])
                    .max_by_key(|words| words.len())
                    .unwrap();
                assert!(html.contains(words), "{prompt}: {}: {words}", node.name);
            }
        }
        assert!(html.contains(&digest(&seen)), "{prompt}");
    }
}
