//! How the page is connected, said calmly, and errors of the stream.

use leptos::prelude::*;

use crate::data::clock::PageClock;
use crate::data::connection::ConnectionState;
use crate::data::live::Live;
use crate::ui::dynamic::dynamic_view;
use crate::ui::{Button, Icon, IconName};

/// A word in the top bar, while the page is not up to date.
#[component]
pub fn ConnectionTag() -> impl IntoView {
    let live = Live::use_context();
    let clock = PageClock::use_context();
    let words = move || match live.state() {
        // The browser has not spoken to the server yet; the page is as the server made it.
        ConnectionState::Connecting | ConnectionState::Live => None,
        ConnectionState::Reconnecting { .. } => Some("reconnecting …"),
        ConnectionState::Offline { .. } => Some("offline"),
    };
    dynamic_view(move || {
        words().filter(|_| clock.is_local()).map(|words| {
            view! {
                <span class="tag tag--warn" role="status">
                    <Icon icon=IconName::StateInterrupted small=true/>
                    {words}
                </span>
            }
        })
    })
}

/// Errors of the stream that have not been dismissed.
#[component]
pub fn StreamProblems() -> impl IntoView {
    let live = Live::use_context();
    let dismiss = Callback::new(move |_| live.dismiss());
    dynamic_view(move || {
        let problems = live.problems();
        (!problems.is_empty()).then(|| {
            let lines: Vec<_> = problems
                .into_iter()
                .map(|problem| view! { <div data-code=problem.code>{problem.detail}</div> })
                .collect();
            view! {
                <div class="notice" role="alert">
                    <Icon icon=IconName::NoticeWarning/>
                    <div>{lines}</div>
                    <div class="notice__acts"><Button small=true on_click=dismiss>"Dismiss"</Button></div>
                </div>
            }
        })
    })
}
