//! Transcripts: what providers sent, with opaque values replaced by their length. Those of a run that executes are files
//! beside its owner; those of one that is over are in the database.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use protocol::api::TranscriptSummary;
use protocol::id::RunId;
use protocol::state::RunStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::{Id, Query};
use super::range::ranged;
use crate::stream::{TranscriptError, TranscriptReader, redact_line};

/// How often a transcript that is followed is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// `GET /api/runs/{run}/transcripts`
pub(super) async fn list(
    State(state): State<AppState>,
    Id(run_id): Id<RunId>,
) -> Result<Json<Vec<TranscriptSummary>>, ApiError> {
    let store = state.execution.store();
    if store.run_status(&run_id).await?.is_none() {
        return Err(ApiError::not_found("run", run_id));
    }
    let stored = store.transcripts(&run_id).await?;
    let mut sizes: BTreeMap<String, u64> = stored
        .into_iter()
        .map(|stored| (stored.stream, stored.bytes))
        .collect();
    // A file is newer than what is stored under its name.
    let files = &state.execution.services().transcripts;
    for file in files.list(run_id.as_str()).await? {
        sizes.insert(file.stream, file.bytes);
    }
    let summaries = sizes.into_iter().map(|(stream, bytes)| TranscriptSummary {
        path: format!("{stream}.ndjson"),
        bytes,
    });
    Ok(Json(summaries.collect()))
}

/// Parameters of one transcript.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReadParameters {
    /// Whether the answer goes on while the transcript grows, until its run is over. Without a range.
    follow: Option<String>,
    /// Whether a browser is to save it as a file.
    download: Option<String>,
}

/// `GET /api/runs/{run}/transcripts/{path}`
pub(super) async fn read(
    State(state): State<AppState>,
    address: Result<Path<(String, String)>, PathRejection>,
    Query(ReadParameters { follow, download }): Query<ReadParameters>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Path((run, path)) =
        address.map_err(|error| ApiError::Invalid(format!("The address cannot be read: {error}.")))?;
    let run_id: RunId = run
        .parse()
        .map_err(|error| ApiError::Invalid(format!("{error}.")))?;
    let missing = || ApiError::not_found("transcript", format!("{run_id}/{path}"));
    let store = state.execution.store();
    let status = store.run_status(&run_id).await?.ok_or_else(missing)?;
    let stream = path.strip_suffix(".ndjson").ok_or_else(missing)?;
    let files = &state.execution.services().transcripts;
    let answer = match files.read(run_id.as_str(), stream).await {
        Ok(reader) if wants(follow.as_deref()) => followed(state.clone(), run_id, reader),
        Ok(reader) => ranged(lines_of(reader).await?.as_bytes(), &headers)?,
        Err(TranscriptError::NotFound(_)) => match store.transcript(&run_id, stream).await? {
            Some(text) => ranged(redacted(&text).as_bytes(), &headers)?,
            None if !status.is_final() && !state.execution.owns(&run_id) => {
                return Err(ApiError::TranscriptElsewhere);
            }
            None => return Err(missing()),
        },
        Err(error) => return Err(error.into()),
    };
    Ok(if wants(download.as_deref()) {
        saved(answer, stream)
    } else {
        answer
    })
}

/// A parameter that is there, with or without a value, and does not say no.
fn wants(parameter: Option<&str>) -> bool {
    parameter.is_some_and(|value| !matches!(value, "false" | "0" | "no"))
}

async fn lines_of(mut reader: TranscriptReader) -> Result<String, ApiError> {
    let mut lines = String::new();
    while let Some(line) = reader.next_line().await? {
        lines.push_str(&line);
        lines.push('\n');
    }
    Ok(lines)
}

fn redacted(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .lines()
        .flat_map(|line| [redact_line(line), "\n".to_owned()])
        .collect()
}

/// The lines that are there and those that come, until the run is over.
fn followed(state: AppState, run_id: RunId, reader: TranscriptReader) -> Response {
    // The file is held open: it is read to its end even when it is moved meanwhile.
    let lines = futures::stream::try_unfold((reader, false), move |(mut reader, mut is_over)| {
        let (state, run_id) = (state.clone(), run_id.clone());
        async move {
            loop {
                if let Some(line) = reader.next_line().await.map_err(std::io::Error::other)? {
                    return Ok(Some((format!("{line}\n"), (reader, is_over))));
                }
                if is_over {
                    return Ok::<_, std::io::Error>(None);
                }
                tokio::time::sleep(LOOK).await;
                let status = state.execution.store().run_status(&run_id).await;
                // What was written before the end is read once more.
                is_over = status
                    .map_err(std::io::Error::other)?
                    .is_none_or(RunStatus::is_final);
            }
        }
    });
    let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(header::CONTENT_TYPE, media_type)], Body::from_stream(lines)).into_response()
}

/// The same to be saved as a file.
fn saved(mut answer: Response, stream: &str) -> Response {
    let name = stream.replace('/', "-");
    // The parts of a path are letters, digits and a few signs that need no quoting.
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.ndjson\"")) {
        answer
            .headers_mut()
            .insert(header::CONTENT_DISPOSITION, disposition);
    }
    answer
}
