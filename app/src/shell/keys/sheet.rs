//! The list of keys, and the button that shows it.

use leptos::prelude::*;

use super::{BINDINGS, Binding, Overlay, Page, Region};
use crate::shell::dialog::Dialog;
use crate::ui::dynamic::handler;
use crate::ui::{Icon, IconName};

/// Shows the list of keys.
#[component]
pub fn KeysButton() -> impl IntoView {
    let overlay = Overlay::use_context();
    view! {
        <button
            type="button"
            class="btn btn--quiet btn--icon not-phone"
            aria-label="Keys"
            title="Keys (?)"
            aria-haspopup="dialog"
            aria-keyshortcuts="?"
            on:click=handler(move |_| overlay.sheet.set(true))
        >
            <Icon icon=IconName::Keys/>
        </button>
    }
}

/// The keys of a page: what they do, and the list of them.
#[component]
pub fn Keyboard(
    /// The page.
    page: Page,
) -> impl IntoView {
    let overlay = Overlay::use_context();
    #[cfg(feature = "hydrate")]
    super::browser::start(page, overlay);
    let regions = page.regions();
    view! {
        <Dialog open=overlay.sheet id="keys" title="Keys">
            <p class="muted">"While you type in a field, the page takes no key."</p>
            <div class="keys">
                {regions.iter().map(|region| view! { <RegionKeys region=*region/> }).collect_view()}
            </div>
        </Dialog>
    }
}

#[component]
fn RegionKeys(region: Region) -> impl IntoView {
    let rows = BINDINGS
        .iter()
        .filter(|binding| binding.region == region)
        .map(|binding| view! { <KeyRow binding/> })
        .collect_view();
    view! {
        <section class="keys__region">
            <h3>{region.title()}</h3>
            <dl>{rows}</dl>
        </section>
    }
}

#[component]
fn KeyRow(binding: &'static Binding) -> impl IntoView {
    let keys = binding
        .keys
        .iter()
        .enumerate()
        .map(|(place, key)| {
            let caps = key
                .caps()
                .into_iter()
                .map(|cap| view! { <kbd class="kbd">{cap}</kbd> });
            view! { {(place > 0).then_some(" or ")}{caps.collect_view()} }
        })
        .collect_view();
    view! {
        <div>
            <dt>{keys}</dt>
            <dd>{binding.words}</dd>
        </div>
    }
}
