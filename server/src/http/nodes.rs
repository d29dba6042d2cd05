//! One thing whole: a node, a channel of it, a block's content; any part of a content by `Range`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use protocol::api::NodeRecord;
use protocol::id::{BlockId, NodeId};
use protocol::state::Channel;
use schemars::JsonSchema;
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::{Id, Query};
use super::range::kept_range;

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
    let kept = state.execution.store().content_of_output(&id, channel).await?;
    kept_range(kept.ok_or_else(|| ApiError::not_found("node", &id))?, &headers)
}

/// `GET /api/blocks/{block}/content`
pub(super) async fn content(
    State(state): State<AppState>,
    Id(id): Id<BlockId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let kept = state.execution.store().content_of_block(&id).await?;
    kept_range(kept.ok_or_else(|| ApiError::not_found("block", &id))?, &headers)
}
