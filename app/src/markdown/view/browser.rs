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
    /// How many pieces are in the DOM; none are known before the first update.
    pieces: Option<usize>,
    tail: String,
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
    let shown = Rc::new(RefCell::new(Shown {
        text,
        pieces: None,
        tail,
    }));
    Effect::new(move |_| {
        let finished = finished.get();
        let Some(root) = root.get() else {
            // The text is subscribed to all the same.
            read(&mut |_| {});
            return;
        };
        let root: &Element = &root;
        read(&mut |whole| shown.borrow_mut().update(root, whole, finished));
    });
}

impl Shown {
    fn update(&mut self, root: &Element, whole: &str, finished: bool) {
        let changes = self.text.sync(whole, finished);
        let Some(tail) = root.last_element_child() else {
            return;
        };
        // Elements only: the framework may leave a marker of its own among the nodes.
        let children = root.children();
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
        // What the server sent is older than the text here: a reference may have been defined since.
        let is_behind = is_first && in_page != count;
        for (index, piece) in self.text.pieces().iter().enumerate().take(in_page) {
            let is_changed = changes.changed.contains(&index);
            if !is_changed && !is_behind {
                continue;
            }
            let element = u32::try_from(index).ok().and_then(|index| children.item(index));
            if let Some(element) = element
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
