//! The open tail: what is added to its end is added to the page, so that the rest of it stays as it is, with what is
//! selected in it.

use wasm_bindgen::JsCast;
use web_sys::{CharacterData, Element, Node};

use crate::markdown::grown::{Added, added};
use crate::markdown::write::unescape;

/// Makes the tail's new HTML of its old one.
pub(super) fn set(tail: &Element, old: &str, new: &str) {
    let is_done = old == new || added(old, new).is_some_and(|added| append(tail, &added).is_some());
    if !is_done {
        tail.set_inner_html(new);
        super::image::show_again(tail);
    }
}

/// None where the page is not what the old HTML says: a person may have put an image in the place of its chip.
fn append(tail: &Element, added: &Added<'_>) -> Option<()> {
    let mut parent = tail.clone();
    for _ in 0..added.depth {
        parent = parent.last_element_child()?;
    }
    if !added.text.is_empty() {
        let text = unescape(added.text);
        match parent
            .last_child()
            .filter(|last| last.node_type() == Node::TEXT_NODE)
        {
            Some(last) => last.dyn_into::<CharacterData>().ok()?.append_data(&text).ok()?,
            None => {
                let text = tail.owner_document()?.create_text_node(&text);
                parent.append_child(&text).ok()?;
            }
        }
    }
    if !added.markup.is_empty() {
        parent.insert_adjacent_html("beforeend", added.markup).ok()?;
    }
    Some(())
}
