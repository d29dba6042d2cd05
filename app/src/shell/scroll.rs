//! Following the end of the content: while the reader is at the bottom. The first upward intent stops it; reaching the
//! bottom, `End`, or the button starts it again. The button says how much is new.

use leptos::html::Div;
use leptos::prelude::*;

use crate::ui::dynamic::{dynamic_view, memo};
use crate::ui::{Button, IconName};

#[cfg(feature = "hydrate")]
mod browser;

/// Whether the page follows, and how much came since it does not. A copy is another handle.
#[derive(Clone, Copy)]
pub struct Follow {
    /// The element that scrolls.
    pub scroller: NodeRef<Div>,
    /// The element within that grows.
    pub content: NodeRef<Div>,
    is_following: RwSignal<bool>,
    /// Whether anything comes at all: what grows otherwise was opened by the reader.
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser counts")
    )]
    is_live: Signal<bool>,
    /// Whether the reader asked to follow and has done nothing since: then a scroll upward is the rest of an animation.
    is_asked: StoredValue<bool>,
    /// The height that came since it stopped, in CSS pixels.
    grown: RwSignal<f64>,
}

impl Follow {
    /// Follows from the start if something is going on; a finished session is read from its top.
    pub fn new(is_live: Signal<bool>) -> Self {
        let follow = Self {
            scroller: NodeRef::new(),
            content: NodeRef::new(),
            is_following: RwSignal::new(is_live.get_untracked()),
            is_live,
            is_asked: StoredValue::new(false),
            grown: RwSignal::new(0.0),
        };
        #[cfg(feature = "hydrate")]
        browser::start(follow);
        follow
    }

    /// Follows no more: the reader goes somewhere else.
    #[cfg(feature = "hydrate")]
    pub fn leave(self) {
        browser::stop(self);
    }

    /// Goes to the bottom and follows from there.
    pub fn resume(self) {
        self.grown.set(0.0);
        self.is_asked.set_value(true);
        self.is_following.set(true);
        #[cfg(feature = "hydrate")]
        browser::to_bottom_at_once(self);
    }
}

/// The button that follows again, while the page does not and something new has come.
#[component]
pub fn FollowButton(
    /// What it is about.
    follow: Follow,
) -> impl IntoView {
    /// The height of a line of text.
    const LINE: f64 = 22.0;
    let lines = memo(move || {
        let grown = follow.grown.get();
        (!follow.is_following.get() && grown >= 1.0).then(|| (grown / LINE).ceil().max(1.0) as u64)
    });
    let resume = Callback::new(move |_| follow.resume());
    dynamic_view(move || {
        lines.get().map(|lines| {
            let words = if lines == 1 {
                "Follow · 1 new line".to_owned()
            } else {
                format!("Follow · {} new lines", crate::ui::format::count(lines))
            };
            view! {
                <div class="follow"><Button small=true icon=IconName::Down on_click=resume>{words}</Button></div>
            }
        })
    })
}
