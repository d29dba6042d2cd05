//! A run is executed by one server and watched on another one, on the same database.

use std::sync::Arc;

use protocol::frame::ServerFrame;
use protocol::state::{RunStatus, StreamActivity};
use server::store::test_support::TestDatabase;

use crate::harness::{PATIENCE, Setup, TestServer};
use crate::kill_matrix::in_parts;
use crate::proxy::Proxy;
use crate::states::{assert_equal, end, text};
use crate::viewer::Viewer;

/// Two servers: the first one executes what the test starts, since the second one has no room for runs.
async fn pair() -> (TestServer, TestServer) {
    let owner = TestServer::start().await;
    let other = beside(&owner, Setup::default()).await;
    (owner, other)
}

pub(crate) async fn beside(server: &TestServer, setup: Setup) -> TestServer {
    TestServer::start_with(Setup {
        database: Some(Arc::clone(&server.database)),
        provider: Some(server.provider.clone()),
        has_neighbours: true,
        ..setup
    })
    .await
}

/// The server of the two that does not own the run.
async fn watcher<'a>(
    servers: [&'a TestServer; 2],
    run: &protocol::id::RunId,
) -> (&'a TestServer, &'a TestServer) {
    let process = |server: &TestServer| server.execution.owns(run);
    match servers.map(process) {
        [true, false] => (servers[0], servers[1]),
        [false, true] => (servers[1], servers[0]),
        other => panic!("owners: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_on_another_server_sees_every_op_while_it_comes() {
    let (one, two) = pair().await;
    one.provider.arm("welcome:middle").await;
    one.provider.arm("welcome:after-list").await;
    let run = one.run("Show me what Runloom does", "anthropic").await;
    one.provider.reached("welcome:middle").await;
    let (owner, other) = watcher([&one, &two], &run).await;
    let mut near = owner.watch(&run).await;
    let mut far = other.watch(&run).await;
    let mut further = other.watch(&run).await;
    for viewer in [&mut near, &mut far, &mut further] {
        viewer.until_text(&run, "what went on before the").await;
    }
    assert_equal(near.state(&run), far.state(&run));
    assert_equal(near.state(&run), further.state(&run));
    // Until here one may have got ops where the other one, who came later, got a snapshot.
    let before = [&far, &further].map(|viewer| viewer.runs[&run].ops);

    one.provider.open("welcome:middle").await;
    for viewer in [&mut near, &mut far, &mut further] {
        viewer.until_text(&run, "a toy key-value store in Python. ").await;
    }
    one.provider.open("welcome:after-list").await;
    let seen = near.until_end(&run).await.clone();
    assert_equal(&seen, far.until_end(&run).await);
    assert_equal(&seen, further.until_end(&run).await);
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(
        far.runs[&run].ops - before[0],
        further.runs[&run].ops - before[1],
        "both get the same frames"
    );
    let doubled = far.raw.matches("\"op\":\"attempt_finished\"").count();
    assert_eq!(doubled, 1, "nothing comes twice");
    other.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stream_is_doing_reaches_the_viewers_of_another_server() {
    let (one, two) = pair().await;
    one.provider.arm("slow:middle").await;
    let run = one.run("slow", "openai").await;
    one.provider.reached("slow:middle").await;
    let (_, other) = watcher([&one, &two], &run).await;
    let mut far = other.watch(&run).await;
    let is_live = |state: &protocol::fold::RunState| {
        state
            .streams()
            .any(|stream| stream.state == StreamActivity::Streaming && stream.last_content_at.is_some())
    };
    far.until(&run, is_live).await;
    let snapshot = other.snapshot(&run).await;
    assert_eq!(snapshot.streams.len(), 1, "who comes later is told, too");
    one.provider.open("slow:middle").await;
    far.until(&run, |state| {
        state
            .streams()
            .any(|stream| stream.state == StreamActivity::Settled)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_sessions_changes_on_every_server() {
    let (one, two) = pair().await;
    let mut far = Viewer::connect(&two.base).await;
    far.send_text("{\"subscribe\":{\"topic\":\"sessions\"}}").await;
    // The answer to a senseless frame says that the subscription before it was taken.
    far.send_text("nonsense").await;
    while far.errors.is_empty() {
        far.next().await.unwrap();
    }
    let session = one.session().await;
    let run = one.submit(&session, "max_tokens", "openai").await;
    loop {
        if let ServerFrame::SessionUpdated { session: told } = far.next().await.unwrap()
            && told.session_id == session
            && told
                .runs
                .iter()
                .any(|told| told.run_id == run && told.status == RunStatus::Succeeded)
        {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_connection_that_listens_breaks() {
    let owner = TestServer::start().await;
    owner.provider.arm("slow:middle").await;
    let run = owner.run("slow", "openai").await;
    owner.provider.reached("slow:middle").await;
    let proxy = Proxy::start(owner.database.options.clone()).await;
    let other = beside(
        &owner,
        Setup {
            connect: Some(proxy.options.clone()),
            ..Setup::default()
        },
    )
    .await;
    let mut far = other.watch(&run).await;
    far.until_text(&run, "takes its time. ").await;

    proxy.cut();
    owner.provider.open("slow:middle").await;
    let seen = owner.ended(&run).await;
    proxy.until_refused(1).await;
    proxy.mend();
    let after = far.until_end(&run).await.clone();
    assert_equal(&seen, &after);
    assert!(text(&after).ends_with("That was all."));
    owner.assert_same(&after).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_is_ended_by_the_database_listens_again() {
    let database = Arc::new(TestDatabase::new().await);
    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(&database)),
        ..Setup::default()
    })
    .await;
    let other = beside(&server, Setup::default()).await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    server.provider.reached("slow:middle").await;
    let (owner, watching) = watcher([&server, &other], &run).await;
    let mut far = watching.watch(&run).await;
    far.until_text(&run, "takes its time. ").await;
    let pool = database.pool().await;
    let count =
        "select count(*) from pg_stat_activity where datname = current_database() and query like 'LISTEN%'";
    // A server begins to listen some time after it has begun to serve.
    let listening = async {
        while sqlx::query_scalar::<_, i64>(count)
            .fetch_one(&pool)
            .await
            .unwrap()
            < 2
        {}
    };
    tokio::time::timeout(PATIENCE, listening).await.unwrap();
    let ended: Vec<(bool,)> = sqlx::query_as(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and query like 'LISTEN%'",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(ended, [(true,), (true,)], "each server listens on one connection");
    server.provider.open("slow:middle").await;
    let seen = far.until_end(&run).await.clone();
    owner.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_comes_at_once_and_not_with_the_next_look() {
    // Looking alone finds a part every five seconds.
    const PARTS: u32 = 12;
    let owner = TestServer::start_with(Setup {
        scenarios: vec![in_parts(PARTS)],
        ..Setup::default()
    })
    .await;
    for number in 0..PARTS {
        owner.provider.arm(&format!("parts:{number}")).await;
    }
    let run = owner.run("parts", "openai").await;
    owner.provider.reached("parts:0").await;
    let other = beside(&owner, Setup::default()).await;
    let mut far = other.watch(&run).await;
    let begun = std::time::Instant::now();
    for number in 0..PARTS {
        far.until_text(&run, &format!("Part {number} is whole.")).await;
        owner.provider.open(&format!("parts:{number}")).await;
    }
    far.until_end(&run).await;
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_gives_its_claims_back_and_another_one_executes_what_waits() {
    let (one, two) = pair().await;
    one.execution.shut_down().await;
    for _ in 0..5 {
        let run = two.run("max_tokens", "openai").await;
        assert_eq!(end(&two.ended(&run).await).0, RunStatus::Succeeded);
    }
}
