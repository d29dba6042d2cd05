//! The page's one WebSocket: what [`super::connection`] decides is done here. On the server there is none.

use leptos::prelude::*;
use protocol::api::SessionSummary;
use protocol::model::Timestamp;

use super::clock::PageClock;
use super::connection::{ConnectionState, Problem};
use super::run_store::RunStore;

#[cfg(feature = "hydrate")]
mod browser;

/// The connection of the page. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Live {
    state: RwSignal<ConnectionState>,
    problems: RwSignal<Vec<Problem>>,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser hears from the server")
    )]
    clock: PageClock,
    /// Whether it is only shown: then nothing is followed.
    #[cfg(any(test, debug_assertions))]
    stands: bool,
}

impl Live {
    /// A connection that follows nothing yet.
    pub fn new(clock: PageClock) -> Self {
        let live = Self {
            state: RwSignal::new(ConnectionState::default()),
            problems: RwSignal::new(Vec::new()),
            clock,
            #[cfg(any(test, debug_assertions))]
            stands: false,
        };
        #[cfg(feature = "hydrate")]
        browser::begin(live);
        live
    }

    /// The connection in context, or one that follows nothing.
    pub fn use_context() -> Self {
        use_context().unwrap_or_else(|| Self {
            state: RwSignal::new(ConnectionState::default()),
            problems: RwSignal::new(Vec::new()),
            clock: PageClock::use_context(),
            #[cfg(any(test, debug_assertions))]
            stands: false,
        })
    }

    /// A connection that stands like this and follows nothing.
    #[cfg(any(test, debug_assertions))]
    pub fn standing(state: ConnectionState) -> Self {
        Self {
            state: RwSignal::new(state),
            problems: RwSignal::new(Vec::new()),
            clock: PageClock::use_context(),
            stands: true,
        }
    }

    /// Whether it follows what it is asked to.
    #[cfg(any(test, debug_assertions))]
    fn is_followed(self) -> bool {
        !self.stands
    }

    #[cfg(not(any(test, debug_assertions)))]
    fn is_followed(self) -> bool {
        true
    }

    /// How the page is connected.
    pub fn state(self) -> ConnectionState {
        self.state.get()
    }

    /// The same, read without subscribing; none when the page is gone.
    #[cfg(feature = "hydrate")]
    pub fn try_state(self) -> Option<ConnectionState> {
        self.state.try_get_untracked()
    }

    /// Errors of the stream and of the page's commands that have not been dismissed.
    pub fn problems(self) -> Vec<Problem> {
        self.problems.get()
    }

    /// Shows an error until it is dismissed, or, where the server could not be reached, until it is.
    pub fn report(self, problem: Problem) {
        self.problems.update(|problems| {
            problems.retain(|known| known.code != problem.code || known.run != problem.run);
            problems.push(problem);
        });
    }

    /// Dismisses the errors.
    pub fn dismiss(self) {
        self.problems.set(Vec::new());
    }

    /// Follows a run from where its state stands, until the reactive owner ends.
    pub fn follow(self, run: &RunStore) {
        #[cfg(feature = "hydrate")]
        if self.is_followed() {
            browser::follow(run);
        }
        #[cfg(not(feature = "hydrate"))]
        let _ = (self.is_followed(), run);
    }

    /// Hears of sessions that changed since a time by the server's clock (that of what is shown), and of those that
    /// change, until the reactive owner ends.
    pub fn follow_sessions(self, since: Timestamp, heard: impl Fn(SessionSummary) + 'static) {
        #[cfg(feature = "hydrate")]
        if self.is_followed() {
            browser::follow_sessions(since, heard);
        }
        #[cfg(not(feature = "hydrate"))]
        drop((since, heard));
    }
}
