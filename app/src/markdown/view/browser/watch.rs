//! What makes a text look anew at which of its parts shall be in the page: a space comes near what is seen, or the page is
//! printed.

use std::cell::RefCell;
use std::rc::Weak;

use leptos::prelude::window;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, HtmlElement, IntersectionObserver, IntersectionObserverInit};

use super::Shown;
use crate::markdown::window::NEAR;

/// The events around printing, and whether everything is shown from then on.
const PRINTING: [(&str, bool); 2] = [("beforeprint", true), ("afterprint", false)];

/// Listens until it is dropped.
pub(super) struct Watch {
    observer: IntersectionObserver,
    _seen: Closure<dyn FnMut()>,
    printing: [Closure<dyn FnMut()>; 2],
}

impl Watch {
    pub(super) fn new(scroller: Option<&Element>, text: Weak<RefCell<Shown>>) -> Option<Self> {
        let look = |text: &Weak<RefCell<Shown>>, all: bool| {
            if let Some(text) = text.upgrade()
                && let Ok(mut text) = text.try_borrow_mut()
            {
                text.look(all);
            }
        };
        let seen = {
            let text = text.clone();
            Closure::<dyn FnMut()>::new(move || look(&text, false))
        };
        let options = IntersectionObserverInit::new();
        options.set_root(scroller);
        options.set_root_margin(&format!("{}% 0px", NEAR * 100.0));
        let observer =
            IntersectionObserver::new_with_options(seen.as_ref().unchecked_ref(), &options).ok()?;
        let printing = PRINTING.map(|(event, all)| {
            let text = text.clone();
            let heard = Closure::<dyn FnMut()>::new(move || look(&text, all));
            let _ = window().add_event_listener_with_callback(event, heard.as_ref().unchecked_ref());
            heard
        });
        Some(Self {
            observer,
            _seen: seen,
            printing,
        })
    }

    /// Says soon whether a space is near what is seen, and again whenever that changes.
    pub(super) fn look_at(&self, space: &Element) {
        self.observer.unobserve(space);
        self.observer.observe(space);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.observer.disconnect();
        for ((event, _), heard) in PRINTING.iter().zip(&self.printing) {
            let _ = window().remove_event_listener_with_callback(event, heard.as_ref().unchecked_ref());
        }
    }
}

/// The element that scrolls what is within it.
pub(super) fn scroller_of(element: &Element) -> Option<Element> {
    let mut next = element.parent_element();
    while let Some(element) = next {
        let style = window().get_computed_style(&element).ok().flatten();
        let overflow = style.and_then(|style| style.get_property_value("overflow-y").ok());
        let scrolls = match overflow.as_deref() {
            Some("auto" | "scroll") => true,
            // While the page takes the reader's scrolling away.
            Some("hidden") => element.scroll_height() > element.client_height(),
            _ => false,
        };
        if scrolls {
            return Some(element);
        }
        next = element.parent_element();
    }
    None
}

/// The policy forbids styles in markup, not those that a script sets.
pub(super) fn set_height(element: &Element, height: f64) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.style().set_property("height", &format!("{height}px"));
    }
}
