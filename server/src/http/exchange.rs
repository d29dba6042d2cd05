//! Records out of this server, and into it: both piece by piece.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::TryStreamExt as _;
use protocol::api::ImportAnswer;
use protocol::id::RunId;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::BufReader;
use tokio_util::io::StreamReader;

use super::AppState;
use super::error::ApiError;
use super::extract::{Id, Query};
use crate::exchange::{ExportFormat, export as written, import as taking};

/// A run with more bytes of text is no page: all of one is in memory while it is drawn.
const LARGEST_PAGE: u64 = 32 * 1024 * 1024;

/// Parameters of `/export`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportParameters {
    #[serde(default)]
    format: ExportFormat,
}

/// `GET /api/runs/{run}/export?format=`
pub(super) async fn export(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
    Query(ExportParameters { format }): Query<ExportParameters>,
) -> Result<Response, ApiError> {
    let services = state.execution.services();
    if format == ExportFormat::Html && services.store.content_bytes(&run_id).await? > LARGEST_PAGE {
        return Err(ApiError::LargePage { most: LARGEST_PAGE });
    }
    let pieces = written(&services.store, &run_id, format, services.clock.now_ms()).await?;
    let pieces = pieces.ok_or_else(|| ApiError::not_found("run", &run_id))?;
    // The length is not known before: a reader sees by the last line that it has all.
    let body = Body::from_stream(pieces.inspect_err(|error| tracing::error!(%error, "an export broke off")));
    let name = format!("attachment; filename=\"{run_id}.{}\"", format.ending());
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(format.media_type()),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// `POST /api/import`
pub(super) async fn import(
    State(state): State<AppState>,
    body: Body,
) -> Result<Json<ImportAnswer>, ApiError> {
    let services = state.execution.services();
    let reader = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let now = services.clock.now_ms();
    let answer = taking::import(&services.store, BufReader::new(reader), now).await?;
    state.execution.hub().session_changed(answer.session_id.clone());
    Ok(Json(answer))
}
