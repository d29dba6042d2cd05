//! The one row of a tool call: the same element from the moment the model starts the call to its end. Only what stands in
//! its slots changes.

mod facts;

use leptos::either::Either;
use leptos::prelude::*;
use protocol::id::{AttemptId, BlockId, NodeId};
use protocol::state::NodeKind;

pub use facts::Call;
use facts::{Meta, Row};

use super::approval::{ApprovalCard, Stand};
use super::asking;
use super::calls::Calls;
use super::io::IoSections;
use super::llm_node_content::LEVELS;
use super::model_row::ModelRow;
use super::scope::scoped;
use super::stop_node::StopNode;
use super::words;
use crate::data::clock::PageClock;
use crate::data::expansion::{self, Expansion};
use crate::data::run_store::{Piece, RunStore};
use crate::data::selection::Selection;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{Icon, IconButton, IconName, StateKind, StateMark};

/// The row of a call, with what it called within.
#[component]
pub fn ToolRow(
    /// The run.
    run: RunStore,
    /// What it stands for.
    call: Call,
    /// How many model nodes it lies within.
    depth: usize,
) -> impl IntoView {
    let block: Option<(AttemptId, BlockId, NodeId)> = match &call {
        Call::Node(_) => None,
        Call::Block(id) => run.peek(|state| {
            state.block(id).map(|block| {
                (
                    block.attempt_id.clone(),
                    block.block_id.clone(),
                    block.node_id.clone(),
                )
            })
        }),
    };
    // A row keeps its ids from the start, also while its node has not come.
    let (key, own_id) = match (&call, &block) {
        (_, Some((attempt, block, node))) => {
            (expansion::key(node, Some((attempt, block))), block.to_string())
        }
        (Call::Node(node), None) => (expansion::key(node, None), node.to_string()),
        (Call::Block(block), None) => (block.to_string(), block.to_string()),
    };
    let clock = PageClock::use_context();
    let selection = Selection::use_context();
    let row = StoredValue::new(Row {
        run: run.clone(),
        call,
    });
    let node_id = memo(move || row.with_value(Row::node_id));
    let is_marked =
        memo(move || node_id.with(|node| node.as_ref().is_some_and(|node| selection.is_within(node))));
    // The path to a selected node is open, and stays so: closing it by itself would move what is being read.
    let was_marked = Memo::new(move |before| before.copied().unwrap_or(false) || is_marked.get());
    let open = Expansion::use_context().row(&key, was_marked);
    let is_open = open.signal();
    let known_id = memo(move || row.with_value(Row::known_id));
    let tool = memo(move || row.with_value(Row::tool_name));
    let state = memo(move || row.with_value(Row::state));
    let summary = memo(move || row.with_value(Row::summary));
    let children = memo(move || row.with_value(Row::children));
    let meta = memo(move || row.with_value(Row::meta));
    let progress = memo(move || row.with_value(Row::progress));
    let is_code = memo(move || row.with_value(|row| row.kind() == Some(NodeKind::Code)));
    let time = dynamic(move || row.with_value(|row| row.time(clock)));

    let view = move || tool.with(|tool| super::registry::view_of(tool));
    let is_selected = memo(move || node_id.with(|node| node.as_ref().is_some_and(|node| selection.is(node))));
    let class = dynamic(move || {
        let mark = match (is_selected.get(), is_marked.get()) {
            (true, _) => " row--selected",
            (false, true) => " row--marked",
            (false, false) => "",
        };
        [view().variant.class(), mark].concat()
    });
    let icon = Signal::derive(move || view().variant.icon());
    let name_class = dynamic(move || {
        if view().title.is_some() {
            "row__name row__name--plain"
        } else {
            "row__name"
        }
    });
    let name = dynamic(move || view().title.map_or_else(|| tool.get(), str::to_owned));
    let meta_class = dynamic(move || {
        if progress.with(Option::is_some) {
            "row__meta row__meta--keep"
        } else {
            "row__meta"
        }
    });
    let meta_words = dynamic_view(move || match meta.get() {
        Meta::Words(words) => Either::Left(words),
        // A file that is written anew loses nothing.
        Meta::Change(change) => Either::Right(view! {
            <span class="plus">{format!("+{}", change.added)}</span>
            {(change.removed > 0).then(|| view! { " "<span class="minus">{format!("−{}", change.removed)}</span> })}
        }),
    });
    let bar = dynamic_view(move || {
        progress.get().map(|(done, total)| {
            let label = format!("{} progress", tool.get_untracked());
            view! { <progress class="row__bar" aria-label=label value=done.to_string() max=total.to_string()></progress> }
        })
    });

    let body_id = scoped(format_args!("body-{own_id}"));
    let row_id = scoped(format_args!(
        "{}-{own_id}",
        if block.is_some() { "block" } else { "node" }
    ));
    let io = {
        let run = run.clone();
        move || {
            is_open.get().then(|| {
                known_id
                    .get()
                    .map(|node_id| view! { <IoSections run=run.clone() node_id/> })
            })
        }
    };
    let ask = {
        let run = run.clone();
        dynamic_view(move || {
            known_id
                .get()
                .map(|node_id| view! { <ApprovalCard run=run.clone() node_id stand=Stand::Row/> })
        })
    };
    let acting = run.clone();
    // The sub-calls of a program are always visible; what a function called within shows when it is opened.
    let shown = memo(move || {
        if is_code.get() || is_open.get() {
            children.get()
        } else {
            Vec::new()
        }
    });
    let has_nest = memo(move || !shown.with(Vec::is_empty));
    let nested = run.clone();
    let nest = dynamic_view(move || {
        let run = nested.clone();
        has_nest
            .get()
            .then(|| view! { <div class="nest"><Calls run children=shown depth/></div> })
    });

    view! {
        <div>
            <div
                class=class
                id=row_id
                data-block-id=block.as_ref().map(|(_, block, _)| block.to_string())
                data-block-kind=block.is_some().then_some("tool_ref")
                data-node-id=dynamic(move || node_id.get().map(|node| node.to_string()))
                data-state=dynamic(move || state.get().class())
            >
                <button
                    type="button"
                    class="row__toggle"
                    aria-expanded=dynamic(move || is_open.get().to_string())
                    aria-controls=body_id.clone()
                    on:click=handler(move |_| open.toggle())
                >
                    <Icon icon=IconName::Chevron class="row__chev"/>
                    <Icon icon class="row__icon"/>
                    <span class=name_class>{name}</span>
                    <span class="row__sum" class=("row__sum--err", move || summary.with(|summary| summary.is_error))>
                        {dynamic(move || summary.with(|summary| summary.text.clone()))}
                    </span>
                    <span class=meta_class>{meta_words}</span>
                    <StateMark state/>
                    <time class="row__time">{time}</time>
                </button>
                {bar}
                <RowActions run=acting node_id/>
                <div class="row__body" id=body_id hidden=dynamic(move || !is_open.get())>{io}</div>
            </div>
            {ask}
            {nest}
        </div>
    }
}

/// What can be done with a row, over its meta slot: nothing moves when it comes.
#[component]
pub fn RowActions(
    /// The run.
    run: RunStore,
    /// The node.
    #[prop(into)]
    node_id: Signal<Option<NodeId>>,
) -> impl IntoView {
    let selection = Selection::use_context();
    let locate = Callback::new(move |_| {
        if let Some(node) = node_id.get_untracked() {
            selection.locate(node);
        }
    });
    // A link, so that it also leads somewhere without script.
    let details = dynamic_view(move || {
        node_id.get().map(|node| {
            view! {
                <a
                    class="btn btn--quiet btn--sm btn--icon"
                    href=Selection::href(&node)
                    aria-label="Open in details"
                    title="Open in details"
                >
                    <Icon icon=IconName::Panel/>
                </a>
            }
        })
    });
    (!is_alone()).then(|| {
        view! {
            <div class="row__acts">
                <IconButton icon=IconName::Locate label="Locate in tree".to_owned() small=true on_click=locate/>
                {details}
                <StopNode run node_id/>
            </div>
        }
    })
}

/// A node within another: the edge at which the content recurs. Its type is erased here, and at the edges of lists, where
/// types that nest without end would take the compiler and the download too far.
pub fn child_view(run: RunStore, node_id: NodeId, depth: usize) -> AnyView {
    match run.peek(|state| state.node(&node_id).map(|node| node.kind)) {
        Some(NodeKind::Model) if depth + 1 >= LEVELS && !is_alone() => {
            view! { <DepthBoundary run node_id/> }.into_any()
        }
        Some(NodeKind::Model) => view! { <ModelRow run node_id depth=depth + 1/> }.into_any(),
        _ => view! { <ToolRow run call=Call::Node(node_id) depth/> }.into_any(),
    }
}

/// Where the levels end: what lies deeper is reached in the details panel.
#[component]
fn DepthBoundary(run: RunStore, node_id: NodeId) -> impl IntoView {
    let name = run.peek(|state| {
        state
            .node(&node_id)
            .map(|node| node.name.clone())
            .unwrap_or_default()
    });
    let deeper = run.peek(|state| {
        let mut pending = vec![node_id.clone()];
        let mut models = 0;
        while let Some(id) = pending.pop() {
            models += usize::from(state.node(&id).is_some_and(|node| node.kind == NodeKind::Model));
            pending.extend(state.children(&id).map(|node| node.node_id.clone()));
        }
        models
    });
    let words = format!(
        "Level {LEVELS}. {name} and deeper: {}.",
        words::counted(deeper, "model call")
    );
    let asks = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || run.read(Piece::Approvals, |state| asking::is_above(state, &node_id)))
    };
    let asks = dynamic_view(move || {
        asks.get()
            .then(|| view! { <StateMark state=Signal::stored(StateKind::AwaitingApproval)/> })
    });
    view! {
        <div class="depth" data-node-id=node_id.to_string()>
            <Icon icon=IconName::NoticeDepth/>
            <span>{words}</span>
            {asks}
            <a class="btn btn--sm" href=Selection::href(&node_id)>"Open in details"</a>
        </div>
    }
}
