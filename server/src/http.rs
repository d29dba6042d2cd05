//! HTTP and WebSocket: the page, the API, and who may use them.
//!
//! Handlers are thin: they read a request, ask `run` or `store`, and answer. Every failure is a problem document with
//! a stable code; internals are logged, never sent.

pub mod access;
mod api;
pub mod assets;
pub mod error;
mod exchange;
mod extract;
mod forms;
mod health;
mod highlight;
mod nodes;
mod openapi;
mod pages;
mod port;
mod range;
mod runs;
mod search;
mod sessions;
pub mod stream;
mod transcripts;

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::{DefaultBodyLimit, FromRef, Request};
use axum::http::{HeaderName, HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};
use leptos::config::LeptosOptions;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

use self::access::Access;
use self::stream::Heartbeat;
use crate::run::Execution;
use crate::simulator::Simulator;

/// The most bytes of a request's body: a prompt of 1 MiB, each byte of it escaped, and the fields around it.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// A body of which nothing comes for this long is given up.
const BODY_SILENCE: Duration = Duration::from_secs(30);

/// What the handlers share.
#[derive(Clone)]
pub struct AppState {
    /// Executes runs; holds the record and the hub.
    pub execution: Arc<Execution>,
    /// The demo provider inside, when no provider is configured.
    pub simulator: Option<Arc<Simulator>>,
    /// Who may use this server.
    pub access: Arc<Access>,
    /// Settings of the page's rendering.
    pub leptos: LeptosOptions,
    /// The name of the folder that tools see.
    pub workspace_name: Arc<str>,
    /// When viewers are asked whether they are still there.
    pub heartbeat: Heartbeat,
}

impl FromRef<AppState> for LeptosOptions {
    fn from_ref(state: &AppState) -> Self {
        state.leptos.clone()
    }
}

/// The whole server.
pub fn router(state: AppState) -> Router {
    let mut routes = Router::new()
        .merge(api::router())
        .merge(forms::routes())
        .merge(pages::routes(&state))
        .route("/pkg/{*path}", get(assets::serve));
    if let Some(simulator) = &state.simulator {
        // Gates and counters of the demo provider inside, for those who watch how it behaves.
        routes = routes.merge(simulator.control_router().with_state(()));
    }
    routes
        .layer(middleware::from_fn_with_state(state.clone(), access::guard))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(RequestBodyTimeoutLayer::new(BODY_SILENCE))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::REFERRER_POLICY,
            HeaderValue::from_static("same-origin"),
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        ))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(middleware::from_fn(end_after_refusal))
        .with_state(state)
}

/// The longest body that is read to its end although its request is refused.
const READ_ANYWAY: u64 = 64 * 1024;

/// A long body that is refused is not read, so its connection ends: whoever asked is told, and does not send the next
/// request into it.
async fn end_after_refusal(request: Request, next: Next) -> Response {
    let is_http_1 = request.version() < Version::HTTP_2;
    let is_long = !request.body().is_end_stream()
        && request
            .body()
            .size_hint()
            .upper()
            .is_none_or(|bytes| bytes > READ_ANYWAY);
    let mut response = next.run(request).await;
    if is_http_1 && is_long && response.status().is_client_error() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
