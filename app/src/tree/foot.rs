//! How many nodes stand how, under the tree.

use leptos::prelude::*;
use protocol::state::{NodeKind, NodeStatus};

use crate::content::words;
use crate::data::run_store::Piece;
use crate::data::session_store::SessionStore;
use crate::ui::StateMark;
use crate::ui::dynamic::{dynamic_view, memo};

/// A count of each state that a node is in; what goes on first, then every way to end.
pub(super) fn tree_foot(session: SessionStore) -> impl IntoView {
    let counts = memo(move || {
        let mut counts = ORDER.map(|status| (status, 0));
        for run in session.runs() {
            run.read(Piece::Nodes, |state| {
                let nodes = state.nodes().iter();
                let calls = nodes.filter(|node| !matches!(node.kind, NodeKind::Root | NodeKind::Phase));
                for status in calls.map(|node| node.state.status()) {
                    let mut known = counts.iter_mut();
                    if let Some((_, count)) = known.find(|(known, _)| *known == status) {
                        *count += 1;
                    }
                }
            });
        }
        counts
    });
    let marks = dynamic_view(move || {
        counts
            .get()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(status, count)| {
                let state = words::node_state(status);
                let words = Signal::stored(format!("{count} {}", state.word()));
                view! { <StateMark state words/> }
            })
            .collect_view()
    });
    view! { <div class="side__foot">{marks}</div> }
}

/// The states, each in the place that it keeps.
const ORDER: [NodeStatus; 10] = [
    NodeStatus::AwaitingApproval,
    NodeStatus::Running,
    NodeStatus::Pending,
    NodeStatus::Succeeded,
    NodeStatus::Failed,
    NodeStatus::TimedOut,
    NodeStatus::Denied,
    NodeStatus::Interrupted,
    NodeStatus::Cancelled,
    NodeStatus::NotRun,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_counted_once() {
        for status in NodeStatus::ALL {
            assert_eq!(
                ORDER.iter().filter(|known| *known == status).count(),
                1,
                "{status}"
            );
        }
    }
}
