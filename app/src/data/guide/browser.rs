//! Leading in the browser: what is not loaded is fetched, then the page is looked at until it is there.

use leptos::prelude::*;
use web_sys::Element;

use super::{Goal, Guide};
use crate::data::api;
use crate::data::expansion::Expansion;
use crate::data::selection::{Part, Selection, Way};
use crate::data::session_store::SessionStore;
use crate::shell::focus::{after_drawing, find};

/// For so many frames something may be on its way into the page: each level of what is opened takes some.
const FRAMES: u32 = 60;

/// What leading needs.
pub struct Means {
    /// The session.
    pub session: SessionStore,
    /// What is selected in it.
    pub selection: Selection,
    /// Leads.
    pub guide: Guide,
    /// What is open.
    pub expansion: Expansion,
}

/// Where the page was led.
pub struct Arrived {
    /// What was looked for, or the nearest row above it.
    pub element: Element,
    /// Whether it is what was looked for.
    pub is_it: bool,
    /// In which part of the page.
    pub part: Part,
}

/// Leads to a goal, and says when it is in the page; nothing where there is none, or it cannot be loaded now.
pub fn go(means: Means, goal: Goal, then: impl FnOnce(Option<Arrived>) + 'static) {
    let Means {
        session,
        selection,
        guide,
        expansion,
    } = means;
    let start = move |way: Option<Way>, goal: Goal| {
        let Some(way) = way else { return then(None) };
        let path = way.path.clone();
        let part = guide.lead(&expansion, way);
        if let (Part::Details, Some(root)) = (part, path.first()) {
            selection.show_details(root.clone());
        }
        let above: Vec<String> = path
            .iter()
            .map(|node| format!("[data-node-id=\"{node}\"]"))
            .collect();
        let selectors = selectors(&goal, part);
        seek(selectors, above, part, FRAMES, then);
    };
    let known = goal.way(session).map(|(_, way)| way);
    if known.as_ref().is_some_and(|way| way.is_whole) {
        return start(known, goal);
    }
    leptos::task::spawn_local(async move {
        if let Some(thing) = goal.thing().filter(|thing| !guide.is_loaded_for(thing)) {
            load(session, &thing).await;
        }
        // What cannot be loaded now is led to as far as it is known.
        let way = goal.way(session).map(|(_, way)| way);
        start(way, goal);
    });
}

/// Loads what leads to a block or a node.
async fn load(session: SessionStore, thing: &str) {
    let id = untrack(|| session.session_id());
    // Once more where something changed between reading and taking in.
    for _ in 0..2 {
        let Ok(way) = api::way(&id, thing).await else {
            return;
        };
        let runs = untrack(|| session.runs());
        let Some(run) = runs.into_iter().find(|run| *run.run_id() == way.run_id) else {
            return;
        };
        if way.windows.into_iter().all(|window| run.add(window).is_ok()) {
            return;
        }
    }
}

/// What finds a goal in a part of the page, the best first.
fn selectors(goal: &Goal, part: Part) -> Vec<String> {
    let root = match part {
        Part::Details => "#details",
        Part::Content | Part::Tree => "#main",
    };
    let of = |name: &str, id: &dyn std::fmt::Display| format!("{root} [{name}=\"{id}\"]");
    match goal {
        Goal::Node(id) | Goal::Inside(id) => {
            vec![of("data-node-id", id), of("data-details-node", id)]
        }
        Goal::Block(id) => vec![of("data-block-id", id)],
        Goal::Attempt(id, _) => vec![of("data-attempt-end", id)],
        Goal::Message(_, id) => vec![of("data-message-id", id)],
        Goal::Run(id) => vec![of("data-run-id", id)],
    }
}

/// Looks for it with each frame; where it does not come, the nearest row above it is taken.
fn seek(
    selectors: Vec<String>,
    above: Vec<String>,
    part: Part,
    frames: u32,
    then: impl FnOnce(Option<Arrived>) + 'static,
) {
    request_animation_frame(move || {
        let found = selectors.iter().find_map(|selector| find(selector));
        if found.is_none() && frames > 0 {
            return seek(selectors, above, part, frames - 1, then);
        }
        let is_it = found.is_some();
        let near = || above.iter().find_map(|row| find(&format!("#main {row}")));
        let element = found.or_else(near);
        // What lies before it may still be drawn.
        after_drawing(move || {
            then(element.map(|element| Arrived { element, is_it, part }));
        });
    });
}
