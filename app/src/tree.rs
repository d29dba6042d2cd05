//! The execution tree: all nodes of all runs of the session, as they call each other.
//!
//! It is a flat [`list`] of the items that are to be seen, of which only those near the viewport are in the page
//! ([`window`]); levels are told by attributes. Keys move in the list ([`step`]).

mod facts;
mod foot;
mod item;
mod list;
#[cfg(any(feature = "hydrate", test))]
mod step;
mod window;

#[cfg(feature = "hydrate")]
mod browser;
#[cfg(test)]
#[cfg(feature = "ssr")]
mod tests;

use leptos::either::Either;
use leptos::html::Div;
use leptos::prelude::*;
use protocol::fold::RunState;

use self::foot::tree_foot;
use self::item::tree_item;
use self::list::{Key, List, Query};
use self::window::View;
use crate::content::words;
use crate::data::expansion::{Expansion, Open};
use crate::data::run_store::RunStore;
use crate::data::selection::{Selection, Way};
use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic, dynamic_list, handler, memo};
use crate::ui::{Icon, IconName, format};

/// The tree and how it is moved in. A copy is another handle on it.
#[derive(Clone, Copy)]
struct Tree {
    session: SessionStore,
    selection: Selection,
    expansion: StoredValue<Expansion>,
    /// Every item is open until somebody closes it.
    is_open: Signal<bool>,
    /// What is searched for.
    query: RwSignal<String>,
    list: Memo<List>,
    view: RwSignal<View>,
    /// The item that the keyboard is at: the one that Tab leads to.
    active: RwSignal<Option<Key>>,
    /// What scrolls.
    scroller: NodeRef<Div>,
}

impl Tree {
    fn new(session: SessionStore, selection: Selection) -> Self {
        let expansion = Expansion::use_context();
        let is_open = Signal::stored(true);
        let query = RwSignal::new(String::new());
        let list = {
            let expansion = expansion.clone();
            memo(move || {
                let runs = session.runs();
                match Query::of(&query.read()) {
                    Some(query) => List::matching(&runs, &query),
                    None => List::opened(&runs, &|key| expansion.row(&key.expansion(), is_open).get()),
                }
            })
        };
        // What a link leads to is in what the server renders.
        let selected = selection.node_untracked().map(Key::Node);
        let place = selected.and_then(|key| list.with_untracked(|list| list.place(&key)));
        Self {
            session,
            selection,
            expansion: StoredValue::new(expansion),
            is_open,
            query,
            list,
            view: RwSignal::new(View::rendered_at(place)),
            active: RwSignal::new(None),
            scroller: NodeRef::new(),
        }
    }

    fn open(self, key: &Key) -> Open {
        self.expansion
            .with_value(|expansion| expansion.row(&key.expansion(), self.is_open))
    }

    /// The item that Tab leads to: where the keyboard was, else what is selected, else the first.
    fn stop(self) -> Option<Key> {
        let selected = || self.selection.node().map(Key::Node);
        let active = self.active.get();
        self.list.with(|list| {
            let known = |key: &Key| list.place(key).is_some();
            active
                .filter(known)
                .or_else(|| selected().filter(known))
                .or_else(|| list.items().first().map(|item| item.key.clone()))
        })
    }

    /// The user's choice of an item: a node is selected, and its row comes into view; a run opens or closes.
    fn choose(self, key: &Key) {
        match key {
            Key::Run(_) => self.open(key).toggle(),
            // A second choice of the selected node opens or closes it.
            Key::Node(node) if untrack(|| self.selection.is(node)) && self.has_children(key) => {
                self.open(key).toggle();
            }
            Key::Node(node) => self.selection.select(node.clone()),
        }
    }

    fn has_children(self, key: &Key) -> bool {
        self.list.with_untracked(|list| {
            list.item(key)
                .is_some_and(|item| item.branch != list::Branch::Leaf)
        })
    }

    /// Opens what lies above a node. Gives its run.
    #[cfg_attr(
        not(any(feature = "hydrate", test)),
        expect(dead_code, reason = "only the browser locates")
    )]
    fn open_path(self, node: &protocol::id::NodeId) -> Option<RunStore> {
        let run = untrack(|| self.session.run_of(node))?;
        let way = run.peek(|state| Way::to(state, node));
        self.open(&Key::Run(run.run_id().clone())).set(true);
        for above in way.path.into_iter().skip(1) {
            self.open(&Key::Node(above)).set(true);
        }
        Some(run)
    }
}

/// The panel at the left; on a phone a drawer.
#[component]
pub fn TreePanel(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let tree = Tree::new(session, Selection::use_context());
    #[cfg(feature = "hydrate")]
    browser::start(tree);
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
            <TreeSearch tree/>
            <TreeItems tree/>
            {tree_foot(session)}
        </aside>
    }
}

/// The field that leaves only what matches, with its path.
#[component]
fn TreeSearch(tree: Tree) -> impl IntoView {
    #[cfg(feature = "hydrate")]
    let on_key = browser::on_search_key(tree);
    #[cfg(not(feature = "hydrate"))]
    let on_key = |_: leptos::ev::KeyboardEvent| {};
    let found = memo(move || {
        tree.list.with(|list| {
            let hits = list.hits()?;
            // Of a long run only a part may be in the page, and only that is searched.
            let is_whole = tree.session.runs().iter().all(|run| run.peek(RunState::is_whole));
            let of = if is_whole { "" } else { " of what is loaded" };
            Some(match hits {
                0 => format!("Nothing{of} matches"),
                hits => format!("{}{of}", words::counted_as(hits, "match", "matches")),
            })
        })
    });
    view! {
        <div class="tree__search">
            <label class="field">
                <Icon icon=IconName::Search small=true/>
                <span class="sr-only">"Search the tree"</span>
                <input
                    type="search"
                    id="tree-search"
                    placeholder="Search"
                    autocomplete="off"
                    prop:value=dynamic(move || tree.query.get())
                    on:input=handler(move |event| tree.query.set(event_target_value(&event)))
                    on:keydown=on_key
                />
            </label>
            <p class="tree__found" role="status">{found}</p>
        </div>
    }
}

/// The items that are in the page, with room for those before and after.
#[component]
fn TreeItems(tree: Tree) -> impl IntoView {
    let count = memo(move || tree.list.with(|list| list.items().len()));
    let range = memo(move || tree.view.get().range(count.get()));
    let keys = memo(move || {
        let range = range.get();
        tree.list.with(|list| {
            let items = list.items().get(range).unwrap_or_default();
            items.iter().map(|item| item.key.clone()).collect::<Vec<_>>()
        })
    });
    let stop = memo(move || tree.stop());
    // While the item that Tab leads to is not in the page, the tree itself is where it leads to.
    let own_stop = dynamic(move || {
        let is_there =
            stop.with(|stop| keys.with(|keys| stop.as_ref().is_some_and(|key| keys.contains(key))));
        if is_there || count.get() == 0 { "-1" } else { "0" }
    });
    #[cfg(feature = "hydrate")]
    let (on_key, on_focus) = (browser::on_key(tree), browser::on_focus(tree));
    #[cfg(not(feature = "hydrate"))]
    let (on_key, on_focus) = (|_: leptos::ev::KeyboardEvent| {}, |_: leptos::ev::FocusEvent| {});
    let before = dynamic(move || room(tree.view.get(), range.get().start, "before"));
    let after = dynamic(move || {
        room(
            tree.view.get(),
            count.get().saturating_sub(range.get().end),
            "more",
        )
    });
    view! {
        <div class="tree" node_ref=tree.scroller>
            {before}
            <div
                role=dynamic(move || (count.get() > 0).then_some("tree"))
                aria-label=dynamic(move || (count.get() > 0).then_some("Runs and nodes"))
                tabindex=own_stop
                on:keydown=on_key
                on:focusin=on_focus
            >
                {dynamic_list(move || keys.get(), Clone::clone, move |key| tree_item(tree, key, stop).into_any())}
            </div>
            {after}
        </div>
    }
}

/// The room of items that are not in the page; before the page knows how high they are, their number. As a picture of that
/// height: the policy lets no style stand in an element.
fn room(view: View, items: usize, place: &'static str) -> Option<impl IntoView> {
    (items > 0).then(|| match view.height_of(items) {
        Some(height) => Either::Left(
            view! { <svg class="tree__room" aria-hidden="true" height=height.to_string()></svg> },
        ),
        None => Either::Right(view! {
            <p class="tree__rest muted">{format!("{} {place}", format::count(items as u64))}</p>
        }),
    })
}
