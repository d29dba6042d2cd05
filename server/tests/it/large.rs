//! Long texts and many blocks: previews, ranges, and what they cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::PREVIEW_BYTES;
use protocol::digest::{Sha256Stream, digest, sha256};
use protocol::fold::RunState;
use protocol::id::{NodeId, RunId};
use protocol::model::Output;
use protocol::op::{NodeFinished, Op, OutputSummary};
use protocol::snapshot::Snapshot;
use protocol::state::{Channel, NodeStatus};
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderName, IF_NONE_MATCH, IF_RANGE, RANGE};
use serde_json::{Value, json};
use server::http::stream::Heartbeat;
use server::store::test_support::TestDatabase;
use server::tool::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput};

use crate::harness::{Setup, TestServer};
use crate::provider::scenario;
use crate::recorder::{Owner, output};
use crate::viewer::Viewer;

/// A tool whose result is as long as it is told.
struct Flood(ToolInfo);

impl Flood {
    fn tool() -> Arc<dyn Tool> {
        Arc::new(Self(ToolInfo {
            name: "flood".to_owned(),
            description: "Gives back many bytes.".to_owned(),
            parameters: json!({ "type": "object", "properties": { "bytes": { "type": "integer" } } }),
            concurrency: Concurrency::ParallelSafe,
            mutating: false,
            exposure: Exposure::Full,
        }))
    }
}

/// Numbered lines of two-byte characters, cut at `bytes`.
pub(crate) fn flood(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut line = 0;
    while text.len() < bytes {
        text.push_str(&format!("line {line:08} é é é é é é é é é é\n"));
        line += 1;
    }
    text.truncate(text.floor_char_boundary(bytes));
    text
}

impl Tool for Flood {
    fn info(&self) -> &ToolInfo {
        &self.0
    }

    fn check(&self, _: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    fn call<'a>(&'a self, arguments: Value, _: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let bytes = arguments["bytes"].as_u64().unwrap_or_default();
            Ok(ToolOutput {
                text: flood(usize::try_from(bytes).unwrap()),
                media_type: "text/plain".to_owned(),
                exit_code: None,
            })
        })
    }
}

fn calling(bytes: usize) -> String {
    format!(
        r#"
name = "calling"
title = "Calling"
description = "Calls a tool with a long result."
order = 91
prompt = "calling"
[[turns]]
[[turns.steps]]
step = "tool_call"
name = "flood"
arguments = '{{"bytes": {bytes}}}'
[[turns]]
[[turns.steps]]
step = "text"
text = "That was much."
"#
    )
}

/// A viewer who only reads is here for longer than usual.
fn patient() -> Heartbeat {
    Heartbeat {
        silence: Duration::from_secs(240),
        ..Heartbeat::default()
    }
}

pub(crate) async fn with_flood(bytes: usize) -> TestServer {
    TestServer::start_with(Setup {
        scenarios: vec![scenario("calling", &calling(bytes))],
        tools: vec![Flood::tool()],
        heartbeat: patient(),
        ..Setup::default()
    })
    .await
}

async fn window(server: &TestServer, run: &RunId, most: u32) -> Snapshot {
    let path = format!("/api/runs/{run}/snapshot?window={most}");
    serde_json::from_str(&server.text(&path).await).unwrap()
}

fn result_of(snapshot: &Snapshot) -> (&NodeId, &Output) {
    let mut nodes = snapshot.nodes.iter();
    nodes
        .find_map(|node| Some((&node.node_id, node.outputs.get(&Channel::Result)?)))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_of_50_mb_is_a_preview_all_of_which_can_be_reached() {
    const BYTES: usize = 50 * 1000 * 1000;
    let server = with_flood(BYTES).await;
    let session = server.session().await;
    let run = server.submit(&session, "calling", "openai").await;
    let mut viewer = Viewer::connect(&server.base).await;
    viewer.subscribe_window(&run, 0, Some(200)).await;
    viewer.until_end(&run).await;
    // However it came: the viewer has it, or says where it is.
    let text = flood(BYTES);
    let hash = sha256(text.as_bytes());

    let started = Instant::now();
    let snapshot = window(&server, &run, 200).await;
    let took = started.elapsed();
    let (node, result) = result_of(&snapshot);
    assert_eq!(
        (result.bytes, result.sha256.as_deref()),
        (text.len() as u64, Some(hash.as_str()))
    );
    assert!(result.text.len() <= PREVIEW_BYTES && result.text.len() > PREVIEW_BYTES - 4);
    assert!(text.starts_with(&result.text));
    assert_eq!(result.content_ref.as_ref().unwrap().sha256, hash);
    assert!(took.as_secs() < 5, "the preview took {took:?}");

    // The model is given a part, and told so.
    let request = server.provider.requests().await.pop().unwrap().to_string();
    assert!(request.len() < 1024 * 1024, "{} bytes", request.len());
    assert!(request.contains("of this result are left out here"));

    // Every byte, in pieces that end anywhere.
    let path = format!("{}/api/nodes/{node}/output?channel=result", server.base);
    let (mut stream, mut at) = (Sha256Stream::default(), 0);
    while at < text.len() {
        let last = (at + 9_999_991).min(text.len()) - 1;
        let request = server.http.get(&path).header(RANGE, format!("bytes={at}-{last}"));
        let part = request.send().await.unwrap().bytes().await.unwrap();
        assert_eq!(part.len(), last + 1 - at);
        stream.update(&part);
        at = last + 1;
    }
    assert_eq!(stream.finish(), hash);
    let whole = server.http.get(&path).send().await.unwrap();
    assert_eq!(whole.content_length(), Some(text.len() as u64));
    assert_eq!(sha256(&whole.bytes().await.unwrap()), hash);
    let digests = [
        digest(&RunState::from_snapshot(snapshot)),
        digest(viewer.state(&run)),
        digest(&server.execution.store().load_run(&run).await.unwrap().unwrap()),
    ];
    assert!(digests.iter().all(|other| *other == digests[0]), "{digests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_a_long_text_are_those_that_were_asked_for() {
    let server = with_flood(300_000).await;
    let seen = server.finish("calling", "anthropic").await;
    let snapshot = window(&server, &seen.run().run_id, 10).await;
    let (node, _) = result_of(&snapshot);
    let (text, part) = (flood(300_000), 64 * 1024);
    let (whole, length) = (text.as_bytes(), text.len());
    let ask = async |headers: &[(HeaderName, String)]| {
        let path = format!("{}/api/nodes/{node}/output?channel=result", server.base);
        let mut request = server.http.get(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.send().await.unwrap()
    };
    for (range, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        (format!("bytes={}-{}", part - 1, part), part - 1, part + 1),
        (format!("bytes={part}-{}", 2 * part - 1), part, 2 * part),
        ("bytes=-1".to_owned(), length - 1, length),
        (format!("bytes=-{}", length * 2), 0, length),
        ("bytes=1-".to_owned(), 1, length),
        (format!("bytes=100-{}", u64::MAX), 100, length),
        // Within a character: a range is bytes.
        ("bytes=15-15".to_owned(), 15, 16),
    ] {
        let answer = ask(&[(RANGE, range.clone())]).await;
        assert_eq!(answer.status(), 206, "{range}");
        let told = format!("bytes {from}-{}/{length}", to - 1);
        assert_eq!(answer.headers()[CONTENT_RANGE].to_str().unwrap(), told);
        assert_eq!(answer.content_length(), Some((to - from) as u64));
        assert_eq!(answer.bytes().await.unwrap(), whole[from..to], "{range}");
    }
    for range in [format!("bytes={length}-"), "bytes=-0".to_owned()] {
        let answer = ask(&[(RANGE, range.clone())]).await;
        assert_eq!(answer.status(), 416, "{range}");
        assert_eq!(
            answer.headers()[CONTENT_RANGE].to_str().unwrap(),
            format!("bytes */{length}")
        );
    }
    let tag = ask(&[]).await.headers()[ETAG].to_str().unwrap().to_owned();
    assert_eq!(tag, format!("\"{}\"", sha256(whole)));
    assert_eq!(ask(&[(IF_NONE_MATCH, tag.clone())]).await.status(), 304);
    assert_eq!(
        ask(&[(IF_NONE_MATCH, "\"other\"".to_owned())]).await.status(),
        200
    );
    let first = (RANGE, "bytes=0-4".to_owned());
    assert_eq!(ask(&[first.clone(), (IF_RANGE, tag)]).await.status(), 206);
    assert_eq!(
        ask(&[first, (IF_RANGE, "\"other\"".to_owned())]).await.status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_grows_is_read_by_range_and_leaves_a_window_as_a_beginning_that_is_counted_on() {
    let database = TestDatabase::new().await;
    let owner = Owner::new("one", database.options.clone()).await;
    let run = owner.queue().await;
    let (writer, _subscription) = owner.begin().await;
    let text = flood(700_001);
    let mut at = 0;
    let put = async |from: usize, to: usize| {
        let (mut at, piece, to) = (from, 9_999, text.floor_char_boundary(to));
        while at < to {
            let end = text.floor_char_boundary((at + piece).min(to));
            writer.write(output(&run, at as u64, &text[at..end])).await;
            at = end;
        }
        writer.flush().await.unwrap();
        at
    };
    for end in [10, 65_536, 65_537, 300_000, 600_001] {
        at = put(at, end).await;
        let kept = owner
            .store
            .content_of_output(&NodeId::root(&run), Channel::Log)
            .await;
        let kept = kept.unwrap().unwrap();
        assert_eq!(kept.bytes(), at as u64);
        for range in [0..at, at / 3..at / 2, at - 5..at] {
            let read = read(kept.clone(), range.clone()).await;
            assert_eq!(read, text.as_bytes()[range], "of {at}");
        }
    }
    let snapshot = owner.store.load_window(&run, 10).await.unwrap().unwrap();
    let log = &snapshot.nodes[0].outputs[&Channel::Log];
    assert!(log.is_open_preview() && log.bytes == at as u64 && log.text.len() <= PREVIEW_BYTES);
    let mut state = RunState::from_snapshot(snapshot);
    let known = state.seq();
    put(at, text.len()).await;
    let summary = OutputSummary {
        bytes: text.len() as u64,
        sha256: sha256(text.as_bytes()),
        media_type: "text/plain".to_owned(),
    };
    writer
        .write(Op::NodeFinished(NodeFinished {
            node_id: NodeId::root(&run),
            status: NodeStatus::Succeeded,
            finished_at: 1,
            outputs: [(Channel::Log, summary)].into(),
            error: None,
            exit_code: None,
            extra: protocol::Extra::new(),
        }))
        .await;
    writer.flush().await.unwrap();
    for entry in owner.ops(&run).await.iter().filter(|entry| entry.seq > known) {
        state.apply(entry).unwrap();
    }
    let whole = owner.store.load_run(&run).await.unwrap().unwrap();
    assert_eq!(whole.nodes()[0].outputs[&Channel::Log].text, text);
    assert!(state.is_whole());
    assert_eq!(digest(&state), digest(&whole));
    let verified = server::verify::verify(&owner.store, &run).await.unwrap().unwrap();
    assert_eq!(verified.problems, Vec::<String>::new());
    let kept = owner
        .store
        .content_of_output(&NodeId::root(&run), Channel::Log)
        .await;
    assert_eq!(read(kept.unwrap().unwrap(), 0..text.len()).await, text.as_bytes());
}

async fn read(kept: server::store::content::Kept, range: std::ops::Range<usize>) -> Vec<u8> {
    use futures::TryStreamExt as _;
    let range = range.start as u64..range.end as u64;
    let pieces: Vec<_> = kept.range(range).try_collect().await.unwrap();
    pieces.concat()
}

/// A text of so many bytes in deltas of four characters.
fn tokens(bytes: usize) -> String {
    format!(
        r#"
name = "tokens"
title = "Tokens"
description = "Much text, token by token."
order = 92
prompt = "tokens"
[parameters]
characters = {bytes}
rate = 100000000
[[turns]]
[[turns.steps]]
step = "text"
generator = "markdown"
chunk = 4
"#
    )
}

/// Seconds that a run takes whose answer has so many bytes, token by token, for each of its bytes.
async fn seconds_per_byte(bytes: usize) -> f64 {
    let server = TestServer::start_with(Setup {
        scenarios: vec![scenario("tokens", &tokens(bytes))],
        heartbeat: patient(),
        ..Setup::default()
    })
    .await;
    let run = server.run("tokens", "openai").await;
    let started = Instant::now();
    let mut viewer = Viewer::connect(&server.base).await;
    viewer.subscribe_window(&run, 0, Some(1)).await;
    viewer.until_end(&run).await;
    let whole = server.execution.store().load_run(&run).await.unwrap().unwrap();
    let written: usize = whole
        .blocks()
        .iter()
        .filter_map(|block| block.body.content())
        .map(|content| content.text.len())
        .sum();
    started.elapsed().as_secs_f64() / written as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_costs_for_each_byte_does_not_grow_with_its_length() {
    let short = seconds_per_byte(20_000).await;
    let long = seconds_per_byte(200_000).await;
    // A cost that grows with the length would make it ten times as much.
    assert!(long < short * 4.0, "{long} after {short}");
}
