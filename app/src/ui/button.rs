//! Buttons: real ones, always of type `button` unless they submit.

use std::sync::Arc;

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use super::alone::is_alone;
use super::dynamic::{dynamic, handler};
use super::icon::{Icon, IconName};

/// What a button looks like. One primary button a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ButtonKind {
    /// Inverse: the one action of a region.
    Primary,
    /// With a border.
    #[default]
    Plain,
    /// Without a border.
    Quiet,
    /// What destroys something.
    Danger,
}

impl ButtonKind {
    const fn class(self) -> &'static str {
        match self {
            Self::Primary => "btn btn--primary",
            Self::Plain => "btn",
            Self::Quiet => "btn btn--quiet",
            Self::Danger => "btn btn--danger",
        }
    }
}

fn class(kind: ButtonKind, small: bool, icon_only: bool) -> String {
    let small = if small { " btn--sm" } else { "" };
    let icon_only = if icon_only { " btn--icon" } else { "" };
    [kind.class(), small, icon_only].concat()
}

/// A button with words, and perhaps an icon before them.
#[component]
pub fn Button(
    /// Its looks.
    #[prop(optional)]
    kind: ButtonKind,
    /// 24 px high.
    #[prop(optional)]
    small: bool,
    /// Submits its form.
    #[prop(optional)]
    submit: bool,
    /// An icon before the words.
    #[prop(optional, into)]
    icon: Option<IconName>,
    /// Whether it cannot be used now.
    #[prop(optional, into)]
    disabled: Signal<bool>,
    /// What it does.
    #[prop(optional, into)]
    on_click: Option<Callback<MouseEvent>>,
    /// The words.
    children: Children,
) -> impl IntoView {
    view! {
        <button
            type=if submit { "submit" } else { "button" }
            class=class(kind, small, false)
            disabled=dynamic(move || disabled.get())
            on:click=handler(move |event| run(on_click, event))
        >
            {icon.map(|icon| view! { <Icon icon small/> })}
            {children()}
        </button>
    }
}

/// A button with an icon only; the label is its name and its tooltip.
#[component]
pub fn IconButton(
    /// The icon.
    #[prop(into)]
    icon: Signal<IconName>,
    /// Its name.
    #[prop(into)]
    label: Signal<String>,
    /// Its looks.
    #[prop(default = ButtonKind::Quiet)]
    kind: ButtonKind,
    /// 24 px.
    #[prop(optional)]
    small: bool,
    /// What it does.
    #[prop(optional, into)]
    on_click: Option<Callback<MouseEvent>>,
) -> impl IntoView {
    view! {
        <button
            type="button"
            class=class(kind, small, true)
            aria-label=dynamic(move || label.get())
            title=dynamic(move || label.get())
            on:click=handler(move |event| run(on_click, event))
        >
            <Icon icon/>
        </button>
    }
}

fn run(on_click: Option<Callback<MouseEvent>>, event: MouseEvent) {
    if let Some(on_click) = on_click {
        on_click.run(event);
    }
}

/// Copies a text that is asked for at the click, and says so for a moment.
#[component]
pub fn CopyButton(
    /// Its words, such as `Copy text`, or its name if it has an icon only.
    label: &'static str,
    /// Gives the text.
    text: Arc<dyn Fn() -> String + Send + Sync>,
    /// With its icon only.
    #[prop(optional)]
    icon_only: bool,
    /// The icon.
    #[prop(default = IconName::Copy)]
    icon: IconName,
) -> impl IntoView {
    let outcome = RwSignal::new(None::<bool>);
    let words = move || match outcome.get() {
        None => label,
        Some(true) => "Copied",
        Some(false) => "Not copied",
    };
    let shown_icon = Signal::derive(move || match outcome.get() {
        None => icon,
        Some(true) => IconName::StateSucceeded,
        Some(false) => IconName::StateFailed,
    });
    let clicked = move |_: MouseEvent| copy(&text(), outcome);
    (!is_alone()).then(|| {
        view! {
            <button
                type="button"
                class=class(ButtonKind::Quiet, true, icon_only)
                aria-label=dynamic(move || icon_only.then(words))
                title=dynamic(move || icon_only.then(words))
                on:click=clicked
            >
                <Icon icon=shown_icon small=!icon_only/>
                {dynamic(move || (!icon_only).then(words))}
            </button>
        }
    })
}

#[cfg(feature = "hydrate")]
fn copy(text: &str, outcome: RwSignal<Option<bool>>) {
    super::copy_text(text, move |copied| {
        let _ = outcome.try_set(Some(copied));
        set_timeout(
            move || {
                let _ = outcome.try_set(None);
            },
            std::time::Duration::from_millis(1500),
        );
    });
}

#[cfg(not(feature = "hydrate"))]
fn copy(_: &str, _: RwSignal<Option<bool>>) {}
