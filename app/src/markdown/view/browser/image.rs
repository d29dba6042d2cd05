//! Images: a chip until a person asks for the image, and the image from then on, wherever its text is drawn again.

use std::cell::RefCell;
use std::collections::BTreeSet;

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::Element;

thread_local! {
    /// The addresses that were asked for, in the life of this page.
    static ASKED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// Puts the image into the chip's place. If it cannot be loaded, the chip comes back as an ordinary link.
pub(super) fn show(chip: &Element) {
    let Some(source) = chip.get_attribute("data-src") else {
        return;
    };
    let document = chip.owner_document();
    let Some(image) = document.and_then(|document| document.create_element("img").ok()) else {
        return;
    };
    ASKED.with_borrow_mut(|asked| asked.insert(source.clone()));
    let words = chip.text_content().unwrap_or_default();
    let alternative = words.strip_prefix("Image ").unwrap_or(&words);
    let back = {
        let (image, chip, source) = (image.clone(), chip.clone(), source.clone());
        Closure::once(move || {
            ASKED.with_borrow_mut(|asked| asked.remove(&source));
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

/// Shows the images within an element that was drawn again, as far as a person has asked for them before.
pub(super) fn show_again(within: &Element) {
    if ASKED.with_borrow(BTreeSet::is_empty) {
        return;
    }
    let Ok(chips) = within.query_selector_all("a[data-src]") else {
        return;
    };
    for place in 0..chips.length() {
        let Some(chip) = chips.item(place).and_then(|chip| chip.dyn_into::<Element>().ok()) else {
            continue;
        };
        let source = chip.get_attribute("data-src");
        if source.is_some_and(|source| ASKED.with_borrow(|asked| asked.contains(&source))) {
            show(&chip);
        }
    }
}
