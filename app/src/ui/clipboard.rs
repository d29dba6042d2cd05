//! The clipboard.

use js_sys::{Function, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Document, HtmlTextAreaElement};

/// Copies text, and says whether it is in the clipboard. Where the page may not use the clipboard's own interface (off
/// loopback without TLS), a hidden field is selected and copied.
pub fn copy_text(text: &str, done: impl FnOnce(bool) + 'static) {
    let Some(window) = web_sys::window() else {
        return done(false);
    };
    let clipboard = Reflect::get(&window.navigator(), &JsValue::from_str("clipboard")).ok();
    match clipboard.filter(JsValue::is_object) {
        Some(_) => {
            let promise = window.navigator().clipboard().write_text(text);
            let done = std::rc::Rc::new(std::cell::Cell::new(Some(done)));
            let failed = std::rc::Rc::clone(&done);
            let on_done = Closure::once(move |_: JsValue| finish(&done, true));
            let on_failure = Closure::once(move |_: JsValue| finish(&failed, false));
            let _ = promise.then2(&on_done, &on_failure);
            on_done.forget();
            on_failure.forget();
        }
        None => done(
            window
                .document()
                .is_some_and(|document| copy_by_selection(&document, text).is_some()),
        ),
    }
}

fn finish<F: FnOnce(bool)>(done: &std::cell::Cell<Option<F>>, copied: bool) {
    if let Some(done) = done.take() {
        done(copied);
    }
}

fn copy_by_selection(document: &Document, text: &str) -> Option<()> {
    let field = document
        .create_element("textarea")
        .ok()?
        .dyn_into::<HtmlTextAreaElement>()
        .ok()?;
    let body = document.body()?;
    let before = document.active_element();
    field.set_value(text);
    field.set_class_name("sr-only");
    body.append_child(&field).ok()?;
    field.select();
    let copy = Reflect::get(document, &JsValue::from_str("execCommand"))
        .ok()?
        .dyn_into::<Function>()
        .ok()?;
    let copied = copy.call1(document, &JsValue::from_str("copy"));
    field.remove();
    if let Some(before) = before.and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = before.focus();
    }
    copied.ok()?.as_bool()?.then_some(())
}
