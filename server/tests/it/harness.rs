//! How a test is written.
//!
//! [`TestServer::start`] gives a database of its own, a simulator on a port of its own (providers `anthropic` and
//! `openai`, the same simulator in both wire formats), and the real router on another port. A prompt picks the
//! simulator's scenario by its name. The simulator takes no time except at gates: a test arms a gate, waits until
//! the stream stands there, looks, and opens it. [`TestServer::viewer`] is a client of the WebSocket that folds what
//! comes; `until` reads frames until its state is what the test waits for. Nothing sleeps, and every wait has an end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use leptos::config::LeptosOptions;
use protocol::digest::digest;
use protocol::fold::{Applied, RunState};
use protocol::id::{RunId, SessionId};
use protocol::op::Entry;
use protocol::snapshot::Snapshot;
use protocol::state::RunStatus;
use serde_json::{Value, json};
use server::clock::{SharedClock, SystemClock};
use server::config::{Config, ConfigFile, Inputs};
use server::http::access::Access;
use server::http::stream::Heartbeat;
use server::http::{AppState, router};
use server::provider::{ProviderClient, Secret, install_crypto_provider};
use server::run::{Execution, Services};
use server::simulator::{self, Scenario, Simulator, SimulatorOptions, Speed, sample_workspace};
use server::store::Store;
use server::store::test_support::TestDatabase;
use server::stream::TranscriptStore;
use server::tool::{ToolRegistry, Workspace};
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::viewer::Viewer;

/// The longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The key that providers are asked with: it must never be seen again.
pub(crate) const PROVIDER_KEY: &str = "provider-key-0123456789abcdef";

/// The variable that holds it.
pub(crate) const KEY_VARIABLE: &str = "SIMULATED_PROVIDER_KEY";

/// What begins every signature of the simulator: only a provider may see it again.
pub(crate) const SIGNATURE: &str = "sim-signature";

/// The ids of the two providers, one for each wire format.
pub(crate) const PROVIDERS: [&str; 2] = ["anthropic", "openai"];

/// How a server differs from the usual one.
#[derive(Default)]
pub(crate) struct Setup {
    /// The token that has to be shown.
    pub(crate) token: Option<&'static str>,
    /// `[providers.stall]` of both providers.
    pub(crate) stall: &'static str,
    /// Further tables of the configuration.
    pub(crate) more_config: &'static str,
    /// Scenarios beside the built-in ones.
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) heartbeat: Heartbeat,
    /// The database of an earlier server.
    pub(crate) database: Option<Arc<TestDatabase>>,
    /// How to connect to it, when not directly.
    pub(crate) connect: Option<PgConnectOptions>,
    /// Whether other servers live on the same database.
    pub(crate) has_neighbours: bool,
    /// The simulator of an earlier server.
    pub(crate) provider: Option<Provider>,
}

/// A simulator that listens.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) base: String,
    http: reqwest::Client,
    _stop: Arc<DropGuard>,
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

/// A scenario of this name from its text.
pub(crate) fn scenario(name: &str, source: &str) -> Scenario {
    Scenario::parse(&format!("{name}.toml"), source).unwrap()
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

/// Tables of the two providers at an address.
pub(crate) fn providers(base: &str, stall: &str) -> String {
    let model = "models = [ { id = \"sim\", class = \"thinking\", context = 200000 } ]";
    format!(
        "[[providers]]\nid = \"anthropic\"\nkind = \"anthropic\"\nbase_url = \"{base}\"\n\
         api_key_env = \"{KEY_VARIABLE}\"\n{model}\n[providers.stall]\n{stall}\n\
         [[providers]]\nid = \"openai\"\nkind = \"openai_chat\"\nbase_url = \"{base}/v1\"\n\
         api_key_env = \"{KEY_VARIABLE}\"\n{model}\n[providers.stall]\n{stall}\n"
    )
}

impl Provider {
    pub(crate) async fn start(more_scenarios: Vec<Scenario>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let options = SimulatorOptions {
            speed: Speed::MAX,
            more_scenarios,
            ..SimulatorOptions::default()
        };
        let stop = CancellationToken::new();
        tokio::spawn(simulator::serve(listener, Simulator::new(options), stop.clone()));
        Self {
            base,
            http: client(),
            _stop: Arc::new(stop.drop_guard()),
        }
    }

    /// What the simulator says at an address below `/_sim/`.
    pub(crate) async fn look(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}/_sim/{path}", self.base)).send();
        answer.await.unwrap().json().await.unwrap()
    }

    async fn gate(&self, name: &str, what: &str) {
        let url = format!("{}/_sim/gates/{name}/{what}", self.base);
        assert!(self.http.post(url).send().await.unwrap().status().is_success());
    }

    /// Streams stop at this gate from now on.
    pub(crate) async fn arm(&self, gate: &str) {
        self.gate(gate, "arm").await;
    }

    /// They go on.
    pub(crate) async fn open(&self, gate: &str) {
        self.gate(gate, "open").await;
    }

    /// Waits until a stream stands at the gate.
    pub(crate) async fn reached(&self, gate: &str) {
        let url = format!("{}/_sim/gates/{gate}/wait?timeout_ms=20000", self.base);
        assert_eq!(
            self.http.get(url).send().await.unwrap().status(),
            StatusCode::OK,
            "{gate}"
        );
    }

    /// Whether no request is open within this time.
    pub(crate) async fn is_idle_within(&self, ms: u64) -> bool {
        let url = format!("{}/_sim/connections/idle?timeout_ms={ms}", self.base);
        self.http.get(url).send().await.unwrap().status() == StatusCode::OK
    }

    /// The bodies of all requests, oldest first.
    pub(crate) async fn requests(&self) -> Vec<Value> {
        let mut records = self.look("requests").await.as_array().cloned().unwrap();
        records.sort_by_key(|record| record["number"].as_u64());
        records.into_iter().map(|record| record["body"].clone()).collect()
    }
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
        let workspace = folder.path().join("workspace");
        sample_workspace::unpack(&workspace).unwrap();
        let text = format!("{}{}", providers(&provider.base, setup.stall), setup.more_config);
        let config = Config::from_inputs(&Inputs {
            file: Some(ConfigFile {
                path: PathBuf::from("/test.toml"),
                text,
            }),
            environment: [(KEY_VARIABLE.to_owned(), PROVIDER_KEY.to_owned())].into(),
            is_root: true,
            ..Inputs::default()
        });
        let clock: SharedClock = Arc::new(SystemClock);
        let options = setup.connect.unwrap_or_else(|| database.options.clone());
        let services = Services {
            client: ProviderClient::new(Arc::clone(&clock)).unwrap(),
            transcripts: TranscriptStore::new(folder.path()),
            tools: ToolRegistry::built_in(Arc::new(Workspace::open(&workspace).unwrap())),
            config: Arc::new(config.unwrap()),
            store: Store::open(options).await.unwrap(),
            clock,
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

    pub(crate) async fn snapshot(&self, run: &RunId) -> Snapshot {
        serde_json::from_str(&self.text(&format!("/api/runs/{run}/snapshot")).await).unwrap()
    }

    pub(crate) async fn ops(&self, run: &RunId) -> Vec<Entry> {
        let lines = self.text(&format!("/api/runs/{run}/ops")).await;
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
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

/// Both states are the same; else the first place where they differ is told.
pub(crate) fn assert_equal(left: &RunState, right: &RunState) {
    if let Some(difference) = difference("", &record(left), &record(right)) {
        panic!("{difference}");
    }
}

fn difference(path: &str, left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => left.keys().chain(right.keys()).find_map(|key| {
            let of = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
            difference(&format!("{path}.{key}"), &of(left), &of(right))
        }),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs
                .into_iter()
                .find_map(|(place, (left, right))| difference(&format!("{path}[{place}]"), left, right))
        }
        _ => (left != right).then(|| format!("{path}: {left} and {right}")),
    }
}

/// A state as a comparison sees it: all of the record, nothing of what is live only.
fn record(state: &RunState) -> Value {
    let mut snapshot = state.to_snapshot();
    snapshot.streams.clear();
    let mut record = serde_json::to_value(snapshot).unwrap();
    // Ops do not say it: a page knows it from elsewhere.
    record["run"].as_object_mut().unwrap().remove("session_id");
    record
}

/// The kinds of the blocks of a run, in order.
pub(crate) fn kinds(state: &RunState) -> Vec<&str> {
    let attempts = state.attempts().iter();
    let blocks = attempts.flat_map(|attempt| state.blocks_of(&attempt.attempt_id));
    blocks.map(|block| block.body.kind()).collect()
}

/// All text of a run's answer, over its blocks.
pub(crate) fn text(state: &RunState) -> String {
    let blocks = state.blocks().iter();
    let texts = blocks.filter_map(|block| match &block.body {
        protocol::model::BlockBody::Text(content) => Some(content.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// How a run ended: its state and the code of its error.
pub(crate) fn end(state: &RunState) -> (RunStatus, Option<&str>) {
    let error = state.run().error.as_ref().map(|error| error.code.as_str());
    (state.run().status, error)
}
