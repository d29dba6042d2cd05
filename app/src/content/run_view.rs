//! One run in the content: the prompt, what was done about it, and how it ended.

use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::NodeKind;

use super::approval::OpenRequests;
use super::block_list;
use super::go_on::GoOn;
use super::model_row::ModelRow;
use super::notice::{Notices, RunEnd};
use super::prompt::Messages;
use super::run_info::{RunInfo, digest_of};
use super::tool_row::child_view;
use super::words;
use crate::data::clock::PageClock;
use crate::data::expansion::Expansion;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, handler, memo};
use crate::ui::{Icon, IconName};

/// A run among the runs of its session.
#[component]
pub fn RunView(
    /// The run.
    run: RunStore,
    /// Its place in the session, from 1.
    number: Signal<usize>,
    /// Whether it is folded until the user opens it.
    folded: bool,
) -> impl IntoView {
    let open = Expansion::use_context().row(run.run_id().as_str(), Signal::stored(!folded));
    let is_open = open.signal();
    let asked = RwSignal::new(false);
    let digest = digest_of(&run, asked.into(), is_open);
    let seq = {
        let run = run.clone();
        move || run.read(Piece::Seq, |state| state.seq().to_string())
    };
    let status = {
        let run = run.clone();
        move || run.status().as_str()
    };
    let line = folded.then(|| {
        let open = open.clone();
        view! { <FoldLine run=run.clone() number is_open on_toggle=Callback::new(move |()| open.toggle())/> }
    });
    let run_id = run.run_id().to_string();
    let body = dynamic_view(move || {
        is_open
            .get()
            .then(|| view! { <RunBody run=run.clone() digest asked/> })
    });
    view! {
        <section
            class="run"
            id=run_id.clone()
            aria-label=dynamic(move || format!("Run {}", number.get()))
            data-run-id=run_id
            data-seq=seq
            data-state=status
            data-digest=dynamic(move || digest.get())
        >
            {line}
            {body}
        </section>
    }
}

#[component]
fn FoldLine(
    run: RunStore,
    number: Signal<usize>,
    is_open: Signal<bool>,
    on_toggle: Callback<()>,
) -> impl IntoView {
    let clock = PageClock::use_context();
    let prompt = run.peek(|state| {
        state
            .messages()
            .first()
            .map(|message| words::line(&message.text, 60))
            .unwrap_or_default()
    });
    let facts = memo(move || {
        run.read(Piece::Nodes, |state| {
            let end = state
                .root()
                .and_then(|root| root.state.end().map(|end| end.finished_at));
            (
                state
                    .attempts()
                    .iter()
                    .map(|attempt| block_list::count(state, &attempt.attempt_id))
                    .sum::<usize>(),
                state.root().map(|root| root.announced_at),
                end,
            )
        })
    });
    let words = dynamic(move || {
        let (blocks, start, end) = facts.get();
        let blocks = words::counted(blocks, "block");
        format!(
            "Run {} · {prompt} · {blocks} · {}",
            number.get(),
            words::span(start, end, clock)
        )
    });
    view! {
        <div class="foldline">
            <button
                type="button"
                class="btn btn--quiet btn--sm"
                aria-expanded=dynamic(move || is_open.get().to_string())
                on:click=handler(move |_| on_toggle.run(()))
            >
                <Icon icon=IconName::Chevron small=true class="row__chev"/>
                {words}
            </button>
        </div>
    }
}

#[component]
fn RunBody(run: RunStore, digest: Memo<Option<String>>, asked: RwSignal<bool>) -> impl IntoView {
    // A chat has one model node below its root; a mission its phases.
    let top = {
        let run = run.clone();
        memo(move || {
            let root = run.read(Piece::Nodes, |state| {
                state.root().map(|root| root.node_id.clone())
            });
            root.map(|root| run.children(&root)).unwrap_or_default()
        })
    };
    let nodes = run.clone();
    view! {
        <Messages run=run.clone()/>
        <OpenRequests run=run.clone()/>
        {dynamic_list(
            move || top.get(),
            Clone::clone,
            move |node_id| view! { <TopNode run=nodes.clone() node_id/> },
        )}
        <Notices run=run.clone()/>
        <RunEnd run=run.clone()/>
        <GoOn run=run.clone()/>
        <RunInfo run digest asked/>
    }
}

#[component]
fn TopNode(run: RunStore, node_id: NodeId) -> impl IntoView {
    let node = run.peek(|state| state.node(&node_id).map(|node| (node.kind, node.name.clone())));
    let (kind, name) = node.unwrap_or((NodeKind::Model, String::new()));
    view! {
        <article class="llm" aria-label=format!("Node {name}")>
            {match kind {
                NodeKind::Model => leptos::either::Either::Left(view! { <ModelRow run node_id depth=0/> }),
                _ => leptos::either::Either::Right(child_view(run, node_id, 0)),
            }}
        </article>
    }
}
