//! The browser's part: what the reader does, and when the content grows.

use std::cell::Cell;
use std::rc::Rc;

use leptos::ev;
use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, HtmlElement, ResizeObserver};

use super::Follow;
use crate::ui::Listener;
use crate::ui::dynamic::effect;

/// So close to the bottom counts as there, in CSS pixels.
const NEAR: i32 = 8;

/// The class that takes the reader's scrolling away.
const STILL: &str = "main__scroll--still";

fn element(node: NodeRef<Div>) -> Option<Element> {
    node.try_get_untracked()
        .flatten()
        .map(wasm_bindgen::JsCast::unchecked_into)
}

fn is_at_bottom(element: &Element) -> bool {
    element.scroll_height() - element.client_height() - element.scroll_top() <= NEAR
}

pub(super) fn to_bottom(follow: Follow) {
    if let Some(element) = element(follow.scroller) {
        element.set_scroll_top(element.scroll_height());
    }
}

/// Longer than the browser moves after one key, in milliseconds.
const MOVEMENT: f64 = 300.0;

/// Goes to the bottom and stays there while a movement of the browser's own may still be under way: its steps come
/// between frames, so the end is held in each frame, and the reader's scrolling is off until then.
pub(super) fn to_bottom_at_once(follow: Follow) {
    if let Some(element) = element(follow.scroller) {
        let _ = element.class_list().add_1(STILL);
        hold(follow, js_sys::Date::now() + MOVEMENT);
    }
}

fn hold(follow: Follow, until: f64) {
    to_bottom(follow);
    request_animation_frame(move || {
        // The reader may go somewhere else meanwhile.
        let is_following = follow.is_following.try_get_untracked() == Some(true);
        if js_sys::Date::now() < until && is_following {
            hold(follow, until);
        } else if let Some(element) = element(follow.scroller) {
            let _ = element.class_list().remove_1(STILL);
            if is_following {
                to_bottom(follow);
            }
        }
    });
}

pub(super) fn stop(follow: Follow) {
    follow.is_asked.try_set_value(false);
    if follow.is_following.try_get_untracked() == Some(true) {
        follow.grown.set(0.0);
        follow.is_following.set(false);
    }
}

pub(super) fn start(follow: Follow) {
    effect(move || {
        let (Some(scroller), Some(content)) = (follow.scroller.get(), follow.content.get()) else {
            return;
        };
        let scroller: HtmlElement = scroller.unchecked_into();
        let content: Element = content.unchecked_into();
        listen(follow, &scroller);
        observe(follow, &scroller, &content);
        if follow.is_following.get_untracked() {
            to_bottom(follow);
        }
    });
}

/// The reader's intents. Scrolling up by any means is seen in the `scroll` event; the wheel and keys earlier.
fn listen(follow: Follow, scroller: &HtmlElement) {
    let last = Rc::new(Cell::new((scroller.scroll_top(), scroller.scroll_height())));
    let on_scroll = {
        let element = scroller.clone();
        Listener::new(scroller, "scroll", move |_| {
            let scroller = &element;
            let (top, height) = (scroller.scroll_top(), scroller.scroll_height());
            let (top_before, height_before) = last.replace((top, height));
            if is_at_bottom(scroller) {
                if follow.is_following.try_get_untracked() == Some(false) {
                    follow.grown.set(0.0);
                    follow.is_following.set(true);
                }
            } else if top < top_before && height >= height_before {
                // Not the browser's own correction after content has become shorter.
                if follow.is_asked.try_get_value() == Some(true) {
                    to_bottom(follow);
                } else {
                    stop(follow);
                }
            }
        })
    };
    let on_wheel = Listener::new(scroller, "wheel", move |event| {
        let wheel = event.dyn_ref::<web_sys::WheelEvent>();
        if wheel.is_some_and(|wheel| wheel.delta_y() < 0.0) {
            stop(follow);
        }
    });
    // The scrollbar and a finger are seen in what they do; here only that the reader has acted.
    let on_pointer = ["pointerdown", "touchstart"].map(|event| {
        Listener::new(scroller, event, move |_| {
            follow.is_asked.try_set_value(false);
        })
    });
    // Whoever opens something wants to read it: it stays where it is.
    let on_click = Listener::new(scroller, "click", move |event| {
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok());
        let control = target.and_then(|target| target.closest("[aria-expanded], summary").ok().flatten());
        if control.is_some() {
            stop(follow);
        }
    });
    let on_key = window_event_listener(ev::keydown, move |event| {
        let in_field = event.target().is_some_and(|target| {
            target
                .dyn_ref::<Element>()
                .is_some_and(|element| matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"))
        });
        match event.key().as_str() {
            // In the tree and in dialogs such keys mean something else.
            _ if in_field || event.default_prevented() => {}
            "ArrowUp" | "PageUp" | "Home" => stop(follow),
            "End" => {
                // The browser's own scrolling would begin at the old place and look like an intent to go up.
                event.prevent_default();
                follow.resume();
            }
            _ => {}
        }
    });
    let kept = StoredValue::new_local((on_scroll, on_wheel, on_pointer, on_click));
    on_cleanup(move || {
        on_key.remove();
        kept.dispose();
    });
}

/// When the content grows: goes along, or counts.
fn observe(follow: Follow, scroller: &HtmlElement, content: &Element) {
    let height = Cell::new(content.scroll_height());
    let on_resize = {
        let (scroller, content) = (scroller.clone(), content.clone());
        Closure::<dyn FnMut()>::new(move || {
            let now = content.scroll_height();
            let before = height.replace(now);
            match follow.is_following.try_get_untracked() {
                Some(true) => scroller.set_scroll_top(scroller.scroll_height()),
                Some(false) if now > before && follow.is_live.try_get_untracked() == Some(true) => {
                    follow.grown.update(|grown| *grown += f64::from(now - before));
                }
                _ => {}
            }
        })
    };
    let Ok(observer) = ResizeObserver::new(on_resize.as_ref().unchecked_ref()) else {
        return;
    };
    observer.observe(content);
    let kept = StoredValue::new_local((observer, on_resize));
    on_cleanup(move || {
        let _ = kept.try_with_value(|(observer, _)| observer.disconnect());
        kept.dispose();
    });
}
