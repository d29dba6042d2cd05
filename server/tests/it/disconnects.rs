//! The connection of a page breaks again and again while a run goes on: nothing is lost and nothing is doubled.

use std::time::Duration;

use protocol::digest::digest;
use protocol::id::RunId;
use protocol::state::RunStatus;
use tokio::sync::oneshot;

use crate::harness::{Dice, Setup, TestServer, is_long};
use crate::page::Page;
use crate::provider::Provider;
use crate::states::{assert_equal, end, text};
use crate::viewer::Viewer;

/// How long a page waits for a frame before its connection breaks without one.
const MOMENT: Duration = Duration::from_millis(100);

/// What a page is like that breaks off so often.
struct Visitor {
    breaks: u32,
    seed: u64,
    offset: Duration,
    is_behind: bool,
}

/// Breaks off again and again, then watches to the end.
async fn visit(base: String, run: RunId, visitor: Visitor, done: oneshot::Sender<()>) -> Page {
    let mut dice = Dice::new(visitor.seed);
    let mut page = Page::open(&base, &run, visitor.offset, visitor.is_behind).await;
    for _ in 0..visitor.breaks {
        for _ in 0..dice.below(4) {
            page.step(MOMENT).await;
        }
        let doubled = dice.percent(10).then(|| 1 + dice.below(40));
        page.break_off(doubled).await;
        if dice.percent(5) {
            // Somebody else looks at the same time, and leaves in the middle of it.
            let mut second = Viewer::connect(&base).await;
            second.subscribe(&run, 0).await;
            second.next().await;
        }
    }
    let _ = done.send(());
    page.until_end().await;
    page
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_break_off_all_the_time_lose_and_double_nothing_whatever_their_clocks_say() {
    let breaks = if is_long() { 334 } else { 25 };
    let provider = Provider::start_at("1".parse().unwrap(), Vec::new()).await;
    let server = TestServer::start_with(Setup {
        provider: Some(provider),
        ..Setup::default()
    })
    .await;
    server.provider.arm("long:end").await;
    let prompt = if is_long() {
        "long characters=600000 rate=20000"
    } else {
        "long characters=60000 rate=20000"
    };
    let run = server.run(prompt, "anthropic").await;
    let clocks = [(0, false), (600_000, true), (80_000, false)];
    let mut visits = Vec::new();
    let mut all_done = Vec::new();
    for ((offset, is_behind), seed) in clocks.into_iter().zip(11..) {
        let visitor = Visitor {
            breaks,
            seed,
            offset: Duration::from_millis(offset),
            is_behind,
        };
        let (done, is_done) = oneshot::channel();
        all_done.push(is_done);
        visits.push(tokio::spawn(visit(
            server.base.clone(),
            run.clone(),
            visitor,
            done,
        )));
    }
    // The run goes on until all have broken off often enough.
    for done in all_done {
        done.await.unwrap();
    }
    server.provider.open("long:end").await;
    let mut doubled = 0;
    let expected = server.ended(&run).await;
    for visit in visits {
        let page = visit.await.unwrap();
        assert_equal(&page.state, &expected);
        assert_eq!(digest(&page.state), digest(&expected));
        doubled += page.doubled;
    }
    assert!(doubled > 0, "some tails came twice");
    assert_eq!(end(&expected), (RunStatus::Succeeded, None));
    assert!(text(&expected).len() > 50_000);
    server.assert_same(&expected).await;
}
