//! The icons: one sprite a page, each icon a reference into it.

use leptos::prelude::*;

use super::dynamic::dynamic;

/// The sprite: a 16 px grid, strokes from `.icon`, class `f` on filled shapes.
const SPRITE: &str = include_str!("icons.svg");

macro_rules! icons {
    ($($name:ident = $id:literal),+ $(,)?) => {
        /// A symbol of the sprite: chrome and row variants, states (`State…`), gaps and notices (`Notice…`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum IconName {
            $(#[doc = concat!("`", $id, "`")] $name),+
        }

        impl IconName {
            /// All icons.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The fragment that refers to the symbol, such as `#i-copy`.
            #[must_use]
            pub const fn href(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("#", $id)),+
                }
            }
        }
    };
}

icons! {
    Brand = "i-brand",
    Chevron = "i-chevron",
    Down = "i-down",
    Up = "i-up",
    Locate = "i-locate",
    Panel = "i-panel",
    Tree = "i-tree",
    Copy = "i-copy",
    Record = "i-record",
    Share = "i-share",
    Export = "i-export",
    Stop = "i-stop",
    Play = "i-play",
    Eye = "i-eye",
    Theme = "i-theme",
    Plus = "i-plus",
    X = "i-x",
    More = "i-more",
    Steer = "i-steer",
    Link = "i-link",
    Filter = "i-filter",
    Keys = "i-keys",
    Key = "i-key",
    Search = "i-search",
    Chat = "i-chat",
    Graph = "i-graph",
    Timeline = "i-timeline",
    Streams = "i-streams",
    Events = "i-events",
    Read = "i-read",
    Edit = "i-edit",
    Write = "i-write",
    Shell = "i-shell",
    Web = "i-web",
    Code = "i-code",
    Model = "i-model",
    Other = "i-other",
    Reason = "i-reason",
    Parallel = "i-parallel",
    Phase = "i-phase",
    Message = "i-message",
    StatePending = "s-pending",
    StateAwaitingApproval = "s-awaiting_approval",
    StateRunning = "s-running",
    StateSucceeded = "s-succeeded",
    StateFailed = "s-failed",
    StateCancelled = "s-cancelled",
    StateInterrupted = "s-interrupted",
    StateDenied = "s-denied",
    StateNotRun = "s-not_run",
    StateTimedOut = "s-timed_out",
    StateUnresolved = "s-unresolved",
    StateStreaming = "s-streaming",
    StateSilent = "s-silent",
    StateRetrying = "s-retrying",
    StateRotating = "s-rotating",
    StateRateLimited = "s-rate_limited",
    StateWaiting = "s-waiting",
    StateStalled = "s-stalled",
    StatePartial = "s-partial",
    StateSuperseded = "s-superseded",
    NoticeNotSaved = "g-not_saved",
    NoticeCut = "g-cut",
    NoticeWithheld = "g-withheld",
    NoticeQuarantined = "g-quarantined",
    NoticeWarning = "g-warning",
    NoticeInfo = "g-info",
    NoticeDepth = "g-depth",
    NoticeBlob = "g-blob",
}

/// The sprite itself: once a page, first in the body.
#[component]
pub fn IconSprite() -> impl IntoView {
    view! { <div class="sprite" id="icons" aria-hidden="true" inner_html=SPRITE></div> }
}

/// An icon. It is hidden from assistive technology: a word or a label stands beside it.
#[component]
pub fn Icon(
    /// Which.
    #[prop(into)]
    icon: Signal<IconName>,
    /// 14 px, for small buttons.
    #[prop(optional)]
    small: bool,
    /// A further class, such as `row__icon`.
    #[prop(optional)]
    class: &'static str,
) -> impl IntoView {
    let size = if small { "icon icon--sm" } else { "icon" };
    let class = if class.is_empty() {
        size.to_owned()
    } else {
        [size, " ", class].concat()
    };
    view! {
        <svg class=class aria-hidden="true">
            <use_ href=dynamic(move || icon.get().href())></use_>
        </svg>
    }
}

#[cfg(test)]
mod tests {
    use super::{IconName, SPRITE};

    #[test]
    fn every_icon_is_a_symbol_and_every_symbol_an_icon() {
        for icon in IconName::ALL {
            let symbol = format!("<symbol id=\"{}\"", &icon.href()[1..]);
            assert_eq!(SPRITE.matches(&symbol).count(), 1, "{symbol}");
        }
        assert_eq!(SPRITE.matches("<symbol ").count(), IconName::ALL.len());
    }
}
