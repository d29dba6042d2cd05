//! One item of the tree: a link, so that it also leads somewhere without script.

use leptos::attr::custom::custom_attribute;
use leptos::either::Either;
use leptos::ev::MouseEvent;
use leptos::prelude::*;
use protocol::id::NodeId;

use super::Tree;
use super::facts::{self, Facts};
use super::list::{Branch, Item, Key};
use crate::content::words;
use crate::data::clock::PageClock;
use crate::data::run_store::{Piece, RunStore};
use crate::data::selection::Selection;
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{Icon, IconName, StateKind, StateMark};

/// An item, as long as it is in the list. `stop` is the one that Tab leads to.
pub(super) fn tree_item(tree: Tree, key: Key, stop: Memo<Option<Key>>) -> impl IntoView {
    let clock = PageClock::use_context();
    let key = StoredValue::new(key);
    let item = memo(move || key.with_value(|key| tree.list.with(|list| list.item(key).cloned())));
    let level = memo(move || item.with(|item| item.as_ref().map_or(1, |item| item.level)));
    let facts = memo(move || item.get().map_or_else(nothing, |item| facts_of(&item)));
    let state = Signal::derive(move || facts.with(|facts| facts.state));
    let time = dynamic(move || {
        let item = item.get()?;
        Some(match &item.key {
            Key::Run(_) => run_time(&item.run, clock),
            Key::Node(node) => item
                .run
                .node(node, |node| words::node_span(node, clock))
                .unwrap_or_default(),
        })
    });
    let branch = memo(move || item.with(|item| item.as_ref().map_or(Branch::Leaf, |item| item.branch)));
    let node = move |read: &dyn Fn(&NodeId) -> bool| {
        key.with_value(|key| match key {
            Key::Node(node) => read(node),
            Key::Run(_) => false,
        })
    };
    let is_current = memo(move || node(&|node| tree.selection.is(node)));
    let is_within = memo(move || node(&|node| tree.selection.is_within(node)));
    let is_stop = memo(move || key.with_value(|key| stop.with(|stop| stop.as_ref() == Some(key))));
    let is_way = memo(move || item.with(|item| item.as_ref().is_some_and(|item| item.is_way)));
    let name_class = dynamic(move || {
        if facts.with(|facts| facts.is_text) {
            "tree__name tree__name--text"
        } else {
            "tree__name"
        }
    });
    let chevron = dynamic_view(move || {
        if branch.get() == Branch::Leaf {
            return Either::Left(view! { <span></span> });
        }
        Either::Right(view! {
            <span
                class="tree__chev"
                on:click=handler(move |event: MouseEvent| {
                    event.prevent_default();
                    event.stop_propagation();
                    key.with_value(|key| tree.open(key).toggle());
                })
            >
                <Icon icon=IconName::Chevron/>
            </span>
        })
    });
    let on_click = move |event: leptos::ev::MouseEvent| {
        // With one of these keys a browser opens the link elsewhere.
        if event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key() {
            return;
        }
        event.prevent_default();
        let key = key.get_value();
        tree.active.set(Some(key.clone()));
        tree.choose(&key);
    };
    let (id, href) = key.with_value(|key| match key {
        Key::Run(run) => (run.to_string(), format!("#{run}")),
        Key::Node(node) => (node.to_string(), Selection::href(node)),
    });
    view! {
        <a
            role="treeitem"
            class="tree__item"
            class=("tree__item--within", move || is_within.get())
            class=("tree__item--way", move || is_way.get())
            href=href
            tabindex=dynamic(move || if is_stop.get() { "0" } else { "-1" })
            data-tree-node=id
            data-state=dynamic(move || state.get().class())
            {..custom_attribute("aria-level", move || level.get().to_string())}
            aria-posinset=dynamic(move || item.with(|item| item.as_ref().map(|item| item.place)))
            aria-setsize=dynamic(move || item.with(|item| item.as_ref().map(|item| item.count)))
            aria-expanded=dynamic(move || match branch.get() {
                Branch::Leaf => None,
                Branch::Open => Some("true"),
                Branch::Closed => Some("false"),
            })
            aria-current=dynamic(move || is_current.get().then_some("true"))
            on:click=on_click
        >
            {chevron}
            <StateMark state/>
            <span class=name_class>
                <b>{dynamic(move || facts.with(|facts| facts.name.clone()))}</b>
                " "
                {dynamic(move || facts.with(|facts| facts.detail.clone()))}
            </span>
            <time class="tree__time">{time}</time>
        </a>
    }
}

/// What an item shows that is going away.
fn nothing() -> Facts {
    Facts {
        state: StateKind::Unresolved,
        name: String::new(),
        detail: String::new(),
        is_text: true,
    }
}

/// What an item shows, followed as it changes.
fn facts_of(item: &Item) -> Facts {
    let run = &item.run;
    run.track(Piece::Approvals);
    match &item.key {
        Key::Run(_) => {
            run.track(Piece::Run);
            run.read(Piece::Messages, |state| facts::of_run(state, item.number))
        }
        Key::Node(node) => {
            run.track(Piece::Attempts(node.clone()));
            run.track(Piece::Output(node.clone(), protocol::state::Channel::Arguments));
            run.read(Piece::Node(node.clone()), |state| {
                let node = state.node(node);
                node.map_or_else(nothing, |node| facts::of_node(state, node))
            })
        }
    }
}

/// How long a run took, or takes.
fn run_time(run: &RunStore, clock: PageClock) -> String {
    run.read(Piece::Nodes, |state| {
        let root = state.root();
        let end = |root: &protocol::model::Node| root.state.end().map(|end| end.finished_at);
        root.map(|root| words::span(Some(root.announced_at), end(root), clock))
            .unwrap_or_default()
    })
}
