//! Forms of the page, for when it has no script: they answer with the page to go to.

use axum::Router;
use axum::extract::{Form, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use protocol::api::{CreateRun, CreateSession};
use protocol::id::{RunId, SessionId};
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::Id;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/sessions", post(start))
        .route("/s/{session}/runs", post(send))
        .route("/runs/{run}/cancel", post(cancel))
}

/// Fields of a composer.
#[derive(Debug, Deserialize)]
struct Composer {
    prompt: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    model: String,
}

impl From<Composer> for CreateRun {
    fn from(composer: Composer) -> Self {
        // A form sends line ends as CRLF.
        let prompt = composer.prompt.replace("\r\n", "\n");
        let given = |text: String| (!text.is_empty()).then_some(text);
        Self {
            prompt,
            provider: given(composer.provider),
            model: given(composer.model),
        }
    }
}

async fn start(State(state): State<AppState>, Form(composer): Form<Composer>) -> Result<Redirect, ApiError> {
    let wish = CreateRun::from(composer);
    if wish.prompt.trim().is_empty() {
        return Err(crate::run::SubmitError::EmptyPrompt.into());
    }
    let session_id = super::sessions::create_session(&state, &CreateSession::default()).await?;
    state.execution.submit(&session_id, &wish, None).await?;
    Ok(Redirect::to(&format!("/s/{session_id}")))
}

async fn send(
    State(state): State<AppState>,
    Id(session_id): Id<SessionId>,
    Form(composer): Form<Composer>,
) -> Result<Redirect, ApiError> {
    state
        .execution
        .submit(&session_id, &composer.into(), None)
        .await?;
    Ok(Redirect::to(&format!("/s/{session_id}")))
}

async fn cancel(State(state): State<AppState>, Id(run_id): Id<RunId>) -> Result<Response, ApiError> {
    state.execution.cancel(&run_id).await?;
    let session = state.execution.store().session_of(&run_id).await?;
    let session_id = session.ok_or_else(|| ApiError::not_found("run", &run_id))?;
    Ok(Redirect::to(&format!("/s/{session_id}")).into_response())
}
