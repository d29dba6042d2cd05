//! The bar at the top.

use leptos::prelude::*;

use super::connection::ConnectionTag;
use super::export::ExportMenu;
use super::keys::KeysButton;
use super::replay::is_replaying;
use super::status_chip::{NeedsYou, StatusChip};
use super::stop::StopButton;
use crate::data::session_store::SessionStore;
use crate::find::FindForm;
use crate::ui::dynamic::dynamic;
use crate::ui::{Icon, IconName, ThemeSwitch};

#[component]
fn Brand() -> impl IntoView {
    view! { <a class="brand" href="/" aria-label="Runloom"><Icon icon=IconName::Brand/><span>"Runloom"</span></a> }
}

/// The bar of a page that is not a session.
#[component]
pub fn PlainTopbar() -> impl IntoView {
    view! {
        <header class="topbar">
            <div class="topbar__main">
                <Brand/>
                <ConnectionTag/>
                <span class="topbar__gap"></span>
                <KeysButton/>
                <ThemeSwitch/>
            </div>
        </header>
    }
}

/// The bar of a session: what it is, how it is, and the controls of its run.
#[component]
pub fn SessionTopbar(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    view! {
        <header class="topbar">
            <div class="topbar__main">
                <button
                    type="button"
                    class="btn btn--quiet btn--icon only-phone"
                    popovertarget="tree"
                    aria-label="Open execution tree"
                >
                    <Icon icon=IconName::Tree/>
                </button>
                <Brand/>
                <span class="topbar__sep" aria-hidden="true">"/"</span>
                <h1 class="topbar__title">{dynamic(move || session.title())}</h1>
                {(!is_replaying()).then(|| view! { <StatusChip session/><NeedsYou session/> })}
                <ConnectionTag/>
                <span class="topbar__gap"></span>
                {(!is_replaying()).then(|| view! { <StopButton session/> })}
                <ExportMenu session/>
                <button
                    type="button"
                    class="btn btn--quiet btn--icon only-narrow"
                    popovertarget="details"
                    aria-label="Open details"
                >
                    <Icon icon=IconName::Panel/>
                </button>
                <FindForm session/>
                <KeysButton/>
                <ThemeSwitch/>
            </div>
        </header>
    }
}
