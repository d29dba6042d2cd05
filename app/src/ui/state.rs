//! State marks: a glyph, a hue and a word, always together.

use leptos::prelude::*;

use super::dynamic::dynamic;
use super::icon::{Icon, IconName};

macro_rules! states {
    ($($name:ident = $class:literal, $word:literal, $icon:ident;)+) => {
        /// Every state that a node, an attempt or a stream can show.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum StateKind {
            $(#[doc = $word] $name),+
        }

        impl StateKind {
            /// All states.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word beside the glyph.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// The name in classes, as in `state--running`.
            #[must_use]
            pub const fn class(self) -> &'static str {
                match self { $(Self::$name => $class),+ }
            }

            /// The glyph.
            #[must_use]
            pub const fn icon(self) -> IconName {
                match self { $(Self::$name => IconName::$icon),+ }
            }
        }
    };
}

states! {
    // nodes
    Pending = "pending", "pending", StatePending;
    AwaitingApproval = "awaiting_approval", "needs you", StateAwaitingApproval;
    Running = "running", "running", StateRunning;
    Succeeded = "succeeded", "done", StateSucceeded;
    Failed = "failed", "failed", StateFailed;
    Cancelled = "cancelled", "cancelled", StateCancelled;
    Interrupted = "interrupted", "interrupted", StateInterrupted;
    Denied = "denied", "denied", StateDenied;
    NotRun = "not_run", "not run", StateNotRun;
    TimedOut = "timed_out", "timed out", StateTimedOut;
    Unresolved = "unresolved", "unresolved", StateUnresolved;
    // attempts, besides
    Completed = "completed", "completed", StateSucceeded;
    Stalled = "stalled", "stalled", StateStalled;
    Partial = "partial", "partial", StatePartial;
    Superseded = "superseded", "superseded", StateSuperseded;
    // streams, besides
    Streaming = "streaming", "streaming", StateStreaming;
    Silent = "silent", "silent", StateSilent;
    Retrying = "retrying", "retrying", StateRetrying;
    Rotating = "rotating", "moved", StateRotating;
    RateLimited = "rate_limited", "rate limited", StateRateLimited;
    Waiting = "waiting", "waiting", StateWaiting;
}

/// A state's glyph and word. The element stays the same while the state changes.
#[component]
pub fn StateMark(
    /// The state.
    #[prop(into)]
    state: Signal<StateKind>,
    /// Other words in the place of the state's own, such as `failed · caught`.
    #[prop(optional, into)]
    words: Option<Signal<String>>,
) -> impl IntoView {
    let icon = Signal::derive(move || state.get().icon());
    view! {
        <span class=dynamic(move || ["state state--", state.get().class()].concat())>
            <Icon icon/>
            {dynamic(move || words.map_or_else(|| state.get().word().to_owned(), |words| words.get()))}
        </span>
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_a_glyph_and_a_word_in_every_state() {
        let owner = Owner::new();
        for state in StateKind::ALL {
            let html = owner.with(|| view! { <StateMark state=*state/> }.to_html());
            let class = ["class=\"state state--", state.class(), "\""].concat();
            let glyph = ["href=\"", state.icon().href(), "\""].concat();
            assert!(html.contains(&class) && html.contains(&glyph), "{html}");
            assert!(html.contains(&[">", state.word()].concat()), "{html}");
            assert!(html.contains("aria-hidden=\"true\""), "{html}");
        }
    }
}
