//! How a test is written.
//!
//! [`TestServer::start`] gives a database of its own, a simulator on a port of its own (providers `anthropic` and
//! `openai`, the same simulator in both wire formats), and the real router on another port. A prompt picks the
//! simulator's scenario by its name. The simulator takes no time except at gates: a test arms a gate, waits until
//! the stream stands there, looks, and opens it. [`TestServer::viewer`] is a client of the WebSocket that folds what
//! comes; `until` reads frames until its state is what the test waits for. Nothing sleeps, and every wait has an end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use leptos::config::LeptosOptions;
use protocol::digest::digest;
use protocol::fold::{Applied, RunState};
use protocol::id::{NodeId, RunId, SessionId};
use protocol::op::Entry;
use protocol::snapshot::Snapshot;
use serde_json::{Value, json};
use server::clock::{SharedClock, SystemClock};
use server::config::{Config, ConfigFile, Inputs};
use server::http::access::Access;
use server::http::stream::Heartbeat;
use server::http::{AppState, router};
use server::provider::{ProviderClient, Secret, install_crypto_provider};
use server::run::{Execution, Services};
use server::simulator::{Scenario, sample_workspace};
use server::store::Store;
use server::store::test_support::TestDatabase;
use server::stream::{ProviderHealth, RandomJitter, TranscriptStore};
use server::tool::run_code::RunCode;
use server::tool::{Tool, ToolRegistry, Workspace};
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::provider::{KEY_VARIABLE, PROVIDER_KEY, Provider, providers};
use crate::states::assert_equal;
use crate::viewer::Viewer;

/// The longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How a server differs from the usual one.
#[derive(Default)]
pub(crate) struct Setup {
    /// The token that has to be shown.
    pub(crate) token: Option<&'static str>,
    /// `[providers.stall]` of both providers.
    pub(crate) stall: &'static str,
    /// Further keys of both providers.
    pub(crate) reasoning: &'static str,
    /// What stands in `[recovery]`; without it nothing is asked for again.
    pub(crate) recovery: Option<&'static str>,
    /// Further tables of the configuration.
    pub(crate) more_config: &'static str,
    /// Whether the models cost something.
    pub(crate) priced: bool,
    /// Scenarios beside the built-in ones.
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) heartbeat: Heartbeat,
    /// Tools beside the built-in ones.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The database of an earlier server.
    pub(crate) database: Option<Arc<TestDatabase>>,
    /// How to connect to it, when not directly.
    pub(crate) connect: Option<PgConnectOptions>,
    /// Whether other servers live on the same database.
    pub(crate) has_neighbours: bool,
    /// The simulator of an earlier server.
    pub(crate) provider: Option<Provider>,
    /// The data folder of an earlier server, with its transcripts.
    pub(crate) data: Option<PathBuf>,
    /// What tools see, when not the sample.
    pub(crate) workspace: Option<PathBuf>,
}

/// A server with all that it needs.
pub(crate) struct TestServer {
    pub(crate) base: String,
    pub(crate) http: reqwest::Client,
    pub(crate) provider: Provider,
    pub(crate) execution: Arc<Execution>,
    pub(crate) database: Arc<TestDatabase>,
    _folder: tempfile::TempDir,
    _stop: DropGuard,
}

/// Whether the checks run at their full counts.
pub(crate) fn is_long() -> bool {
    std::env::var("RUNLOOM_TEST_LONG").is_ok_and(|value| value == "1")
}

/// Numbers that look random and are the same in each run of a test with this seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Whether something happens that happens so often in a hundred.
    pub(crate) fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}

/// A client without a proxy that follows no redirects.
pub(crate) fn client() -> reqwest::Client {
    install_crypto_provider();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(Setup::default()).await
    }

    pub(crate) async fn start_with(setup: Setup) -> Self {
        install_crypto_provider();
        let provider = match setup.provider {
            Some(provider) => provider,
            None => Provider::start(setup.scenarios).await,
        };
        let database = match setup.database {
            Some(database) => database,
            None => Arc::new(TestDatabase::new().await),
        };
        let folder = tempfile::tempdir().unwrap();
        let workspace = match setup.workspace {
            Some(workspace) => workspace,
            None => {
                let sample = folder.path().join("workspace");
                sample_workspace::unpack(&sample).unwrap();
                sample
            }
        };
        let mut text = format!(
            "{}{}",
            providers(&provider.base, setup.stall, setup.reasoning),
            setup.more_config
        );
        if setup.priced {
            let price = "context = 200000, price = { input = 1.0, output = 1.0 }";
            text = text.replace("context = 200000", price);
        }
        let mut environment = BTreeMap::from([(KEY_VARIABLE.to_owned(), PROVIDER_KEY.to_owned())]);
        // Tests of one provider do not want the other one to go on.
        if !setup.recovery.unwrap_or_default().contains("rotations") {
            environment.insert("RUNLOOM_RECOVERY__ROTATIONS".to_owned(), "0".to_owned());
        }
        match setup.recovery {
            Some(recovery) => text.push_str(&format!("\n[recovery]\n{recovery}\n")),
            None => environment.extend([
                ("RUNLOOM_RECOVERY__RETRY_DELAYS".to_owned(), "[]".to_owned()),
                ("RUNLOOM_LIMITS__RATE_LIMIT_SECONDS".to_owned(), "0".to_owned()),
            ]),
        }
        let config = Config::from_inputs(&Inputs {
            file: Some(ConfigFile {
                path: PathBuf::from("/test.toml"),
                text,
            }),
            environment,
            is_root: true,
            ..Inputs::default()
        });
        let config = config.unwrap();
        let clock: SharedClock = Arc::new(SystemClock);
        let mut tools = ToolRegistry::built_in(Arc::new(Workspace::open(&workspace).unwrap()));
        tools
            .register(Arc::new(RunCode::new(config.limits.code.clone())))
            .unwrap();
        for tool in setup.tools {
            tools.register(tool).unwrap();
        }
        server::tool::mcp::attach(&mut tools, &config.mcp_servers);
        let options = setup.connect.unwrap_or_else(|| database.options.clone());
        let services = Services {
            client: ProviderClient::new(Arc::clone(&clock)).unwrap(),
            transcripts: TranscriptStore::new(setup.data.as_deref().unwrap_or(folder.path())),
            tools,
            health: ProviderHealth::new(config.recovery.retry.cooldown),
            config: Arc::new(config),
            store: Store::open(options).await.unwrap(),
            clock,
            jitter: Arc::new(RandomJitter),
        };
        let execution = Execution::start(services, !setup.has_neighbours).await.unwrap();
        let state = AppState {
            execution: Arc::clone(&execution),
            simulator: None,
            access: Arc::new(Access::new(setup.token.map(Secret::new))),
            leptos: LeptosOptions::builder().output_name("runloom").build(),
            workspace_name: "workspace".into(),
            heartbeat: setup.heartbeat,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let serving =
            axum::serve(listener, router(state)).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::spawn(serving.into_future());
        Self {
            base,
            http: client(),
            provider,
            execution,
            database,
            _folder: folder,
            _stop: stop.drop_guard(),
        }
    }

    /// Ends it, with its connections to the database.
    pub(crate) async fn stop(self) {
        self.execution.shut_down().await;
        self.execution.store().close().await;
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.http
            .get(format!("{}{path}", self.base))
            .send()
            .await
            .unwrap()
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.text().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> reqwest::Response {
        let request = self.http.post(format!("{}{path}", self.base)).json(&body);
        request.send().await.unwrap()
    }

    pub(crate) async fn session(&self) -> SessionId {
        let answer = self.post("/api/sessions", json!({})).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        let body: Value = answer.json().await.unwrap();
        body["session_id"].as_str().unwrap().parse().unwrap()
    }

    /// Queues a run.
    pub(crate) async fn submit(&self, session: &SessionId, prompt: &str, provider: &str) -> RunId {
        let body = json!({ "prompt": prompt, "provider": provider });
        let answer = self.post(&format!("/api/sessions/{session}/runs"), body).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let body: Value = answer.json().await.unwrap();
        body["run_id"].as_str().unwrap().parse().unwrap()
    }

    /// Queues a run in a session of its own.
    pub(crate) async fn run(&self, prompt: &str, provider: &str) -> RunId {
        self.submit(&self.session().await, prompt, provider).await
    }

    pub(crate) async fn cancel(&self, run: &RunId) -> StatusCode {
        self.post(&format!("/api/runs/{run}/cancel"), json!({}))
            .await
            .status()
    }

    /// Lets a run go on.
    pub(crate) async fn resume(&self, run: &RunId) -> StatusCode {
        self.post(&format!("/api/runs/{run}/resume"), json!({}))
            .await
            .status()
    }

    /// Asks for another answer; the status and, when it is refused, the code.
    pub(crate) async fn regenerate(&self, node: &NodeId) -> (StatusCode, Option<String>) {
        let answer = self
            .post(&format!("/api/nodes/{node}/regenerate"), json!({}))
            .await;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        (status, body["code"].as_str().map(str::to_owned))
    }

    pub(crate) async fn snapshot(&self, run: &RunId) -> Snapshot {
        serde_json::from_str(&self.text(&format!("/api/runs/{run}/snapshot")).await).unwrap()
    }

    pub(crate) async fn ops(&self, run: &RunId) -> Vec<Entry> {
        let mut ops: Vec<Entry> = Vec::new();
        loop {
            let after = ops.last().map_or(0, |entry| entry.seq);
            let page = self.text(&format!("/api/runs/{run}/ops?after={after}")).await;
            if page.is_empty() {
                return ops;
            }
            ops.extend(
                page.lines()
                    .map(|line| serde_json::from_str::<Entry>(line).unwrap()),
            );
        }
    }

    /// The state that the ops give, all of which have to fit.
    pub(crate) async fn folded(&self, run: &RunId) -> RunState {
        let session = self.snapshot(run).await.run.session_id;
        let mut state = RunState::new(run.clone(), session);
        for entry in self.ops(run).await {
            let applied = state.apply(&entry).unwrap();
            assert!(matches!(applied, Applied::Changed(_)), "{entry:?}: {applied:?}");
        }
        state
    }

    /// A viewer that follows this run from its beginning.
    pub(crate) async fn watch(&self, run: &RunId) -> Viewer {
        let mut viewer = Viewer::connect(&self.base).await;
        viewer.subscribe(run, 0).await;
        viewer
    }

    /// Waits until the run is over.
    pub(crate) async fn ended(&self, run: &RunId) -> RunState {
        let mut viewer = self.watch(run).await;
        viewer
            .until(run, |state| state.run().status.is_final())
            .await
            .clone()
    }

    /// Runs a prompt to its end in a session of its own.
    pub(crate) async fn finish(&self, prompt: &str, provider: &str) -> RunState {
        let run = self.run(prompt, provider).await;
        self.ended(&run).await
    }

    /// Rows, journal and this state are the same; gives the digest.
    pub(crate) async fn assert_same(&self, seen: &RunState) -> String {
        let run = &seen.run().run_id;
        assert_equal(seen, &self.folded(run).await);
        assert_equal(seen, &RunState::from_snapshot(self.snapshot(run).await));
        let verified = server::verify::verify(self.execution.store(), run)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(verified.problems, Vec::<String>::new());
        assert_eq!(verified.rows, digest(seen));
        verified.rows
    }
}
