//! Moving in the tree by keys, as the practices for trees say.

use super::list::{Branch, Key, List};
use crate::shell::keys::Step;

/// What a step comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nowhere to go.
    Nothing,
    /// The focus goes to an item.
    To(Key),
    /// An item is opened or closed.
    Turn(Key, bool),
    /// These are opened.
    OpenAll(Vec<Key>),
    /// An item is chosen; the focus goes to its row or stays.
    Choose(Key, Follow),
}

/// Whether the focus follows a choice to the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    Stays,
    Goes,
}

/// A step from an item.
pub(super) fn step(list: &List, from: &Key, step: Step) -> Outcome {
    let items = list.items();
    let to = |place: Option<usize>| {
        let item = place.and_then(|place| items.get(place));
        item.map_or(Outcome::Nothing, |item| Outcome::To(item.key.clone()))
    };
    let Some(at) = list.place(from) else {
        return to(Some(0));
    };
    let Some(item) = items.get(at) else {
        return Outcome::Nothing;
    };
    // While something is searched for everything is open.
    let is_fixed = list.hits().is_some();
    match (step, item.branch) {
        (Step::Next, _) => to(Some(at + 1)),
        (Step::Previous, _) => to(at.checked_sub(1)),
        (Step::First, _) => to(Some(0)),
        (Step::Last, _) => to(items.len().checked_sub(1)),
        (Step::In, Branch::Open) => to(Some(at + 1)),
        (Step::In, Branch::Closed) => Outcome::Turn(item.key.clone(), true),
        (Step::In, Branch::Leaf) => Outcome::Nothing,
        (Step::Out, Branch::Open) if !is_fixed => Outcome::Turn(item.key.clone(), false),
        (Step::Out, _) => to(item.parent),
        (Step::All, _) => {
            let beside = items.iter().filter(|other| other.parent == item.parent);
            let closed = beside.filter(|other| other.branch == Branch::Closed);
            Outcome::OpenAll(closed.map(|other| other.key.clone()).collect())
        }
        (Step::Select, _) => Outcome::Choose(item.key.clone(), Follow::Stays),
        (Step::Go, _) => Outcome::Choose(item.key.clone(), Follow::Goes),
    }
}

/// The next item whose name begins with what was typed, from an item on and around; a single letter goes on to another.
pub(super) fn typed(list: &List, from: &Key, typed: &str, name: impl Fn(&Key) -> String) -> Option<Key> {
    let items = list.items();
    let typed = typed.to_lowercase();
    let letter = typed.chars().next()?;
    // The same letter again and again goes through all that begin with it.
    let is_one = typed.chars().all(|other| other == letter);
    let wanted = if is_one { letter.to_string() } else { typed };
    let start = list.place(from).map_or(0, |place| place + usize::from(is_one));
    let around = items.iter().cycle().skip(start).take(items.len());
    let mut keys = around.map(|item| &item.key);
    keys.find(|key| name(key).to_lowercase().starts_with(&wanted))
        .cloned()
}
