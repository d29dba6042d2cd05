//! What only the browser does on the page of a session: it brings what is asked for into view, opens drawers, and gives the
//! focus back to where a panel was opened from.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use protocol::id::{BlockId, NodeId};
use wasm_bindgen::JsCast;
use web_sys::{Element, MouseEvent};

use crate::data::expansion::Expansion;
use crate::data::guide::{self, Goal, Guide};
use crate::data::selection::{Part, Selection};
use crate::data::session_store::SessionStore;
use crate::shell::focus::{
    active, after_drawing, find, focus, focus_in_place, hide_drawer, scroll_to, show_drawer, toggle_of,
};
use crate::ui::Listener;
use crate::ui::dynamic::effect;

pub(super) fn start(selection: Selection, session: SessionStore) {
    let query = use_query_map();
    let (guide, expansion) = (Guide::use_context(), Expansion::use_context());
    let means = move || guide::Means {
        session,
        selection,
        guide,
        expansion: expansion.clone(),
    };
    // A link to a block leads there, once.
    let to_block = means.clone();
    effect(move || {
        let block = query
            .with(|query| query.get("block"))
            .and_then(|block| block.parse::<BlockId>().ok());
        if let Some(block) = block {
            guide::go(to_block(), Goal::Block(block), |arrived| {
                arrived.iter().for_each(|arrived| scroll_to(&arrived.element));
            });
        }
    });
    // So does a link to a node.
    let opened_from = StoredValue::new_local(None::<Element>);
    let to_node = means.clone();
    Effect::new(move |before: Option<Option<NodeId>>| {
        let node = selection.node();
        match (&node, before.flatten()) {
            (Some(node), before) => {
                if before.is_none() {
                    opened_from.set_value(active().filter(|element| !is_in_details(element)));
                }
                if selection.came_by_link(node) {
                    seek(to_node(), node.clone(), false);
                    show_drawer("details");
                }
            }
            (None, Some(before)) => give_back(opened_from.try_update_value(Option::take).flatten(), &before),
            (None, None) => {}
        }
        node
    });
    effect(move || {
        let Some(reveal) = selection.revealed() else {
            return;
        };
        match reveal.part {
            Part::Content => {
                hide_drawer("tree");
                seek(means(), reveal.node, reveal.takes_focus);
            }
            Part::Details => {
                show_drawer("details");
                after_drawing(move || {
                    let title = find("#details [data-details-node]").filter(|_| reveal.takes_focus);
                    if let Some(title) = title {
                        focus_in_place(&title);
                    }
                    selection.settle(&reveal.node);
                });
            }
            // The tree does it.
            Part::Tree => {}
        }
    });
    links(selection);
}

/// Links to nodes of the page open the details without leaving the page. The document hears of a click before the router.
fn links(selection: Selection) {
    let on_click = Listener::new(&document(), "click", move |event| {
        let Some(event) = event.dyn_ref::<MouseEvent>() else {
            return;
        };
        let is_plain = event.button() == 0
            && !event.ctrl_key()
            && !event.meta_key()
            && !event.shift_key()
            && !event.alt_key();
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok());
        let link = target.and_then(|target| target.closest("a[href^=\"?node=\"]").ok().flatten());
        let Some(link) = link.filter(|_| is_plain && !event.default_prevented()) else {
            return;
        };
        let href = link.get_attribute("href").unwrap_or_default();
        if let Ok(node) = href.trim_start_matches("?node=").parse::<NodeId>() {
            event.prevent_default();
            selection.open(node);
        }
    });
    let kept = StoredValue::new_local(on_click);
    on_cleanup(move || kept.dispose());
}

/// Brings the row of a node into view; where it does not come, the nearest row above it.
fn seek(means: guide::Means, node: NodeId, takes_focus: bool) {
    let selection = means.selection;
    guide::go(means, Goal::Node(node.clone()), move |arrived| {
        if let Some(arrived) = arrived {
            match (takes_focus, toggle_of(&arrived.element)) {
                (true, Some(toggle)) => drop(focus(&toggle)),
                _ => scroll_to(&arrived.element),
            }
        }
        selection.settle(&node);
    });
}

/// The details were closed: the focus that was in them returns to where they were opened from.
fn give_back(opened_from: Option<Element>, node: &NodeId) {
    let is_inside = |element: Element| element.tag_name() == "BODY" || is_in_details(&element);
    if !active().is_none_or(is_inside) {
        return;
    }
    let node = node.clone();
    after_drawing(move || {
        // The actions of a row are there only while it is pointed at.
        let opener = opened_from
            .filter(|element| element.is_connected() && element.tag_name() != "BODY")
            .map(|element| toggle_of(&element).unwrap_or(element));
        let row = || find(&format!("#main [data-node-id=\"{node}\"] > .row__toggle"));
        if let Some(target) = opener.or_else(row).or_else(|| find(".main__scroll")) {
            focus_in_place(&target);
        }
    });
}

fn is_in_details(element: &Element) -> bool {
    element.closest("#details").ok().flatten().is_some()
}
