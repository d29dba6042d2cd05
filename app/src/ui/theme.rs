//! Light and dark: by preference, and by a switch that is remembered.

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use super::button::{ButtonKind, IconButton};
use super::icon::IconName;

/// The script that applies the remembered theme before the first paint: inline in the head, with the page's nonce. It reads
/// what [`ThemeSwitch`] stores.
pub const THEME_SCRIPT: &str = "try{var t=localStorage.getItem('theme');if(t==='light'||t==='dark')\
document.documentElement.setAttribute('data-theme',t)}catch(e){}";

/// Goes from the theme that is seen to the other one, and remembers it.
#[component]
pub fn ThemeSwitch() -> impl IntoView {
    view! {
        <IconButton icon=IconName::Theme label="Switch theme" kind=ButtonKind::Quiet on_click=Callback::new(switch)/>
    }
}

#[cfg(feature = "hydrate")]
fn switch(_: MouseEvent) {
    let Some(window) = web_sys::window() else { return };
    let Some(root) = window.document().and_then(|document| document.document_element()) else {
        return;
    };
    let is_dark = match root.get_attribute("data-theme") {
        Some(theme) => theme == "dark",
        None => {
            let preference = window.match_media("(prefers-color-scheme: dark)").ok().flatten();
            preference.is_some_and(|preference| preference.matches())
        }
    };
    let theme = if is_dark { "light" } else { "dark" };
    let _ = root.set_attribute("data-theme", theme);
    // Without storage (a private window may have none) the switch holds for this page.
    if let Ok(Some(storage)) = window.local_storage() {
        let _ = storage.set_item("theme", theme);
    }
}

#[cfg(not(feature = "hydrate"))]
fn switch(_: MouseEvent) {}
