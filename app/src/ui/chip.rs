//! The stream chip: one capsule with fixed slots, so that its figures push nothing.

use leptos::prelude::*;

use super::dynamic::{dynamic, dynamic_view};
use super::icon::Icon;
use super::state::StateKind;

/// A stream's state and figures. A slot without a figure is left out.
#[component]
pub fn StreamChip(
    /// The stream's state.
    #[prop(into)]
    state: Signal<StateKind>,
    /// The words beside the glyph, such as `retrying 2/3 in 6 s`; by default the state's own.
    #[prop(optional, into)]
    words: Option<Signal<String>>,
    /// Tokens a second, measured.
    #[prop(optional, into)]
    rate: Option<Signal<Option<u64>>>,
    /// Further slots, such as `last byte 0.2 s`.
    #[prop(optional, into)]
    slots: Option<Signal<Vec<String>>>,
    /// Without its border, for the foot of a node.
    #[prop(optional)]
    bare: bool,
) -> impl IntoView {
    let icon = Signal::derive(move || state.get().icon());
    let class = dynamic(move || {
        let bare = if bare { " chip--bare" } else { "" };
        ["chip chip--", state.get().class(), bare].concat()
    });
    let figure = move || rate.and_then(|rate| rate.get());
    let slots = move || slots.map(|slots| slots.get()).unwrap_or_default();
    view! {
        <div class=class>
            <span class="chip__state">
                <Icon icon/>
                {dynamic(move || words.map_or_else(|| state.get().word().to_owned(), |words| words.get()))}
            </span>
            {dynamic_view(move || figure().map(|rate| view! { <span><span class="chip__val">{rate}</span>" tok/s"</span> }))}
            {dynamic_view(move || slots().into_iter().map(|slot| view! { <span>{slot}</span> }).collect_view())}
        </div>
    }
}
