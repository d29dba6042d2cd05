//! Searching a session, and the way to what was found.

use std::time::Duration;

use app::data::port::Earlier;
use axum::Json;
use axum::extract::State;
use protocol::id::{BlockId, NodeId, SessionId};
use protocol::search::{self, MAX_HITS, SearchAnswer, WayTo};
use schemars::JsonSchema;
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::{Id, Query};
use super::runs;
use crate::store::search::{SearchError, SearchWish};

/// Hits of an answer, where nothing is said about them.
const HITS: u32 = 100;

/// A search that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(15);

/// So many blocks before one come with it.
pub(super) const BESIDE: u32 = 20;

/// Parameters of `/search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParameters {
    /// What is searched for: at most 200 characters.
    q: String,
    /// The `next` of the answer before.
    after: Option<String>,
    /// The most hits of the answer, at most 500.
    limit: Option<u32>,
}

/// `GET /api/sessions/{session}/search`
pub(super) async fn search(
    State(state): State<AppState>,
    Id(session): Id<SessionId>,
    Query(parameters): Query<SearchParameters>,
) -> Result<Json<SearchAnswer>, ApiError> {
    let SearchParameters { q, after, limit } = parameters;
    let limit = limit.unwrap_or(HITS);
    if limit == 0 {
        return Err(ApiError::Invalid(
            "`limit` is 0: there is nothing to find.".to_owned(),
        ));
    }
    find(&state, &session, &q, after.as_deref(), limit)
        .await
        .map(Json)
}

/// What is found in a session.
pub(super) async fn find(
    state: &AppState,
    session: &SessionId,
    query: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<SearchAnswer, ApiError> {
    let query = search::query(query).map_err(ApiError::Invalid)?;
    let wish = SearchWish {
        query,
        after,
        most: usize::try_from(limit.min(MAX_HITS)).unwrap_or(usize::MAX),
    };
    let answer = tokio::time::timeout(LONGEST, state.execution.store().search(session, &wish));
    match answer.await.unwrap_or(Err(SearchError::TooLong)) {
        Ok(answer) => Ok(answer),
        Err(SearchError::NoSession) => Err(ApiError::not_found("session", session)),
        Err(SearchError::TooLong) => Err(ApiError::SlowSearch),
        Err(error @ SearchError::NoPlace(_)) => Err(ApiError::Invalid(format!("{error}."))),
        Err(SearchError::Words(problem)) => Err(ApiError::Invalid(format!(
            "This cannot be searched for: {problem}."
        ))),
        Err(SearchError::Store(error)) => Err(error.into()),
    }
}

/// Parameters of `/way`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WayParameters {
    /// The block or the node.
    to: String,
}

/// `GET /api/sessions/{session}/way`
pub(super) async fn way(
    State(state): State<AppState>,
    Id(session): Id<SessionId>,
    Query(WayParameters { to }): Query<WayParameters>,
) -> Result<Json<WayTo>, ApiError> {
    let missing = || ApiError::not_found("block or node in this session:", &to);
    if to.parse::<BlockId>().is_err() && to.parse::<NodeId>().is_err() {
        return Err(ApiError::Invalid(
            "`to` is the id of neither a block nor a node.".to_owned(),
        ));
    }
    let store = state.execution.store();
    let run_id = store.run_of_thing(&session, &to).await?.ok_or_else(missing)?;
    let mut windows = Vec::new();
    for (attempt_id, index) in store.way_to(&to).await? {
        let before = index.saturating_add(1);
        let place = Earlier { attempt_id, before };
        windows.extend(runs::load_earlier(&state, &run_id, &place, BESIDE).await?);
    }
    Ok(Json(WayTo { run_id, windows }))
}
