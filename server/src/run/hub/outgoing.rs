//! What the streams of this process are doing, on its way to the other processes, at a bounded rate.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use protocol::id::{AttemptId, NodeId};
use protocol::model::StreamState;
use protocol::state::StreamActivity;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::lock;

/// A state that only moved its clocks is sent this often at most.
const REFRESH: Duration = Duration::from_secs(2);

/// The latest state of each stream that was not sent yet.
#[derive(Debug, Default)]
pub(in crate::run) struct OutgoingStreams {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    states: BTreeMap<NodeId, StreamState>,
    /// What was sent last, and when.
    sent: BTreeMap<NodeId, (AttemptId, StreamActivity, Instant)>,
}

impl OutgoingStreams {
    /// Keeps a state to be sent, in the place of an older one. One that says nothing new is left out for a while.
    pub(super) fn put(&self, state: StreamState) {
        let mut waiting = lock(&self.waiting);
        let is_known = waiting
            .sent
            .get(&state.node_id)
            .is_some_and(|(attempt, activity, at)| {
                *attempt == state.attempt_id && *activity == state.state && at.elapsed() < REFRESH
            });
        if is_known {
            return;
        }
        waiting.states.insert(state.node_id.clone(), state);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits until there is something to send.
    pub(in crate::run) async fn next(&self) -> Vec<StreamState> {
        loop {
            let changed = self.changed.notified();
            let states = self.take();
            if !states.is_empty() {
                return states;
            }
            changed.await;
        }
    }

    fn take(&self) -> Vec<StreamState> {
        let mut waiting = lock(&self.waiting);
        let states: Vec<StreamState> = std::mem::take(&mut waiting.states).into_values().collect();
        let now = Instant::now();
        for state in &states {
            if state.state == StreamActivity::Settled {
                waiting.sent.remove(&state.node_id);
            } else {
                let sent = (state.attempt_id.clone(), state.state, now);
                waiting.sent.insert(state.node_id.clone(), sent);
            }
        }
        states
    }
}
