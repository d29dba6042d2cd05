//! Endless animations go in steps.
//!
//! Whenever a page draws a frame of its own, a browser draws every animation of it anew, even if it could turn a glyph
//! without the page. While a text streams that is each frame, and it cost more than the text. In steps there is something
//! to draw a few times a second. Only the effect's own timing does this: what a style sheet says is the timing between
//! keyframes, which is worked out for each frame.

use leptos::prelude::document;
use wasm_bindgen::JsCast;
use wasm_bindgen::JsValue;
use web_sys::{Animation, OptionalEffectTiming};

use super::Listener;

/// Twelve to a turn, like a clock.
const STEPS: &str = "steps(12)";

/// Puts the animations of the style sheet in steps, those of now and those that begin later.
pub(crate) fn start() {
    put_in_steps();
    // The page's own life is its.
    std::mem::forget(Listener::new(&document(), "animationstart", |_| put_in_steps()));
}

fn put_in_steps() {
    let timing = OptionalEffectTiming::new();
    timing.set_easing(STEPS);
    let of_style = JsValue::from_str("animationName");
    for animation in document().get_animations() {
        // Transitions are none of them.
        if js_sys::Reflect::has(&animation, &of_style) == Ok(true)
            && let Some(effect) = animation.dyn_ref::<Animation>().and_then(Animation::effect)
        {
            let _ = effect.update_timing_with_timing(&timing);
        }
    }
}
