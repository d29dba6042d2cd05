//! Transcripts: what providers sent, with opaque values replaced by their length.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use protocol::api::TranscriptSummary;
use protocol::id::RunId;

use super::AppState;
use super::error::ApiError;
use super::extract::Id;
use super::range::ranged;

/// `GET /api/runs/{run}/transcripts`
pub(super) async fn list(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<Json<Vec<TranscriptSummary>>, ApiError> {
    if state.execution.store().run_status(&run_id).await?.is_none() {
        return Err(ApiError::not_found("run", run_id));
    }
    let files = state
        .execution
        .services()
        .transcripts
        .list(run_id.as_str())
        .await?;
    let summaries = files.into_iter().map(|file| TranscriptSummary {
        path: format!("{}.ndjson", file.stream),
        bytes: file.bytes,
    });
    Ok(Json(summaries.collect()))
}

/// `GET /api/runs/{run}/transcripts/{path}`
pub(super) async fn read(
    State(state): State<AppState>,
    address: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Path((run, path)) =
        address.map_err(|error| ApiError::Invalid(format!("The address cannot be read: {error}.")))?;
    let run_id: RunId = run
        .parse()
        .map_err(|error| ApiError::Invalid(format!("{error}.")))?;
    let missing = || ApiError::not_found("transcript", format!("{run_id}/{path}"));
    if state.execution.store().run_status(&run_id).await?.is_none() {
        return Err(missing());
    }
    let stream = path.strip_suffix(".ndjson").ok_or_else(missing)?;
    let mut reader = state
        .execution
        .services()
        .transcripts
        .read(run_id.as_str(), stream)
        .await?;
    let mut lines = String::new();
    while let Some(line) = reader.next_line().await? {
        lines.push_str(&line);
        lines.push('\n');
    }
    ranged(lines.as_bytes(), &headers)
}
