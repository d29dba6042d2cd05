//! Honest gaps: what is missing, cut or not known is a row with its cause and its size.

use leptos::prelude::*;

use crate::ui::{Icon, IconName};

/// A gap in the content.
#[component]
pub fn Gap(
    /// Its mark.
    icon: IconName,
    /// What it is, in a word or two.
    #[prop(into)]
    title: String,
    /// Its cause, in a sentence.
    #[prop(into)]
    cause: String,
    /// Its size, where that is known.
    #[prop(optional, into)]
    size: String,
) -> impl IntoView {
    view! {
        <div class="gap">
            <Icon icon/>
            <span><b>{title}</b>" "{cause}</span>
            <span class="gap__size">{size}</span>
        </div>
    }
}
