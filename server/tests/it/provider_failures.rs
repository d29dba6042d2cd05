//! Providers that fail: each ends in its own state, with its reason, and keeps what came.

use protocol::fold::RunState;
use protocol::model::BlockState;
use protocol::state::{AttemptStatus, BlockStatus, Channel, NodeKind, NodeStatus, RunStatus};

use crate::harness::{Setup, TestServer};
use crate::provider::PROVIDERS;
use crate::states::{end, kinds, text};

/// How an attempt ended: its state, its stop reason, the code of its error.
fn attempt(state: &RunState) -> (AttemptStatus, Option<&str>, Option<&str>) {
    let end = state.attempts()[0].state.end().unwrap();
    let code = end.error.as_ref().map(|error| error.code.as_str());
    (end.status, end.stop_reason.as_deref(), code)
}

fn last_block(state: &RunState) -> BlockStatus {
    state.blocks().last().unwrap().state.status()
}

async fn each(prompt: &str, check: impl Fn(&str, &RunState)) {
    let server = TestServer::start_with(Setup::default()).await;
    for provider in PROVIDERS {
        let seen = server.finish(prompt, provider).await;
        check(provider, &seen);
        assert!(
            seen.nodes().iter().all(|node| node.state.end().is_some()),
            "{provider}"
        );
        assert!(
            seen.blocks()
                .iter()
                .all(|block| block.state != BlockState::Streaming),
            "{provider}"
        );
        server.assert_same(&seen).await;
    }
}

/// Nothing came: the run failed with this code, and these words say why.
async fn refuses(prompt: &str, code: &str, words: &str) {
    each(prompt, |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Failed, Some(code)), "{provider}");
        assert_eq!(
            attempt(seen),
            (AttemptStatus::Failed, None, Some(code)),
            "{provider}"
        );
        let message = &seen.run().error.as_ref().unwrap().message;
        assert!(message.contains(words), "{provider}: {message}");
        assert!(!message.contains("<html"), "{message}");
        assert!(seen.blocks().is_empty());
        assert_eq!(seen.nodes().last().unwrap().state.status(), NodeStatus::Failed);
    })
    .await;
}

/// Something came: it is kept and marked as cut.
async fn breaks(prompt: &str, code: &str, kept: &str) {
    each(prompt, |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Failed, Some(code)), "{provider}");
        assert_eq!(
            attempt(seen),
            (AttemptStatus::Failed, None, Some(code)),
            "{provider}"
        );
        assert!(text(seen).contains(kept), "{provider}: {}", text(seen));
        assert_eq!(last_block(seen), BlockStatus::Cut, "{provider}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxys_html_page_fails_in_plain_words() {
    refuses("http_html", "provider_server_error", "HTTP 502").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_fails_with_the_providers_words() {
    refuses("http_401", "provider_authentication", "The API key is not valid.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_fail_with_their_own_code() {
    refuses("http_429", "provider_rate_limited", "Too many requests").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_inside_a_running_stream_keeps_the_text() {
    breaks(
        "Show me an error in the middle of a stream",
        "provider_overloaded",
        "The answer begins as usual",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_keeps_the_text() {
    breaks(
        "Cut the connection",
        "provider_stream_broken",
        "The second part breaks off in the mid",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_without_the_end_marker_is_not_taken_for_an_answer() {
    breaks(
        "no_terminal",
        "provider_stream_broken",
        "This answer ends in the middle of a sentence",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_reply_is_said_and_not_left_blank() {
    each("empty", |provider, seen| {
        assert_eq!(
            end(seen),
            (RunStatus::Failed, Some("provider_empty_reply")),
            "{provider}"
        );
        let expected = (
            AttemptStatus::Failed,
            Some("end_turn"),
            Some("provider_empty_reply"),
        );
        assert_eq!(attempt(seen), expected, "{provider}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_an_answer_that_says_so() {
    each("Show me a refusal", |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
        // One format says it by its stop reason, the other by the kind of its text.
        let (kind, stop) = match provider {
            "anthropic" => ("text", "refusal"),
            _ => ("refusal", "end_turn"),
        };
        assert_eq!(
            attempt(seen),
            (AttemptStatus::Completed, Some(stop), None),
            "{provider}"
        );
        assert_eq!(
            (kinds(seen), last_block(seen)),
            (vec![kind], BlockStatus::Complete),
            "{provider}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_cut_by_the_output_limit_says_so() {
    each("max_tokens", |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            attempt(seen),
            (AttemptStatus::Completed, Some("length"), None),
            "{provider}"
        );
        assert!(text(seen).ends_with("so it ends right in the"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_sends_nothing_stalls_and_its_connection_is_closed() {
    let server = TestServer::start_with(Setup {
        stall: "first_byte = 1\nfirst_token = 1",
        ..Setup::default()
    })
    .await;
    server.provider.arm("silent:before").await;
    for provider in PROVIDERS {
        let seen = server.finish("silent", provider).await;
        assert_eq!(
            end(&seen),
            (RunStatus::Failed, Some("provider_stalled")),
            "{provider}"
        );
        assert_eq!(attempt(&seen).0, AttemptStatus::Stalled, "{provider}");
        assert!(server.provider.is_idle_within(1000).await);
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_asks_for_tools_in_more_rounds_than_it_may_fails_with_that_reason() {
    let server = TestServer::start_with(Setup {
        more_config: "[limits]\nrounds_per_node = 2\n",
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        let seen = server.finish("welcome", provider).await;
        assert_eq!(
            end(&seen),
            (RunStatus::Failed, Some("limit_rounds")),
            "{provider}"
        );
        // What was done stays as it is.
        let calls = seen.nodes().iter().filter(|node| node.kind == NodeKind::Function);
        let states: Vec<_> = calls.map(|node| node.state.status()).collect();
        assert_eq!(states, [NodeStatus::Succeeded; 2], "{provider}");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_were_cut_are_never_executed_and_the_row_and_the_model_are_told_why() {
    let server = TestServer::start_with(Setup::default()).await;
    for provider in PROVIDERS {
        let seen = server.finish("cut_arguments", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let call = seen
            .nodes()
            .iter()
            .find(|node| node.kind == NodeKind::Function)
            .unwrap();
        let ended = call.state.end().unwrap();
        assert_eq!(
            (ended.status, call.started_at),
            (NodeStatus::NotRun, None),
            "{provider}"
        );
        assert_eq!(ended.error.as_ref().unwrap().code, "invalid_arguments");
        assert_eq!(call.outputs[&Channel::Arguments].text.len(), 19);
        assert!(!call.outputs.contains_key(&Channel::Result));
        let last = server.provider.requests().await.pop().unwrap().to_string();
        assert!(last.contains("The call was not run"), "{last}");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_with_repeated_empty_and_missing_ids_are_a_row_each_with_its_own_result() {
    each("odd_ids", |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            kinds(seen),
            [
                "tool_ref",
                "tool_ref",
                "tool_ref",
                "parallel_group",
                "tool_ref",
                "text"
            ],
            "{provider}"
        );
        let calls: Vec<_> = seen
            .nodes()
            .iter()
            .filter(|node| node.kind == NodeKind::Function)
            .collect();
        let expected = ["design.md", "test_log.py", "decisions.md", "torn bytes"];
        for (call, expected) in calls.iter().zip(expected) {
            assert_eq!(call.state.status(), NodeStatus::Succeeded, "{provider}");
            let result = call.outputs[&Channel::Result].text.to_lowercase();
            assert!(result.contains(expected), "{provider}: {expected}: {result}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_is_a_failed_row_and_the_answer_goes_on() {
    each("Show me a tool that fails", |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
        let calls: Vec<_> = seen
            .nodes()
            .iter()
            .filter(|node| node.kind == NodeKind::Function)
            .collect();
        for (call, words) in calls.iter().zip(["no-such-file", "outside"]) {
            let ended = call.state.end().unwrap();
            assert_eq!(ended.status, NodeStatus::Failed);
            assert!(ended.error.as_ref().unwrap().message.contains(words));
        }
        assert!(text(seen).contains("Both calls failed"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_inside_an_open_call_is_a_block_of_its_own_and_the_call_runs() {
    each("text_on_tool", |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(kinds(seen), ["tool_ref", "text", "text"], "{provider}");
        assert!(text(seen).contains("came before the call was closed"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_stays_open_after_the_end_does_not_hold_the_run() {
    each("half_open", |provider, seen| {
        assert_eq!(end(seen), (RunStatus::Succeeded, None), "{provider}");
    })
    .await;
}
