//! The browser's part: keeps the DOM with the text.

mod page;
mod tail;
mod watch;

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Document, Element, MouseEvent, Node};

use self::page::Page;
use super::{ReadText, markup};
use crate::data::expansion::Expansion;
use crate::markdown::StreamingMarkdown;
use crate::ui::copy_text;
use crate::ui::dynamic::effect;

/// How long a button says that it has copied.
const COPIED_FOR: std::time::Duration = std::time::Duration::from_millis(1500);

/// A text, and what is in the page of it.
struct Shown {
    text: StreamingMarkdown,
    /// The tail's HTML in the page.
    tail: String,
    /// None is known before the first update.
    page: Option<Page>,
    /// On paper there is everything, and nothing is far away.
    is_printing: bool,
    me: Weak<RefCell<Self>>,
}

/// Follows the text from now on. What it reads changes at most once a frame, within the frame that draws it, so the
/// work is done at once.
pub(super) fn follow(
    root: NodeRef<Div>,
    mut text: StreamingMarkdown,
    read: ReadText,
    finished: Signal<bool>,
) {
    let tail = text.tail_html();
    let shown = Rc::new_cyclic(|me| {
        RefCell::new(Shown {
            text,
            tail,
            page: None,
            // Printing opens what is closed, and it is drawn only then.
            is_printing: Expansion::use_context().is_printing(),
            me: me.clone(),
        })
    });
    effect(move || {
        let finished = finished.get();
        let Some(root) = root.get() else {
            // The text is subscribed to all the same.
            read(&mut |_| {});
            return;
        };
        read(&mut |whole| shown.borrow_mut().update(&root, whole, finished));
    });
}

impl Shown {
    fn update(&mut self, root: &Element, whole: &str, finished: bool) {
        let changes = self.text.sync(whole, finished);
        let is_first = self.page.is_none();
        let known = self.page.take().filter(|_| !changes.restarted);
        let in_page = known.or_else(|| Page::of(root, self.text.pieces(), self.me.clone()));
        let Some(mut page) = in_page.filter(|_| !changes.restarted) else {
            root.set_inner_html(&markup(&mut self.text));
            self.tail = self.text.tail_html();
            self.page = Page::of(root, self.text.pieces(), self.me.clone());
            return;
        };
        let pieces = self.text.pieces();
        // Before anything is written, so that the layout is known.
        if page.is_heavy() && !self.is_printing {
            page.settle(pieces);
        }
        // What the server sent is older than the text here: a reference may have been defined since.
        let is_behind = is_first && page.pieces() != pieces.len();
        let changed = if is_behind {
            (0..page.pieces()).collect()
        } else {
            changes.changed
        };
        for index in changed {
            if let Some(piece) = pieces.get(index) {
                page.change(index, piece);
            }
        }
        page.close(pieces);
        let html = self.text.tail_html();
        if is_first {
            self.tail = page.tail().inner_html();
        }
        tail::set(page.tail(), &self.tail, &html);
        self.tail = html;
        self.page = Some(page);
    }

    /// Looks anew at what shall be in the page.
    fn look(&mut self) {
        if let Some(page) = self.page.as_mut().filter(|_| !self.is_printing) {
            page.settle(self.text.pieces());
        }
    }

    /// Brings in everything before it is printed; looks anew afterwards.
    fn print(&mut self, is_printing: bool) {
        self.is_printing = is_printing;
        match &mut self.page {
            Some(page) if is_printing => page.show_all(self.text.pieces()),
            _ => self.look(),
        }
    }
}

fn document_of(node: &Node) -> Option<Document> {
    node.owner_document()
}

/// Copies a code block, or puts an image in the place of its chip.
pub(super) fn clicked(event: &MouseEvent) {
    let Some(target) = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok())
    else {
        return;
    };
    if let Ok(Some(button)) = target.closest("[data-copy=code]") {
        let code = button
            .closest("figure")
            .ok()
            .flatten()
            .and_then(|figure| figure.query_selector("code").ok().flatten());
        let text = code.and_then(|code| code.text_content()).unwrap_or_default();
        copy_text(&text, move |copied| {
            button.set_text_content(Some(if copied { "Copied" } else { "Not copied" }));
            set_timeout(move || button.set_text_content(Some("Copy")), COPIED_FOR);
        });
        return;
    }
    let is_plain = event.button() == 0 && !event.ctrl_key() && !event.meta_key() && !event.shift_key();
    if let Ok(Some(chip)) = target.closest("a[data-src]")
        && is_plain
    {
        show_image(event, &chip);
    }
}

/// Puts the image into the chip's place. If it cannot be loaded, the chip comes back as an ordinary link.
fn show_image(event: &MouseEvent, chip: &Element) {
    let Some(source) = chip.get_attribute("data-src") else {
        return;
    };
    let Some(image) = document_of(chip).and_then(|document| document.create_element("img").ok()) else {
        return;
    };
    event.prevent_default();
    let words = chip.text_content().unwrap_or_default();
    let alternative = words.strip_prefix("Image ").unwrap_or(&words);
    let back = {
        let (image, chip) = (image.clone(), chip.clone());
        Closure::once(move || {
            let _ = chip.remove_attribute("data-src");
            let _ = image.replace_with_with_node_1(&chip);
        })
    };
    let _ = image.set_attribute("alt", alternative);
    let _ = image.set_attribute("referrerpolicy", "no-referrer");
    let _ = image.add_event_listener_with_callback("error", back.as_ref().unchecked_ref());
    back.forget();
    let _ = image.set_attribute("src", &source);
    let _ = chip.replace_with_with_node_1(&image);
}
