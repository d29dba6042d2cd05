//! The simulator as a provider behind real HTTP, and the handle by which a test holds its streams.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;
use server::simulator::{self, Scenario, Simulator, SimulatorOptions, Speed};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::harness::client;

/// The key that providers are asked with: it must never be seen again.
pub(crate) const PROVIDER_KEY: &str = "provider-key-0123456789abcdef";

/// The variable that holds it.
pub(crate) const KEY_VARIABLE: &str = "SIMULATED_PROVIDER_KEY";

/// What begins every signature of the simulator: only a provider may see it again.
pub(crate) const SIGNATURE: &str = "sim-signature";

/// The ids of the two providers, one for each wire format.
pub(crate) const PROVIDERS: [&str; 2] = ["anthropic", "openai"];

/// A simulator that listens.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) base: String,
    http: reqwest::Client,
    _stop: Arc<DropGuard>,
}

/// A scenario of this name from its text.
pub(crate) fn scenario(name: &str, source: &str) -> Scenario {
    Scenario::parse(&format!("{name}.toml"), source).unwrap()
}

/// Tables of the two providers at an address.
pub(crate) fn providers(base: &str, stall: &str, more: &str) -> String {
    let model = "models = [ { id = \"sim\", class = \"thinking\", context = 200000 } ]";
    format!(
        "[[providers]]\nid = \"anthropic\"\nkind = \"anthropic\"\nbase_url = \"{base}\"\n\
         api_key_env = \"{KEY_VARIABLE}\"\n{model}\n{more}\n[providers.stall]\n{stall}\n\
         [[providers]]\nid = \"openai\"\nkind = \"openai_chat\"\nbase_url = \"{base}/v1\"\n\
         api_key_env = \"{KEY_VARIABLE}\"\n{model}\n{more}\n[providers.stall]\n{stall}\n"
    )
}

impl Provider {
    pub(crate) async fn start(more_scenarios: Vec<Scenario>) -> Self {
        Self::start_at(Speed::MAX, more_scenarios).await
    }

    /// One that takes its time.
    pub(crate) async fn start_at(speed: Speed, more_scenarios: Vec<Scenario>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let options = SimulatorOptions {
            speed,
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
