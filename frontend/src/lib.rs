//! The wasm entry of the page.
