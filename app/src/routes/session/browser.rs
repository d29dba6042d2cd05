//! What only the browser does on the page of a session: scrolling to what is asked for, opening the drawer.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use protocol::id::{BlockId, NodeId};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, HtmlElement, ScrollIntoViewOptions, ScrollLogicalPosition};

use crate::data::selection::{Reveal, Selection};
use crate::data::session_store::SessionStore;

pub(super) fn start(selection: Selection, session: SessionStore) {
    let query = use_query_map();
    // A link to a block leads there, once.
    Effect::new(move |_| {
        let block = query
            .with(|query| query.get("block"))
            .and_then(|block| block.parse::<BlockId>().ok());
        if let Some(block) = block {
            after_drawing(move || {
                find(&[format!("#main [data-block-id=\"{block}\"]")])
                    .iter()
                    .for_each(scroll_to);
            });
        }
    });
    // So does a link to a node.
    let first = StoredValue::new(true);
    Effect::new(move |_| {
        let Some(node) = selection.node() else { return };
        if first.get_value() {
            reveal_content(session, node);
        }
        first.set_value(false);
        open_drawer();
    });
    Effect::new(move |_| match selection.revealed() {
        None => {}
        Some(Reveal::Content(node)) => reveal_content(session, node),
        Some(Reveal::Tree(node)) => after_drawing(move || {
            find(&[format!("#tree [data-tree-node=\"{node}\"]")])
                .iter()
                .for_each(scroll_to);
        }),
    });
}

/// The view is up to date two frames after what changed it.
fn after_drawing(act: impl FnOnce() + 'static) {
    request_animation_frame(move || request_animation_frame(act));
}

/// Scrolls to the row of a node, or to the nearest row above it that is in the page.
fn reveal_content(session: SessionStore, node: NodeId) {
    let mut path = vec![node.clone()];
    if let Some(run) = untrack(|| session.run_of(&node)) {
        run.peek(|state| {
            let mut next = state.node(&node).and_then(|node| node.parent_id.clone());
            while let Some(parent) = next.filter(|parent| !path.contains(parent)) {
                next = state.node(&parent).and_then(|node| node.parent_id.clone());
                path.push(parent);
            }
        });
    }
    after_drawing(move || {
        let selectors: Vec<String> = path
            .iter()
            .map(|node| format!("#main [data-node-id=\"{node}\"]"))
            .collect();
        find(&selectors).iter().for_each(scroll_to);
    });
}

/// The first element that one of the selectors finds.
fn find(selectors: &[String]) -> Option<Element> {
    selectors
        .iter()
        .find_map(|selector| document().query_selector(selector).ok().flatten())
}

fn scroll_to(element: &Element) {
    let options = ScrollIntoViewOptions::new();
    options.set_block(ScrollLogicalPosition::Nearest);
    element.scroll_into_view_with_scroll_into_view_options(&options);
}

/// Where the details are a drawer, it opens; elsewhere they are always there.
fn open_drawer() {
    let is_narrow = window()
        .match_media("(max-width: 1180px)")
        .ok()
        .flatten()
        .is_some_and(|query| query.matches());
    let Some(details) = document().get_element_by_id("details").filter(|_| is_narrow) else {
        return;
    };
    let details: HtmlElement = details.unchecked_into();
    // Browsers without popovers keep it closed; opening an open one is an error that changes nothing.
    if let Ok(show) = js_sys::Reflect::get(&details, &JsValue::from_str("showPopover"))
        && let Some(show) = show.dyn_ref::<js_sys::Function>()
    {
        let _ = show.call0(&details);
    }
}
