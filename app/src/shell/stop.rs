//! The stop button: always in the same place, and a form, so that it also works without script.

use leptos::prelude::*;
use protocol::id::RunId;

use crate::data::live::Live;
use crate::data::session_store::SessionStore;
use crate::ui::{Button, IconName};

/// Stops the session's current run.
#[component]
pub fn StopButton(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let active = Memo::new(move |_| {
        session
            .current()
            .filter(|run| !run.status().is_final())
            .map(|run| run.run_id().clone())
    });
    // The run that was asked to stop. It is over when its state says so.
    let asked = RwSignal::new(None::<RunId>);
    let live = Live::use_context();
    let is_stopping = Memo::new(move |_| active.with(|run| run.is_some() && *run == asked.get()));
    let action = move || active.get().map(|run| format!("/runs/{run}/cancel"));
    let on_submit = move |event: leptos::ev::SubmitEvent| {
        if let Some(run) = active.get_untracked() {
            stop(&event, run, asked, live);
        }
    };
    view! {
        <form method="post" action=action on:submit=on_submit>
            <Button
                submit=true
                icon=IconName::Stop
                disabled=Signal::derive(move || active.with(Option::is_none) || is_stopping.get())
            >
                {move || if is_stopping.get() { "Stopping" } else { "Stop" }}
            </Button>
        </form>
    }
}

#[cfg(feature = "hydrate")]
fn stop(event: &leptos::ev::SubmitEvent, run: RunId, asked: RwSignal<Option<RunId>>, live: Live) {
    event.prevent_default();
    asked.set(Some(run.clone()));
    leptos::task::spawn_local(async move {
        if let Err(problem) = crate::data::api::cancel_run(&run).await {
            let _ = asked.try_set(None);
            live.report(crate::data::connection::Problem {
                run: Some(run),
                code: problem.code,
                detail: format!("The run was not stopped. {}", problem.detail),
            });
        }
    });
}

#[cfg(not(feature = "hydrate"))]
fn stop(_: &leptos::ev::SubmitEvent, _: RunId, _: RwSignal<Option<RunId>>, _: Live) {}
