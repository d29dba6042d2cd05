//! Pages that show every state of every component: for people who look at them, and for browser tests that walk through
//! them. They are made of the components themselves and of runs that are told op by op ([`script`]); nothing is asked
//! of the server, and the clock stands still, so that a page is the same every time.
//!
//! Development builds have them, at `/fixtures`. What is shipped is built without debug assertions and so without this
//! module.

mod asks;
mod attempts;
mod bars;
mod blocks;
mod calls;
mod levels;
mod marks;
mod opened;
pub mod page;
mod panels;
mod programs;
mod runs;
pub mod script;
mod stand;
mod streams;
mod whole;

#[cfg(test)]
#[cfg(feature = "ssr")]
mod tests;

use leptos::prelude::*;

/// A page of fixtures.
pub struct Fixture {
    /// Its name in the address, and that of its snapshot.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What stands behind its address.
    query: &'static str,
    draw: Draw,
}

/// How a page is drawn.
enum Draw {
    /// States below each other, each with a title.
    Sheet(fn() -> Vec<Section>),
    /// A page of the application as it is.
    Whole(fn() -> AnyView),
}

/// One state, or some that belong together.
struct Section {
    title: String,
    view: AnyView,
}

impl Section {
    fn new(title: impl Into<String>, view: AnyView) -> Self {
        Self {
            title: title.into(),
            view,
        }
    }
}

const fn sheet(name: &'static str, title: &'static str, draw: fn() -> Vec<Section>) -> Fixture {
    Fixture {
        name,
        title,
        query: "",
        draw: Draw::Sheet(draw),
    }
}

const fn whole(name: &'static str, title: &'static str, draw: fn() -> AnyView) -> Fixture {
    Fixture {
        name,
        title,
        query: "",
        draw: Draw::Whole(draw),
    }
}

/// All of them, in the order of the index.
pub const FIXTURES: &[Fixture] = &[
    sheet("marks", "Marks, buttons, chips", marks::sections),
    sheet("text", "Text of every kind", blocks::text),
    sheet(
        "blocks",
        "Blocks that go on, are whole, cut or left out",
        blocks::states,
    ),
    sheet("reasoning", "Reasoning", blocks::reasoning),
    sheet("rows", "Rows of tools, in every state", calls::rows),
    sheet("rows-odd", "Rows that lack something", calls::odd),
    sheet("groups", "Calls that run together", calls::groups),
    sheet("programs", "Programs and their calls", programs::programs),
    sheet("views", "What tools were given and gave back", opened::views),
    sheet("ends", "Calls that ended in any way, opened", opened::ends),
    sheet("large", "Long outputs and long texts", opened::large),
    sheet("attempts", "Attempts and their boundaries", attempts::sections),
    sheet("asks", "Calls that wait for a person", asks::sections),
    sheet("levels", "Model calls within model calls", levels::sections),
    sheet("runs", "Runs and what can be done about them", runs::sections),
    sheet("notices", "Notices and messages", runs::notices),
    sheet("streams", "What streams are doing", streams::sections),
    sheet("details", "Details of nodes", panels::details),
    sheet("composers", "Where prompts are written", bars::composers),
    sheet("connection", "How the page is connected", bars::connection),
    whole("session", "A session that goes on", whole::session),
    Fixture {
        query: "?node=exec_failed",
        ..whole(
            "session-details",
            "A session with a selected call",
            whole::session,
        )
    },
    whole("session-tree", "A tree of every kind and state", whole::tree),
    whole("session-empty", "A session without a prompt", whole::empty),
    whole("session-loading", "A session that is loaded", whole::loading),
    whole("sessions", "Sessions in every state", whole::sessions),
    whole("sessions-none", "No sessions yet", whole::no_sessions),
    whole("sessions-not-found", "No session found", whole::none_found),
    whole("keys", "The list of keys", whole::keys),
    whole("stop", "The question before a run is stopped", whole::stop),
    whole("problem", "A page that cannot be shown", whole::problem),
];
