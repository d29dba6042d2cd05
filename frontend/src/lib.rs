//! The wasm entry of the page.

use wasm_bindgen::prelude::wasm_bindgen;

/// Brings the page that the server sent to life.
#[wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(app::App);
}
