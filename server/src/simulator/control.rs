//! The control API under `/_sim/`, with which a test holds streams and sees what the simulator saw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Simulator;
use super::catalogue::ScenarioInfo;
use super::gates::GateState;
use super::ledger::{ConnectionReport, LoadRecord, RequestRecord};

/// The longest time that a long poll lasts.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(super) struct Control {
    pub(super) simulator: Arc<Simulator>,
    pub(super) shutdown: CancellationToken,
}

pub(super) fn router(control: Control) -> Router {
    Router::new()
        .route("/_sim/gates", get(gates))
        .route("/_sim/gates/{name}/arm", post(arm))
        .route("/_sim/gates/{name}/open", post(open))
        .route("/_sim/gates/{name}/wait", get(wait))
        .route("/_sim/requests", get(requests))
        .route("/_sim/scenarios", get(scenarios))
        .route("/_sim/connections", get(connections))
        .route("/_sim/connections/idle", get(idle))
        .route("/_sim/load", get(loads))
        .route("/_sim/load/{id}", get(load))
        .with_state(control)
}

async fn gates(State(control): State<Control>) -> Json<BTreeMap<String, GateState>> {
    Json(control.simulator.gates.all())
}

async fn arm(State(control): State<Control>, Path(name): Path<String>) -> Response {
    answer_gate(&control, &name, control.simulator.gates.arm(&name))
}

async fn open(State(control): State<Control>, Path(name): Path<String>) -> Response {
    answer_gate(&control, &name, control.simulator.gates.open(&name))
}

#[derive(Deserialize)]
struct WaitQuery {
    /// The longest time to wait, in milliseconds; 30 s when it is left out or longer.
    timeout_ms: Option<u64>,
}

impl WaitQuery {
    fn limit(&self) -> Duration {
        self.timeout_ms
            .map_or(LONGEST_WAIT, Duration::from_millis)
            .min(LONGEST_WAIT)
    }
}

/// Answers as soon as a stream waits at the gate; 408 with the gate's state when none came in time.
async fn wait(
    State(control): State<Control>,
    Path(name): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Response {
    let state = tokio::select! {
        state = control.simulator.gates.until_waiting(&name, query.limit()) => state,
        () = control.shutdown.cancelled() => return stopped(),
    };
    match state {
        Some(state) if state.waiting == 0 => (StatusCode::REQUEST_TIMEOUT, Json(state)).into_response(),
        state => answer_gate(&control, &name, state),
    }
}

fn stopped() -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        Json(json!({"error": "the simulator is stopped"})),
    )
        .into_response()
}

fn answer_gate(control: &Control, name: &str, state: Option<GateState>) -> Response {
    if let Some(state) = state {
        return Json(state).into_response();
    }
    let known: Vec<String> = control.simulator.gates.all().into_keys().collect();
    let error = format!("no scenario has a gate `{name}`; there are: {}", known.join(", "));
    (StatusCode::NOT_FOUND, Json(json!({"error": error}))).into_response()
}

#[derive(Deserialize)]
struct LimitQuery {
    limit: Option<usize>,
}

async fn requests(
    State(control): State<Control>,
    Query(query): Query<LimitQuery>,
) -> Json<Vec<RequestRecord>> {
    Json(control.simulator.ledger.requests(query.limit.unwrap_or(50)))
}

async fn scenarios(State(control): State<Control>) -> Json<Vec<ScenarioInfo>> {
    Json(control.simulator.scenarios())
}

async fn connections(State(control): State<Control>) -> Json<ConnectionReport> {
    Json(control.simulator.connections())
}

/// Answers as soon as no reply is open; 408 when some still are after the time.
async fn idle(State(control): State<Control>, Query(query): Query<WaitQuery>) -> Response {
    let waited = tokio::select! {
        waited = tokio::time::timeout(query.limit(), control.simulator.ledger.until_idle()) => waited,
        () = control.shutdown.cancelled() => return stopped(),
    };
    let status = if waited.is_ok() {
        StatusCode::OK
    } else {
        StatusCode::REQUEST_TIMEOUT
    };
    (status, Json(control.simulator.connections())).into_response()
}

async fn loads(State(control): State<Control>) -> Json<Vec<String>> {
    Json(control.simulator.ledger.load_ids())
}

async fn load(State(control): State<Control>, Path(id): Path<String>) -> Result<Json<LoadRecord>, Response> {
    control.simulator.ledger.load(&id).map(Json).ok_or_else(|| {
        let error = format!("no load stream has the id `{id}`");
        (StatusCode::NOT_FOUND, Json(json!({"error": error}))).into_response()
    })
}
