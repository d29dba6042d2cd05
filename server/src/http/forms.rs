//! Forms of the page, for when it has no script: they answer with the page to go to.

use axum::Router;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use protocol::api::{CreateRun, CreateSession};
use protocol::id::{NodeId, RunId, SessionId};
use serde::Deserialize;

use super::AppState;
use super::error::ApiError;
use super::extract::Id;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/sessions", post(start))
        .route("/s/{session}/runs", post(send))
        .route("/runs/{run}/cancel", post(cancel))
        .route("/runs/{run}/resume", post(resume))
        .route("/nodes/{node}/regenerate", post(regenerate))
}

/// Fields of a composer.
#[derive(Debug, Deserialize)]
struct Composer {
    prompt: String,
    /// `provider/model`, or nothing.
    #[serde(default)]
    model: String,
}

impl From<Composer> for CreateRun {
    fn from(composer: Composer) -> Self {
        // A form sends line ends as CRLF.
        let prompt = composer.prompt.replace("\r\n", "\n");
        let (provider, model) = match composer.model.split_once('/') {
            Some((provider, model)) => (Some(provider.to_owned()), Some(model.to_owned())),
            None => (None, (!composer.model.is_empty()).then_some(composer.model)),
        };
        Self {
            prompt,
            provider,
            model,
            on_interruption: None,
        }
    }
}

/// A form that was not taken: a page that says why. The browser's way back keeps what was typed.
struct Refused(ApiError);

impl<E: Into<ApiError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let problem = self.0.problem();
        let mut response = self.0.into_response();
        let detail = problem.detail.replace('&', "&amp;").replace('<', "&lt;");
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Not sent · Runloom</title>\
             <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/pkg/runloom.css\"></head>\
             <body><main class=\"page\"><h1 class=\"page__h\">Not sent</h1><p role=\"alert\">{detail}</p>\
             <p>Go back to change it: what you typed is still there. Or go to <a href=\"/\">the sessions</a>.</p>\
             </main></body></html>"
        );
        *response.body_mut() = html.into();
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'self'; img-src data:; frame-ancestors 'none'",
            ),
        );
        response
    }
}

/// A form as it came.
type Sent<T> = Result<Form<T>, FormRejection>;

fn read<T>(form: Sent<T>) -> Result<T, Refused> {
    match form {
        Ok(Form(fields)) => Ok(fields),
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(ApiError::TooLong.into())
        }
        Err(rejection) => Err(ApiError::Invalid(format!("The form does not fit: {rejection}.")).into()),
    }
}

async fn start(State(state): State<AppState>, form: Sent<Composer>) -> Result<Redirect, Refused> {
    let wish = CreateRun::from(read(form)?);
    // A session is made only for a run that will be taken.
    state.execution.check(&wish)?;
    let session_id = super::sessions::create_session(&state, &CreateSession::default()).await?;
    state.execution.submit(&session_id, &wish, None).await?;
    Ok(Redirect::to(&format!("/s/{session_id}")))
}

async fn send(
    State(state): State<AppState>,
    Id(session_id): Id<SessionId>,
    form: Sent<Composer>,
) -> Result<Redirect, Refused> {
    state
        .execution
        .submit(&session_id, &read(form)?.into(), None)
        .await?;
    Ok(Redirect::to(&format!("/s/{session_id}")))
}

async fn cancel(State(state): State<AppState>, Id(run_id): Id<RunId>) -> Result<Response, Refused> {
    state.execution.cancel(&run_id).await?;
    to_session_of(&state, &run_id).await
}

async fn resume(State(state): State<AppState>, Id(run_id): Id<RunId>) -> Result<Response, Refused> {
    state.execution.resume(&run_id).await?;
    to_session_of(&state, &run_id).await
}

async fn regenerate(State(state): State<AppState>, Id(node_id): Id<NodeId>) -> Result<Response, Refused> {
    state.execution.regenerate(&node_id).await?;
    let run = state.execution.store().run_of_node(&node_id).await?;
    let run_id = run.ok_or_else(|| ApiError::not_found("node", &node_id))?;
    to_session_of(&state, &run_id).await
}

/// Back to the page of the session.
async fn to_session_of(state: &AppState, run_id: &RunId) -> Result<Response, Refused> {
    let session = state.execution.store().session_of(run_id).await?;
    let session_id = session.ok_or_else(|| ApiError::not_found("run", run_id))?;
    Ok(Redirect::to(&format!("/s/{session_id}")).into_response())
}
