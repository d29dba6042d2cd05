//! What a person can do about a run that is over: resume it, or ask for another answer. Forms, so that they also work
//! without script.

use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::{NodeKind, RunStatus};

use super::words;
use crate::data::run_store::{Piece, RunStore};
use crate::data::session_store::SessionStore;
use crate::ui::Button;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_view, memo};

/// A wish about a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// It goes on from where it broke off.
    Resume,
    /// Another answer from its prompt.
    Regenerate,
}

/// The buttons under a run that is over, where there is something to be done.
#[component]
pub fn GoOn(
    /// The run.
    run: RunStore,
) -> impl IntoView {
    let session = use_context::<SessionStore>();
    let status = {
        let run = run.clone();
        memo(move || run.status())
    };
    // What was executed elsewhere is history here.
    let is_imported =
        is_alone() || run.peek(|state| state.notices().iter().any(|notice| notice.code == "imported"));
    let can_resume = move || {
        !is_imported
            && matches!(
                status.get(),
                RunStatus::Interrupted | RunStatus::Failed | RunStatus::Cancelled
            )
    };
    // Only the answer of the session's last run: what follows on another one was said after it.
    let answer = {
        let run = run.clone();
        memo(move || {
            let is_last = session?.runs().last().map(RunStore::run_id) == Some(run.run_id());
            if is_imported || !is_last || !status.get().is_final() {
                return None;
            }
            run.read(Piece::Nodes, |state| {
                let root = state.root()?;
                let mut children = state.children(&root.node_id);
                let answer = children.find(|node| node.kind == NodeKind::Model)?;
                Some(answer.node_id.clone())
            })
        })
    };
    // Of which state it was asked to go on: it does, once there is another one.
    let asked = RwSignal::new(None::<(Wish, u64)>);
    let failed = RwSignal::new(None::<String>);
    let seq = {
        let run = run.clone();
        memo(move || run.read(Piece::Seq, protocol::fold::RunState::seq))
    };
    let pending = memo(move || {
        asked
            .get()
            .filter(|(_, at)| *at == seq.get())
            .map(|(wish, _)| wish)
    });
    let resume_path = format!("/runs/{}/resume", run.run_id());
    let submit = move |wish: Wish, api: String| {
        move |event: leptos::ev::SubmitEvent| {
            asked.set(Some((wish, seq.get_untracked())));
            send(&event, api.clone(), asked, failed);
        }
    };
    let run_id = run.run_id().clone();
    let resume = dynamic_view(move || {
        let path = resume_path.clone();
        let on_submit = submit(Wish::Resume, format!("/api/runs/{run_id}/resume"));
        can_resume().then(|| view! { <WishForm wish=Wish::Resume path pending on_submit/> })
    });
    let regenerate = dynamic_view(move || {
        answer.get().map(|node| {
            let on_submit = submit(Wish::Regenerate, format!("/api/nodes/{node}/regenerate"));
            view! { <WishForm wish=Wish::Regenerate path=path_of(&node) pending on_submit/> }
        })
    });
    let is_any = move || can_resume() || answer.with(Option::is_some);
    view! {
        <div class="nodefoot" hidden=dynamic(move || !is_any())>
            {resume}
            {regenerate}
            {dynamic_view(move || failed.get().map(|failed| view! { <span class="tag tag--warn" role="alert">{failed}</span> }))}
        </div>
    }
}

fn path_of(node: &NodeId) -> String {
    format!("/nodes/{node}/regenerate")
}

#[component]
fn WishForm<F>(wish: Wish, path: String, pending: Memo<Option<Wish>>, on_submit: F) -> impl IntoView
where
    F: Fn(leptos::ev::SubmitEvent) + 'static,
{
    let disabled = Signal::derive(move || pending.with(Option::is_some));
    let label = dynamic(move || words::wish(wish, pending.get() == Some(wish)));
    view! {
        <form method="post" action=path on:submit=on_submit>
            <Button small=true submit=true disabled>
                {label}
            </Button>
        </form>
    }
}

#[cfg(feature = "hydrate")]
fn send(
    event: &leptos::ev::SubmitEvent,
    path: String,
    asked: RwSignal<Option<(Wish, u64)>>,
    failed: RwSignal<Option<String>>,
) {
    event.prevent_default();
    failed.set(None);
    leptos::task::spawn_local(async move {
        if let Err(problem) = crate::data::api::command(&path).await {
            let _ = asked.try_set(None);
            let _ = failed.try_set(Some(problem.detail));
        }
    });
}

#[cfg(not(feature = "hydrate"))]
fn send(
    _: &leptos::ev::SubmitEvent,
    _: String,
    _: RwSignal<Option<(Wish, u64)>>,
    _: RwSignal<Option<String>>,
) {
}
