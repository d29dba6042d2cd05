use std::sync::Mutex;

use futures::channel::mpsc;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::clock::ManualClock;
use crate::provider::{ModelMessage, ProviderKind, RoundContent, Secret};
use crate::stream::TranscriptStore;

const KEY: &str = "sk-very-secret-key";

struct Bench {
    folder: tempfile::TempDir,
    store: TranscriptStore,
    clock: Arc<ManualClock>,
    cancel: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TranscriptStore::new(folder.path());
        Self {
            folder,
            store,
            clock: Arc::new(ManualClock::at(1_000)),
            cancel: CancellationToken::new(),
        }
    }

    async fn transcript(&self) -> Transcript {
        self.store
            .open("run_1", "chat/call_1", self.clock.clone())
            .await
            .expect("opens")
    }

    /// A stream whose bytes come through a channel.
    async fn stream(
        &self,
        limits: StreamLimits,
    ) -> (ModelStream, mpsc::UnboundedSender<Result<Bytes, ProviderError>>) {
        let (sender, receiver) = mpsc::unbounded();
        let receiver = Mutex::new(Some(receiver));
        let open: OpenRequest = Box::new(move |_| {
            let receiver = receiver.lock().expect("unpoisoned").take().expect("asked once");
            Box::pin(async move { Ok(receiver.boxed()) })
        });
        let start = start("http://localhost", limits);
        let stream = ModelStream::with_source(
            open,
            self.transcript().await,
            self.clock.clone(),
            start,
            self.cancel.clone(),
        );
        (stream.expect("a stream"), sender)
    }

    fn lines(&self) -> Vec<Value> {
        let path = self.folder.path().join("transcripts/run_1/chat/call_1.ndjson");
        let text = std::fs::read_to_string(path).expect("a transcript");
        assert!(!text.contains(KEY), "{text}");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    fn kinds(&self) -> Vec<String> {
        self.lines()
            .iter()
            .map(|line| line["kind"].as_str().expect("a kind").to_owned())
            .collect()
    }
}

fn start(base_url: &str, limits: StreamLimits) -> StreamStart {
    StreamStart {
        endpoint: Endpoint {
            provider_id: "main".to_owned(),
            kind: ProviderKind::OpenaiChat,
            base_url: base_url.to_owned(),
            api_key: Some(Secret::new(KEY)),
        },
        request: ModelRequest {
            model: "m".to_owned(),
            system: None,
            messages: vec![ModelMessage::User {
                text: "Hi".to_owned(),
            }],
            tools: Vec::new(),
            max_tokens: None,
        },
        attempt_id: "att_1".to_owned(),
        limits,
        options: DecoderOptions::default(),
        reasoning: protocol::state::Retention::Saved,
    }
}

fn text(text: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    ))
}

fn finish() -> Bytes {
    Bytes::from("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
}

fn done() -> Bytes {
    Bytes::from("data: [DONE]\n\n")
}

async fn rest(stream: &mut ModelStream) -> RoundContent {
    let mut round = RoundContent::default();
    while let Some(item) = stream.next().await {
        if let StreamItem::Events(events) = item {
            events.iter().for_each(|event| round.apply(event));
        }
    }
    round
}

#[tokio::test]
async fn every_item_is_in_the_transcript_before_it_is_handed_on() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    let clocks = stream.clocks();
    sender
        .unbounded_send(Ok(Bytes::from(": keep-alive\n\n")))
        .expect("sends");
    let alive = StreamItem::Clocks {
        last_byte_at: Some(1_000),
        last_content_at: None,
    };
    assert_eq!(stream.next().await, Some(alive));
    assert_eq!(bench.kinds(), ["request", "ping"]);
    bench.clock.advance(500);
    sender.unbounded_send(Ok(text("Hello"))).expect("sends");
    assert!(matches!(stream.next().await, Some(StreamItem::Events(_))));
    assert_eq!(bench.kinds(), ["request", "ping", "event"]);
    assert_eq!(
        (
            clocks.last_byte_at(),
            clocks.last_content_at(),
            clocks.content_chars()
        ),
        (Some(1_500), Some(1_500), 5)
    );
    sender.unbounded_send(Ok(finish())).expect("sends");
    sender.unbounded_send(Ok(done())).expect("sends");
    let round = rest(&mut stream).await;
    assert_eq!(round.end, Some(StreamEnd::Complete));
    let lines = bench.lines();
    assert_eq!(lines[0]["body"]["messages"][0]["content"], "Hi");
    assert_eq!(
        (&lines[0]["attempt"], &lines[0]["at"]),
        (&json!("att_1"), &json!(1_000))
    );
    let raw = lines[2]["data"].as_str().expect("data");
    assert!(text("Hello").ends_with(format!("{raw}\n\n").as_bytes()));
    assert_eq!(lines.last().expect("a line")["outcome"], "complete");
    assert_eq!(
        stream.replay().expect("a replay").message,
        json!({"role":"assistant","content":"Hello"})
    );
}

#[tokio::test]
async fn the_transcript_alone_gives_the_same_blocks_again() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    for bytes in [text("One "), text("two"), finish(), done()] {
        for byte in bytes.chunks(5) {
            sender
                .unbounded_send(Ok(Bytes::copy_from_slice(byte)))
                .expect("sends");
        }
    }
    let round = rest(&mut stream).await;
    let endpoint = start("http://localhost", StreamLimits::none()).endpoint;
    let mut decoder = stream_decoder(&endpoint, "m", DecoderOptions::default());
    let mut again = RoundContent::default();
    for line in bench.lines().iter().filter(|line| line["kind"] == "event") {
        let event = SseEvent {
            event: line["event"].as_str().map(str::to_owned),
            data: line["data"].as_str().expect("data").to_owned(),
            bytes: 0,
        };
        decoder.push(&event).iter().for_each(|event| again.apply(event));
    }
    decoder.finish().iter().for_each(|event| again.apply(event));
    assert_eq!(again, round);
    assert_eq!(round.blocks[0].content, "One two");
}

#[tokio::test(start_paused = true)]
async fn each_limit_ends_a_silent_stream_as_stalled_at_its_time() {
    let second = Some(1_000);
    let ping = || Bytes::from(": alive\n\n");
    let cases: [(StreamLimits, Vec<Bytes>, u64, &str); 4] = [
        (
            StreamLimits {
                first_byte_ms: second,
                ..StreamLimits::none()
            },
            vec![],
            1_000,
            "first_byte",
        ),
        (
            StreamLimits {
                first_content_ms: second,
                ..StreamLimits::none()
            },
            vec![ping(), ping()],
            1_000,
            "first_content",
        ),
        (
            StreamLimits {
                no_byte_ms: second,
                ..StreamLimits::none()
            },
            vec![text("a"), ping()],
            2_000,
            "no_byte",
        ),
        (
            StreamLimits {
                no_content_ms: second,
                ..StreamLimits::none()
            },
            vec![text("a"), ping(), ping(), ping()],
            1_000,
            "no_content",
        ),
    ];
    for (limits, bytes, stalls_after, silence) in cases {
        let bench = Bench::new();
        let (mut stream, sender) = bench.stream(limits).await;
        let began = tokio::time::Instant::now();
        // The first piece comes at once, the next ones a little under a second apart.
        let feeder = {
            let sender = sender.clone();
            tokio::spawn(async move {
                for (number, piece) in bytes.into_iter().enumerate() {
                    if number > 0 {
                        tokio::time::sleep(std::time::Duration::from_millis(999)).await;
                    }
                    let _ = sender.unbounded_send(Ok(piece));
                }
            })
        };
        let round = rest(&mut stream).await;
        let error = round.error.expect("an error");
        assert_eq!(error.class, ProviderErrorClass::Stalled, "{silence}: {error}");
        assert_eq!(round.end, Some(StreamEnd::Interrupted));
        let passed = u64::try_from(began.elapsed().as_millis()).expect("short");
        assert!(passed.abs_diff(stalls_after) <= 5, "{silence}: {passed}");
        let guard = bench
            .lines()
            .into_iter()
            .find(|line| line["kind"] == "guard")
            .expect("a guard line");
        assert_eq!(guard["detail"]["silence"], silence);
        assert!(sender.is_closed(), "{silence}: the connection is let go");
        feeder.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn content_in_time_is_never_stalled() {
    let bench = Bench::new();
    let limits = StreamLimits {
        after_stop_ms: None,
        ..StreamLimits::thinking()
    };
    let (mut stream, sender) = bench.stream(limits).await;
    tokio::spawn(async move {
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_secs(29)).await;
            sender.unbounded_send(Ok(text("x"))).expect("sends");
        }
        sender.unbounded_send(Ok(finish())).expect("sends");
        sender.unbounded_send(Ok(done())).expect("sends");
    });
    let round = rest(&mut stream).await;
    assert_eq!(
        (round.error, round.end, round.blocks[0].content.len()),
        (None, Some(StreamEnd::Complete), 20)
    );
}

#[tokio::test(start_paused = true)]
async fn a_socket_left_open_after_the_finish_reason_is_not_waited_for() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::thinking()).await;
    sender.unbounded_send(Ok(text("All"))).expect("sends");
    sender.unbounded_send(Ok(finish())).expect("sends");
    let began = tokio::time::Instant::now();
    let round = rest(&mut stream).await;
    assert_eq!((round.error, round.end), (None, Some(StreamEnd::Complete)));
    assert!(
        began.elapsed() < std::time::Duration::from_secs(11),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_cancel_ends_the_stream_without_an_error_and_lets_the_connection_go() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    sender.unbounded_send(Ok(text("Half"))).expect("sends");
    assert!(matches!(stream.next().await, Some(StreamItem::Events(_))));
    bench.cancel.cancel();
    assert_eq!(
        stream.next().await,
        Some(StreamItem::Events(vec![ProviderEvent::End(
            StreamEnd::Interrupted
        )]))
    );
    assert_eq!(stream.next().await, None);
    assert!(sender.is_closed());
    assert_eq!(bench.lines().last().expect("a line")["outcome"], "cancelled");
    assert_eq!(stream.replay(), None);
}

#[tokio::test]
async fn a_broken_connection_keeps_what_came_and_writes_the_cut_event_down() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    sender.unbounded_send(Ok(text("Half"))).expect("sends");
    sender
        .unbounded_send(Ok(Bytes::from("data: {\"choices\":[{\"del")))
        .expect("sends");
    sender
        .unbounded_send(Err(ProviderError::new(ProviderErrorClass::Broken, "cut")))
        .expect("sends");
    let round = rest(&mut stream).await;
    assert_eq!(
        (round.blocks[0].content.as_str(), round.blocks[0].ended),
        ("Half", false)
    );
    assert_eq!(round.error.expect("an error").message, "cut");
    let cut = bench
        .lines()
        .into_iter()
        .find(|line| line["cut"] == true)
        .expect("the cut event");
    assert_eq!(cut["data"], "{\"choices\":[{\"del");
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_in_no_event_and_no_line() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    let echo = format!("event: error\ndata: {{\"error\":{{\"message\":\"wrong key {KEY}\"}}}}\n\n");
    sender
        .unbounded_send(Ok(Bytes::from(format!(": {KEY}\n{echo}"))))
        .expect("sends");
    let error = rest(&mut stream).await.error.expect("an error");
    assert_eq!(error.message, "wrong key [key]");
    assert!(bench.lines().iter().any(|line| line["comment"] == "[key]"));
}

#[tokio::test]
async fn a_dropped_call_of_next_loses_and_doubles_nothing() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    for number in 0..50 {
        sender
            .unbounded_send(Ok(text(&format!("{number},"))))
            .expect("sends");
    }
    sender.unbounded_send(Ok(finish())).expect("sends");
    sender.unbounded_send(Ok(done())).expect("sends");
    let mut round = RoundContent::default();
    while round.end.is_none() {
        tokio::select! {
            biased;
            item = stream.next() => {
                if let Some(StreamItem::Events(events)) = item {
                    events.iter().for_each(|event| round.apply(event));
                }
            }
            () = tokio::task::yield_now() => {}
        }
    }
    let expected: String = (0..50).map(|number| format!("{number},")).collect();
    assert_eq!(round.blocks[0].content, expected);
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "event").count(), 52);
}

#[tokio::test]
async fn over_http_a_stall_and_a_cancel_close_the_socket_and_a_refused_option_is_left_out() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let base_url = format!("http://{}/v1/", listener.local_addr().expect("an address"));
    let (heads, mut received) = tokio::sync::mpsc::unbounded_channel();
    let server = tokio::spawn(async move {
        for round in 0..3 {
            let (mut socket, _) = listener.accept().await.expect("accepts");
            let mut head = Vec::new();
            while !head.ends_with(b"}") {
                let mut part = [0; 4096];
                let count = socket.read(&mut part).await.expect("reads");
                head.extend_from_slice(&part[..count]);
            }
            heads
                .send(String::from_utf8_lossy(&head).into_owned())
                .expect("sends");
            if round == 0 {
                let body = r#"{"error":{"message":"unknown field stream_options"}}"#;
                let answer = format!(
                    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                socket.write_all(answer.as_bytes()).await.expect("writes");
                continue;
            }
            socket
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
                .await
                .expect("writes");
            socket.write_all(&text("Half")).await.expect("writes");
            // Ends only when the other side has closed.
            let closed = socket.read(&mut [0; 16]).await;
            assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
        }
    });
    let bench = Bench::new();
    let client = ProviderClient::new(bench.clock.clone()).expect("a client");
    let limits = StreamLimits {
        no_byte_ms: Some(50),
        ..StreamLimits::none()
    };
    let mut stalled = ModelStream::start(
        &client,
        bench.transcript().await,
        bench.clock.clone(),
        start(&base_url, limits),
        CancellationToken::new(),
    )
    .expect("starts");
    let round = rest(&mut stalled).await;
    assert_eq!(round.error.expect("an error").class, ProviderErrorClass::Stalled);
    assert_eq!(round.blocks[0].content, "Half");
    let (first, second) = (
        received.recv().await.expect("a head"),
        received.recv().await.expect("a head"),
    );
    assert!(
        first.contains("stream_options") && first.starts_with("POST /v1/chat/completions "),
        "{first}"
    );
    assert!(
        !second.contains("stream_options") && second.contains(KEY),
        "{second}"
    );
    let mut cancelled = ModelStream::start(
        &client,
        bench.transcript().await,
        bench.clock.clone(),
        start(&base_url, StreamLimits::none()),
        bench.cancel.clone(),
    )
    .expect("starts");
    loop {
        match cancelled.next().await.expect("an item") {
            StreamItem::Events(events)
                if events
                    .iter()
                    .any(|event| matches!(event, ProviderEvent::Delta { .. })) =>
            {
                break;
            }
            StreamItem::Events(_) | StreamItem::Clocks { .. } => {}
        }
    }
    bench.cancel.cancel();
    let round = rest(&mut cancelled).await;
    assert_eq!((round.error, round.end), (None, Some(StreamEnd::Interrupted)));
    server.await.expect("the server saw both sockets close");
    bench.lines();
}

#[tokio::test]
async fn a_transcript_that_cannot_be_written_shows_nothing_more() {
    let bench = Bench::new();
    let (mut stream, sender) = bench.stream(StreamLimits::none()).await;
    sender.unbounded_send(Ok(text("x"))).expect("sends");
    stream.transcript = Transcript::read_only_for_test(bench.clock.clone());
    let round = rest(&mut stream).await;
    assert!(round.blocks.is_empty());
    let error = round.error.expect("an error");
    assert!(error.message.contains("transcript"), "{error}");
    assert_eq!(round.end, Some(StreamEnd::Interrupted));
}
