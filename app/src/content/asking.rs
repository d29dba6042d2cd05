//! Which calls of a run wait for a person, and which nodes hold one of them.

use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::model::{Approval, Node};
use protocol::state::NodeStatus;

use super::words;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::StateKind;

/// The open requests of a run, in their order. One whose call was stopped is not open any more.
pub fn open(state: &RunState) -> impl Iterator<Item = &Approval> {
    state.approvals().iter().filter(|approval| {
        // What is not loaded cannot have been stopped while the run goes on.
        approval.resolution.is_none()
            && !state.run().status.is_final()
            && state
                .node(&approval.node_id)
                .is_none_or(|node| node.state.end().is_none())
    })
}

/// The open request of a call.
pub fn request_of<'a>(state: &'a RunState, node_id: &NodeId) -> Option<&'a Approval> {
    open(state).find(|approval| approval.node_id == *node_id)
}

/// Whether something within a node waits for a person.
pub fn is_above(state: &RunState, node_id: &NodeId) -> bool {
    open(state).any(|approval| {
        let mut next = state.node(&approval.node_id);
        // As many steps as there are nodes: a chain of parents that bites its own tail ends too.
        for _ in 0..state.nodes().len() {
            let Some(parent) = next.and_then(|node| node.parent_id.as_ref()) else {
                break;
            };
            if parent == node_id {
                return true;
            }
            next = state.node(parent);
        }
        false
    })
}

/// How a node is shown: one that goes on and holds a call that waits for a person needs that person, too.
pub fn state_of(state: &RunState, node: &Node) -> StateKind {
    let status = node.state.status();
    if status == NodeStatus::Running && is_above(state, &node.node_id) {
        return StateKind::AwaitingApproval;
    }
    words::node_state(status)
}

/// How a run is shown.
pub fn state_of_run(state: &RunState) -> StateKind {
    match open(state).next() {
        Some(_) => StateKind::AwaitingApproval,
        None => words::run_state(state.run().status),
    }
}

impl RunStore {
    /// How a node is shown, where it is known.
    pub fn shown_state(&self, node_id: &NodeId) -> Option<StateKind> {
        self.track(Piece::Approvals);
        self.read(Piece::Node(node_id.clone()), |state| {
            state.node(node_id).map(|node| state_of(state, node))
        })
    }
}

#[cfg(test)]
mod tests {
    use protocol::state::{ApprovalAnswer, NodeKind, RunStatus};

    use super::*;
    use crate::fixtures::script::{Script, node};

    /// A model that a call asks makes a call of its own, which waits for a person.
    fn asking() -> Script {
        let mut script = Script::started();
        script.tool("exec_1", "ask_model", 0);
        script.node_status("exec_1", NodeStatus::Running);
        script.node("call_2", "exec_1", NodeKind::Model, "inner model");
        script.node_status("call_2", NodeStatus::Running);
        script.node("exec_2", "call_2", NodeKind::Function, "shell");
        script.ask("exec_2", "Run the command `ls`");
        script.tool("exec_3", "read_file", 1);
        script.node_status("exec_3", NodeStatus::Running);
        script
    }

    fn shown(state: &RunState, id: &str) -> StateKind {
        state_of(state, state.node(&node(id)).unwrap())
    }

    #[test]
    fn whatever_holds_a_call_that_waits_for_a_person_needs_that_person() {
        let state = asking().state();
        for id in ["exec_2", "call_2", "exec_1"] {
            assert_eq!(shown(&state, id), StateKind::AwaitingApproval, "{id}");
        }
        assert_eq!(shown(&state, "exec_3"), StateKind::Running);
        // Also while another part of the run works.
        assert_eq!(state.run().status, RunStatus::Running);
        assert_eq!(state_of_run(&state), StateKind::AwaitingApproval);
        assert_eq!(
            request_of(&state, &node("exec_2")).unwrap().what,
            "Run the command `ls`"
        );
    }

    #[test]
    fn nobody_is_needed_once_it_is_answered_stopped_or_over() {
        let mut answered = asking();
        answered.resolve("exec_2", ApprovalAnswer::Approve, None);
        let mut stopped = asking();
        stopped.node_status("exec_2", NodeStatus::NotRun);
        let mut over = asking();
        over.run_status(RunStatus::Cancelled);
        for script in [answered, stopped, over] {
            let state = script.state();
            assert_eq!(open(&state).count(), 0);
            assert_eq!(shown(&state, "exec_1"), StateKind::Running);
        }
    }
}
