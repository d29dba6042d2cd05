//! The page of the sessions: what can be started, and what there is, with its live state.

pub mod list;

use std::sync::Arc;

use leptos::either::Either;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use super::not_found::ProblemPage;
use crate::data::clock::PageClock;
use crate::data::live::Live;
use crate::data::load;
use crate::data::port::{RunFilter, SessionQuery, SessionsPage};
use crate::shell::composer::{Composer, Samples, Sending, Target};
use crate::shell::connection::StreamProblems;
use crate::shell::focus::Arrival;
use crate::shell::keys::{Keyboard, Page};
use crate::shell::topbar::PlainTopbar;
use crate::ui::dynamic::{dynamic, memo};
use crate::ui::{Icon, IconName};
use list::{ListStore, SessionRows};

/// `/`, with `q`, `status` and `before` in its address.
#[component]
pub fn SessionsRoute() -> impl IntoView {
    let address = use_query_map();
    let query = memo(move || {
        address.with(|address| SessionQuery {
            search: address
                .get("q")
                .map(|words| words.trim().to_owned())
                .filter(|words| !words.is_empty()),
            status: address
                .get("status")
                .and_then(|status| RunFilter::from_word(&status)),
            before: address.get("before").filter(|before| !before.is_empty()),
        })
    });
    let page = load::sessions(move || query.get());
    let live = Live::use_context();
    view! {
        <Title text="Sessions · Runloom"/>
        <Transition fallback=|| view! { <main class="page" id="main" tabindex="-1" aria-busy="true"></main> }>
            {move || Suspend::new(async move {
                match page.await {
                    Ok(page) => Either::Left(view! {
                        <div data-connection=dynamic(move || live.state().as_str())>
                            <PlainTopbar/>
                            <Sessions page query=query.get_untracked()/>
                        </div>
                    }),
                    Err(problem) => Either::Right(view! { <ProblemPage problem/> }),
                }
            })}
        </Transition>
    }
}

/// The page, once its data are there.
#[component]
pub fn Sessions(
    /// What was loaded.
    page: Arc<SessionsPage>,
    /// What was asked for.
    query: SessionQuery,
) -> impl IntoView {
    PageClock::use_context().begin(page.setup.server_now);
    Arrival::use_context().arrive("#main");
    let setup = Arc::new(page.setup.clone());
    let sending = Sending::new();
    let list = ListStore::new(&page.list, query.clone());
    Live::use_context().follow_sessions(page.setup.server_now, move |summary| list.update(summary));
    let placeholder = match setup.workspace_name.as_str() {
        "" => "Describe the task. Tools run on the server.".to_owned(),
        name => format!("Describe the task. Tools run on the server, in the workspace {name}."),
    };
    let samples = (setup.demo && !setup.samples.is_empty())
        .then(|| view! { <Samples setup=Arc::clone(&setup) sending/> });
    view! {
        <main class="page" id="main" tabindex="-1">
            <h1 class="page__h">"What should run next?"</h1>
            <Composer
                target=Target::NewSession
                setup=Arc::clone(&setup)
                placeholder=Signal::stored(placeholder)
                action_words=Signal::stored("Start".to_owned())
                rows="2"
                sending
            />
            <StreamProblems/>
            {setup.demo.then(|| view! { <DemoNote/> })}
            {samples}
            <ListBar query=query.clone()/>
            <SessionRows list demo=setup.demo query next=page.list.next.clone()/>
        </main>
        <Keyboard page=Page::Sessions/>
    }
}

/// Says that nothing real answers, and how to change that.
#[component]
fn DemoNote() -> impl IntoView {
    view! {
        <div class="demo">
            <span class="tag tag--warn"><Icon icon=IconName::Key small=true/>"demo provider"</span>
            <span>"The built-in simulator answers. For a real model, restart with a key:"</span>
            <code class="mono">"ANTHROPIC_API_KEY=… runloom serve"</code>
            <span class="muted">"or OPENAI_API_KEY"</span>
        </div>
    }
}

/// Search and filter: one form whose answer is an address.
#[component]
fn ListBar(query: SessionQuery) -> impl IntoView {
    let filters: Vec<_> = std::iter::once(None)
        .chain(RunFilter::ALL.map(Some))
        .map(|filter| {
            let value = filter.map_or("", RunFilter::as_str);
            let label = filter.map_or("All", RunFilter::label);
            view! {
                <button
                    type="submit"
                    class="seg__opt"
                    name="status"
                    value=value
                    aria-pressed=(query.status == filter).to_string()
                >
                    {label}
                </button>
            }
        })
        .collect();
    view! {
        <leptos_router::components::Form method="GET" action="/" attr:class="listbar" attr:role="search">
            <h2>"Sessions"</h2>
            <label class="field">
                <Icon icon=IconName::Search small=true/>
                <span class="sr-only">"Search sessions"</span>
                <input type="search" name="q" placeholder="Search titles, prompts, content" value=query.search.clone()/>
            </label>
            <div class="seg" role="group" aria-label="Filter by state">{filters}</div>
        </leptos_router::components::Form>
    }
}

/// The address of a list.
fn address(query: &SessionQuery) -> String {
    let mut map = leptos_router::params::ParamsMap::new();
    let fields = [
        ("q", query.search.clone()),
        ("status", query.status.map(|status| status.as_str().to_owned())),
        ("before", query.before.clone()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            map.insert(name, value);
        }
    }
    format!("/{}", map.to_query_string())
}
