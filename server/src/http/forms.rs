//! Forms of the page, for when it has no script: they answer with the page to go to.

use axum::Router;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use protocol::api::{AnswerApproval, CreateRun, CreateSession};
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
        .route("/nodes/{node}/cancel", post(cancel_node))
        .route("/nodes/{node}/approval", post(approval))
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
            tool_mode: None,
        }
    }
}

/// A form that was not taken: a page that says why.
struct Refused {
    error: ApiError,
    form: Kind,
}

/// What kind of form it was.
#[derive(Clone, Copy)]
enum Kind {
    /// The browser's way back keeps what was typed.
    Composer,
    /// A button.
    Command,
}

impl Kind {
    /// The title, and the way out.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Composer => ("Not sent", "Go back to change it: what you typed is still there."),
            Self::Command => ("Not done", "Nothing was changed. Go back to see how it stands."),
        }
    }

    fn refused(self, error: impl Into<ApiError>) -> Refused {
        Refused {
            error: error.into(),
            form: self,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let problem = self.error.problem();
        let (title, way_out) = self.form.words();
        let mut response = self.error.into_response();
        let detail = problem.detail.replace('&', "&amp;").replace('<', "&lt;");
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title} · Runloom</title>\
             <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/pkg/runloom.css\"></head>\
             <body><main class=\"page\"><h1 class=\"page__h\">{title}</h1><p role=\"alert\">{detail}</p>\
             <p>{way_out} Or go to <a href=\"/\">the sessions</a>.</p>\
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
    let error = match form {
        Ok(Form(fields)) => return Ok(fields),
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLong,
        Err(rejection) => ApiError::Invalid(format!("The form does not fit: {rejection}.")),
    };
    Err(Kind::Composer.refused(error))
}

/// To the page of a session, or to one that says why not.
fn answer(form: Kind, session: Result<SessionId, ApiError>) -> Result<Redirect, Refused> {
    let session = session.map_err(|error| form.refused(error))?;
    Ok(Redirect::to(&format!("/s/{session}")))
}

async fn start(State(state): State<AppState>, form: Sent<Composer>) -> Result<Redirect, Refused> {
    let wish = CreateRun::from(read(form)?);
    let started = async {
        // A session is made only for a run that will be taken.
        state.execution.check(&wish)?;
        let session_id = super::sessions::create_session(&state, &CreateSession::default()).await?;
        state.execution.submit(&session_id, &wish, None).await?;
        Ok(session_id)
    };
    answer(Kind::Composer, started.await)
}

async fn send(
    State(state): State<AppState>,
    Id(session_id): Id<SessionId>,
    form: Sent<Composer>,
) -> Result<Redirect, Refused> {
    let wish = CreateRun::from(read(form)?);
    let sent = state.execution.submit(&session_id, &wish, None).await;
    answer(Kind::Composer, sent.map(|_| session_id).map_err(ApiError::from))
}

async fn cancel(State(state): State<AppState>, Id(run_id): Id<RunId>) -> Result<Redirect, Refused> {
    let cancelled = async {
        state.execution.cancel(&run_id).await?;
        session_of(&state, &run_id).await
    };
    answer(Kind::Command, cancelled.await)
}

async fn resume(State(state): State<AppState>, Id(run_id): Id<RunId>) -> Result<Redirect, Refused> {
    let resumed = async {
        state.execution.resume(&run_id).await?;
        session_of(&state, &run_id).await
    };
    answer(Kind::Command, resumed.await)
}

async fn regenerate(State(state): State<AppState>, Id(node_id): Id<NodeId>) -> Result<Redirect, Refused> {
    let regenerated = async {
        state.execution.regenerate(&node_id).await?;
        session_of_node(&state, &node_id).await
    };
    answer(Kind::Command, regenerated.await)
}

async fn cancel_node(State(state): State<AppState>, Id(node_id): Id<NodeId>) -> Result<Redirect, Refused> {
    let cancelled = async {
        super::runs::stop_node(&state, &node_id).await?;
        session_of_node(&state, &node_id).await
    };
    answer(Kind::Command, cancelled.await)
}

async fn approval(
    State(state): State<AppState>,
    Id(node_id): Id<NodeId>,
    form: Sent<AnswerApproval>,
) -> Result<Redirect, Refused> {
    let wish = read(form)?;
    let answered = async {
        super::runs::answer(&state, &node_id, wish).await?;
        session_of_node(&state, &node_id).await
    };
    answer(Kind::Composer, answered.await)
}

async fn session_of_node(state: &AppState, node_id: &NodeId) -> Result<SessionId, ApiError> {
    let run = state.execution.store().run_of_node(node_id).await?;
    let run_id = run.ok_or_else(|| ApiError::not_found("node", node_id))?;
    session_of(state, &run_id).await
}

async fn session_of(state: &AppState, run_id: &RunId) -> Result<SessionId, ApiError> {
    let session = state.execution.store().session_of(run_id).await?;
    session.ok_or_else(|| ApiError::not_found("run", run_id))
}
