//! kill -9 of PostgreSQL at every kind of moment: it comes back by itself, and the run goes on to its end with nothing
//! lost, nothing doubled and nothing shown that was not saved.

use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::fold::RunState;
use protocol::state::RunStatus;
use server::store::data_dir::DataDir;
use server::store::embedded::{EmbeddedOptions, EmbeddedPostgres};
use server::store::test_support::temporary_folder;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::harness::{Dice, PATIENCE, Setup, TestServer, is_long};
use crate::kill_matrix::{POINTS, Point, large_workspace, scenarios};
use crate::owner_gone::assert_kept;
use crate::provider::Provider;
use crate::proxy::Proxy;
use crate::states::{assert_equal, end};
use crate::watching_elsewhere::beside;

/// A PostgreSQL that a test may kill: with full durability, supervised as in a server of one's own.
struct Postgres {
    folder: PathBuf,
    embedded: EmbeddedPostgres,
}

impl Postgres {
    async fn start() -> Self {
        let folder = temporary_folder();
        let data_dir = DataDir::open(&folder).unwrap();
        let lock = data_dir.lock("tests").unwrap();
        let embedded = EmbeddedPostgres::start(&lock, &EmbeddedOptions::from_environment())
            .await
            .unwrap();
        Self { folder, embedded }
    }

    fn process(&self) -> Pid {
        let file = self.folder.join("postgres/data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        Pid::from_raw(text.lines().next().unwrap().parse().unwrap())
    }

    fn kill(&self) {
        kill(self.process(), Signal::SIGKILL).unwrap();
    }

    /// Waits until it answers again.
    async fn until_back(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.embedded.connect_options().connect().await {
                Ok(connection) => break connection.close().await.unwrap(),
                Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    async fn clear(self) {
        self.embedded.stop().await;
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
}

async fn server(postgres: &Postgres) -> TestServer {
    server_with(postgres, Setup::default()).await
}

async fn server_with(postgres: &Postgres, setup: Setup) -> TestServer {
    let provider = Provider::start_at("20".parse().unwrap(), scenarios()).await;
    let direct = || postgres.embedded.connect_options().clone();
    TestServer::start_with(Setup {
        connect: Some(setup.connect.unwrap_or_else(direct)),
        provider: Some(provider),
        ..setup
    })
    .await
}

/// The run ended well, and everybody has the same of it: who watched all the time, who comes now, and who comes to a
/// second server.
async fn check(what: &str, postgres: &Postgres, server: &TestServer, seen: &RunState, after: &RunState) {
    assert_eq!(end(after), (RunStatus::Succeeded, None), "{what}");
    assert_eq!(after.generation(), 1, "{what}: its owner has kept it");
    if after.seq() > seen.seq() {
        assert_kept(seen, after);
    }
    assert_equal(after, &server.ended(&after.run().run_id).await);
    let setup = Setup {
        connect: Some(postgres.embedded.connect_options().clone()),
        ..Setup::default()
    };
    let second = beside(server, setup).await;
    assert_equal(after, &second.ended(&after.run().run_id).await);
    assert_eq!(
        server.assert_same(after).await,
        second.assert_same(after).await,
        "{what}"
    );
    second.stop().await;
}

/// Kills PostgreSQL where the run stands at this moment, and watches it to its end.
async fn kill_at(postgres: &Postgres, server: &TestServer, point: &Point) {
    if let Some(gate) = point.gate {
        server.provider.arm(gate).await;
    }
    let prompt = match point.prompt {
        "slow" => "slow seconds=10",
        prompt => prompt,
    };
    let run = server.run(prompt, "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until(&run, point.enough).await.clone();
    postgres.kill();
    if let Some(gate) = point.gate {
        server.provider.open(gate).await;
    }
    let after = viewer.until_end(&run).await.clone();
    postgres.until_back().await;
    assert_eq!(viewer.errors, [], "{}", point.name);
    check(point.name, postgres, server, &seen, &after).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_postgres_is_killed_at_any_kind_of_moment() {
    let postgres = Postgres::start().await;
    let server = server(&postgres).await;
    let possible = POINTS.iter().filter(|point| point.prompt != "long_tool");
    let sample = ["in text", "in arguments"];
    for point in possible.filter(|point| is_long() || sample.contains(&point.name)) {
        kill_at(&postgres, &server, point).await;
    }
    server.execution.shut_down().await;
    postgres.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_postgres_is_killed_while_a_tool_runs() {
    let workspace = large_workspace();
    let postgres = Postgres::start().await;
    let setup = Setup {
        workspace: Some(workspace.path().to_owned()),
        ..Setup::default()
    };
    let server = server_with(&postgres, setup).await;
    let point = POINTS.iter().find(|point| point.prompt == "long_tool").unwrap();
    kill_at(&postgres, &server, point).await;
    server.execution.shut_down().await;
    postgres.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_postgres_is_killed_during_a_commit() {
    let postgres = Postgres::start().await;
    let proxy = Proxy::start(postgres.embedded.connect_options().clone()).await;
    let setup = Setup {
        connect: Some(proxy.options.clone()),
        ..Setup::default()
    };
    let server = server_with(&postgres, setup).await;
    server.provider.arm("welcome:middle").await;
    let run = server.run("welcome", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until_text(&run, "what went on before the").await.clone();
    proxy.lose_next_commit();
    server.provider.open("welcome:middle").await;
    // It has the commit and has not said what became of it.
    proxy.until_commit_is_lost().await;
    postgres.kill();
    let after = viewer.until_end(&run).await.clone();
    postgres.until_back().await;
    assert_eq!(viewer.errors, []);
    check("during a commit", &postgres, &server, &seen, &after).await;
    server.execution.shut_down().await;
    postgres.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_postgres_is_killed_at_random_moments() {
    let (count, seed) = if is_long() { (50, 3) } else { (2, 4) };
    let mut dice = Dice::new(seed);
    let moments: Vec<u64> = (0..count).map(|_| 8 + dice.below(50)).collect();
    // One that is killed again and again is started again later each time: this is not what is looked at.
    for (number, moments) in moments.chunks(4).enumerate() {
        let postgres = Postgres::start().await;
        let server = server(&postgres).await;
        for at in moments {
            let run = server.run("welcome", "openai").await;
            let mut viewer = server.watch(&run).await;
            let is_there = |state: &RunState| state.seq() >= *at || state.run().status.is_final();
            let seen = viewer.until(&run, is_there).await.clone();
            postgres.kill();
            let after = viewer.until_end(&run).await.clone();
            postgres.until_back().await;
            let what = format!("seed {seed}, part {number}, after op {at}");
            check(&what, &postgres, &server, &seen, &after).await;
        }
        server.execution.shut_down().await;
        postgres.clear().await;
    }
}
