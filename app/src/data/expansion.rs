//! Which rows the user has opened or closed: kept in the browser session, by what a row stands for.
//!
//! Only the user's action writes here. A row that nobody touched follows its default, which may depend on its state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use leptos::prelude::*;
use protocol::id::{AttemptId, BlockId, NodeId};

#[cfg(feature = "hydrate")]
const STORAGE_KEY: &str = "expansion";
/// So many choices are kept from page to page.
#[cfg(feature = "hydrate")]
const MOST: usize = 2_000;

/// The choices of the user. A clone is another handle on them.
#[derive(Clone, Default)]
pub struct Expansion(Arc<Mutex<HashMap<String, ArcRwSignal<Option<bool>>>>>);

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
    choice: ArcRwSignal<Option<bool>>,
    default: Signal<bool>,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser keeps choices")
    )]
    all: Expansion,
}

impl Expansion {
    /// The choices in context, or none.
    pub fn use_context() -> Self {
        use_context().unwrap_or_default()
    }

    /// A row by its key, with what holds until the user chooses.
    pub fn row(&self, key: &str, default: impl Into<Signal<bool>>) -> Open {
        Open {
            choice: self.choice(key),
            default: default.into(),
            all: self.clone(),
        }
    }

    fn choice(&self, key: &str) -> ArcRwSignal<Option<bool>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.to_owned())
            .or_insert_with(|| ArcRwSignal::new(None))
            .clone()
    }

    /// Takes in what the browser session kept, once the page is hydrated.
    #[cfg(feature = "hydrate")]
    pub fn start(&self) {
        let all = self.clone();
        Effect::new(move |_| {
            let kept = storage().and_then(|storage| storage.get_item(STORAGE_KEY).ok().flatten());
            let kept: HashMap<String, bool> = kept
                .and_then(|kept| serde_json::from_str(&kept).ok())
                .unwrap_or_default();
            for (key, open) in kept {
                all.choice(&key).set(Some(open));
            }
        });
    }

    #[cfg(feature = "hydrate")]
    fn keep(&self) {
        let chosen: HashMap<String, bool> = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let chosen = all
                .iter()
                .filter_map(|(key, choice)| Some((key.clone(), choice.get_untracked()?)));
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
        self.choice.get().unwrap_or_else(|| self.default.get())
    }

    /// The user's action: opens what is closed and closes what is open.
    pub fn toggle(&self) {
        let open = untrack(|| self.get());
        self.choice.set(Some(!open));
        #[cfg(feature = "hydrate")]
        self.all.keep();
    }

    /// As a signal.
    pub fn signal(&self) -> Signal<bool> {
        let open = self.clone();
        Signal::derive(move || open.get())
    }
}
