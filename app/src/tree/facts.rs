//! What an item shows, besides its place.

use protocol::fold::RunState;
use protocol::model::{Node, NodeEnd};
use protocol::state::{Channel, NodeKind, NodeStatus};

use crate::content::partial_json::Fields;
use crate::content::{asking, registry, words};
use crate::ui::StateKind;

/// The most characters of a detail.
const DETAIL: usize = 60;

/// What an item shows, besides its place and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) state: StateKind,
    pub(super) name: String,
    pub(super) detail: String,
    /// A tool's name is code, other names are words.
    pub(super) is_text: bool,
}

impl Facts {
    /// All of it, for the search.
    pub(super) fn text(&self) -> String {
        [&self.name, " ", &self.detail, " ", self.state.word()].concat()
    }
}

/// Of a run, the one with a number in its session.
pub(super) fn of_run(state: &RunState, number: usize) -> Facts {
    let prompt = state.messages().first();
    Facts {
        state: asking::state_of_run(state),
        name: format!("Run {number}"),
        detail: prompt
            .map(|message| words::line(&message.text, DETAIL))
            .unwrap_or_default(),
        is_text: true,
    }
}

/// Of a node: a model's name; of a call the first line of its error, else what its arguments say.
pub(super) fn of_node(state: &RunState, node: &Node) -> Facts {
    let is_text = matches!(node.kind, NodeKind::Model | NodeKind::Phase | NodeKind::Root);
    let detail = if is_text {
        let last = state.attempts_of(&node.node_id).next_back();
        last.map(|attempt| attempt.model.clone())
    } else {
        // Why a call did not run, or not to its end, stands in its content: here is what it was about.
        let is_error = |end: &&NodeEnd| {
            matches!(
                end.status,
                NodeStatus::Failed | NodeStatus::TimedOut | NodeStatus::Denied
            )
        };
        let end = node.state.end().filter(is_error);
        end.and_then(|end| end.error.as_ref())
            .map(|error| words::first_line(&error.message, DETAIL))
            .or_else(|| {
                let arguments = node.outputs.get(&Channel::Arguments)?;
                let summary = registry::view_of(&node.name).summary;
                summary(&Fields::read(&arguments.text))
            })
    };
    Facts {
        state: asking::state_of(state, node),
        name: node.name.clone(),
        detail: detail.unwrap_or_default(),
        is_text,
    }
}
