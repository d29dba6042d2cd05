//! Attempts that follow by themselves: a stream that fails is asked for again, and goes on from what is kept.

use protocol::fold::RunState;
use protocol::model::{BlockBody, Usage};
use protocol::state::{
    AttemptReason, AttemptStatus, BlockStatus, NodeKind, NodeStatus, RunStatus, StreamActivity,
};
use serde_json::Value;
use server::provider::GO_ON;

use crate::harness::{Setup, TestServer};
use crate::provider::PROVIDERS;
use crate::states::{end, text};

/// Short waits, so that a test takes no time.
pub(crate) const QUICK: &str = "retry_delays = [0.02, 0.02]\nretry_jitter = 0.0\nrate_limit_delays = [0.05]";

/// A server whose retries wait hardly at all.
pub(crate) async fn quick() -> TestServer {
    TestServer::start_with(Setup {
        recovery: Some(QUICK),
        ..Setup::default()
    })
    .await
}

/// Reason and state of each attempt, in order.
pub(crate) fn attempts(state: &RunState) -> Vec<(AttemptReason, AttemptStatus)> {
    let attempts = state.attempts().iter();
    attempts
        .map(|attempt| (attempt.reason, attempt.state.status()))
        .collect()
}

/// The answer of a run, as it is copied.
pub(crate) fn answer(state: &RunState) -> String {
    let node = state.nodes().iter().find(|node| node.kind == NodeKind::Model);
    state.answer(&node.unwrap().node_id)
}

/// The text of an attempt.
fn text_of(state: &RunState, attempt: usize) -> String {
    let blocks = state.blocks_of(&state.attempts()[attempt].attempt_id);
    blocks
        .filter_map(|block| match &block.body {
            BlockBody::Text(content) => Some(content.text.as_str()),
            _ => None,
        })
        .collect()
}

/// The conversation of a request: who said it, and what.
pub(crate) fn conversation(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] != "system")
        .map(|message| {
            let said = match &message["content"] {
                Value::String(text) => text.clone(),
                Value::Array(parts) if parts.iter().all(|part| part["text"].is_string()) => {
                    let texts = parts.iter().map(|part| part["text"].as_str().unwrap());
                    texts.collect::<Vec<_>>().join("\n")
                }
                other => format!("{other}{}", message["tool_calls"]),
            };
            (message["role"].as_str().unwrap().to_owned(), said)
        })
        .collect()
}

fn calls(state: &RunState) -> Vec<(&str, NodeStatus)> {
    let nodes = state.nodes().iter();
    nodes
        .filter(|node| node.kind == NodeKind::Function)
        .map(|node| (node.name.as_str(), node.state.status()))
        .collect()
}

const AGAIN: [(AttemptReason, AttemptStatus); 2] = [
    (AttemptReason::Initial, AttemptStatus::Failed),
    (AttemptReason::ErrorRetry, AttemptStatus::Completed),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_goes_on_from_the_last_whole_piece_in_a_new_attempt() {
    let server = quick().await;
    for provider in PROVIDERS {
        let session = server.session().await;
        let before = server.provider.requests().await.len();
        let run = server.submit(&session, "Cut the connection once", provider).await;
        let seen = server.ended(&run).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(attempts(&seen), AGAIN, "{provider}");
        let (first, second) = (&seen.attempts()[0], &seen.attempts()[1]);
        assert_eq!((first.attempt_index, second.attempt_index), (0, 1));
        assert_eq!(
            first.state.end().unwrap().error.as_ref().unwrap().code,
            "provider_stream_broken"
        );
        assert_eq!(
            second.continues_attempt_id.as_ref(),
            Some(&first.attempt_id),
            "{provider}"
        );
        let cut = seen.blocks_of(&first.attempt_id).next_back().unwrap();
        assert_eq!(cut.state.status(), BlockStatus::Cut);
        assert!(
            text_of(&seen, 0).ends_with("key, value = line.sp"),
            "it stays as it was"
        );

        // The open fence is left out: nothing is joined in the middle of it.
        let kept = "The log is a file of lines, each one a record.\n\nIt is read like this:";
        assert_eq!(second.kept.unwrap().bytes, kept.len() as u64);
        assert_eq!(second.kept.unwrap().tokens, kept.len().div_ceil(4) as u64);
        assert_eq!(answer(&seen), format!("{kept}\n\n{}", text_of(&seen, 1)));

        let requests = server.provider.requests().await.split_off(before);
        assert_eq!(requests.len(), 2, "{provider}");
        let prompt = ("user".to_owned(), "Cut the connection once".to_owned());
        let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
        assert_eq!(conversation(&requests[0]), std::slice::from_ref(&prompt));
        assert_eq!(
            conversation(&requests[1]),
            [prompt.clone(), said("assistant", kept), said("user", GO_ON)],
            "{provider}"
        );
        let mut sum = Usage::default();
        for attempt in seen.attempts() {
            if let Some(usage) = &attempt.state.end().unwrap().usage {
                sum.add(usage);
            }
        }
        assert_eq!(seen.run().usage.as_ref(), Some(&sum), "{provider}");
        assert!(sum.output_tokens > 0);
        server.assert_same(&seen).await;

        let next = server.submit(&session, "max_tokens", provider).await;
        server.ended(&next).await;
        let last = conversation(&server.provider.requests().await.pop().unwrap());
        assert_eq!(
            last[..2],
            [prompt, said("assistant", &answer(&seen))],
            "a later run hears one answer"
        );
        assert_eq!(last.len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_last_retry_the_run_fails_and_every_attempt_stays_readable() {
    let server = quick().await;
    for provider in PROVIDERS {
        let seen = server.finish("Cut the connection", provider).await;
        assert_eq!(
            end(&seen),
            (RunStatus::Failed, Some("provider_stream_broken")),
            "{provider}"
        );
        let failed = AttemptStatus::Failed;
        assert_eq!(
            attempts(&seen),
            [
                (AttemptReason::Initial, failed),
                (AttemptReason::ErrorRetry, failed),
                (AttemptReason::ErrorRetry, failed)
            ]
        );
        for (before, after) in seen.attempts().iter().zip(&seen.attempts()[1..]) {
            assert_eq!(after.continues_attempt_id.as_ref(), Some(&before.attempt_id));
        }
        let kept = "Here is what I know so far:";
        assert_eq!(
            answer(&seen),
            format!("{kept}\n\n{kept}\n\n{}", text_of(&seen, 2)),
            "{provider}"
        );
        let last = conversation(&server.provider.requests().await.pop().unwrap());
        assert_eq!(
            last[1].1,
            format!("{kept}\n\n{kept}"),
            "the kept text of the whole chain is sent"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_ran_are_not_run_again_and_a_repeated_call_id_is_a_row_of_its_own() {
    let server = quick().await;
    for provider in PROVIDERS {
        let before = server.provider.requests().await.len();
        let seen = server.finish("cut_later", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(attempts(&seen), AGAIN, "{provider}");
        assert_eq!(
            calls(&seen),
            [
                ("read_file", NodeStatus::Succeeded),
                ("list_dir", NodeStatus::Succeeded)
            ],
            "{provider}"
        );
        let references: Vec<_> = seen
            .blocks()
            .iter()
            .filter_map(|block| match &block.body {
                BlockBody::ToolRef(reference) => {
                    Some((reference.tool_call_id.as_str(), &reference.occurrence_id))
                }
                _ => None,
            })
            .collect();
        assert_eq!((references[0].0, references[1].0), ("repeated", "repeated"));
        assert_ne!(references[0].1, references[1].1);
        let ordinals: Vec<_> = seen.nodes().iter().skip(2).map(|node| node.ordinal).collect();
        assert_eq!(ordinals, [0, 1], "{provider}");

        let requests = server.provider.requests().await.split_off(before);
        assert_eq!(requests.len(), 4, "{provider}");
        let said = requests[2].to_string();
        let parts = [
            "I read the design first.",
            "repeated",
            "The design is clear.",
            "Go on exactly where it stops",
        ];
        let mut place = 0;
        for part in parts {
            let found = said[place..]
                .find(part)
                .unwrap_or_else(|| panic!("{provider}: {part} in {said}"));
            place += found;
        }
        assert!(!said.contains("The log is rea"), "{provider}: {said}");
        let result = seen.nodes()[2].outputs[&protocol::state::Channel::Result]
            .text
            .lines();
        let line = result.filter(|line| line.len() > 10).nth(1).unwrap();
        let line = line.split('"').next().unwrap().split('\t').next_back().unwrap();
        assert!(said.contains(line), "{provider}: {line:?} in {said}");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_call_is_not_run_and_is_not_told_to_the_next_attempt() {
    let server = quick().await;
    for provider in PROVIDERS {
        let before = server.provider.requests().await.len();
        let seen = server.finish("cut_call", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            calls(&seen),
            [
                ("list_dir", NodeStatus::NotRun),
                ("list_dir", NodeStatus::Succeeded)
            ],
            "{provider}"
        );
        let first = seen.nodes()[2].state.end().unwrap();
        assert_eq!(first.error.as_ref().unwrap().code, "stream_ended");
        let again = &server.provider.requests().await[before + 1];
        let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
        assert_eq!(
            conversation(again),
            [
                said("user", "cut_call"),
                said("assistant", "I list the files."),
                said("user", GO_ON)
            ],
            "{provider}"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_an_error_event_and_an_empty_reply_are_asked_for_again() {
    let server = quick().await;
    for provider in PROVIDERS {
        for (prompt, code, kept) in [
            ("server_error_once", "provider_server_error", ""),
            ("error_event_once", "provider_server_error", "This much came."),
            ("empty_once", "provider_empty_reply", ""),
        ] {
            let before = server.provider.requests().await.len();
            let seen = server.finish(prompt, provider).await;
            assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider} {prompt}");
            assert_eq!(attempts(&seen), AGAIN, "{provider} {prompt}");
            let error = &seen.attempts()[0].state.end().unwrap().error;
            assert_eq!(error.as_ref().unwrap().code, code, "{provider} {prompt}");
            let last = &seen.attempts()[1];
            assert_eq!(last.kept.unwrap().bytes, kept.len() as u64, "{provider} {prompt}");
            assert!(answer(&seen).starts_with(kept) && answer(&seen).ends_with("The second time it worked."));
            let requests = server.provider.requests().await.split_off(before);
            assert_eq!(requests.len(), 2, "{provider} {prompt}");
            assert_eq!(
                requests[0] == requests[1],
                kept.is_empty(),
                "with nothing kept the same is asked again"
            );
            server.assert_same(&seen).await;
        }
        let seen = server.finish("empty", provider).await;
        assert_eq!(
            end(&seen),
            (RunStatus::Failed, Some("provider_empty_reply")),
            "{provider}"
        );
        assert_eq!(seen.attempts().len(), 2, "{provider}: once, not twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_the_provider_is_not_asked_again() {
    let server = quick().await;
    for provider in PROVIDERS {
        let before = server.provider.requests().await.len();
        let seen = server.finish("http_401", provider).await;
        assert_eq!(
            end(&seen),
            (RunStatus::Failed, Some("provider_authentication")),
            "{provider}"
        );
        assert_eq!(seen.attempts().len(), 1);
        assert_eq!(server.provider.requests().await.len(), before + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_before_any_content_is_waited_out_in_the_same_attempt_and_shown() {
    let server = TestServer::start_with(Setup {
        // No retries: a wait uses up none.
        recovery: Some("retry_delays = []\nrate_limit_delays = [0.5]"),
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        let run = server.run("overloaded_once", provider).await;
        let mut viewer = server.watch(&run).await;
        let waits = |state: &RunState| {
            state
                .streams()
                .any(|stream| stream.state == StreamActivity::RateLimited && stream.until.is_some())
        };
        viewer.until(&run, waits).await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            attempts(&seen),
            [(AttemptReason::Initial, AttemptStatus::Completed)],
            "{provider}"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_in_the_middle_of_a_text_waits_as_often_as_needed_and_goes_on_in_new_attempts() {
    let server = TestServer::start_with(Setup {
        // No retries: a wait uses up none.
        recovery: Some("retry_delays = []\nrate_limit_delays = [0.02]"),
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        let seen = server
            .finish("Show me an error in the middle of a stream", provider)
            .await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(attempts(&seen), AGAIN, "{provider}");
        let error = &seen.attempts()[0].state.end().unwrap().error;
        assert_eq!(error.as_ref().unwrap().code, "provider_overloaded");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_opens_no_more_attempts_than_it_may() {
    let server = TestServer::start_with(Setup {
        recovery: Some("retry_delays = [0.01, 0.01, 0.01]"),
        more_config: "[limits]\nattempts_per_node = 2\n",
        ..Setup::default()
    })
    .await;
    let seen = server.finish("cut", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Failed, Some("provider_stream_broken")));
    assert_eq!(seen.attempts().len(), 2);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_rate_limit_has_an_end() {
    let server = TestServer::start_with(Setup {
        recovery: Some("retry_delays = []\nrate_limit_delays = [0.3]"),
        more_config: "[limits]\nrate_limit_seconds = 1\n",
        ..Setup::default()
    })
    .await;
    let before = server.provider.requests().await.len();
    let seen = server.finish("http_529", "openai").await;
    assert_eq!(end(&seen), (RunStatus::Failed, Some("provider_overloaded")));
    assert_eq!(seen.attempts().len(), 1);
    assert_eq!(server.provider.requests().await.len() - before, 4, "three waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_retry_is_shown_and_a_stop_ends_it() {
    let server = TestServer::start_with(Setup {
        recovery: Some("retry_delays = [600.0, 600.0]"),
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        let run = server.run("cut_once", provider).await;
        let mut viewer = server.watch(&run).await;
        let waits = |state: &RunState| {
            let mut streams = state.streams();
            !state.attempts().is_empty() && streams.any(|stream| stream.state == StreamActivity::Retrying)
        };
        let seen = viewer.until(&run, waits).await;
        let stream = seen.streams().next().unwrap();
        assert_eq!((stream.attempt_number, stream.attempts_max), (Some(2), Some(3)));
        let wait = stream.until.unwrap() - seen.attempts()[0].started_at;
        assert!((590_000..1_000_000).contains(&wait), "{wait}");
        assert!(!stream.reason.as_ref().unwrap().is_empty());
        assert_eq!(seen.run().status, RunStatus::Running);
        server.cancel(&run).await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Cancelled, None), "{provider}");
        assert_eq!(
            attempts(&seen),
            [(AttemptReason::Initial, AttemptStatus::Failed)],
            "{provider}: it had ended before"
        );
        let model = seen.nodes().iter().find(|node| node.kind == NodeKind::Model);
        assert_eq!(model.unwrap().state.status(), NodeStatus::Cancelled);
        assert!(!text(&seen).is_empty());
        server.assert_same(&seen).await;
    }
}
