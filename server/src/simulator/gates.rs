//! Gates: places where a test holds a stream. A gate lets everybody through until somebody arms it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

/// The state of one gate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GateState {
    /// Whether streams stop here.
    pub armed: bool,
    /// How many streams wait here now.
    pub waiting: usize,
    /// How many streams have come here since the start, whether they had to wait or not.
    pub reached: u64,
}

/// All gates of a simulator.
#[derive(Debug)]
pub(super) struct Gates {
    states: Mutex<BTreeMap<String, GateState>>,
    /// Counts changes; everybody who waits looks at the states again after each.
    changes: watch::Sender<u64>,
}

/// Takes a waiting stream out of the count, also when the stream goes away while it waits.
struct Waiting<'a> {
    gates: &'a Gates,
    name: &'a str,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gates
            .change(self.name, |state| state.waiting = state.waiting.saturating_sub(1));
    }
}

impl Gates {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let states = names
            .map(|name| (name.to_owned(), GateState::default()))
            .collect();
        Self {
            states: Mutex::new(states),
            changes: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, GateState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a gate and wakes everybody; the new state, or `None` when there is no such gate.
    fn change(&self, name: &str, change: impl FnOnce(&mut GateState)) -> Option<GateState> {
        let state = {
            let mut states = self.lock();
            let state = states.get_mut(name)?;
            change(state);
            state.clone()
        };
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        Some(state)
    }

    pub(super) fn arm(&self, name: &str) -> Option<GateState> {
        self.change(name, |state| state.armed = true)
    }

    pub(super) fn open(&self, name: &str) -> Option<GateState> {
        self.change(name, |state| state.armed = false)
    }

    pub(super) fn all(&self) -> BTreeMap<String, GateState> {
        self.lock().clone()
    }

    fn state(&self, name: &str) -> Option<GateState> {
        self.lock().get(name).cloned()
    }

    /// Passes the gate, waiting while it is armed.
    pub(super) async fn pass(&self, name: &str) {
        let mut changes = self.changes.subscribe();
        let Some(state) = self.change(name, |state| {
            state.reached += 1;
            if state.armed {
                state.waiting += 1;
            }
        }) else {
            return;
        };
        if !state.armed {
            return;
        }
        let _waiting = Waiting { gates: self, name };
        while self.state(name).is_some_and(|state| state.armed) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until a stream waits at the gate; its state then, or the state at the end of the time.
    pub(super) async fn until_waiting(&self, name: &str, limit: Duration) -> Option<GateState> {
        let mut changes = self.changes.subscribe();
        let deadline = tokio::time::Instant::now().checked_add(limit)?;
        loop {
            let state = self.state(name)?;
            if state.waiting > 0 {
                return Some(state);
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return self.state(name),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn gates() -> Arc<Gates> {
        Arc::new(Gates::new(["a", "b"].into_iter()))
    }

    #[tokio::test]
    async fn a_gate_that_nobody_armed_lets_pass() {
        let gates = gates();
        gates.pass("a").await;
        assert_eq!(
            gates.all()["a"],
            GateState {
                armed: false,
                waiting: 0,
                reached: 1
            }
        );
    }

    #[tokio::test]
    async fn an_armed_gate_holds_until_it_is_opened() {
        let gates = gates();
        gates.arm("a").unwrap();
        let stream = tokio::spawn({
            let gates = gates.clone();
            async move { gates.pass("a").await }
        });
        let state = gates.until_waiting("a", Duration::from_secs(10)).await.unwrap();
        assert_eq!(state.waiting, 1);
        assert!(!stream.is_finished());
        gates.open("b").unwrap();
        assert_eq!(gates.all()["a"].waiting, 1);
        gates.open("a").unwrap();
        stream.await.unwrap();
        assert_eq!(
            gates.all()["a"],
            GateState {
                armed: false,
                waiting: 0,
                reached: 1
            }
        );
    }

    #[tokio::test]
    async fn a_stream_that_goes_away_waits_no_more() {
        let gates = gates();
        gates.arm("a").unwrap();
        let stream = tokio::spawn({
            let gates = gates.clone();
            async move { gates.pass("a").await }
        });
        gates.until_waiting("a", Duration::from_secs(10)).await.unwrap();
        stream.abort();
        assert!(stream.await.unwrap_err().is_cancelled());
        assert_eq!(gates.all()["a"].waiting, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_stream_ends_with_its_time() {
        let state = gates().until_waiting("a", Duration::from_secs(30)).await.unwrap();
        assert_eq!(state.waiting, 0);
        assert!(
            gates()
                .until_waiting("unknown", Duration::from_secs(30))
                .await
                .is_none()
        );
    }
}
