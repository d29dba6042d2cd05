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
use crate::ui::Listener;

/// The events around printing, and whether everything is shown after them.
const PRINTING: [(&str, bool); 2] = [("beforeprint", true), ("afterprint", false)];

/// Listens until it is dropped.
pub(super) struct Watch {
    observer: IntersectionObserver,
    _seen: Closure<dyn FnMut()>,
    _printing: [Listener; 2],
}

impl Watch {
    pub(super) fn new(scroller: Option<&Element>, text: Weak<RefCell<Shown>>) -> Option<Self> {
        let with = |text: &Weak<RefCell<Shown>>, act: &dyn Fn(&mut Shown)| {
            if let Some(text) = text.upgrade()
                && let Ok(mut text) = text.try_borrow_mut()
            {
                act(&mut text);
            }
        };
        let seen = {
            let text = text.clone();
            Closure::<dyn FnMut()>::new(move || with(&text, &Shown::look))
        };
        let options = IntersectionObserverInit::new();
        options.set_root(scroller);
        options.set_root_margin(&format!("{}% 0px", NEAR * 100.0));
        let observer =
            IntersectionObserver::new_with_options(seen.as_ref().unchecked_ref(), &options).ok()?;
        let printing = PRINTING.map(|(event, is_printing)| {
            let text = text.clone();
            Listener::new(&window(), event, move |_| {
                with(&text, &|text| text.print(is_printing));
            })
        });
        Some(Self {
            observer,
            _seen: seen,
            _printing: printing,
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
