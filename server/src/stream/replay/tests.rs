use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::clock::{ManualClock, SharedClock};
use crate::provider::{ModelMessage, ModelRequest, ProviderKind, StopReason, WireRequest, build_request};
use crate::stream::TranscriptEntry;

struct Bench {
    folder: tempfile::TempDir,
    store: TranscriptStore,
    endpoint: Endpoint,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            store: TranscriptStore::new(folder.path()),
            folder,
            endpoint: Endpoint {
                provider_id: "p".to_owned(),
                kind: ProviderKind::OpenaiChat,
                base_url: "http://x".to_owned(),
                api_key: None,
            },
        }
    }

    fn request(&self) -> WireRequest {
        let request = ModelRequest {
            model: "m".to_owned(),
            system: None,
            messages: vec![ModelMessage::User {
                text: "hello".to_owned(),
            }],
            tools: Vec::new(),
            max_tokens: None,
        };
        build_request(&self.endpoint, &request)
    }

    async fn write(&self, attempt: &str, entries: Vec<TranscriptEntry>) {
        let clock: SharedClock = Arc::new(ManualClock::at(1));
        let transcript = self
            .store
            .open("run_1", "chat/call_1", clock)
            .await
            .expect("opens");
        transcript.append(attempt, entries).await.expect("writes");
    }

    async fn rounds(&self, attempt: &str) -> Option<Vec<Vec<ProviderEvent>>> {
        rounds(&self.store, "run_1", "chat/call_1", attempt, &self.endpoint, "m")
            .await
            .expect("replays")
    }

    /// The texts of the rounds, joined.
    async fn texts(&self, attempt: &str) -> Vec<String> {
        let rounds = self.rounds(attempt).await.expect("a transcript");
        let text = |events: &Vec<ProviderEvent>| {
            let pieces = events.iter().filter_map(|event| match event {
                ProviderEvent::Delta { text, .. } => Some(text.as_str()),
                _ => None,
            });
            pieces.collect()
        };
        rounds.iter().map(text).collect()
    }
}

fn event(data: &str) -> TranscriptEntry {
    TranscriptEntry::event(&SseEvent {
        event: None,
        data: data.to_owned(),
        bytes: 1,
    })
}

fn content(text: &str) -> TranscriptEntry {
    let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    event(&delta.to_string())
}

fn stop() -> TranscriptEntry {
    let delta = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    event(&delta.to_string())
}

#[tokio::test]
async fn the_rounds_of_one_attempt_are_told_apart_and_those_of_others_left_out() {
    let bench = Bench::new();
    let request = || TranscriptEntry::request("p", &bench.request());
    bench
        .write("att_0", vec![request(), content("of another attempt")])
        .await;
    let lines = vec![
        request(),
        content("one"),
        content(" and more"),
        stop(),
        event("[DONE]"),
        TranscriptEntry::end("complete", None),
        request(),
        content("two"),
    ];
    bench.write("att_1", lines).await;
    assert_eq!(bench.texts("att_1").await, ["one and more", "two"]);
    let rounds = bench.rounds("att_1").await.expect("a transcript");
    assert!(is_complete(&rounds[0]) && !is_complete(&rounds[1]));
    assert!(rounds[0].contains(&ProviderEvent::Stop {
        raw: "stop".to_owned(),
        reason: StopReason::EndTurn
    }));
    assert_eq!(bench.texts("att_2").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_request_that_gave_nothing_and_is_asked_again_is_the_same_round() {
    let bench = Bench::new();
    let request = || TranscriptEntry::request("p", &bench.request());
    let lines = vec![
        request(),
        TranscriptEntry::end("interrupted", Some(json!({ "status": 429 }))),
        request(),
        TranscriptEntry::guard("ask_without", json!({})),
        request(),
        content("now"),
    ];
    bench.write("att_1", lines).await;
    assert_eq!(bench.texts("att_1").await, ["now"]);
}

#[tokio::test]
async fn a_request_after_a_round_that_broke_with_content_belongs_to_something_else() {
    let bench = Bench::new();
    let request = || TranscriptEntry::request("p", &bench.request());
    let lines = vec![
        request(),
        content("shown"),
        TranscriptEntry::end("interrupted", None),
        request(),
        content("shown again"),
    ];
    bench.write("att_1", lines).await;
    assert_eq!(bench.texts("att_1").await, ["shown"]);
}

#[tokio::test]
async fn a_broken_last_line_and_an_event_that_the_end_cut_are_ignored() {
    let bench = Bench::new();
    let lines = vec![
        TranscriptEntry::request("p", &bench.request()),
        content("whole"),
        TranscriptEntry::cut_event("{\"choices\":[{\"delta\":{\"content\":\"cut\"}}]}"),
    ];
    bench.write("att_1", lines).await;
    let path = bench.folder.path().join("transcripts/run_1/chat/call_1.ndjson");
    let mut raw = std::fs::read_to_string(&path).expect("reads");
    raw.push_str("not a line of ours\n");
    raw.push_str(
        raw.lines()
            .nth(1)
            .expect("a line")
            .trim_end_matches('}')
            .to_owned()
            .as_str(),
    );
    std::fs::write(&path, raw).expect("writes");
    assert_eq!(bench.texts("att_1").await, ["whole"]);
}

#[tokio::test]
async fn without_a_transcript_there_is_nothing_to_replay() {
    assert_eq!(Bench::new().rounds("att_1").await, None);
}
