//! The database goes away and comes back: nothing is shown that is not saved, and nothing is written twice.

use futures::FutureExt as _;
use protocol::state::RunStatus;
use server::store::test_support::TestDatabase;
use std::sync::Arc;

use crate::harness::{Setup, TestServer};
use crate::proxy::Proxy;
use crate::recorder::{Owner, delivered, output};
use crate::states::{end, text};

#[tokio::test]
async fn while_the_database_is_away_nothing_is_shown_and_afterwards_all_of_it_is() {
    let database = TestDatabase::new().await;
    let proxy = Proxy::start(database.options.clone()).await;
    let owner = Owner::new("a", proxy.options.clone()).await;
    let run = owner.queue().await;
    let (writer, mut subscription) = owner.begin().await;
    let seq = writer.flush().await.unwrap();
    delivered(&mut subscription).await;

    proxy.cut();
    writer.write(output(&run, 0, "written while it was away")).await;
    proxy.until_refused(3).await;
    assert!(
        subscription.next().now_or_never().is_none(),
        "it is not saved, so it is not shown"
    );
    assert!(!writer.ended().is_cancelled());

    proxy.mend();
    assert_eq!(writer.flush().await.unwrap(), seq + 1);
    assert!(delivered(&mut subscription).await.2.contains("while it was away"));
    assert_eq!(owner.ops(&run).await.len() as u64, seq + 1);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_neither_written_twice_nor_given_up() {
    let database = TestDatabase::new().await;
    let proxy = Proxy::start(database.options.clone()).await;
    let owner = Owner::new("a", proxy.options.clone()).await;
    let run = owner.queue().await;
    let (writer, mut subscription) = owner.begin().await;
    let seq = writer.flush().await.unwrap();
    delivered(&mut subscription).await;

    proxy.lose_next_commit();
    writer.write(output(&run, 0, "once")).await;
    assert_eq!(writer.flush().await.unwrap(), seq + 1);
    assert!(proxy.has_lost_commit(), "the answer was lost");
    let (first, last, json) = delivered(&mut subscription).await;
    assert_eq!((first, last), (seq + 1, seq + 1));
    assert!(json.contains("once"));
    writer.write(output(&run, 4, " and on")).await;
    assert_eq!(writer.flush().await.unwrap(), seq + 2);
    let ops = owner.ops(&run).await;
    assert_eq!(ops.len() as u64, seq + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_over_an_outage_of_the_database() {
    let database = Arc::new(TestDatabase::new().await);
    let proxy = Proxy::start(database.options.clone()).await;
    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(&database)),
        connect: Some(proxy.options.clone()),
        ..Setup::default()
    })
    .await;
    server.provider.arm("slow:middle").await;
    server.provider.arm("slow:end").await;
    let run = server.run("slow", "openai").await;
    let mut viewer = server.watch(&run).await;
    let shown = viewer.until_text(&run, "takes its time. ").await.seq();
    server.provider.reached("slow:middle").await;

    proxy.cut();
    let turned_away = 5;
    server.provider.open("slow:middle").await;
    server.provider.reached("slow:end").await;
    proxy.until_refused(turned_away).await;
    // The answer to a senseless frame comes after all that was shown before it.
    viewer.send_text("nonsense").await;
    while viewer.errors.is_empty() {
        viewer.next().await.unwrap();
    }
    viewer.errors.clear();
    assert_eq!(viewer.state(&run).seq(), shown);
    assert_eq!(server.get("/readyz").await.status(), 503);

    proxy.mend();
    server.provider.open("slow:end").await;
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert!(text(&seen).ends_with("That was all."));
    assert_eq!(viewer.errors, []);
    server.assert_same(&seen).await;
}
