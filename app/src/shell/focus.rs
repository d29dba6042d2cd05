//! Where the focus is and goes: after a page was changed for another, and by keys.

use leptos::prelude::*;

/// Whether a page of this visit has been shown before. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Arrival(StoredValue<bool>);

impl Arrival {
    /// Nothing was shown yet.
    pub fn new() -> Self {
        Self(StoredValue::new(false))
    }

    /// That of the application.
    pub fn use_context() -> Self {
        use_context().unwrap_or_default()
    }

    /// Called by each page, once it is drawn. What the focus was on is gone with the page before: it goes to what the
    /// selector finds. The first page leaves it to the browser.
    pub fn arrive(self, selector: &'static str) {
        #[cfg(feature = "hydrate")]
        crate::ui::dynamic::effect(move || {
            if self.0.try_get_value() == Some(true) {
                browser::after_drawing(move || {
                    let is_lost = browser::active().is_none_or(|element| element.tag_name() == "BODY");
                    if let Some(element) = browser::find(selector).filter(|_| is_lost) {
                        browser::focus(&element);
                    }
                });
            }
            self.0.try_set_value(true);
        });
        #[cfg(not(feature = "hydrate"))]
        let _ = (self.0, selector);
    }
}

impl Default for Arrival {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "hydrate")]
pub use browser::*;

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, JsValue};
    use web_sys::{Element, FocusOptions, HtmlElement, ScrollIntoViewOptions, ScrollLogicalPosition};

    /// The element that has the focus.
    pub fn active() -> Option<Element> {
        document().active_element()
    }

    /// The first element that a selector finds.
    pub fn find(selector: &str) -> Option<Element> {
        document().query_selector(selector).ok().flatten()
    }

    /// The button that opens the row that an element is, or stands in.
    pub fn toggle_of(element: &Element) -> Option<Element> {
        let row = element.closest(".row").ok().flatten()?;
        row.query_selector(":scope > .row__toggle").ok().flatten()
    }

    /// Whether keys write something in it, or choose.
    pub fn is_field(element: &Element) -> bool {
        matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
            || element
                .dyn_ref::<HtmlElement>()
                .is_some_and(HtmlElement::is_content_editable)
    }

    /// Gives the focus to an element and brings it into view, where it is out of view. Whether it has the focus now.
    pub fn focus(element: &Element) -> bool {
        let Some(target) = element.dyn_ref::<HtmlElement>() else {
            return false;
        };
        let _ = target.focus();
        scroll_to(element);
        active().as_ref() == Some(element)
    }

    /// Gives the focus to an element and scrolls nowhere.
    pub fn focus_in_place(element: &Element) {
        let options = FocusOptions::new();
        options.set_prevent_scroll(true);
        if let Some(element) = element.dyn_ref::<HtmlElement>() {
            let _ = element.focus_with_options(&options);
        }
    }

    /// Scrolls as little as is needed to see an element.
    pub fn scroll_to(element: &Element) {
        let options = ScrollIntoViewOptions::new();
        options.set_block(ScrollLogicalPosition::Nearest);
        element.scroll_into_view_with_scroll_into_view_options(&options);
    }

    /// The view is up to date two frames after what changed it.
    pub fn after_drawing(act: impl FnOnce() + 'static) {
        request_animation_frame(move || request_animation_frame(act));
    }

    /// Opens a drawer. On a page that is wide enough it is a part of the page and there always.
    pub fn show_drawer(id: &str) {
        if is_drawer(id) {
            call(id, "showPopover");
        }
    }

    /// Closes a drawer.
    pub fn hide_drawer(id: &str) {
        if is_drawer(id) {
            call(id, "hidePopover");
        }
    }

    /// Whether the page is too narrow for a panel beside the content.
    fn is_drawer(id: &str) -> bool {
        let narrow = if id == "tree" {
            "(max-width: 820px)"
        } else {
            "(max-width: 1180px)"
        };
        let query = window().match_media(narrow).ok().flatten();
        query.is_some_and(|query| query.matches())
    }

    /// Browsers without popovers keep it as it is; so do those for which it is so already.
    fn call(id: &str, method: &str) {
        let Some(element) = document().get_element_by_id(id) else {
            return;
        };
        if let Ok(method) = js_sys::Reflect::get(&element, &JsValue::from_str(method))
            && let Some(method) = method.dyn_ref::<js_sys::Function>()
        {
            let _ = method.call0(&element);
        }
    }
}
