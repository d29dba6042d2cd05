//! Runs: creating, reading, stopping, going on again.

use app::data::port::{Earlier, WINDOW};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use protocol::PREVIEW_BYTES;
use protocol::api::{AnswerApproval, CreateRun, RunCreated, RunDigest, RunMarks};
use protocol::id::{AttemptId, NodeId, RunId, SessionId};
use protocol::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::{ApiJson, Id, Query};
use crate::run::{AnswerOutcome, CancelOutcome};
use crate::store::journal;

/// Ops that one answer of `/ops` holds at most.
const MAX_OPS: u32 = 10_000;

/// The longest words of an answer, in characters.
const MAX_WORDS: usize = 4_000;

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
    Query(parameters): Query<SnapshotParameters>,
) -> Result<Json<Snapshot>, ApiError> {
    if let Some(seq) = parameters.at {
        if parameters.attempt.is_some() || parameters.before.is_some() {
            let detail = "`at` names a moment of the whole run: `attempt` and `before` do not go with it.";
            return Err(ApiError::Invalid(detail.to_owned()));
        }
        let is_window = parameters.window.is_some();
        return Ok(Json(load_moment(&state, &run_id, seq, is_window).await?));
    }
    let place = match (parameters.attempt, parameters.before) {
        (None, None) => return Ok(Json(load_snapshot(&state, &run_id, parameters.window).await?)),
        (Some(attempt_id), Some(before)) => Earlier { attempt_id, before },
        (Some(_), None) | (None, Some(_)) => {
            let detail = "`attempt` and `before` name a place together: one of them is missing.";
            return Err(ApiError::Invalid(detail.to_owned()));
        }
    };
    let most = parameters.window.unwrap_or(WINDOW);
    let snapshot = load_earlier(&state, &run_id, &place, most).await?;
    snapshot
        .map(Json)
        .ok_or_else(|| ApiError::not_found("attempt of this run", &place.attempt_id))
}

/// Parameters of `/snapshot`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotParameters {
    /// About how many blocks there are to be, at most 1,000. Of longer texts a beginning is given then.
    window: Option<u32>,
    /// The attempt whose blocks before `before` are asked for.
    attempt: Option<AttemptId>,
    /// The index after the last block that is asked for.
    before: Option<u32>,
    /// The op after which the run is shown as it was then; of longer texts a beginning where there is a `window`.
    at: Option<u64>,
}

/// The most blocks that are asked for at once.
const MAX_WINDOW: u32 = 1_000;

/// The snapshot of a run, or a window of it, with what its live streams are doing.
pub(super) async fn load_snapshot(
    state: &AppState,
    run_id: &RunId,
    window: Option<u32>,
) -> Result<Snapshot, ApiError> {
    let store = state.execution.store();
    let snapshot = match window {
        Some(most) => store.load_window(run_id, most.min(MAX_WINDOW)).await?,
        None => store.load_snapshot(run_id).await?,
    };
    let mut snapshot = snapshot.ok_or_else(|| ApiError::not_found("run", run_id))?;
    snapshot.streams = state.execution.hub().streams(run_id);
    Ok(snapshot)
}

/// The snapshot of a run as it was after an op; of longer texts a beginning, where it is one for a page.
pub(super) async fn load_moment(
    state: &AppState,
    run_id: &RunId,
    seq: u64,
    is_window: bool,
) -> Result<Snapshot, ApiError> {
    let moment = state.execution.store().state_at(run_id, seq).await?;
    let mut snapshot = moment
        .ok_or_else(|| ApiError::not_found("run", run_id))?
        .to_snapshot();
    if is_window {
        snapshot.shorten(PREVIEW_BYTES);
    }
    Ok(snapshot)
}

/// `GET /api/runs/{run}/marks`
pub(super) async fn marks(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<Json<RunMarks>, ApiError> {
    Ok(Json(load_marks(&state, &run_id).await?))
}

/// What stands out in a run.
pub(super) async fn load_marks(state: &AppState, run_id: &RunId) -> Result<RunMarks, ApiError> {
    let store = state.execution.store();
    let last = store.last_seq(run_id).await?;
    Ok(RunMarks {
        run_id: run_id.clone(),
        last: last.ok_or_else(|| ApiError::not_found("run", run_id))?,
        marks: store.marks_of(run_id).await?,
    })
}

/// The blocks before a place; none when the run has no such attempt.
pub(super) async fn load_earlier(
    state: &AppState,
    run_id: &RunId,
    place: &Earlier,
    most: u32,
) -> Result<Option<Snapshot>, ApiError> {
    let (store, most) = (state.execution.store(), most.min(MAX_WINDOW));
    let earlier = store.load_earlier(run_id, &place.attempt_id, place.before, most);
    Ok(earlier.await?)
}

/// `GET /api/runs/{run}/digest`
pub(super) async fn digest(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<Json<RunDigest>, ApiError> {
    let digest = state.execution.store().run_digest(&run_id).await?;
    digest.map(Json).ok_or_else(|| ApiError::not_found("run", run_id))
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
        CancelOutcome::NotFound => Err(ApiError::not_found("run", run_id)),
        CancelOutcome::ProvidersCall => Err(ApiError::ProvidersCall),
    }
}

/// `POST /api/nodes/{node}/cancel`
pub(super) async fn cancel_node(
    State(state): State<AppState>,
    Id(node_id): Id<NodeId>,
) -> Result<StatusCode, ApiError> {
    stop_node(&state, &node_id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Stops one node of a run.
pub(super) async fn stop_node(state: &AppState, node_id: &NodeId) -> Result<(), ApiError> {
    match state.execution.cancel_node(node_id).await? {
        CancelOutcome::Accepted | CancelOutcome::AlreadyOver => Ok(()),
        CancelOutcome::NotFound => Err(ApiError::not_found("node", node_id)),
        CancelOutcome::ProvidersCall => Err(ApiError::ProvidersCall),
    }
}

/// `POST /api/nodes/{node}/approval`
pub(super) async fn approval(
    State(state): State<AppState>,
    Id(node_id): Id<NodeId>,
    ApiJson(wish): ApiJson<AnswerApproval>,
) -> Result<StatusCode, ApiError> {
    answer(&state, &node_id, wish).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Answers a call that waits for that.
pub(super) async fn answer(state: &AppState, node_id: &NodeId, wish: AnswerApproval) -> Result<(), ApiError> {
    let length = wish.words.as_deref().map_or(0, |words| words.chars().count());
    if length > MAX_WORDS {
        return Err(ApiError::Invalid(format!(
            "The words have {length} characters; at most {MAX_WORDS} are taken."
        )));
    }
    match state.execution.answer(node_id, wish).await? {
        AnswerOutcome::Accepted | AnswerOutcome::AlreadyAnswered => Ok(()),
        AnswerOutcome::NotAsked => Err(ApiError::NotAsked),
        AnswerOutcome::NotFound => Err(ApiError::not_found("node", node_id)),
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
