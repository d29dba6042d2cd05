//! The execution tree: all nodes of all runs of the session, as they call each other.

use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::{NodeKind, NodeStatus};

use crate::content::partial_json::Fields;
use crate::content::{registry, words};
use crate::data::clock::PageClock;
use crate::data::expansion::{Expansion, Open};
use crate::data::run_store::{Piece, RunStore};
use crate::data::selection::Selection;
use crate::data::session_store::SessionStore;
use crate::ui::{Icon, IconName, StateKind, StateMark};
use protocol::state::Channel;

/// The panel at the left; on a phone a drawer.
#[component]
pub fn TreePanel(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let runs = Memo::new(move |_| session.runs());
    view! {
        <aside class="side side--tree drawer" id="tree" popover="auto" aria-label="Execution tree">
            <div class="side__head">
                <h2>"Execution"</h2>
                <button
                    type="button"
                    class="btn btn--quiet btn--icon only-phone"
                    popovertarget="tree"
                    popovertargetaction="hide"
                    aria-label="Close tree"
                >
                    <Icon icon=IconName::X/>
                </button>
            </div>
            <ul class="tree">
                <For
                    each=move || runs.get().into_iter().enumerate()
                    key=|(_, run)| run.run_id().clone()
                    children=move |(place, run)| view! { <RunItem run number=place + 1/> }
                />
            </ul>
            <TreeFoot session/>
        </aside>
    }
}

/// So many children of a node are shown at first, and with each step more.
const CHILDREN: usize = 50;

/// What an item shows, besides its name.
#[derive(Clone, PartialEq)]
struct Facts {
    state: StateKind,
    name: String,
    detail: String,
    /// A tool's name is code, other names are words.
    is_text: bool,
}

#[component]
fn RunItem(run: RunStore, number: usize) -> impl IntoView {
    let clock = PageClock::use_context();
    let open = Expansion::use_context().row(&format!("tree/{}", run.run_id()), Signal::stored(true));
    let root = {
        let run = run.clone();
        Memo::new(move |_| {
            run.read(Piece::Nodes, |state| {
                state.root().map(|root| root.node_id.clone())
            })
        })
    };
    let children = {
        let run = run.clone();
        Memo::new(move |_| root.get().map(|root| run.children(&root)).unwrap_or_default())
    };
    let facts = {
        let run = run.clone();
        Memo::new(move |_| {
            let prompt = run.read(Piece::Messages, |state| {
                state
                    .messages()
                    .first()
                    .map(|message| words::line(&message.text, 60))
                    .unwrap_or_default()
            });
            Facts {
                state: words::run_state(run.status()),
                name: format!("Run {number}"),
                detail: prompt,
                is_text: true,
            }
        })
    };
    let time = {
        let run = run.clone();
        move || {
            let span = root.get().and_then(|root| {
                run.node(&root, |node| {
                    (node.announced_at, node.state.end().map(|end| end.finished_at))
                })
            });
            span.map(|(start, end)| words::span(Some(start), end, clock))
                .unwrap_or_default()
        }
    };
    let select = Callback::new({
        let open = open.clone();
        move |()| open.toggle()
    });
    view! {
        <li>
            <TreeItem
                id=run.run_id().to_string()
                facts
                time=Signal::derive(time)
                open
                children
                is_current=Signal::stored(false)
                select
                run=run.clone()
            />
        </li>
    }
}

/// An item and what lies below it. Its type is erased, because it holds itself.
fn node_item(run: RunStore, node_id: NodeId) -> AnyView {
    let clock = PageClock::use_context();
    let selection = Selection::use_context();
    let open = Expansion::use_context().row(&format!("tree/{node_id}"), Signal::stored(true));
    let children = {
        let (run, node_id) = (run.clone(), node_id.clone());
        Memo::new(move |_| run.children(&node_id))
    };
    let facts = {
        let (run, node_id) = (run.clone(), node_id.clone());
        Memo::new(move |_| node_facts(&run, &node_id))
    };
    let time = {
        let (run, node_id) = (run.clone(), node_id.clone());
        move || {
            run.node(&node_id, |node| words::node_span(node, clock))
                .unwrap_or_default()
        }
    };
    let is_current = {
        let node_id = node_id.clone();
        Memo::new(move |_| selection.is(&node_id))
    };
    let select = Callback::new({
        let (open, node_id) = (open.clone(), node_id.clone());
        move |()| {
            // A second click on the selected item opens or closes it.
            if is_current.get_untracked() {
                open.toggle();
            } else {
                selection.select(node_id.clone());
            }
        }
    });
    view! {
        <li>
            <TreeItem
                id=node_id.to_string()
                facts
                time=Signal::derive(time)
                open
                children
                is_current
                select
                run
            />
        </li>
    }
    .into_any()
}

fn node_facts(run: &RunStore, node_id: &NodeId) -> Facts {
    let node = run.node(node_id, |node| {
        let error = node
            .state
            .end()
            .and_then(|end| end.error.as_ref())
            .map(|error| words::first_line(&error.message, 60));
        (
            node.kind,
            words::node_state(node.state.status()),
            node.name.clone(),
            error,
        )
    });
    let Some((kind, state, name, error)) = node else {
        return Facts {
            state: StateKind::Unresolved,
            name: String::new(),
            detail: String::new(),
            is_text: true,
        };
    };
    let is_text = matches!(kind, NodeKind::Model | NodeKind::Phase | NodeKind::Root);
    let detail = if is_text {
        run.attempts(node_id)
            .last()
            .and_then(|attempt| run.attempt(attempt, |attempt| attempt.model.clone()))
    } else {
        error.or_else(|| {
            let view = registry::view_of(&name);
            run.output(node_id, Channel::Arguments, |output| {
                (view.summary)(&Fields::read(&output.text))
            })
            .flatten()
        })
    };
    Facts {
        state,
        name,
        detail: detail.unwrap_or_default(),
        is_text,
    }
}

#[component]
fn TreeItem(
    id: String,
    facts: Memo<Facts>,
    time: Signal<String>,
    open: Open,
    children: Memo<Vec<NodeId>>,
    #[prop(into)] is_current: Signal<bool>,
    select: Callback<()>,
    run: RunStore,
) -> impl IntoView {
    let is_open = open.signal();
    let has_children = Memo::new(move |_| !children.with(Vec::is_empty));
    let list_id = format!("tree-{id}");
    let state = Signal::derive(move || facts.with(|facts| facts.state));
    let name_class = move || {
        if facts.with(|facts| facts.is_text) {
            "tree__name tree__name--text"
        } else {
            "tree__name"
        }
    };
    let toggle = open.clone();
    let chevron = move || {
        let toggle = toggle.clone();
        if has_children.get() {
            leptos::either::Either::Left(view! {
                <svg
                    class="icon tree__chev"
                    aria-hidden="true"
                    on:click=move |event| {
                        event.stop_propagation();
                        toggle.toggle();
                    }
                >
                    <use_ href=IconName::Chevron.href()></use_>
                </svg>
            })
        } else {
            leptos::either::Either::Right(view! { <span></span> })
        }
    };
    let keyed = open.clone();
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        let wanted = match event.key().as_str() {
            "ArrowRight" => true,
            "ArrowLeft" => false,
            _ => return,
        };
        if has_children.get_untracked() && is_open.get_untracked() != wanted {
            event.prevent_default();
            keyed.toggle();
        }
    };
    // Of many children the newest, and more on demand.
    let most = RwSignal::new(CHILDREN);
    let hidden = Memo::new(move |_| children.with(Vec::len).saturating_sub(most.get()));
    let shown = Memo::new(move |_| {
        children.with(|children| children.get(hidden.get()..).unwrap_or_default().to_vec())
    });
    let more = move || {
        (hidden.get() > 0).then(|| {
            view! {
                <li>
                    <button
                        type="button"
                        class="btn btn--quiet btn--sm"
                        on:click=move |_| most.update(|most| *most += CHILDREN)
                    >
                        {move || format!("Show {} more", hidden.get().min(CHILDREN))}
                    </button>
                </li>
            }
        })
    };
    let list = {
        let list_id = list_id.clone();
        move || {
            let run = run.clone();
            (has_children.get() && is_open.get()).then(|| {
                view! {
                    <ul id=list_id.clone()>
                        {more}
                        <For
                            each=move || shown.get()
                            key=Clone::clone
                            children=move |child| node_item(run.clone(), child)
                        />
                    </ul>
                }
            })
        }
    };
    view! {
        <button
            type="button"
            class="tree__item"
            data-tree-node=id
            data-state=move || state.get().class()
            aria-expanded=move || has_children.get().then(|| is_open.get().to_string())
            aria-controls=move || has_children.get().then(|| list_id.clone())
            aria-current=move || is_current.get().then_some("true")
            on:click=move |_| select.run(())
            on:keydown=on_key
        >
            {chevron}
            <StateMark state/>
            <span class=name_class>
                <b>{move || facts.with(|facts| facts.name.clone())}</b>
                " "
                {move || facts.with(|facts| facts.detail.clone())}
            </span>
            <time class="tree__time">{time}</time>
        </button>
        {list}
    }
}

/// How many nodes stand how.
#[component]
fn TreeFoot(session: SessionStore) -> impl IntoView {
    let counts = Memo::new(move |_| {
        let mut counts = [
            (StateKind::Running, 0),
            (StateKind::Succeeded, 0),
            (StateKind::Failed, 0),
            (StateKind::AwaitingApproval, 0),
        ];
        for run in session.runs() {
            run.read(Piece::Nodes, |state| {
                for node in state
                    .nodes()
                    .iter()
                    .filter(|node| !matches!(node.kind, NodeKind::Root | NodeKind::Phase))
                {
                    let kind = match node.state.status() {
                        NodeStatus::Running | NodeStatus::Pending => StateKind::Running,
                        NodeStatus::Succeeded => StateKind::Succeeded,
                        NodeStatus::Failed | NodeStatus::TimedOut | NodeStatus::Denied => StateKind::Failed,
                        NodeStatus::AwaitingApproval => StateKind::AwaitingApproval,
                        NodeStatus::Cancelled | NodeStatus::Interrupted | NodeStatus::NotRun => continue,
                    };
                    counts
                        .iter_mut()
                        .filter(|(known, _)| *known == kind)
                        .for_each(|(_, count)| *count += 1);
                }
            });
        }
        counts
    });
    let marks = move || {
        counts
            .get()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(state, count)| {
                let words = Signal::stored(format!("{count} {}", state.word()));
                view! { <StateMark state words/> }
            })
            .collect_view()
    };
    view! { <div class="side__foot">{marks}</div> }
}
