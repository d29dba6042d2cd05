//! Whether the other side is still there.

use std::time::{Duration, Instant};

use protocol::frame::ServerFrame;
use server::http::stream::Heartbeat;

use crate::harness::{Setup, TestServer};
use crate::viewer::Viewer;

/// A tenth of the usual times, which leaves a busy machine the time to answer.
const QUICK: Heartbeat = Heartbeat {
    ping: Duration::from_millis(1000 / 3),
    silence: Duration::from_secs(2),
};

#[test]
fn a_ping_comes_every_ten_seconds_and_silence_lasts_twenty() {
    let usual = Heartbeat::default();
    assert_eq!((usual.ping.as_secs(), usual.silence.as_secs()), (10, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_answers_stays_and_one_who_does_not_is_closed() {
    let server = TestServer::start_with(Setup {
        heartbeat: QUICK,
        ..Setup::default()
    })
    .await;
    // Before the server has heard of them for the first time.
    let begin = Instant::now();
    let mut answering = Viewer::connect(&server.base).await;
    let mut silent = Viewer::connect(&server.base).await.that_hangs();
    let silent = async {
        let mut pings = 0;
        while silent.next().await.is_some() {
            pings += 1;
        }
        (pings, begin.elapsed())
    };
    let answering = async {
        while begin.elapsed() < 3 * QUICK.silence {
            match answering.next().await.expect("the one who answers is kept") {
                ServerFrame::Ping { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        answering.pings
    };
    let ((pings, closed), kept) = tokio::join!(silent, answering);
    assert!(pings >= 2, "{pings} pings before the end");
    assert!(
        closed >= QUICK.silence && closed < 2 * QUICK.silence,
        "closed after {closed:?}"
    );
    assert!(kept >= 6, "{kept} pings");
}
