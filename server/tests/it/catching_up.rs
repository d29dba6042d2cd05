//! What a viewer gets who knows too much, too little, or reads too slowly.

use std::time::Duration;

use protocol::fold::RunState;
use protocol::frame::ServerFrame;
use server::http::stream::Heartbeat;
use server::simulator::Scenario;
use tokio::net::TcpSocket;

use crate::harness::{Setup, TestServer};
use crate::provider::scenario;
use crate::states::assert_equal;
use crate::viewer::Viewer;

/// Much text in pieces that cost little to make.
const FLOOD: &str = r#"
name = "flood"
title = "Flood"
description = "Much text in large pieces."
order = 90
prompt = "flood"
[parameters]
characters = 1000000
rate = 1000000
[[turns]]
[[turns.steps]]
step = "text"
generator = "markdown"
chunk = 4096
"#;

/// Each is less than the ring of a run holds: whoever has taken in the one before is never behind.
const PORTION_BYTES: usize = 2_000_000;

/// Together more than the ring and the buffers of a socket hold.
const PORTIONS: usize = 6;

/// As much text, in portions that the test lets come one by one.
fn portions() -> Scenario {
    let mut source = "name = \"portions\"\ntitle = \"Portions\"\ndescription = \"Much text, a portion at a time.\"\n\
                      order = 91\nprompt = \"portions\"\n[parameters]\ncharacters = 1000\nrate = 1000000\n[[turns]]\n"
        .to_owned();
    for number in 0..=PORTIONS {
        source.push_str(&format!(
            "[[turns.steps]]\nstep = \"gate\"\nname = \"portions:{number}\"\n"
        ));
        if number < PORTIONS {
            source.push_str("[[turns.steps]]\nstep = \"text\"\ngenerator = \"markdown\"\nchunk = 4096\n");
        }
    }
    scenario("portions", &source)
}

async fn server() -> TestServer {
    TestServer::start_with(Setup {
        scenarios: vec![scenario("flood", FLOOD), portions()],
        // Who does not read is here for longer than usual, however busy the machine is.
        heartbeat: Heartbeat {
            silence: Duration::from_secs(120),
            ..Heartbeat::default()
        },
        ..Setup::default()
    })
    .await
}

/// Bytes of all text.
fn bytes(state: &RunState) -> usize {
    let contents = state.blocks().iter().filter_map(|block| block.body.content());
    contents.map(|content| content.text.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_knows_ops_that_do_not_exist_gets_a_snapshot_that_replaces_everything() {
    let server = TestServer::start().await;
    let seen = server.finish("max_tokens", "openai").await;
    let run = seen.run().run_id.clone();
    let mut viewer = Viewer::connect(&server.base).await;
    let mut beyond = RunState::from_snapshot(server.snapshot(&run).await).to_snapshot();
    beyond.seq += 1000;
    beyond.blocks.clear();
    viewer.resume(RunState::from_snapshot(beyond)).await;
    while viewer.runs[&run].snapshots == 0 {
        viewer.next().await.unwrap();
    }
    assert_eq!(viewer.runs[&run].resets, 1);
    assert_equal(viewer.state(&run), &seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_bytes_of_ops_come_as_a_snapshot_in_parts_of_bounded_size() {
    let server = server().await;
    let run = server.run("flood", "anthropic").await;
    let seen = server.ended(&run).await;
    let mut viewer = server.watch(&run).await;
    let mut longest = 0;
    while viewer.runs.get(&run).is_none_or(|watched| watched.snapshots == 0) {
        if let Some(ServerFrame::SnapshotPart { part, .. }) = viewer.next().await {
            longest = longest.max(serde_json::to_string(&part).unwrap().len());
        }
    }
    let watched = &viewer.runs[&run];
    assert_eq!((watched.resets, watched.ops), (0, 0));
    assert!(watched.parts > 10, "{} parts", watched.parts);
    assert!(
        longest < 2 * protocol::MAX_FRAME_TEXT,
        "a part of {longest} bytes"
    );
    assert_equal(&watched.state, &seen);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_does_not_read_gets_a_snapshot_and_costs_another_viewer_nothing() {
    let server = server().await;
    for number in 0..=PORTIONS {
        server.provider.arm(&format!("portions:{number}")).await;
    }
    let run = server
        .run(&format!("portions characters={PORTION_BYTES}"), "anthropic")
        .await;
    server.provider.reached("portions:0").await;
    let mut quick = server.watch(&run).await;
    quick.until(&run, |state| !state.attempts().is_empty()).await;
    // A small window, so that the network between the two holds little of what is not read.
    let host = server.base.strip_prefix("http://").unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(host.parse().unwrap()).await.unwrap();
    let mut slow = Viewer::over(stream, host).await;
    slow.subscribe(&run, 0).await;
    slow.until(&run, |state| !state.attempts().is_empty()).await;

    for number in 0..PORTIONS {
        server.provider.open(&format!("portions:{number}")).await;
        let so_far = (number + 1) * PORTION_BYTES;
        quick.until(&run, |state| bytes(state) >= so_far).await;
    }
    assert_eq!(quick.runs[&run].snapshots, 0, "the quick one is never behind");
    server.provider.open(&format!("portions:{PORTIONS}")).await;
    let seen = quick.until_end(&run).await.clone();

    slow.until_end(&run).await;
    assert!(slow.runs[&run].snapshots >= 1);
    assert_equal(slow.state(&run), &seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_subscriptions_of_one_run_are_one() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    let mut viewer = server.watch(&run).await;
    let middle = viewer.until_text(&run, "takes its time").await.seq();
    viewer.subscribe(&run, middle).await;
    server.provider.open("slow:middle").await;
    viewer.until_end(&run).await;
    let watched = &viewer.runs[&run];
    assert!(
        watched.ops <= watched.state.seq() + 2,
        "{} ops for {}",
        watched.ops,
        watched.state.seq()
    );
    server.assert_same(viewer.state(&run)).await;
}
