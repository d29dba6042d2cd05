//! A viewer that takes one frame a second beside one at full speed, while 5,000 ops come in a second: both end with all
//! of it, neither ever goes back, and the server's memory stays in bounds.

use std::time::Duration;

use futures::FutureExt as _;
use protocol::Extra;
use protocol::fold::RunState;
use protocol::frame::ClientFrame;
use protocol::id::{NodeId, RunId};
use protocol::op::{NodeOutput, NodeUpdated, Op};
use protocol::state::{Channel, RunStatus};
use server::store::test_support::TestDatabase;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::command_line::Process;
use crate::harness::{PATIENCE, is_long};
use crate::provider::Provider;
use crate::recorder::{Owner, run_is};
use crate::states::assert_equal;
use crate::viewer::Viewer;

const OPS_PER_SECOND: u64 = 5_000;

/// The most by which a server's memory may grow.
const MOST_GROWTH: u64 = 64 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_of_one_frame_a_second_and_a_fast_one_both_get_all_of_it() {
    let seconds = if is_long() { 30 } else { 5 };
    let database = TestDatabase::new().await;
    let owner = Owner::new("a", database.options.clone()).await;
    let run = owner.queue().await;
    let (writer, _) = owner.begin().await;
    writer.flush().await.unwrap();
    // The server that is watched is another one, which must not take the run.
    let keep = "update runs set lease_expires_at = now() + interval '1 hour'";
    sqlx::query(keep).execute(owner.store.pool()).await.unwrap();
    let provider = Provider::start(Vec::new()).await;
    let process = Process::serve(&database, &provider.base, "").await;
    let mut fast = Viewer::connect(&process.base).await;
    let mut slow = Viewer::connect(&process.base).await;
    for viewer in [&mut fast, &mut slow] {
        viewer.subscribe(&run, 0).await;
        viewer.next().await;
    }
    let before = process.memory();

    let id = run.clone();
    let write = async move {
        let mut offset = 0;
        let mut ticks = interval(Duration::from_millis(10));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        for _ in 0..seconds * 100 {
            ticks.tick().await;
            for number in 0..OPS_PER_SECOND / 100 {
                // Text and titles in turn: ops of one text would be merged.
                if number % 2 == 0 {
                    let title = NodeUpdated {
                        node_id: NodeId::root(&id),
                        status: None,
                        title: Some(format!("at {offset}")),
                        progress: None,
                        started_at: None,
                        extra: Extra::new(),
                    };
                    writer.write(Op::NodeUpdated(title)).await;
                    continue;
                }
                let text = format!("{offset} ");
                let length = text.len() as u64;
                let output = NodeOutput {
                    node_id: NodeId::root(&id),
                    channel: Channel::Log,
                    offset,
                    text,
                    extra: Extra::new(),
                };
                writer.write(Op::NodeOutput(output)).await;
                offset += length;
            }
        }
        writer.write(run_is(RunStatus::Cancelled)).await;
        writer.flush().await.unwrap();
    };
    let watched = run.clone();
    let watch_fast = async move {
        let mut known = 0;
        let deadline = Instant::now() + Duration::from_secs(seconds) + PATIENCE;
        let mut ticks = interval(Duration::from_secs(1));
        while !is_over(&fast, &watched) {
            fast.next().await.unwrap();
            known = monotone(&fast, &watched, known);
            if ticks.tick().now_or_never().is_some() {
                acknowledge(&mut fast, &watched, known).await;
            }
            assert!(Instant::now() < deadline);
        }
        fast
    };
    let watched = run.clone();
    let watch_slow = async move {
        let mut known = 0;
        let mut ticks = interval(Duration::from_secs(1));
        for _ in 0..seconds {
            ticks.tick().await;
            slow.next().await.unwrap();
            known = monotone(&slow, &watched, known);
            acknowledge(&mut slow, &watched, known).await;
        }
        let behind = known;
        while !is_over(&slow, &watched) {
            slow.next().await.unwrap();
            known = monotone(&slow, &watched, known);
            if ticks.tick().now_or_never().is_some() {
                acknowledge(&mut slow, &watched, known).await;
            }
        }
        (slow, behind)
    };
    let ((), fast, (slow, behind)) = tokio::join!(write, watch_fast, watch_slow);
    let grown = process.memory().saturating_sub(before);
    assert!(grown <= MOST_GROWTH, "{} MiB more", grown / 1024 / 1024);

    let all = owner.store.load_run(&run).await.unwrap().unwrap();
    assert!(all.seq() >= seconds * OPS_PER_SECOND);
    assert!(
        behind < all.seq() / 2,
        "the slow one was far behind: {behind} of {}",
        all.seq()
    );
    assert_equal(fast.state(&run), &all);
    assert_equal(slow.state(&run), &all);
}

/// A page says once a second how far it is; the server closes a connection that is silent.
async fn acknowledge(viewer: &mut Viewer, run: &RunId, seq: u64) {
    let run = run.clone();
    viewer.send(&ClientFrame::Ack { run, seq }).await;
}

fn is_over(viewer: &Viewer, run: &RunId) -> bool {
    let is_final = |state: &RunState| state.run().status.is_final();
    viewer
        .runs
        .get(run)
        .is_some_and(|watched| is_final(&watched.state))
}

/// What a viewer knows never gets less.
fn monotone(viewer: &Viewer, run: &RunId, known: u64) -> u64 {
    let seq = viewer.runs.get(run).map_or(0, |watched| watched.state.seq());
    assert!(seq >= known, "from {known} to {seq}");
    seq
}
