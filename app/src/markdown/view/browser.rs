//! The browser's part: keeps the DOM with the text.

mod image;
mod page;
mod tail;
mod watch;

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, MouseEvent};

use self::page::Page;
use super::{ReadText, markup};
use crate::data::expansion::Expansion;
use crate::markdown::StreamingMarkdown;
use crate::ui::dynamic::effect;
use crate::ui::{Listener, copy_text};

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
    /// Hears what leads to another place of the text.
    jumps: Option<Listener>,
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
            jumps: None,
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
        if self.jumps.is_none() {
            self.jumps = Some(jumps(root, self.me.clone()));
        }
        let is_first = self.page.is_none();
        let known = self.page.take().filter(|_| !changes.restarted);
        let in_page = known.or_else(|| Page::of(root, self.text.pieces(), self.me.clone()));
        let Some(mut page) = in_page.filter(|_| !changes.restarted) else {
            root.set_inner_html(&markup(&mut self.text));
            image::show_again(root);
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

    /// Brings in the part with an element, where it is not in the page.
    fn bring(&mut self, id: &str) {
        let start = [" id=\"", id, "\""].concat();
        let pieces = self.text.pieces();
        let piece = pieces.iter().position(|piece| piece.html.contains(&start));
        if let Some((page, piece)) = self.page.as_mut().zip(piece) {
            page.bring(piece, pieces);
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

/// Before a link leads to a place of the text, that place comes into the page.
fn jumps(root: &Element, text: Weak<RefCell<Shown>>) -> Listener {
    Listener::new(root, "click", move |event: Event| {
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok());
        let link = target.and_then(|target| target.closest("a[href^='#']").ok().flatten());
        if let Some(id) = link.and_then(|link| link.get_attribute("href"))
            && let Some(text) = text.upgrade()
            && let Ok(mut text) = text.try_borrow_mut()
        {
            text.bring(id.trim_start_matches('#'));
        }
    })
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
        event.prevent_default();
        image::show(&chip);
    }
}
