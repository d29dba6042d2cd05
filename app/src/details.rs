//! The details panel: the selected node as a root of its own. It is reached by a link (`?node=`), also without script.

use leptos::context::Provider;
use leptos::either::{Either, EitherOf3};
use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::{Executor, NodeKind};

use crate::content::approval::{ApprovalCard, Stand};
use crate::content::calls::Calls;
use crate::content::io::IoSections;
use crate::content::llm_node_content::LlmNodeContent;
use crate::content::scope::Scope;
use crate::content::stop_node::StopNode;
use crate::content::{registry, words};
use crate::data::clock::{PageClock, TimeOfDay};
use crate::data::run_store::RunStore;
use crate::data::selection::Selection;
use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic_view, handler, memo};
use crate::ui::{Button, Icon, IconName, StateKind, StateMark};

/// The most characters of a name.
const NAME: usize = 120;

/// The panel at the right; on a narrow page a drawer.
#[component]
pub fn DetailsPanel(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let selection = Selection::use_context();
    let selected = memo(move || selection.node().map(|node| (session.run_of(&node), node)));
    let content = dynamic_view(move || match selected.get() {
        None => EitherOf3::A(view! {
            <p class="muted">"Select a row or an item of the tree to see it here: its times, its arguments, what it gave back."</p>
        }),
        Some((Some(run), node_id)) => EitherOf3::B(view! {
            // For what is within alone: a component's own context would reach its siblings too.
            <Provider value=Scope("details")>
                <NodeDetails run=run.clone() node_id=node_id.clone()/>
            </Provider>
        }),
        Some((None, node_id)) => EitherOf3::C(view! {
            <p class="muted" role="alert">{format!("This session has no node {node_id}.")}</p>
        }),
    });
    view! {
        <aside class="side side--details drawer" id="details" popover="auto" aria-label="Details">
            <div class="side__head">
                <h2>"Details"</h2>
                <button
                    type="button"
                    class="btn btn--quiet btn--sm btn--icon"
                    popovertarget="details"
                    popovertargetaction="hide"
                    aria-label="Close details"
                    on:click=handler(move |_| selection.clear())
                >
                    <Icon icon=IconName::X/>
                </button>
            </div>
            <div class="details content">{content}</div>
        </aside>
    }
}

/// The nodes that a node lies within, the outermost first, without the root.
fn path(run: &RunStore, node_id: &NodeId) -> Vec<(NodeId, String)> {
    run.peek(|state| {
        let mut path = Vec::new();
        let mut next = state.node(node_id);
        while let Some(node) =
            next.filter(|node| node.kind != NodeKind::Root && path.len() <= state.nodes().len())
        {
            path.push((node.node_id.clone(), words::line(&node.name, NAME)));
            next = node.parent_id.as_ref().and_then(|parent| state.node(parent));
        }
        path.reverse();
        path
    })
}

/// One node, with all that is known of it.
#[component]
pub fn NodeDetails(
    /// The run.
    run: RunStore,
    /// The node.
    node_id: NodeId,
) -> impl IntoView {
    let selection = Selection::use_context();
    // What it is never changes.
    let (kind, name) = run
        .peek(|state| state.node(&node_id).map(|node| (node.kind, node.name.clone())))
        .unwrap_or((NodeKind::Function, String::new()));
    let state = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || run.shown_state(&node_id).unwrap_or(StateKind::Unresolved))
    };
    let path = path(&run, &node_id);
    let last = path.len().saturating_sub(1);
    let crumbs: Vec<_> = path
        .into_iter()
        .enumerate()
        .map(|(place, (id, name))| {
            if place == last {
                Either::Left(view! { <li aria-current="page">{name}</li> })
            } else {
                Either::Right(view! { <li><a href=Selection::href(&id)>{name}</a></li> })
            }
        })
        .collect();
    let icon = match kind {
        NodeKind::Model => IconName::Model,
        NodeKind::Phase | NodeKind::Root => IconName::Phase,
        NodeKind::Function | NodeKind::Code => registry::view_of(&name).variant.icon(),
    };
    let locate = Callback::new({
        let node_id = node_id.clone();
        move |_| selection.locate(node_id.clone())
    });
    let body = match kind {
        NodeKind::Model => {
            Either::Left(view! { <LlmNodeContent run=run.clone() node_id=node_id.clone() depth=0/> })
        }
        _ => Either::Right(view! {
            <ApprovalCard run=run.clone() node_id=node_id.clone() stand=Stand::Row/>
            <CallDetails run=run.clone() node_id=node_id.clone()/>
        }),
    };
    // What a provider sent of a model's answer, as it came.
    let transcript = (kind == NodeKind::Model).then(|| {
        let run_id = run.peek(|state| state.run().run_id.to_string());
        let href = format!("/api/runs/{run_id}/transcripts/chat/{node_id}.ndjson");
        view! { <a class="btn btn--sm" href=href target="_blank" rel="external noopener">"Transcript"</a> }
    });
    view! {
        <nav aria-label="Path"><ol class="crumbs">{crumbs}</ol></nav>
        <h3 class="details__title" data-details-node=node_id.to_string() tabindex="-1">
            <Icon icon/>
            <code>{words::line(&name, NAME)}</code>
            <StateMark state/>
        </h3>
        <div class="details__acts">
            <Button small=true icon=IconName::Locate on_click=locate>"Locate"</Button>
            {transcript}
            <StopNode run=run.clone() node_id=Signal::stored(Some(node_id.clone()))/>
        </div>
        <NodeFacts run node_id/>
        {body}
    }
}

/// The channels of a call, and what it called within.
#[component]
fn CallDetails(run: RunStore, node_id: NodeId) -> impl IntoView {
    let children = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || run.children(&node_id))
    };
    view! {
        <div class="sheet"><IoSections run=run.clone() node_id/></div>
        <div class="llm"><Calls run children depth=0/></div>
    }
}

#[component]
fn NodeFacts(run: RunStore, node_id: NodeId) -> impl IntoView {
    let clock = PageClock::use_context();
    let node = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            run.node(&node_id, |node| {
                let end = node.state.end();
                (
                    node.started_at,
                    end.map(|end| end.finished_at),
                    end.and_then(|end| end.exit_code),
                    node.executor == Executor::Provider,
                )
            })
        })
    };
    let caller = run.peek(|state| {
        let node = state.node(&node_id)?;
        let parent = state.node(node.parent_id.as_ref()?)?;
        let calls = state.children(&parent.node_id).count();
        (parent.kind != NodeKind::Root)
            .then(|| format!("{}, call {} of {calls}", parent.name, u64::from(node.ordinal) + 1))
    });
    let attempts = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            let attempts = run.attempts(&node_id);
            let last = attempts.last().and_then(|attempt| {
                run.attempt(attempt, |attempt| {
                    let usage = attempt
                        .state
                        .end()
                        .and_then(|end| end.usage.as_ref())
                        .map(words::tokens);
                    (format!("{} / {}", attempt.provider, attempt.model), usage)
                })
            });
            last.map(|(model, usage)| (attempts.len(), model, usage))
        })
    };
    let duration = {
        let (run, node_id) = (run.clone(), node_id.clone());
        move || run.node(&node_id, |node| words::node_span(node, clock))
    };
    let facts = dynamic_view(move || {
        node.get().map(|(start, end, exit_code, is_provider)| {
            view! {
                {start.map(|at| view! { <dt>"Started"</dt><dd><TimeOfDay at/></dd> })}
                {end.map(|at| view! { <dt>"Finished"</dt><dd><TimeOfDay at/></dd> })}
                {exit_code.map(|code| view! { <dt>"Exit code"</dt><dd>{code}</dd> })}
                {is_provider.then(|| view! { <dt>"Ran at"</dt><dd>"the provider"</dd> })}
            }
        })
    });
    let model = dynamic_view(move || {
        attempts.get().map(|(count, model, usage)| {
            view! {
                <dt>"Model"</dt>
                <dd>{model}</dd>
                <dt>"Attempts"</dt>
                <dd>{count}</dd>
                {usage.map(|usage| view! { <dt>"Tokens"</dt><dd>{usage}</dd> })}
            }
        })
    });
    view! {
        <dl class="facts">
            {facts}
            <dt>"Duration"</dt>
            <dd>{duration}</dd>
            {caller.map(|caller| view! { <dt>"Called by"</dt><dd>{caller}</dd> })}
            {model}
            <dt>"Node"</dt>
            <dd class="mono">{node_id.to_string()}</dd>
        </dl>
    }
}
