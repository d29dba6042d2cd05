//! What the session is doing now: the state of its current run's stream, with both clocks.

use leptos::either::Either;
use leptos::prelude::*;

use crate::content::model_row::stream_chip;
use crate::content::{asking, words};
use crate::data::run_store::{Piece, RunStore};
use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic_view, memo};
use crate::ui::{Icon, IconName, StreamChip};

/// The chip of the top bar.
#[component]
pub fn StatusChip(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let current = memo(move || session.current());
    dynamic_view(move || current.get().map(|run| view! { <RunChip run/> }))
}

#[component]
fn RunChip(run: RunStore) -> impl IntoView {
    let model = {
        let run = run.clone();
        memo(move || {
            let root = run.read(Piece::Nodes, |state| {
                state.root().map(|root| root.node_id.clone())
            })?;
            run.children(&root).into_iter().next()
        })
    };
    // Before its model node is there, and once it is over, the run's own state is what there is to say.
    let streams = {
        let run = run.clone();
        memo(move || model.get().filter(|_| !run.status().is_final()))
    };
    dynamic_view(move || match streams.get() {
        Some(node) => Either::Left(stream_chip(&run, &node, false)),
        None => {
            let status = run.status();
            let state = words::run_state(status);
            Either::Right(
                view! { <StreamChip state words=Signal::stored(words::run_word(status).to_owned())/> },
            )
        }
    })
}

/// What a person is asked first, and how much more there is.
fn asks(run: &RunStore) -> Option<String> {
    run.read(Piece::Approvals, |state| {
        let mut open = asking::open(state);
        let first = words::line(&open.next()?.what, 120);
        Some(match open.count() {
            0 => first,
            more => format!("{first}, and {more} more"),
        })
    })
}

/// A link to what the current run asks a person.
#[component]
pub fn NeedsYou(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let open = memo(move || {
        session
            .current()
            .map(|run| {
                run.track(Piece::Run);
                run.read(Piece::Approvals, |state| {
                    (asking::open(state).count(), state.run().run_id.clone())
                })
            })
            .filter(|(count, _)| *count > 0)
    });
    dynamic_view(move || {
        open.get().map(|(count, run)| {
            let words = if count == 1 { "needs" } else { "need" };
            view! {
                <a class="tag tag--warn" href=format!("#{run}")>
                    <Icon icon=IconName::StateAwaitingApproval small=true/>
                    {format!("{count} {words} you")}
                </a>
            }
        })
    })
}

/// What is announced to those who do not see the page: start, attention and end, never each token.
#[component]
pub fn Announcements(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let words = memo(move || {
        session
            .current()
            .map(|run| match run.status() {
                status if !status.is_final() && asks(&run).is_some() => {
                    format!("The run needs you. {}", asks(&run).unwrap_or_default())
                }
                status if status.is_final() => format!("The run is over: {}.", words::run_word(status)),
                protocol::state::RunStatus::Waiting => "The run needs you.".to_owned(),
                protocol::state::RunStatus::Queued => "The run is queued.".to_owned(),
                _ => "The run is live.".to_owned(),
            })
            .unwrap_or_default()
    });
    view! { <p class="sr-only" role="status">{words}</p> }
}
