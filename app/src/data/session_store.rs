//! The runs of the session that is open, in order, each with its own state.

use std::sync::Arc;

use leptos::prelude::*;
use protocol::api::{RunSummary, SessionSummary};
use protocol::fold::RunState;
use protocol::id::{NodeId, RunId, SessionId};

use super::port::{SessionPage, Setup};
use super::run_store::RunStore;

/// The open session. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct SessionStore {
    summary: RwSignal<SessionSummary>,
    runs: RwSignal<Vec<RunStore>>,
    setup: StoredValue<Arc<Setup>>,
}

/// A session's title, or words that stand for one that it does not have yet.
pub fn title_words(title: &str) -> &str {
    if title.trim().is_empty() {
        "Untitled"
    } else {
        title
    }
}

impl SessionStore {
    /// From what the page was loaded with. A run without a snapshot (it cannot be read now) begins empty.
    pub fn new(page: &SessionPage) -> Self {
        let session = page.summary.session_id.clone();
        let runs = page.summary.runs.iter().map(|summary| {
            let snapshot = page
                .snapshots
                .iter()
                .find(|snapshot| snapshot.run.run_id == summary.run_id);
            RunStore::new(match snapshot {
                Some(snapshot) => RunState::from_snapshot(snapshot.clone()),
                None => RunState::new(summary.run_id.clone(), session.clone()),
            })
        });
        Self {
            runs: RwSignal::new(runs.collect()),
            summary: RwSignal::new(page.summary.clone()),
            setup: StoredValue::new(Arc::new(page.setup.clone())),
        }
    }

    /// The session's id.
    pub fn session_id(self) -> SessionId {
        self.summary.with(|summary| summary.session_id.clone())
    }

    /// Its title, or words that stand for it before the first prompt.
    pub fn title(self) -> String {
        self.summary
            .with(|summary| title_words(&summary.title).to_owned())
    }

    /// What can be started.
    pub fn setup(self) -> Arc<Setup> {
        self.setup.get_value()
    }

    /// Its runs, in order.
    pub fn runs(self) -> Vec<RunStore> {
        self.runs.get()
    }

    /// The summary of a run, as the session's list has it.
    pub fn run_summary(self, run: &RunId) -> Option<RunSummary> {
        self.summary.with(|summary| {
            summary
                .runs
                .iter()
                .find(|summary| &summary.run_id == run)
                .cloned()
        })
    }

    /// The run whose state the session shows: one that goes on, else the last one.
    pub fn current(self) -> Option<RunStore> {
        self.runs.with(|runs| {
            let active = runs.iter().find(|run| !run.status().is_final());
            active.or(runs.last()).cloned()
        })
    }

    /// The run that a node belongs to.
    pub fn run_of(self, node: &NodeId) -> Option<RunStore> {
        self.runs
            .with(|runs| runs.iter().find(|run| run.node(node, |_| ()).is_some()).cloned())
    }

    /// A run that was just created here; gives its store if it is a new one.
    pub fn add_run(self, run: &RunId) -> Option<RunStore> {
        let known = self
            .runs
            .with_untracked(|runs| runs.iter().any(|known| known.run_id() == run));
        if known {
            return None;
        }
        let session = self.summary.with_untracked(|summary| summary.session_id.clone());
        let store = RunStore::new(RunState::new(run.clone(), session));
        self.runs.update(|runs| runs.push(store.clone()));
        Some(store)
    }

    /// Takes in what changed in the session's list entry; gives the stores of runs that are new.
    pub fn update(self, summary: SessionSummary) -> Vec<RunStore> {
        if self
            .summary
            .with_untracked(|known| known.session_id != summary.session_id)
        {
            return Vec::new();
        }
        let added = summary
            .runs
            .iter()
            .filter_map(|run| self.add_run(&run.run_id))
            .collect();
        // Runs that others began meanwhile have their places before one that was begun here.
        let place = |run: &RunStore| {
            summary
                .runs
                .iter()
                .position(|known| &known.run_id == run.run_id())
        };
        let in_order = |runs: &[RunStore]| runs.is_sorted_by_key(|run| place(run).unwrap_or(usize::MAX));
        if !self.runs.with_untracked(|runs| in_order(runs)) {
            self.runs
                .update(|runs| runs.sort_by_key(|run| place(run).unwrap_or(usize::MAX)));
        }
        self.summary.set(summary);
        added
    }
}
