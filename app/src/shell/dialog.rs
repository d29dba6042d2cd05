//! A dialog over the page: the browser's own, so that Escape closes it, the page behind it is out of reach, and the focus
//! returns to where it was.

use leptos::html;
use leptos::prelude::*;

use crate::ui::dynamic::{dynamic, handler};
use crate::ui::{Icon, IconName};

/// A dialog that is there while `open` says so.
#[component]
pub fn Dialog(
    /// Whether it is open. Closing it in any way sets it.
    open: RwSignal<bool>,
    /// The id of its element.
    id: &'static str,
    /// What stands above it.
    title: &'static str,
    /// Whether it only asks something.
    #[prop(optional)]
    small: bool,
    /// What it holds, made when it opens.
    children: ChildrenFn,
) -> impl IntoView {
    let element = NodeRef::<html::Dialog>::new();
    #[cfg(feature = "hydrate")]
    crate::ui::dynamic::effect(move || {
        let (open, Some(element)) = (open.get(), element.get()) else {
            return;
        };
        if open && !element.open() {
            // It fails only where it is open already.
            let _ = element.show_modal();
        } else if !open {
            element.close();
        }
    });
    let class = if small { "dialog dialog--small" } else { "dialog" };
    let title_id = format!("{id}-title");
    let labelled_by = title_id.clone();
    let body = dynamic(move || open.get().then(|| children()));
    view! {
        <dialog class=class id=id aria-labelledby=labelled_by node_ref=element on:close=handler(move |_| open.set(false))>
            <div class="dialog__head">
                <h2 id=title_id>{title}</h2>
                <button
                    type="button"
                    class="btn btn--quiet btn--sm btn--icon"
                    aria-label="Close"
                    on:click=handler(move |_| open.set(false))
                >
                    <Icon icon=IconName::X/>
                </button>
            </div>
            {body}
        </dialog>
    }
}
