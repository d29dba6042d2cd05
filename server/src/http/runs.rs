//! Runs: creating, reading, stopping, going on again.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use protocol::api::{CreateRun, RunCreated};
use protocol::id::{NodeId, RunId, SessionId};
use protocol::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::{ApiJson, Id, Query};
use crate::run::CancelOutcome;
use crate::store::journal;

/// Ops that one answer of `/ops` holds at most.
const MAX_OPS: u32 = 10_000;

/// The longest key by which a repeated request is known.
const MAX_KEY: usize = 200;

/// `POST /api/sessions/{session}/runs`
pub(super) async fn create(
    State(state): State<AppState>,
    Id(session_id): Id<SessionId>,
    headers: HeaderMap,
    ApiJson(wish): ApiJson<CreateRun>,
) -> Result<(StatusCode, Json<RunCreated>), ApiError> {
    let key = match headers.get("idempotency-key") {
        None => None,
        Some(value) => match value.to_str() {
            Ok(key) if !key.is_empty() && key.len() <= MAX_KEY => Some(key),
            _ => {
                return Err(ApiError::Invalid(format!(
                    "The header Idempotency-Key has to have 1 to {MAX_KEY} visible ASCII characters."
                )));
            }
        },
    };
    let run_id = state.execution.submit(&session_id, &wish, key).await?;
    Ok((StatusCode::ACCEPTED, Json(RunCreated { run_id })))
}

/// `GET /api/runs/{run}/snapshot`
pub(super) async fn snapshot(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<Json<Snapshot>, ApiError> {
    Ok(Json(load_snapshot(&state, &run_id).await?))
}

/// The snapshot of a run with what its live streams are doing.
pub(super) async fn load_snapshot(state: &AppState, run_id: &RunId) -> Result<Snapshot, ApiError> {
    let snapshot = state.execution.store().load_snapshot(run_id).await?;
    let mut snapshot = snapshot.ok_or_else(|| ApiError::not_found("run", run_id))?;
    snapshot.streams = state.execution.hub().streams(run_id);
    Ok(snapshot)
}

/// Parameters of `/ops`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpsParameters {
    #[serde(default)]
    after: u64,
    limit: Option<u32>,
}

/// `GET /api/runs/{run}/ops`
pub(super) async fn ops(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
    Query(parameters): Query<OpsParameters>,
) -> Result<Response, ApiError> {
    let store = state.execution.store();
    if store.run_status(&run_id).await?.is_none() {
        return Err(ApiError::not_found("run", run_id));
    }
    let limit = parameters.limit.unwrap_or(MAX_OPS).min(MAX_OPS);
    let entries = journal::after(store.pool(), &run_id, parameters.after, limit).await?;
    let mut lines = BytesMut::new();
    for entry in &entries {
        let line = serde_json::to_vec(entry).map_err(|error| ApiError::Internal(error.to_string()))?;
        lines.put_slice(&line);
        lines.put_u8(b'\n');
    }
    Ok((
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-ndjson"),
        )],
        Body::from(Bytes::from(lines)),
    )
        .into_response())
}

/// `POST /api/runs/{run}/cancel`
pub(super) async fn cancel(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<StatusCode, ApiError> {
    match state.execution.cancel(&run_id).await? {
        CancelOutcome::Accepted | CancelOutcome::AlreadyOver => Ok(StatusCode::ACCEPTED),
        CancelOutcome::NoSuchRun => Err(ApiError::not_found("run", run_id)),
    }
}

/// `POST /api/runs/{run}/resume`
pub(super) async fn resume(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<StatusCode, ApiError> {
    state.execution.resume(&run_id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/nodes/{node}/regenerate`
pub(super) async fn regenerate(
    State(state): State<AppState>,
    Id(node_id): Id<NodeId>,
) -> Result<StatusCode, ApiError> {
    state.execution.regenerate(&node_id).await?;
    Ok(StatusCode::ACCEPTED)
}
