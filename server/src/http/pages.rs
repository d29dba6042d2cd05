//! The page, rendered on the server: with a nonce for its scripts and a policy that allows nothing else.

use std::sync::Arc;

use app::data::port::{Data, PageStatus};
use app::{App, shell};
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use leptos::prelude::{expect_context, provide_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list};

use super::AppState;
use super::port::ServerData;

/// The routes of the page, and what answers an address that is none of them.
pub(super) fn routes(state: &AppState) -> Router<AppState> {
    let context = {
        let data = Data(Arc::new(ServerData(state.clone())));
        move || provide(&data)
    };
    let options = state.leptos.clone();
    let fallback_options = options.clone();
    let fallback_context = context.clone();
    Router::new()
        .leptos_routes_with_context(state, generate_route_list(App), context, move || {
            shell(options.clone())
        })
        .fallback(leptos_axum::render_app_async_with_context(
            fallback_context,
            move || shell(fallback_options.clone()),
        ))
}

/// What the page finds in its context.
fn provide(data: &Data) {
    provide_context(data.clone());
    let response = expect_context::<ResponseOptions>();
    let nonce = leptos::nonce::use_nonce()
        .map(|nonce| nonce.to_string())
        .unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    provide_context(PageStatus(Arc::new(move |status| {
        response.set_status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    })));
}
