//! What the keys of a page do, outside of the tree and of fields, which have handlers of their own.

use leptos::ev;
use leptos::prelude::*;
use protocol::id::{BlockId, NodeId};
use wasm_bindgen::JsCast;
use web_sys::Element;

use super::{Command, Overlay, Page, Region, pressed};
use crate::data::selection::Selection;
use crate::data::session_store::SessionStore;
use crate::shell::focus::{active, find, focus, hide_drawer, is_field, show_drawer, toggle_of};

pub(super) fn start(page: Page, overlay: Overlay) {
    let on_key = window_event_listener(ev::keydown, move |event| {
        // What was handled where the focus is, and what is written in a field, is no key of the page.
        let focused = active();
        if event.default_prevented() || is_covered() {
            return;
        }
        let field = focused.as_ref().filter(|element| is_field(element));
        let is_command = event.ctrl_key() || event.meta_key();
        let region = match field {
            None => region(page, focused.as_ref()),
            // Nothing is written by such a key: the session's hold in its prompt too.
            Some(field) if is_command && field.id() == "say" => match page {
                Page::Session { .. } => Region::Session,
                Page::Sessions | Page::Other => return,
            },
            Some(_) => return,
        };
        let Some(command) = pressed(region, &event) else {
            return;
        };
        if act(page, overlay, region, command, focused.as_ref()) {
            event.prevent_default();
        }
    });
    on_cleanup(move || on_key.remove());
}

/// Whether a dialog lies over the page: its keys are the browser's.
fn is_covered() -> bool {
    find("dialog[open]").is_some()
}

/// The region that the focus is in.
fn region(page: Page, focused: Option<&Element>) -> Region {
    let is_in =
        |selector: &str| focused.is_some_and(|element| element.closest(selector).ok().flatten().is_some());
    match page {
        Page::Other => Region::Page,
        Page::Sessions => Region::Sessions,
        Page::Session { .. } if is_in("#tree [role=tree]") => Region::Tree,
        Page::Session { .. } if is_in("#details") => Region::Details,
        Page::Session { .. } if is_in(".find") => Region::Find,
        Page::Session { .. } => Region::Content,
    }
}

/// Does what a key asks for; `false` leaves the key to the browser.
fn act(page: Page, overlay: Overlay, region: Region, command: Command, focused: Option<&Element>) -> bool {
    match (command, page) {
        (Command::Sheet, _) => overlay.sheet.set(true),
        (Command::NextRow, _) => return step(region, focused, 1),
        (Command::PreviousRow, _) => return step(region, focused, -1),
        (Command::Compose, _) => return find("#say").is_some_and(|field| focus(&field)),
        (Command::Search, Page::Session { find, .. }) => find.open(),
        (Command::NextHit, Page::Session { find, .. }) => {
            if find.is_open() {
                find.step(1);
            }
            return find.is_open();
        }
        (Command::Search, _) => return find("[role=search] input").is_some_and(|field| focus(&field)),
        (Command::Tree, _) => return go_to_tree(),
        (Command::Close, Page::Session { selection, .. }) => return close(selection),
        (Command::Follow, Page::Session { follow, .. }) => follow.resume(),
        (Command::Start, _) => return go_to_start(),
        (Command::Stop, Page::Session { session, .. }) => {
            let is_live = untrack(|| session.current().is_some_and(|run| !run.status().is_final()));
            overlay.stop.set(is_live);
            return is_live;
        }
        (
            Command::Locate,
            Page::Session {
                selection, session, ..
            },
        ) => {
            let node = focused.and_then(|row| node_of(row, session));
            return node.map(|node| selection.locate(node)).is_some();
        }
        (
            Command::Details,
            Page::Session {
                selection, session, ..
            },
        ) => {
            let node = focused.and_then(|row| node_of(row, session));
            return node.map(|node| selection.open(node)).is_some();
        }
        // The tree, fields and controls do the rest by themselves.
        _ => return false,
    }
    true
}

/// What `j` and `k` go through.
fn rows(region: Region) -> Vec<Element> {
    let selector = match region {
        Region::Sessions => "#main .ses",
        Region::Details => "#details .row__toggle, #details .older a",
        _ => "#main .row__toggle, #main .foldline > button, #main .older a",
    };
    let Ok(list) = document().query_selector_all(selector) else {
        return Vec::new();
    };
    (0..list.length())
        .filter_map(|place| list.get(place)?.dyn_into::<Element>().ok())
        .filter(|row| row.client_height() > 0)
        .collect()
}

/// Goes to the next row or the one before; from elsewhere to the first or the last one that is seen.
fn step(region: Region, focused: Option<&Element>, by: i32) -> bool {
    let rows = rows(region);
    // From a control of a row too.
    let own = focused.and_then(toggle_of);
    let from = own.as_ref().or(focused);
    let place = from.and_then(|from| rows.iter().position(|row| row == from));
    let next = match place {
        Some(place) if by > 0 => rows.get(place + 1),
        Some(place) => place.checked_sub(1).and_then(|place| rows.get(place)),
        None => {
            let height = window()
                .inner_height()
                .ok()
                .and_then(|height| height.as_f64())
                .unwrap_or(0.0);
            let top = |row: &Element| row.get_bounding_client_rect().top();
            let seen = |row: &&Element| top(row) >= 0.0 && top(row) < height;
            if by > 0 {
                rows.iter().find(seen).or(rows.first())
            } else {
                rows.iter().rev().find(seen).or(rows.last())
            }
        }
    };
    next.is_some_and(focus)
}

/// The node of the row that an element belongs to; of a text or of reasoning, the one that wrote it.
fn node_of(element: &Element, session: SessionStore) -> Option<NodeId> {
    if let Some(details) = element.closest("#details").ok().flatten()
        && element.closest(".row").ok().flatten().is_none()
    {
        let title = details.query_selector("[data-details-node]").ok().flatten()?;
        return title.get_attribute("data-details-node")?.parse().ok();
    }
    let row = element
        .closest("[data-node-id], [data-block-id]")
        .ok()
        .flatten()?;
    if let Some(node) = row.get_attribute("data-node-id") {
        return node.parse().ok();
    }
    let block: BlockId = row.get_attribute("data-block-id")?.parse().ok()?;
    let runs = untrack(|| session.runs());
    runs.iter()
        .find_map(|run| run.peek(|state| state.block(&block).map(|block| block.node_id.clone())))
}

fn go_to_tree() -> bool {
    show_drawer("tree");
    find("#tree [role=treeitem][tabindex=\"0\"], #tree [role=tree][tabindex=\"0\"]")
        .is_some_and(|item| focus(&item))
}

/// Wherever the focus is. The key is left to the browser, so that following hears of it and stops.
fn go_to_start() -> bool {
    if let Some(scroller) = find(".main__scroll") {
        scroller.set_scroll_top(0);
    }
    false
}

/// Closes the details, where no drawer lies over the page: the browser closes that.
fn close(selection: Selection) -> bool {
    let is_selected = untrack(|| selection.node().is_some());
    if !is_selected || find("#tree:popover-open").is_some() {
        return false;
    }
    selection.clear();
    hide_drawer("details");
    true
}
