//! What only the browser does with the tree: keys, the focus, and which part of it is seen.

use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, ResizeObserver};

use super::Tree;
use super::facts;
use super::list::Key;
use super::step::{self, Follow, Outcome};
use super::window::View;
use crate::data::selection::Part;
use crate::shell::focus::{active, after_drawing, find, focus, focus_in_place, hide_drawer, show_drawer};
use crate::shell::keys::{self, Command, Region};
use crate::ui::Listener;
use crate::ui::dynamic::effect;

/// Letters that come within this time are one word, in milliseconds.
const TOGETHER: f64 = 700.0;

/// The height of an item before one was seen.
const ITEM: f64 = 26.0;

pub(super) fn start(tree: Tree) {
    effect(move || {
        if let Some(scroller) = tree.scroller.get() {
            watch(tree, scroller.unchecked_into());
        }
    });
    // What is searched for leaves other items, of which the first are seen.
    Effect::new(move |before: Option<()>| {
        tree.query.track();
        if before.is_some() {
            scroll(tree, 0.0);
        }
    });
    // What is selected elsewhere is seen here too, unless its path is closed.
    effect(move || {
        if let Some(node) = tree.selection.node() {
            // Tab leads to it, unless the keyboard is in the tree.
            if active().is_none_or(|element| element.get_attribute("data-tree-node").is_none()) {
                tree.active.set(None);
            }
            after_drawing(move || bring(tree, &Key::Node(node)));
        }
    });
    effect(move || {
        let Some(reveal) = tree
            .selection
            .revealed()
            .filter(|reveal| reveal.part == Part::Tree)
        else {
            return;
        };
        let key = Key::Node(reveal.node.clone());
        if tree.open_path(&reveal.node).is_none() {
            return;
        }
        if tree.list.with_untracked(|list| list.place(&key).is_none()) {
            tree.query.set(String::new());
        }
        show_drawer("tree");
        after_drawing(move || {
            go(tree, key);
            tree.selection.settle(&reveal.node);
        });
    });
}

/// Follows which part is seen.
fn watch(tree: Tree, scroller: Element) {
    let look = {
        let scroller = scroller.clone();
        move || {
            let item = scroller.query_selector(".tree__item").ok().flatten();
            let item = item.map_or(0.0, |item| item.get_bounding_client_rect().height());
            let known = match tree.view.try_get_untracked() {
                Some(View::Seen { item, .. }) => item,
                Some(View::Rendered { .. }) => ITEM,
                None => return,
            };
            see(
                tree,
                View::Seen {
                    top: f64::from(scroller.scroll_top()),
                    height: f64::from(scroller.client_height()),
                    // A drawer that is closed has no height.
                    item: if item > 0.0 { item } else { known },
                },
            );
        }
    };
    let first = match tree.view.get_untracked() {
        View::Rendered { first } => first,
        View::Seen { .. } => 0,
    };
    look();
    if let (true, Some(top)) = (first > 0, tree.view.get_untracked().height_of(first)) {
        after_drawing(move || scroll(tree, top));
    }
    let on_scroll = {
        let look = look.clone();
        Listener::new(&scroller, "scroll", move |_| look())
    };
    let on_resize = Closure::<dyn FnMut()>::new(look);
    let observer = ResizeObserver::new(on_resize.as_ref().unchecked_ref()).ok();
    if let Some(observer) = &observer {
        observer.observe(&scroller);
    }
    let kept = StoredValue::new_local((observer, on_scroll, on_resize));
    on_cleanup(move || {
        let _ = kept.try_with_value(|(observer, ..)| observer.as_ref().map(ResizeObserver::disconnect));
        kept.dispose();
    });
}

/// Takes in what is seen. The focus stays in the tree when its item leaves the page.
fn see(tree: Tree, view: View) {
    let focused = active().and_then(|element| element.get_attribute("data-tree-node"));
    if let Some(id) = focused {
        let stays = tree.list.try_with_untracked(|list| {
            let range = view.range(list.items().len());
            let items = list.items().get(range).unwrap_or_default();
            items.iter().any(|item| item.key.as_str() == id)
        });
        let stays = stays.unwrap_or(true);
        if let Some(tree) = find("#tree [role=tree]").filter(|_| !stays) {
            focus_in_place(&tree);
        }
    }
    if tree.view.try_get_untracked().is_some_and(|known| known != view) {
        tree.view.set(view);
    }
}

fn scroll(tree: Tree, top: f64) {
    let Some(scroller) = tree.scroller.try_get_untracked().flatten() else {
        return;
    };
    scroller.set_scroll_top(top as i32);
    if let Some(View::Seen { height, item, .. }) = tree.view.try_get_untracked() {
        see(tree, View::Seen { top, height, item });
    }
}

/// Scrolls to an item that is out of sight.
fn bring(tree: Tree, key: &Key) {
    let place = tree.list.try_with_untracked(|list| list.place(key)).flatten();
    let view = tree.view.try_get_untracked();
    if let Some(top) = place.zip(view).and_then(|(place, view)| view.scroll_to(place)) {
        scroll(tree, top);
    }
}

/// The focus goes to an item, once it is drawn. Who has gone on to another one by then stays
/// there.
fn go(tree: Tree, key: Key) {
    tree.active.set(Some(key.clone()));
    bring(tree, &key);
    after_drawing(move || {
        if tree.active.try_get_untracked().flatten().as_ref() != Some(&key) {
            return;
        }
        if let Some(item) = find(&format!("#tree [data-tree-node=\"{}\"]", key.as_str())) {
            focus(&item);
        }
    });
}

/// The keyboard goes on from the item that has the focus, however it came there.
pub(super) fn on_focus(tree: Tree) -> impl Fn(FocusEvent) + 'static {
    move |event| {
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok());
        let id = target.and_then(|element| element.get_attribute("data-tree-node"));
        let key = id.and_then(|id| {
            tree.list.with_untracked(|list| {
                let mut items = list.items().iter();
                items
                    .find(|item| item.key.as_str() == id)
                    .map(|item| item.key.clone())
            })
        });
        if key.is_some() && tree.active.get_untracked() != key {
            tree.active.set(key);
        }
    }
}

/// Keys in the tree.
pub(super) fn on_key(tree: Tree) -> impl Fn(KeyboardEvent) + 'static {
    let word = StoredValue::new((String::new(), 0.0));
    move |event| {
        let Some(from) = untrack(|| tree.stop()) else {
            return;
        };
        match keys::pressed(Region::Tree, &event) {
            Some(Command::Step(step)) => {
                // A word ends where another key is pressed.
                word.update_value(|(word, _)| word.clear());
                let outcome = tree.list.with_untracked(|list| step::step(list, &from, step));
                event.prevent_default();
                perform(tree, outcome);
            }
            Some(Command::Search) => {
                event.prevent_default();
                if let Some(field) = find("#tree-search") {
                    focus(&field);
                }
            }
            Some(_) => {}
            None => {
                let key = event.key();
                let is_letter = key.chars().count() == 1 && key != " ";
                if !is_letter || event.ctrl_key() || event.meta_key() || event.alt_key() {
                    return;
                }
                event.prevent_default();
                let now = event.time_stamp();
                let typed = word
                    .try_update_value(|(word, at)| {
                        if now - *at > TOGETHER {
                            word.clear();
                        }
                        *at = now;
                        word.push_str(&key);
                        word.clone()
                    })
                    .unwrap_or_default();
                let found = tree
                    .list
                    .with_untracked(|list| step::typed(list, &from, &typed, |key| name(tree, key)));
                if let Some(key) = found {
                    go(tree, key);
                }
            }
        }
    }
}

fn perform(tree: Tree, outcome: Outcome) {
    match outcome {
        Outcome::Nothing => {}
        Outcome::To(key) => go(tree, key),
        Outcome::Turn(key, is_open) => {
            tree.open(&key).set(is_open);
            go(tree, key);
        }
        Outcome::OpenAll(keys) => keys.iter().for_each(|key| tree.open(key).set(true)),
        Outcome::Choose(key, Follow::Stays) => {
            tree.active.set(Some(key.clone()));
            tree.choose(&key);
        }
        Outcome::Choose(key, Follow::Goes) => match key {
            Key::Node(node) => tree.selection.go(node),
            Key::Run(run) => {
                hide_drawer("tree");
                let rows = format!("#main [data-run-id=\"{run}\"] :is(.foldline > button, .row__toggle)");
                if let Some(row) = find(&rows) {
                    focus(&row);
                }
            }
        },
    }
}

fn name(tree: Tree, key: &Key) -> String {
    tree.list
        .with_untracked(|list| {
            let item = list.item(key)?;
            item.run.peek(|state| match key {
                Key::Run(_) => Some(facts::of_run(state, item.number).name),
                Key::Node(node) => state.node(node).map(|node| node.name.clone()),
            })
        })
        .unwrap_or_default()
}

/// Keys in the field that searches the tree.
pub(super) fn on_search_key(tree: Tree) -> impl Fn(KeyboardEvent) + 'static {
    move |event| match keys::pressed(Region::TreeSearch, &event) {
        Some(Command::Found) => {
            event.prevent_default();
            // The first that matches, not what leads to it.
            let found = tree.list.with_untracked(|list| {
                let first = list.items().iter().find(|item| !item.is_way);
                first.map(|item| item.key.clone())
            });
            if let Some(key) = found {
                go(tree, key);
            }
        }
        Some(Command::Clear) => {
            event.prevent_default();
            if tree.query.with_untracked(String::is_empty) {
                // Nothing to clear: back to the items.
                if let Some(key) = untrack(|| tree.stop()) {
                    go(tree, key);
                }
            } else {
                tree.query.set(String::new());
            }
        }
        _ => {}
    }
}
