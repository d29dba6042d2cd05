//! The stop button: always in the same place, and a form, so that it also works without script. By its key it is asked
//! first: a key is pressed by mistake sooner than a button.

use leptos::html::Form;
use leptos::prelude::*;
use protocol::id::RunId;

use super::dialog::Dialog;
use super::keys::Overlay;
use crate::data::live::Live;
use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic, memo};
use crate::ui::{Button, ButtonKind, IconName};

/// Stops the session's current run.
#[component]
pub fn StopButton(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let active = memo(move || {
        session
            .current()
            .filter(|run| !run.status().is_final())
            .map(|run| run.run_id().clone())
    });
    // The run that was asked to stop. It is over when its state says so.
    let asked = RwSignal::new(None::<RunId>);
    let live = Live::use_context();
    let is_stopping = memo(move || active.with(|run| run.is_some() && *run == asked.get()));
    let action = dynamic(move || active.get().map(|run| format!("/runs/{run}/cancel")));
    let on_submit = move |event: leptos::ev::SubmitEvent| {
        if let Some(run) = active.get_untracked() {
            stop(&event, run, asked, live);
        }
    };
    let form = NodeRef::<Form>::new();
    let question = Overlay::use_context().stop;
    // The question ends with the run that it is about.
    #[cfg(feature = "hydrate")]
    crate::ui::dynamic::effect(move || {
        if active.with(Option::is_none) {
            question.set(false);
        }
    });
    view! {
        <form method="post" action=action node_ref=form on:submit=on_submit>
            <Button
                submit=true
                icon=IconName::Stop
                disabled=Signal::derive(move || active.with(Option::is_none) || is_stopping.get())
            >
                {dynamic(move || if is_stopping.get() { "Stopping" } else { "Stop" })}
            </Button>
        </form>
        <Dialog open=question id="stop" title="Stop the run?" small=true>
            <p>"The connection to the provider closes. What came is kept."</p>
            <div class="dialog__acts">
                <Button on_click=Callback::new(move |_| question.set(false))>"Let it go on"</Button>
                <Button
                    kind=ButtonKind::Primary
                    on_click=Callback::new(move |_| {
                        question.set(false);
                        submit(form);
                    })
                >
                    "Stop the run"
                </Button>
            </div>
        </Dialog>
    }
}

#[cfg(feature = "hydrate")]
fn submit(form: NodeRef<Form>) {
    if let Some(form) = form.get_untracked() {
        let _ = form.request_submit();
    }
}

#[cfg(not(feature = "hydrate"))]
fn submit(_: NodeRef<Form>) {}

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
