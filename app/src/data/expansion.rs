//! Which rows the user has opened or closed: kept in the browser session, by what a row stands for.
//!
//! Only the user's action writes here. A row that nobody touched follows its default, which may depend on its state. What
//! the page opens on the way to something that the user goes to is open until the user closes it, and is not kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use leptos::prelude::*;

use crate::ui::dynamic::memo;
use protocol::id::{AttemptId, BlockId, NodeId};

#[cfg(feature = "hydrate")]
const STORAGE_KEY: &str = "expansion";
/// So many choices are kept from page to page.
#[cfg(feature = "hydrate")]
const MOST: usize = 2_000;

/// Of one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Choice {
    /// What the user chose.
    user: Option<bool>,
    /// Whether a way led through it since.
    is_led: bool,
}

/// The choices of the user. A clone is another handle on them.
#[derive(Clone)]
pub struct Expansion {
    choices: Arc<Mutex<HashMap<String, ArcRwSignal<Choice>>>>,
    /// While the page is printed everything is open: paper cannot be opened.
    is_printing: ArcRwSignal<bool>,
}

impl Default for Expansion {
    fn default() -> Self {
        Self {
            choices: Arc::default(),
            is_printing: ArcRwSignal::new(false),
        }
    }
}

/// The key of a row: its node, attempt and block, or its node alone where it has no block.
pub fn key(node: &NodeId, block: Option<(&AttemptId, &BlockId)>) -> String {
    match block {
        Some((attempt, block)) => format!("{node}/{attempt}/{block}"),
        None => node.to_string(),
    }
}

/// Whether one row is open, and how to change that.
#[derive(Clone)]
pub struct Open {
    choice: ArcRwSignal<Choice>,
    default: Signal<bool>,
    all: Expansion,
}

impl Expansion {
    /// The choices in context, or none.
    pub fn use_context() -> Self {
        use_context().unwrap_or_default()
    }

    /// Everything is open, as on paper.
    #[cfg(feature = "ssr")]
    pub fn all_open() -> Self {
        Self {
            choices: Arc::default(),
            is_printing: ArcRwSignal::new(true),
        }
    }

    /// Choices to begin with: these rows are open. They are not kept.
    #[cfg(any(test, debug_assertions))]
    pub fn with_open(keys: impl IntoIterator<Item = String>) -> Self {
        let all = Self::default();
        for key in keys {
            all.choice(&key).update(|choice| choice.user = Some(true));
        }
        all
    }

    /// A row by its key, with what holds until the user chooses.
    pub fn row(&self, key: &str, default: impl Into<Signal<bool>>) -> Open {
        Open {
            choice: self.choice(key),
            default: default.into(),
            all: self.clone(),
        }
    }

    /// Opens a row on the way to something. Nothing is kept of it.
    pub fn lead(&self, key: &str) {
        let choice = self.choice(key);
        if !choice.with_untracked(|choice| choice.is_led) {
            choice.update(|choice| choice.is_led = true);
        }
    }

    /// Whether the page is on its way to paper.
    #[cfg(feature = "hydrate")]
    pub fn is_printing(&self) -> bool {
        self.is_printing.get_untracked()
    }

    fn choice(&self, key: &str) -> ArcRwSignal<Choice> {
        let mut all = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.to_owned())
            .or_insert_with(|| ArcRwSignal::new(Choice::default()))
            .clone()
    }

    /// Takes in what the browser session kept, once the page is hydrated.
    #[cfg(feature = "hydrate")]
    pub fn start(&self) {
        let all = self.clone();
        crate::ui::dynamic::effect(move || {
            let kept = storage().and_then(|storage| storage.get_item(STORAGE_KEY).ok().flatten());
            let kept: HashMap<String, bool> = kept
                .and_then(|kept| protocol::from_json(&kept).ok())
                .unwrap_or_default();
            for (key, open) in kept {
                all.choice(&key).update(|choice| choice.user = Some(open));
            }
        });
        for (event, is_printing) in [("beforeprint", true), ("afterprint", false)] {
            let printing = self.is_printing.clone();
            // As long as the page lives.
            let _ = window_event_listener_untyped(event, move |_| printing.set(is_printing));
        }
    }

    #[cfg(feature = "hydrate")]
    fn keep(&self) {
        let chosen: HashMap<String, bool> = {
            let all = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
            let chosen = all
                .iter()
                .filter_map(|(key, choice)| Some((key.clone(), choice.get_untracked().user?)));
            chosen.take(MOST).collect()
        };
        if let (Some(storage), Ok(text)) = (storage(), serde_json::to_string(&chosen)) {
            // Without room the choices hold for this page.
            let _ = storage.set_item(STORAGE_KEY, &text);
        }
    }
}

#[cfg(feature = "hydrate")]
fn storage() -> Option<web_sys::Storage> {
    window().session_storage().ok().flatten()
}

impl Open {
    /// Whether the row is open.
    pub fn get(&self) -> bool {
        if self.all.is_printing.get() {
            return true;
        }
        let Choice { user, is_led } = self.choice.get();
        is_led || user.unwrap_or_else(|| self.default.get())
    }

    /// The user's action: opens what is closed and closes what is open.
    pub fn toggle(&self) {
        let open = untrack(|| self.get());
        self.set(!open);
    }

    /// The user's action: opens or closes it. What is so already stays as it is, and follows its default further.
    pub fn set(&self, open: bool) {
        if untrack(|| self.get()) == open {
            return;
        }
        self.choice.set(Choice {
            user: Some(open),
            is_led: false,
        });
        #[cfg(feature = "hydrate")]
        self.all.keep();
    }

    /// As a signal, which tells of changes only: what is open and stays so, such as when the page is printed, is not
    /// drawn anew.
    pub fn signal(&self) -> Signal<bool> {
        let open = self.clone();
        memo(move || open.get()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_touched_follows_its_default_and_what_is_so_already_is_no_choice() {
        let owner = Owner::new();
        owner.with(|| {
            let default = RwSignal::new(true);
            let row = Expansion::default().row("run_1", default);
            row.set(true);
            default.set(false);
            assert!(!row.get());
            row.set(true);
            assert!(row.get());
            row.toggle();
            default.set(true);
            assert!(!row.get());
        });
    }

    #[test]
    fn what_a_way_led_through_is_open_until_the_user_closes_it_and_is_no_choice() {
        let owner = Owner::new();
        owner.with(|| {
            let expansion = Expansion::default();
            let row = expansion.row("exec_1", Signal::stored(false));
            row.toggle();
            row.toggle();
            expansion.lead("exec_1");
            assert!(row.get());
            assert_eq!(row.choice.get().user, Some(false));
            row.toggle();
            assert!(!row.get());
            expansion.lead("exec_1");
            assert!(row.get());
        });
    }

    #[test]
    fn while_the_page_is_printed_everything_is_open_and_no_choice_is_lost() {
        let owner = Owner::new();
        owner.with(|| {
            let expansion = Expansion::default();
            let row = expansion.row("exec_1", RwSignal::new(true));
            row.toggle();
            expansion.is_printing.set(true);
            assert!(row.get());
            expansion.is_printing.set(false);
            assert!(!row.get());
        });
    }
}
