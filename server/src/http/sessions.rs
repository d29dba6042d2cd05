//! Sessions: creating, listing, reading.

use app::data::port::{ModelChoice, RunFilter, Sample, SessionQuery, Setup};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use protocol::api::{CreateSession, SessionCreated, SessionList, SessionSummary};
use protocol::id::SessionId;
use protocol::state::RunStatus;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::AppState;
use super::error::ApiError;
use super::extract::{ApiJson, Id, Query};
use crate::config::ModelClass;
use crate::store::sessions::SessionFilter;

/// The most characters of a title.
const MAX_TITLE: usize = 200;

/// `POST /api/sessions`
pub(super) async fn create(
    State(state): State<AppState>,
    ApiJson(wish): ApiJson<CreateSession>,
) -> Result<(StatusCode, Json<SessionCreated>), ApiError> {
    let session_id = create_session(&state, &wish).await?;
    Ok((StatusCode::CREATED, Json(SessionCreated { session_id })))
}

/// Creates a session, for the call and for the form.
pub(super) async fn create_session(state: &AppState, wish: &CreateSession) -> Result<SessionId, ApiError> {
    let title = wish
        .title
        .as_deref()
        .unwrap_or_default()
        .trim()
        .replace('\0', "\u{2400}");
    if title.chars().count() > MAX_TITLE {
        return Err(ApiError::Invalid(format!(
            "The title has more than {MAX_TITLE} characters."
        )));
    }
    let session_id = SessionId::from_uuid(Uuid::now_v7());
    let services = state.execution.services();
    services
        .store
        .create_session(
            &session_id,
            &title,
            wish.kind,
            &wish.settings,
            services.clock.now_ms(),
        )
        .await?;
    state.execution.hub().session_changed(session_id.clone());
    Ok(session_id)
}

/// Parameters of the list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParameters {
    query: Option<String>,
    status: Option<RunFilter>,
    before: Option<String>,
}

/// `GET /api/sessions`
pub(super) async fn list(
    State(state): State<AppState>,
    Query(parameters): Query<ListParameters>,
) -> Result<Json<SessionList>, ApiError> {
    let ListParameters {
        query,
        status,
        before,
    } = parameters;
    Ok(Json(
        list_sessions(
            &state,
            SessionQuery {
                search: query,
                status,
                before,
            },
        )
        .await?,
    ))
}

/// One page of the list, for the call and for the page.
pub(super) async fn list_sessions(state: &AppState, query: SessionQuery) -> Result<SessionList, ApiError> {
    let statuses = match query.status {
        None => Vec::new(),
        Some(RunFilter::Live) => vec![RunStatus::Queued, RunStatus::Running, RunStatus::Waiting],
        Some(RunFilter::NeedsYou) => vec![RunStatus::Waiting],
        Some(RunFilter::Failed) => vec![RunStatus::Failed],
    };
    let search = query.search.filter(|words| !words.trim().is_empty());
    let filter = SessionFilter {
        search,
        statuses,
        before: query.before,
    };
    Ok(state.execution.store().sessions(&filter).await??)
}

/// `GET /api/sessions/{session}`
pub(super) async fn read(
    State(state): State<AppState>,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionSummary>, ApiError> {
    let session = state.execution.store().session(&id).await?;
    session
        .map(Json)
        .ok_or_else(|| ApiError::not_found("session", id))
}

/// `GET /api/setup`
pub(super) async fn setup(State(state): State<AppState>) -> Json<Setup> {
    Json(setup_of(&state))
}

/// What can be started on this server.
pub(super) fn setup_of(state: &AppState) -> Setup {
    let services = state.execution.services();
    let config = &services.config;
    let mut models: Vec<ModelChoice> = config
        .roles
        .chat
        .iter()
        .filter_map(|role| config.model(role))
        .map(|(provider, model)| choice(&provider.id, model))
        .collect();
    let others = config
        .providers
        .iter()
        .flat_map(|provider| provider.models.iter().map(|model| choice(&provider.id, model)));
    for other in others {
        if !models.contains(&other) {
            models.push(other);
        }
    }
    let samples = state
        .simulator
        .iter()
        .flat_map(|simulator| simulator.scenarios())
        .filter_map(|scenario| {
            Some(Sample {
                title: scenario.title,
                description: scenario.sample?,
                prompt: scenario.prompt,
            })
        });
    Setup {
        demo: state.simulator.is_some(),
        samples: samples.collect(),
        models,
        workspace_name: state.workspace_name.to_string(),
        server_now: services.clock.now_ms(),
    }
}

fn choice(provider: &str, model: &crate::config::ModelConfig) -> ModelChoice {
    let class = match model.class {
        ModelClass::Thinking => "thinking",
        ModelClass::Action => "action",
    };
    ModelChoice {
        provider: provider.to_owned(),
        model: model.id.clone(),
        class: class.to_owned(),
    }
}
