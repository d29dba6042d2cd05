//! For operators: whether the server lives, and whether it can work.

use axum::extract::State;
use axum::http::StatusCode;

use super::AppState;

/// `GET /healthz`: the process answers.
pub(super) async fn alive() -> &'static str {
    "alive\n"
}

/// `GET /readyz`: the database answers.
pub(super) async fn ready(State(state): State<AppState>) -> (StatusCode, &'static str) {
    match state.execution.store().ping().await {
        Ok(()) => (StatusCode::OK, "ready\n"),
        Err(error) => {
            tracing::warn!(%error, "the database does not answer");
            (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n")
        }
    }
}
