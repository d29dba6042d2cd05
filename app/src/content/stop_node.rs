//! Stopping one call or one inner model, and all below it: a form, so that it also works without script.

use leptos::prelude::*;
use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::state::{Executor, NodeKind};

use crate::data::live::Live;
use crate::data::run_store::{Piece, RunStore};
use crate::shell::replay::is_replaying;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_view, memo};
use crate::ui::{Icon, IconName};

/// Whether a node can be stopped alone: it is not over, and the rest of the run can do without it.
fn can_be_stopped(state: &RunState, node_id: &NodeId) -> bool {
    let parent = |node: &protocol::model::Node| node.parent_id.as_ref().and_then(|id| state.node(id));
    state.node(node_id).is_some_and(|node| {
        node.state.end().is_none()
            && node.executor == Executor::Runloom
            && matches!(node.kind, NodeKind::Model | NodeKind::Function | NodeKind::Code)
            && parent(node).is_none_or(|parent| parent.kind != NodeKind::Root)
            && !state.run().status.is_final()
    })
}

/// The button, as long as there is something to be stopped.
#[component]
pub fn StopNode(
    /// The run.
    run: RunStore,
    /// The node.
    #[prop(into)]
    node_id: Signal<Option<NodeId>>,
) -> impl IntoView {
    let live = Live::use_context();
    let is_past = is_replaying() || is_alone();
    let node = memo(move || {
        if is_past {
            return None;
        }
        let node_id = node_id.get()?;
        let can_stop = run.read(Piece::Node(node_id.clone()), |state| {
            can_be_stopped(state, &node_id)
        });
        can_stop.then_some(node_id)
    });
    dynamic_view(move || {
        node.get().map(|node_id| {
            let asked = RwSignal::new(false);
            let action = format!("/nodes/{node_id}/cancel");
            let on_submit = move |event: leptos::ev::SubmitEvent| stop(&event, &node_id, asked, live);
            view! {
                <form method="post" action=action on:submit=on_submit>
                    <button
                        type="submit"
                        class="btn btn--quiet btn--sm btn--icon"
                        aria-label="Stop this call"
                        title="Stop this call"
                        disabled=dynamic(move || asked.get())
                    >
                        <Icon icon=IconName::Stop/>
                    </button>
                </form>
            }
        })
    })
}

#[cfg(feature = "hydrate")]
fn stop(event: &leptos::ev::SubmitEvent, node_id: &NodeId, asked: RwSignal<bool>, live: Live) {
    event.prevent_default();
    asked.set(true);
    let path = format!("/api/nodes/{node_id}/cancel");
    leptos::task::spawn_local(async move {
        if let Err(problem) = crate::data::api::command(&path).await {
            let _ = asked.try_set(false);
            live.report(crate::data::connection::Problem {
                run: None,
                code: problem.code,
                detail: format!("The call was not stopped. {}", problem.detail),
            });
        }
    });
}

#[cfg(not(feature = "hydrate"))]
fn stop(_: &leptos::ev::SubmitEvent, _: &NodeId, _: RwSignal<bool>, _: Live) {}
