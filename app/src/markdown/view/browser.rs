//! The browser's part: keeps the DOM with the text.

use std::cell::RefCell;
use std::rc::Rc;

use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Document, Element, MouseEvent, Node};

use super::{ReadText, markup};
use crate::markdown::StreamingMarkdown;
use crate::ui::copy_text;

/// How long a button says that it has copied.
const COPIED_FOR: std::time::Duration = std::time::Duration::from_millis(1500);

struct Shown {
    text: StreamingMarkdown,
    /// How many pieces are in the DOM; none are known before the first frame.
    pieces: Option<usize>,
    tail: String,
    is_scheduled: bool,
}

/// Follows the text from now on. An effect subscribes to it; the work is done at most once a frame.
pub(super) fn follow(
    root: NodeRef<Div>,
    mut text: StreamingMarkdown,
    read: ReadText,
    finished: Signal<bool>,
) {
    let tail = text.tail_html();
    let shown = Rc::new(RefCell::new(Shown {
        text,
        pieces: None,
        tail,
        is_scheduled: false,
    }));
    Effect::new(move |_| {
        finished.track();
        read(&mut |_| {});
        if root.get().is_none() || std::mem::replace(&mut shown.borrow_mut().is_scheduled, true) {
            return;
        }
        let (shown, read) = (Rc::clone(&shown), read.clone());
        request_animation_frame(move || {
            let mut shown = shown.borrow_mut();
            shown.is_scheduled = false;
            // The component may be gone by now.
            let (Some(finished), Some(Some(root))) = (finished.try_get_untracked(), root.try_get_untracked())
            else {
                return;
            };
            let root: &Element = &root;
            untrack(|| read(&mut |whole| shown.update(root, whole, finished)));
        });
    });
}

impl Shown {
    fn update(&mut self, root: &Element, whole: &str, finished: bool) {
        let changes = self.text.sync(whole, finished);
        let Some(tail) = root.last_element_child() else {
            return;
        };
        let children = root.child_nodes();
        let in_page = self
            .pieces
            .unwrap_or(children.length().saturating_sub(1) as usize);
        let count = self.text.pieces().len();
        if changes.restarted || in_page > count {
            root.set_inner_html(&markup(&mut self.text));
            self.tail = self.text.tail_html();
            self.pieces = Some(count);
            return;
        }
        let is_first = self.pieces.is_none();
        for (index, piece) in self.text.pieces().iter().enumerate().take(in_page) {
            let is_changed = changes.changed.contains(&index);
            if !is_changed && !is_first {
                continue;
            }
            let element = u32::try_from(index).ok().and_then(|index| children.item(index));
            if let Some(element) = element.as_ref().and_then(|node| node.dyn_ref::<Element>())
                // What the server sent is as a rule the same, and is left alone.
                && (is_changed || element.inner_html() != piece.html)
            {
                element.set_inner_html(&piece.html);
            }
        }
        if let Some(document) = document_of(root) {
            for piece in self.text.pieces().iter().skip(in_page) {
                let Ok(element) = document.create_element("div") else {
                    return;
                };
                element.set_class_name("md__piece");
                element.set_inner_html(&piece.html);
                if root.insert_before(&element, Some(&tail)).is_err() {
                    return;
                }
            }
        }
        self.pieces = Some(count);
        let html = self.text.tail_html();
        let is_same = if is_first {
            tail.inner_html() == html
        } else {
            self.tail == html
        };
        if !is_same {
            tail.set_inner_html(&html);
        }
        self.tail = html;
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
