//! Two servers on one database.

use std::sync::Arc;

use protocol::state::RunStatus;
use server::store::test_support::TestDatabase;
use server::store::wake::Heard;

use crate::harness::{Setup, TestServer};
use crate::recorder::Owner;
use crate::states::{end, text};

/// A second server beside one that lives.
async fn beside(server: &TestServer) -> TestServer {
    TestServer::start_with(Setup {
        database: Some(Arc::clone(&server.database)),
        provider: Some(server.provider.clone()),
        has_neighbours: true,
        ..Setup::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_another_server_takes_reaches_the_owner() {
    let owner = TestServer::start().await;
    owner.provider.arm("slow:middle").await;
    let run = owner.run("slow", "openai").await;
    let mut viewer = owner.watch(&run).await;
    viewer.until_text(&run, "takes its time. ").await;
    let other = beside(&owner).await;
    assert_eq!(
        other.snapshot(&run).await.run.status,
        RunStatus::Running,
        "a living owner keeps its run"
    );
    assert_eq!(other.cancel(&run).await, 202);
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Cancelled, None));
    assert_eq!(seen.generation(), 1, "the owner itself has ended it");
    other.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_the_owner_at_once_and_not_with_its_next_look() {
    // Looking alone finds one every five seconds.
    const RUNS: u32 = 8;
    let one = TestServer::start().await;
    let two = beside(&one).await;
    one.provider.arm("slow:middle").await;
    let mut begun = None;
    for _ in 0..RUNS {
        let run = one.run("slow", "openai").await;
        let mut viewer = one.watch(&run).await;
        viewer.until_text(&run, "takes its time. ").await;
        let other = if one.execution.owns(&run) { &two } else { &one };
        assert!(!other.execution.owns(&run));
        begun.get_or_insert_with(std::time::Instant::now);
        assert_eq!(other.cancel(&run).await, 202);
        let seen = viewer.until_end(&run).await;
        assert_eq!((end(seen).0, seen.generation()), (RunStatus::Cancelled, 1));
    }
    let took = begun.unwrap().elapsed();
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lost_its_run_to_another_one_writes_nothing_more() {
    let owner = TestServer::start().await;
    owner.provider.arm("slow:middle").await;
    let run = owner.run("slow", "openai").await;
    let mut viewer = owner.watch(&run).await;
    let shown = text(viewer.until_text(&run, "takes its time. ").await);
    // As after a long pause of its process: its lease is over, and it does not know.
    let ended = sqlx::query("update runs set lease_expires_at = now() - interval '1 second', owner = 'gone'");
    ended.execute(owner.execution.store().pool()).await.unwrap();
    let other = beside(&owner).await;
    let store = other.execution.store();
    while store.run_status(&run).await.unwrap() != Some(RunStatus::Interrupted) {
        tokio::task::yield_now().await;
    }
    owner.provider.open("slow:middle").await;
    assert!(owner.provider.is_idle_within(10_000).await);
    let seen = other.ended(&run).await;
    assert_eq!(end(&seen), (RunStatus::Interrupted, Some("owner_gone")));
    assert_eq!((text(&seen), seen.generation()), (shown, 2));
    // The old owner goes on to serve, and shows what the new one wrote.
    let session = owner.snapshot(&run).await.run.session_id;
    let next = owner.submit(&session, "max_tokens", "openai").await;
    other.assert_same(&seen).await;
    let mut done = false;
    while !done {
        done = store
            .run_status(&next)
            .await
            .unwrap()
            .is_some_and(RunStatus::is_final);
        tokio::task::yield_now().await;
    }
    other.assert_same(&other.ended(&next).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_its_owner_does_not_execute_any_more_loses_its_lease() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    server
        .watch(&run)
        .await
        .until_text(&run, "takes its time. ")
        .await;
    let store = server.execution.store();
    let owner = "select owner, lease_expires_at::text from runs";
    let (owner, lease): (String, String) = sqlx::query_as(owner).fetch_one(store.pool()).await.unwrap();
    assert_eq!(store.renew_leases(&owner, &[]).await.unwrap(), []);
    assert_eq!(
        store
            .renew_leases("another", std::slice::from_ref(&run))
            .await
            .unwrap(),
        []
    );
    let (after,): (String,) = sqlx::query_as("select lease_expires_at::text from runs")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(after, lease);
    assert_eq!(
        store
            .renew_leases(&owner, std::slice::from_ref(&run))
            .await
            .unwrap(),
        [run]
    );
}

#[tokio::test]
async fn a_claim_that_is_given_back_can_be_had_by_another_server_at_once() {
    let database = TestDatabase::new().await;
    let [one, two] = [
        Owner::new("one", database.options.clone()).await,
        Owner::new("two", database.options.clone()).await,
    ];
    let run = one.queue().await;
    let first = one.store.claim_queued("one").await.unwrap().unwrap();
    assert_eq!((&first.run_id, first.generation), (&run, 1));
    assert_eq!(two.store.claim_queued("two").await.unwrap(), None);
    // Only its owner gives it back.
    two.store.release("two", &first).await.unwrap();
    assert_eq!(two.store.claim_queued("two").await.unwrap(), None);
    let mut listener = two.store.listen().await.unwrap();
    one.store.release("one", &first).await.unwrap();
    let Heard::WakeUp(heard) = listener.hear().await.unwrap() else {
        panic!("a wake-up")
    };
    assert!(heard.queue, "the others are told");
    let second = two.store.claim_queued("two").await.unwrap().unwrap();
    assert_eq!((&second.run_id, second.generation), (&run, 2));
    assert_eq!(second.predecessor, None, "nobody had begun it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_could_not_be_written_is_not_said_to_be_accepted() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let session = server.session().await;
    server.submit(&session, "slow", "openai").await;
    let waiting = server.submit(&session, "max_tokens", "openai").await;
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as
             $$ begin if new.run_id = '{waiting}' then raise exception 'not this one'; end if; return new; end $$;
         create trigger refuse before insert on ops for each row execute function refuse()"
    );
    let pool = server.execution.store().pool();
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse))
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(server.cancel(&waiting).await, 500);
    sqlx::raw_sql("drop trigger refuse on ops")
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(server.cancel(&waiting).await, 202);
}
