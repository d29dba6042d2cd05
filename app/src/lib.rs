//! The page of Runloom: rendered on the server, hydrated in the browser, then kept up to date over one WebSocket.
//!
//! Features `ssr` (for the server) and `hydrate` (for the browser) exclude each other. The server puts [`data::port::Data`]
//! into context and serves [`shell`]; the browser starts [`App`].

// The types of whole pages nest deeply; their layouts are computed by queries as deep.
#![recursion_limit = "256"]

#[cfg(feature = "ssr")]
pub mod alone;
pub mod content;
pub mod data;
pub mod details;
pub mod find;
#[cfg(any(test, debug_assertions))]
pub mod fixtures;
#[cfg(feature = "hydrate")]
mod highlight;
pub mod markdown;
pub mod routes;
pub mod shell;
pub mod tree;
pub mod ui;

use leptos::prelude::*;
use leptos_meta::{MetaTags, Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::{SsrMode, path};

use data::clock::PageClock;
use data::expansion::Expansion;
use data::live::Live;
use routes::not_found::NotFound;
use routes::session::SessionRoute;
use routes::sessions::SessionsRoute;
use shell::focus::Arrival;
use shell::keys::Overlay;
use ui::{IconSprite, THEME_SCRIPT};

/// The whole document, as the server sends it.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let nonce = leptos::nonce::use_nonce().map(|nonce| nonce.to_string());
    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" href="data:,"/>
                // A page that comes in pieces is painted when all of it is there: nothing moves while it is read.
                <link rel="expect" href="#icons" blocking="render"/>
                <link rel="stylesheet" href="/pkg/runloom.css"/>
                <script nonce=nonce inner_html=THEME_SCRIPT></script>
                <HydrationScripts options/>
                <MetaTags/>
            </head>
            <body>
                <App/>
                // Behind the application: the browser does not need it in its view tree.
                <IconSprite/>
                <noscript>
                    <p class="noscript">
                        "Scripts are off: rows open by their link “Open in details”, and this page does not update. Load it again to see what came since."
                    </p>
                </noscript>
            </body>
        </html>
    }
}

/// The application: its contexts and its routes.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let clock = PageClock::starting_at(0);
    let expansion = Expansion::default();
    #[cfg(feature = "hydrate")]
    {
        clock.start();
        expansion.start();
        ui::stepped::start();
    }
    provide_context(clock);
    provide_context(expansion);
    let live = Live::new(clock);
    #[cfg(feature = "hydrate")]
    highlight::start(live);
    provide_context(live);
    provide_context(Arrival::new());
    provide_context(Overlay::new());
    view! {
        <Title text="Runloom"/>
        <Router>
            <a class="skip" href="#main" rel="external">"Skip to content"</a>
            <Pages/>
        </Router>
    }
}

/// The routes of what is shipped.
#[cfg(not(debug_assertions))]
#[component]
fn Pages() -> impl IntoView {
    view! {
        <Routes fallback=|| view! { <NotFound/> }>
            <Route path=path!("/") view=SessionsRoute ssr=SsrMode::Async/>
            <Route path=path!("/s/:session") view=SessionRoute ssr=SsrMode::Async/>
        </Routes>
    }
}

/// The same, and those of a development build.
#[cfg(debug_assertions)]
#[component]
fn Pages() -> impl IntoView {
    use fixtures::page::{FixtureIndex, FixtureRoute};
    view! {
        <Routes fallback=|| view! { <NotFound/> }>
            <Route path=path!("/") view=SessionsRoute ssr=SsrMode::Async/>
            <Route path=path!("/s/:session") view=SessionRoute ssr=SsrMode::Async/>
            <Route path=path!("/fixtures") view=FixtureIndex ssr=SsrMode::Async/>
            <Route path=path!("/fixtures/:name") view=FixtureRoute ssr=SsrMode::Async/>
        </Routes>
    }
}
