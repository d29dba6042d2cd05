//! One thing whole: a node, a channel of it, a block's content; any part of a content by `Range`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use protocol::api::NodeRecord;
use protocol::id::{BlockId, NodeId};
use protocol::state::Channel;
use schemars::JsonSchema;
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::{Id, Query};

/// `GET /api/nodes/{node}`: the node, with its attempts and blocks.
pub(super) async fn read(
    State(state): State<AppState>,
    Id(id): Id<NodeId>,
) -> Result<Json<NodeRecord>, ApiError> {
    let missing = || ApiError::not_found("node", &id);
    let run_id = state
        .execution
        .store()
        .run_of_node(&id)
        .await?
        .ok_or_else(missing)?;
    let run = state
        .execution
        .store()
        .load_run(&run_id)
        .await?
        .ok_or_else(missing)?;
    let node = run.node(&id).ok_or_else(missing)?;
    let attempts = run.attempts_of(&id);
    let blocks = attempts.flat_map(|attempt| run.blocks_of(&attempt.attempt_id));
    Ok(Json(NodeRecord {
        run_id,
        seq: run.seq(),
        node: node.clone(),
        attempts: run.attempts_of(&id).cloned().collect(),
        blocks: blocks.cloned().collect(),
    }))
}

/// Parameters of `/output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputParameters {
    channel: Channel,
}

/// `GET /api/nodes/{node}/output?channel=`
pub(super) async fn output(
    State(state): State<AppState>,
    Id(id): Id<NodeId>,
    Query(OutputParameters { channel }): Query<OutputParameters>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let missing = || ApiError::not_found("node", &id);
    let run_id = state
        .execution
        .store()
        .run_of_node(&id)
        .await?
        .ok_or_else(missing)?;
    let run = state
        .execution
        .store()
        .load_run(&run_id)
        .await?
        .ok_or_else(missing)?;
    let node = run.node(&id).ok_or_else(missing)?;
    let text = node
        .outputs
        .get(&channel)
        .map(|output| output.text.as_str())
        .unwrap_or_default();
    ranged(text.as_bytes(), &headers)
}

/// `GET /api/blocks/{block}/content`
pub(super) async fn content(
    State(state): State<AppState>,
    Id(id): Id<BlockId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let missing = || ApiError::not_found("block", &id);
    let run_id = state
        .execution
        .store()
        .run_of_block(&id)
        .await?
        .ok_or_else(missing)?;
    let run = state
        .execution
        .store()
        .load_run(&run_id)
        .await?
        .ok_or_else(missing)?;
    let block = run.block(&id).ok_or_else(missing)?;
    let text = block
        .body
        .content()
        .map(|content| content.text.as_str())
        .unwrap_or_default();
    ranged(text.as_bytes(), &headers)
}

/// A content, or the part of it that `Range` asks for (one range of bytes).
pub(super) fn ranged(bytes: &[u8], headers: &HeaderMap) -> Result<Response, ApiError> {
    let length = bytes.len() as u64;
    let asked = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| parse(value, length));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let accept = HeaderValue::from_static("bytes");
    let kept = HeaderValue::from_static("no-store");
    let common = [
        (header::CONTENT_TYPE, plain),
        (header::ACCEPT_RANGES, accept),
        (header::CACHE_CONTROL, kept),
    ];
    match asked {
        None => Ok((common, Body::from(bytes.to_vec())).into_response()),
        Some(None) => Err(ApiError::Range { bytes: length }),
        Some(Some((first, last))) => {
            // Both lie within the content, so they fit a usize.
            let part = bytes
                .get(first as usize..=last as usize)
                .unwrap_or_default()
                .to_vec();
            let range = format!("bytes {first}-{last}/{length}");
            Ok((
                StatusCode::PARTIAL_CONTENT,
                common,
                [(header::CONTENT_RANGE, range)],
                Body::from(part),
            )
                .into_response())
        }
    }
}

/// Reads a header `Range` (RFC 9110 §14). None: it is not one range of bytes, so it is ignored. `Some(None)`: it lies
/// outside of the content.
fn parse(value: &str, length: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = value.strip_prefix("bytes=")?.trim().split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", "") => return None,
        ("", suffix) => {
            let suffix: u64 = suffix.parse().ok()?;
            (suffix > 0 && length > 0).then(|| (length.saturating_sub(suffix), length - 1))
        }
        (first, "") => {
            let first: u64 = first.parse().ok()?;
            (first < length).then(|| (first, length - 1))
        }
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if first > last {
                return None;
            }
            (first < length).then(|| (first, last.min(length - 1)))
        }
    };
    Some(range)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_range_is_read_as_rfc_9110_says() {
        assert_eq!(parse("bytes=0-3", 10), Some(Some((0, 3))));
        assert_eq!(parse("bytes=4-", 10), Some(Some((4, 9))));
        assert_eq!(parse("bytes=-3", 10), Some(Some((7, 9))));
        assert_eq!(parse("bytes=-30", 10), Some(Some((0, 9))));
        assert_eq!(parse("bytes=5-99", 10), Some(Some((5, 9))));
        assert_eq!(parse("bytes=10-", 10), Some(None));
        assert_eq!(parse("bytes=-0", 10), Some(None));
        assert_eq!(parse("bytes=0-0", 0), Some(None));
        for ignored in [
            "bytes=3-1",
            "bytes=a-b",
            "lines=0-1",
            "bytes=0-1,3-4",
            "bytes=-",
            "",
        ] {
            assert_eq!(parse(ignored, 10), None, "{ignored}");
        }
    }
}
