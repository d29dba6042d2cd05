//! How executions are stopped from outside: a whole run, one call of it, or one inner model.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use protocol::id::NodeId;
use tokio_util::sync::CancellationToken;

/// Why an execution is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// A person asked for it.
    ByPerson,
    /// The server stops.
    ByShutdown,
    /// The run may not be written any more.
    Lost,
    /// It takes longer than it may.
    ByTimeLimit,
    /// Whoever called it waits no more.
    ByCaller,
}

/// Stops one execution, and all that it has begun; the first reason counts.
#[derive(Debug, Clone, Default)]
pub(super) struct StopSignal {
    token: CancellationToken,
    why: Arc<OnceLock<Stopped>>,
    nodes: Arc<NodeStops>,
}

impl StopSignal {
    /// A signal for a part of what this one stops. It stops with it, and can be stopped alone.
    pub(super) fn child(&self) -> Self {
        Self {
            token: self.token.child_token(),
            why: Arc::default(),
            nodes: Arc::clone(&self.nodes),
        }
    }

    pub(super) fn stop(&self, why: Stopped) {
        let _ = self.why.set(why);
        self.token.cancel();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Why this part was stopped; none when what it belongs to was.
    pub(super) fn why(&self) -> Option<Stopped> {
        self.why.get().copied()
    }

    /// Says that this signal stops a node, until the answer is dropped. Where a person wanted that before, it is stopped.
    pub(super) fn stops(&self, node_id: &NodeId) -> StopsNode {
        let wished = matches!(
            self.nodes
                .lock()
                .insert(node_id.clone(), NodeStop::Runs(self.clone())),
            Some(NodeStop::Wished)
        );
        if wished {
            self.stop(Stopped::ByPerson);
        }
        StopsNode {
            nodes: Arc::clone(&self.nodes),
            node_id: node_id.clone(),
        }
    }

    /// A person stops one node of the run; where it has not begun, as soon as it would.
    pub(super) fn stop_node(&self, node_id: &NodeId) {
        let mut nodes = self.nodes.lock();
        let known = nodes.entry(node_id.clone()).or_insert(NodeStop::Wished);
        if let NodeStop::Runs(signal) = known {
            signal.stop(Stopped::ByPerson);
        }
    }
}

/// What of a run can be stopped alone.
#[derive(Debug, Default)]
struct NodeStops {
    nodes: Mutex<HashMap<NodeId, NodeStop>>,
}

#[derive(Debug)]
enum NodeStop {
    /// It is to be stopped and has not begun.
    Wished,
    /// It runs, and this stops it.
    Runs(StopSignal),
}

impl NodeStops {
    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, NodeStop>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as it is there, the node can be stopped alone.
#[derive(Debug)]
pub(super) struct StopsNode {
    nodes: Arc<NodeStops>,
    node_id: NodeId,
}

impl Drop for StopsNode {
    fn drop(&mut self) {
        self.nodes.lock().remove(&self.node_id);
    }
}

#[cfg(test)]
mod tests {
    use protocol::id::RunId;
    use uuid::Uuid;

    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId::root(&RunId::from_uuid(Uuid::from_u128(number)))
    }

    #[test]
    fn a_part_stops_with_the_whole_and_the_whole_not_with_the_part() {
        let whole = StopSignal::default();
        let (one, other) = (whole.child(), whole.child());
        one.stop(Stopped::ByPerson);
        assert!(one.is_stopped() && !other.is_stopped() && !whole.is_stopped());
        whole.stop(Stopped::ByShutdown);
        assert!(other.is_stopped());
        assert_eq!(
            (one.why(), other.why(), whole.why()),
            (Some(Stopped::ByPerson), None, Some(Stopped::ByShutdown))
        );
    }

    #[test]
    fn a_node_is_stopped_alone_whether_the_wish_comes_before_it_begins_or_after() {
        let run = StopSignal::default();
        let (first, second, third) = (run.child(), run.child(), run.child());
        run.stop_node(&node(1));
        let _first = first.stops(&node(1));
        assert_eq!(first.why(), Some(Stopped::ByPerson));
        let second_guard = second.stops(&node(2));
        let _third = third.stops(&node(3));
        // Also by a signal of another part of the run.
        first.stop_node(&node(2));
        assert_eq!(second.why(), Some(Stopped::ByPerson));
        assert!(!third.is_stopped() && !run.is_stopped());
        drop(second_guard);
        assert_eq!(run.nodes.lock().len(), 2);
    }
}
