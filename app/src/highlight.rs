//! The colours of code and the marks of what a search found, in the browser.
//!
//! The server says what is what ([`protocol::api::Highlighted`]); the browser paints it over the text (the CSS Custom
//! Highlight API), so no element, no text and no geometry changes by it: what is selected stays selected, and a text that
//! grew equals one that was rendered at once. A browser without that interface shows plain text.
//!
//! What is painted is asked of the page itself: blocks of code with a language, and elements with `data-language` or
//! `data-pattern`, wherever and whenever they come. Only what is in sight is asked for, and only its lines are painted:
//! a browser looks at every painted range whenever the page changes.

pub(crate) mod brushes;
mod code;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use leptos::prelude::*;
use protocol::api::{HighlightText, Highlighted};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, MutationObserver, MutationObserverInit, MutationRecord, Node};

use crate::data::api;
use crate::data::connection::ConnectionState;
use crate::data::live::Live;
use crate::ui::dynamic::effect;
use brushes::Brushes;
use code::{Code, Knowledge};

/// What may be painted. The open end of a text is not: it is made anew with each frame.
const CODE: &str = "figure.codeblock code, [data-language], [data-pattern]";
const OPEN_END: &str = ".md__tail";
/// So many answers are remembered; then all are forgotten.
const REMEMBERED: usize = 200;

struct Painter {
    live: Live,
    brushes: Brushes,
    codes: Vec<Code>,
    remembered: HashMap<HighlightText, Rc<Highlighted>>,
    is_due: bool,
}

thread_local! {
    static PAINTER: RefCell<Option<Painter>> = const { RefCell::new(None) };
}

/// Paints from now on, once the page is hydrated.
pub(crate) fn start(live: Live) {
    effect(move || {
        // Also when the connection is back.
        let _ = live.state();
        if PAINTER.with_borrow(Option::is_none) {
            begin(live);
        }
        look_soon();
    });
}

fn begin(live: Live) -> Option<()> {
    let brushes = Brushes::new()?;
    let body = document().body()?;
    PAINTER.set(Some(Painter {
        live,
        brushes,
        codes: Vec::new(),
        remembered: HashMap::new(),
        is_due: false,
    }));
    find(&body);
    let changed = Closure::<dyn FnMut(js_sys::Array)>::new(|records: js_sys::Array| {
        for record in records.iter() {
            take(record.unchecked_ref());
        }
    });
    let observer = MutationObserver::new(changed.as_ref().unchecked_ref()).ok()?;
    changed.forget();
    let options = MutationObserverInit::new();
    options.set_child_list(true);
    options.set_subtree(true);
    let attributes = ["data-language", "data-pattern"].map(JsValue::from_str);
    options.set_attribute_filter(&js_sys::Array::from_iter(attributes));
    observer.observe_with_options(&body, &options).ok()?;
    let moved = Closure::<dyn FnMut()>::new(look_soon);
    let listener = moved.as_ref().unchecked_ref();
    for event in ["scroll", "toggle"] {
        document()
            .add_event_listener_with_callback_and_bool(event, listener, true)
            .ok()?;
    }
    window()
        .add_event_listener_with_callback("resize", listener)
        .ok()?;
    moved.forget();
    Some(())
}

/// Something came into the page, went, or said what it is.
fn take(record: &MutationRecord) {
    let Some(target) = record.target() else { return };
    if record.type_() == "attributes" {
        if let Some(element) = target.dyn_ref::<Element>() {
            add(element);
        }
        return look_soon();
    }
    let is_open_end = |node: &Node| {
        let element = node.dyn_ref::<Element>();
        element.is_some_and(|element| matches!(element.closest(OPEN_END), Ok(Some(_))))
    };
    if is_open_end(&target) {
        return;
    }
    let added = record.added_nodes();
    let mut is_due = record.removed_nodes().length() > 0;
    for place in 0..added.length() {
        if let Some(element) = added.item(place).and_then(|node| node.dyn_into::<Element>().ok()) {
            is_due |= find(&element);
        }
    }
    if is_due {
        look_soon();
    }
}

/// Takes in what can be painted at or within an element. Says whether there is any.
fn find(element: &Element) -> bool {
    let mut is_any = element.matches(CODE) == Ok(true) && add(element);
    if let Ok(all) = element.query_selector_all(CODE) {
        for place in 0..all.length() {
            let code = all.item(place).and_then(|node| node.dyn_into::<Element>().ok());
            is_any |= code.is_some_and(|code| add(&code));
        }
    }
    is_any
}

fn add(element: &Element) -> bool {
    if matches!(element.closest(OPEN_END), Ok(Some(_))) {
        return false;
    }
    PAINTER.with_borrow_mut(|painter| {
        let Some(painter) = painter else { return false };
        let known = painter.codes.iter().position(|code| code.is_of(element));
        if let Some(place) = known {
            painter.codes.swap_remove(place).clear(&painter.brushes);
        }
        let Some(mut code) = Code::new(element.clone()) else {
            return false;
        };
        if let Some(places) = painter.remembered.get(code.asks()) {
            code.knowledge = Knowledge::Places(Rc::clone(places));
        }
        painter.codes.push(code);
        true
    })
}

/// Looks with the next frame at what is in sight.
fn look_soon() {
    let is_new = PAINTER.with_borrow_mut(|painter| {
        painter
            .as_mut()
            .is_some_and(|painter| !std::mem::replace(&mut painter.is_due, true))
    });
    if is_new {
        request_animation_frame(look);
    }
}

/// Paints what is in sight, asks for what is not known of it, and lets go of what is not.
fn look() {
    let asked: Vec<HighlightText> = PAINTER.with_borrow_mut(|painter| {
        let Some(painter) = painter else {
            return Vec::new();
        };
        painter.is_due = false;
        let Painter {
            live, brushes, codes, ..
        } = painter;
        codes.retain_mut(|code| {
            let is_there = code.is_there();
            if !is_there {
                code.clear(brushes);
            }
            is_there
        });
        let Some(height) = window().inner_height().ok().and_then(|height| height.as_f64()) else {
            return Vec::new();
        };
        let may_ask = live.try_state() == Some(ConnectionState::Live);
        let mut asked = Vec::new();
        for code in codes {
            if !code.show(height, brushes) {
                continue;
            }
            if may_ask && matches!(code.knowledge, Knowledge::None) {
                code.knowledge = Knowledge::Asked;
                if !asked.contains(code.asks()) {
                    asked.push(code.asks().clone());
                }
            }
        }
        asked
    });
    for text in asked {
        ask(text);
    }
}

fn ask(text: HighlightText) {
    leptos::task::spawn_local(async move {
        let answer = api::highlight(&text).await.ok().map(Rc::new);
        PAINTER.with_borrow_mut(|painter| {
            let Some(painter) = painter else { return };
            if let Some(places) = &answer {
                if painter.remembered.len() >= REMEMBERED {
                    painter.remembered.clear();
                }
                painter.remembered.insert(text.clone(), Rc::clone(places));
            }
            for code in painter.codes.iter_mut().filter(|code| *code.asks() == text) {
                code.knowledge = match &answer {
                    Some(places) => Knowledge::Places(Rc::clone(places)),
                    // It is not asked for again: plain text can be read.
                    None => Knowledge::Refused,
                };
            }
        });
        look_soon();
    });
}
