//! The page of a session: its runs in order, the tree at the left, the details at the right.

use std::collections::HashSet;
use std::sync::Arc;

use leptos::either::Either;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_params_map, use_query_map};
use protocol::id::{NodeId, RunId};

use super::not_found::ProblemPage;
use crate::content::block_list::Place;
use crate::content::run_view::RunView;
use crate::data::clock::PageClock;
use crate::data::expansion::Expansion;
use crate::data::guide::{Goal, Guide};
use crate::data::live::Live;
use crate::data::load;
use crate::data::port::{Earlier, Lead, OPEN_RUNS, SessionPage};
use crate::data::selection::{Selection, above};
use crate::data::session_store::SessionStore;
use crate::details::DetailsPanel;
use crate::find::list::FoundList;
use crate::find::{Find, FindBar};
use crate::shell::composer::{Composer, Sending, Target};
use crate::shell::connection::StreamProblems;
use crate::shell::focus::Arrival;
use crate::shell::keys::{Keyboard, Page};
use crate::shell::replay::{ReplayBar, Replaying, is_replaying};
use crate::shell::scroll::{Follow, FollowButton};
use crate::shell::status_chip::Announcements;
use crate::shell::topbar::SessionTopbar;
use crate::tree::TreePanel;
use crate::ui::dynamic::{dynamic, memo};

#[cfg(feature = "hydrate")]
mod browser;

/// `/s/{session}`.
#[component]
pub fn SessionRoute() -> impl IntoView {
    let params = use_params_map();
    let id = memo(move || params.with(|params| params.get("session").unwrap_or_default()));
    let query = use_query_map();
    // A link leads to what stands before a place, also without script.
    let earlier = memo(move || {
        query.with(|query| {
            Earlier::from_words(query.get("attempt").as_deref(), query.get("before").as_deref())
        })
    });
    // Selecting something on the page loads nothing anew.
    let goal = goal_of_address();
    let search = query
        .with_untracked(|query| query.get("q"))
        .filter(|words| !words.trim().is_empty());
    let thing = goal.as_ref().and_then(Goal::thing);
    let moment = query.with_untracked(|query| {
        let run: RunId = query.get("run")?.parse().ok()?;
        Some((run, query.get("at")?.parse().ok()?))
    });
    let page = load::session(move || {
        let (earlier, thing, search) = (earlier.get(), thing.clone(), search.clone());
        let moment = moment.clone();
        let lead = Lead {
            earlier,
            thing,
            search,
            moment,
        };
        (id.get(), lead)
    });
    view! {
        <Suspense fallback=Skeleton>
            {move || {
                let goal = goal.clone();
                Suspend::new(async move { match page.await {
                    Ok(page) => Either::Left(view! { <Session page goal/> }.into_any()),
                    Err(problem) => Either::Right(view! { <ProblemPage problem/> }),
                }})
            }}
        </Suspense>
    }
}

/// The block, node or run that the address leads to.
pub fn goal_of_address() -> Option<Goal> {
    let names = ["block", "node", "run"];
    use_query_map().with_untracked(|query| names.iter().find_map(|name| Goal::of_thing(&query.get(name)?)))
}

/// While a session is loaded.
#[component]
pub fn Skeleton() -> impl IntoView {
    view! {
        <main class="page" id="main" tabindex="-1" aria-busy="true">
            <span class="sr-only" role="status">"Loading"</span>
            <div class="skels" aria-hidden="true">
                <span class="skel"></span>
                <span class="skel"></span>
                <span class="skel"></span>
            </div>
        </main>
    }
}

/// The page, once its data are there.
#[component]
pub fn Session(
    /// What was loaded.
    page: Arc<SessionPage>,
    /// What the address leads to.
    #[prop(optional_no_strip)]
    goal: Option<Goal>,
) -> impl IntoView {
    PageClock::use_context().begin(page.setup.server_now);
    let session = SessionStore::new(&page);
    let since = page.setup.server_now;
    provide_context(Place(page.place.clone().filter(|_| goal.is_none())));
    let found = page.found.clone();
    let replay = page.replay.clone();
    drop(page);
    if let Some(replay) = &replay {
        provide_context(Replaying(replay.run_id.clone()));
    }
    provide_context(session);
    let selection = selection(session);
    provide_context(selection);
    let guide = Guide::new(goal.as_ref().and_then(Goal::thing));
    provide_context(guide);
    if let Some((_, way)) = goal.and_then(|goal| goal.way(session)) {
        guide.lead(&Expansion::use_context(), way);
    }
    let live = Live::use_context();
    let connection = dynamic(move || live.state().as_str());

    let runs = memo(move || session.runs());
    let count = runs.with_untracked(Vec::len);
    let is_busy = memo(move || session.current().is_some_and(|run| !run.status().is_final()));
    let follow = Follow::new(is_busy.into());
    live.follow_sessions(since, move |summary| drop(session.update(summary)));
    Arrival::use_context().arrive(".main__scroll");
    let find = Find::new(session, guide, follow);
    provide_context(find);
    #[cfg(feature = "hydrate")]
    browser::start(selection, session);
    let found = found.map(|found| {
        let back = format!("/s/{}", untrack(|| session.session_id()));
        view! { <FoundList found back/> }
    });

    let bar = replay.and_then(|replay| {
        let runs = session.runs().into_iter();
        let run = runs.into_iter().find(|run| *run.run_id() == replay.run_id)?;
        Some(view! { <ReplayBar replay run session/> })
    });
    let keys = Page::Session {
        selection,
        follow,
        session,
        find,
    };
    let placeholder = Signal::derive(move || {
        if is_busy.get() {
            "Write on: it is sent when the run that goes on is over".to_owned()
        } else {
            "Write on".to_owned()
        }
    });
    let action_words = Signal::derive(move || if is_busy.get() { "Send after" } else { "Send" }.to_owned());
    view! {
        <Title text=move || format!("{} · Runloom", session.title())/>
        <div class="app" data-connection=connection>
            <SessionTopbar session/>
            <TreePanel session/>
            <main class="main" id="main" tabindex="-1">
                <FindBar find/>
                {bar}
                <div
                    class="main__scroll content"
                    tabindex="0"
                    role="region"
                    aria-label="Content"
                    node_ref=follow.scroller
                >
                    <div class="main__col" node_ref=follow.content>
                        {found}
                        <ForEnumerate
                            each=move || runs.get()
                            key=|run| run.run_id().clone()
                            children=move |place, run| {
                                // What is replayed is what was.
                                if !is_replaying() {
                                    live.follow(&run);
                                }
                                let folded = place.get_untracked() + OPEN_RUNS < count;
                                let number = Signal::derive(move || place.get() + 1);
                                view! { <RunView run number folded/> }.into_any()
                            }
                        />
                    </div>
                </div>
                <div class="main__foot">
                    <FollowButton follow/>
                    <StreamProblems/>
                    {(!is_replaying()).then(|| view! { <Composer
                        target=Target::Session(session)
                        setup=session.setup()
                        placeholder
                        action_words
                        rows="1"
                        sending=Sending::new()
                        on_sent=Callback::new(move |()| follow.resume())
                    /> })}
                </div>
                <Announcements session/>
            </main>
            <DetailsPanel session/>
            <Keyboard page=keys/>
        </div>
    }
}

/// The selected node stands in the address.
fn selection(session: SessionStore) -> Selection {
    let query = use_query_map();
    let node = memo(move || {
        query
            .with(|query| query.get("node"))
            .and_then(|node| node.parse::<NodeId>().ok())
    });
    let above = memo(move || {
        let Some(node) = node.get() else {
            return HashSet::new();
        };
        session
            .run_of(&node)
            .map(|run| run.peek(|state| above(state, &node)))
            .unwrap_or_default()
    });
    let navigate = use_navigate();
    let select = Callback::new(move |node: Option<NodeId>| {
        let options = NavigateOptions {
            scroll: false,
            ..NavigateOptions::default()
        };
        let session = session.session_id();
        match node {
            Some(node) => navigate(&format!("/s/{session}{}", Selection::href(&node)), options),
            None => navigate(&format!("/s/{session}"), options),
        }
    });
    Selection::new(node.into(), above.into(), select)
}
