//! What the session is doing now: the state of its current run's stream, with both clocks.

use leptos::either::Either;
use leptos::prelude::*;

use crate::content::model_row::stream_chip;
use crate::content::words;
use crate::data::run_store::{Piece, RunStore};
use crate::data::session_store::SessionStore;
use crate::ui::StreamChip;
use crate::ui::dynamic::{dynamic_view, memo};

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
                status if status.is_final() => format!("The run is over: {}.", words::run_word(status)),
                protocol::state::RunStatus::Waiting => "The run needs you.".to_owned(),
                protocol::state::RunStatus::Queued => "The run is queued.".to_owned(),
                _ => "The run is live.".to_owned(),
            })
            .unwrap_or_default()
    });
    view! { <p class="sr-only" role="status">{words}</p> }
}
