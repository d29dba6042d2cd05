//! What a row shows, read from the run's store piece by piece.

use protocol::id::{BlockId, NodeId};
use protocol::model::{BlockBody, Node, ToolRef};
use protocol::state::{Channel, Executor, NodeKind, NodeStatus};

use crate::content::partial_json::Fields;
use crate::content::registry::{self, Variant};
use crate::content::views::{self, Change, Form, ansi};
use crate::content::words;
use crate::data::clock::PageClock;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::StateKind;

/// What a row stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A model's tool call, by its block.
    Block(BlockId),
    /// A call without a block (of a program), by its node.
    Node(NodeId),
}

/// So many bytes of arguments that still arrive are read for the summary.
const ARRIVING: usize = 16 * 1024;

/// The one line about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// What stands before the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meta {
    /// A few words, or none.
    Words(String),
    /// Lines that came and went.
    Change(Change),
}

/// A row and where it reads from.
pub(super) struct Row {
    pub(super) run: RunStore,
    pub(super) call: Call,
}

impl Row {
    fn reference<T>(&self, read: impl FnOnce(&ToolRef) -> T) -> Option<T> {
        match &self.call {
            Call::Node(_) => None,
            Call::Block(id) => self
                .run
                .block(id, |block| match &block.body {
                    BlockBody::ToolRef(reference) => Some(read(reference)),
                    _ => None,
                })
                .flatten(),
        }
    }

    /// The node of the call, whether or not it has come.
    pub(super) fn node_id(&self) -> Option<NodeId> {
        match &self.call {
            Call::Node(id) => Some(id.clone()),
            Call::Block(_) => self
                .reference(|reference| reference.ref_node_id.clone())
                .flatten(),
        }
    }

    fn node<T>(&self, read: impl FnOnce(&Node) -> T) -> Option<T> {
        self.run.node(&self.node_id()?, read)
    }

    /// The node of the call, once it has come.
    pub(super) fn known_id(&self) -> Option<NodeId> {
        self.node(|node| node.node_id.clone())
    }

    pub(super) fn kind(&self) -> Option<NodeKind> {
        self.node(|node| node.kind)
    }

    pub(super) fn tool_name(&self) -> String {
        let name = self.reference(|reference| reference.tool_name.clone());
        name.or_else(|| self.node(|node| node.name.clone()))
            .unwrap_or_default()
    }

    /// The state of the node; of a node that has not come: pending, and unresolved when the run is over without it.
    pub(super) fn state(&self) -> StateKind {
        match self.node_id().and_then(|id| self.run.shown_state(&id)) {
            Some(state) => state,
            None if self.run.status().is_final() => StateKind::Unresolved,
            None => StateKind::Pending,
        }
    }

    /// From the arguments, also unfinished ones; the first line of the error when the call failed.
    pub(super) fn summary(&self) -> Summary {
        if self.state() == StateKind::Unresolved {
            let call = self
                .reference(|reference| reference.tool_call_id.clone())
                .unwrap_or_default();
            return Summary {
                text: format!("no stored node for tool call {call}"),
                is_error: false,
            };
        }
        let error = self.node(|node| {
            let end = node.state.end()?;
            let first = words::first_line(&ansi::plain(&end.error.as_ref()?.message), 240);
            let is_error = matches!(
                end.status,
                NodeStatus::Failed | NodeStatus::TimedOut | NodeStatus::Denied
            );
            is_error.then_some(Summary {
                text: first,
                is_error: end.status != NodeStatus::Denied,
            })
        });
        if let Some(summary) = error.flatten().filter(|summary| !summary.text.is_empty()) {
            return summary;
        }
        let view = registry::view_of(&self.tool_name());
        let summary = self.node_id().and_then(|id| {
            let is_arriving = self.run.node(&id, |node| node.state.status()) == Some(NodeStatus::Pending);
            self.run.output(&id, Channel::Arguments, |output| {
                // While arguments arrive, what a delta costs must not grow with them.
                let most = if is_arriving { ARRIVING } else { output.text.len() };
                let known = &output.text[..output.text.floor_char_boundary(most)];
                (view.summary)(&Fields::read(known))
            })
        });
        let title = || self.node(|node| words::first_line(&node.title, 240));
        Summary {
            text: summary.flatten().or_else(title).unwrap_or_default(),
            is_error: false,
        }
    }

    /// The nodes within, in the order of their calls.
    pub(super) fn children(&self) -> Vec<NodeId> {
        self.node_id()
            .map(|id| self.run.children(&id))
            .unwrap_or_default()
    }

    /// How far it is, where that is known: what is done, and of how much.
    pub(super) fn progress(&self) -> Option<(u64, u64)> {
        self.node(|node| {
            let progress = node
                .progress
                .as_ref()
                .filter(|_| node.state.status() == NodeStatus::Running)?;
            progress
                .total
                .filter(|total| *total > 0)
                .map(|total| (progress.done.min(total), total))
        })
        .flatten()
    }

    /// A few words before the state.
    pub(super) fn meta(&self) -> Meta {
        match self.change() {
            Some(change) => Meta::Change(change),
            None => Meta::Words(self.remark()),
        }
    }

    /// How many lines a call that is done brought and took.
    fn change(&self) -> Option<Change> {
        let is_done = self.node(|node| node.state.status()) == Some(NodeStatus::Succeeded);
        let view = registry::view_of(&self.tool_name());
        if !is_done || !matches!(view.variant, Variant::Edit | Variant::Write) {
            return None;
        }
        self.run
            .output(&self.node_id()?, Channel::Arguments, |output| {
                if output.content_ref.is_some() || output.is_open_preview() {
                    return None;
                }
                let shape = (view.arguments)(&Fields::read(&output.text), &output.text)?;
                let text = shape.text?;
                Some(match shape.form {
                    Form::Diff => views::count(&text),
                    _ => Change {
                        added: text.lines().count(),
                        removed: 0,
                    },
                })
            })
            .flatten()
    }

    fn remark(&self) -> String {
        if let Some((done, total)) = self.progress() {
            return format!("{done}/{total}");
        }
        let exit = self
            .node(|node| node.state.end().and_then(|end| end.exit_code))
            .flatten();
        if let Some(code) = exit.filter(|code| *code != 0) {
            return format!("exit {code}");
        }
        if let Some(words) = self.node_id().and_then(|id| self.called(&id)) {
            return words;
        }
        if self.node(|node| node.executor) == Some(Executor::Provider) {
            return "provider tool".to_owned();
        }
        if self.node(|node| node.state.status()) != Some(NodeStatus::Succeeded) {
            return String::new();
        }
        let view = registry::view_of(&self.tool_name());
        let result = self
            .node_id()
            .and_then(|id| self.run.output(&id, Channel::Result, view.result));
        result.flatten().unwrap_or_default()
    }

    /// How many calls stand within. What becomes of them is no news for it.
    fn called(&self, id: &NodeId) -> Option<String> {
        let (models, calls) = self.run.read(Piece::Children(id.clone()), |state| {
            let kinds = state.children(id).map(|node| node.kind == NodeKind::Model);
            kinds.fold((0, 0), |(models, calls), is_model| {
                (models + usize::from(is_model), calls + 1)
            })
        });
        match (models, calls) {
            (_, 0) => None,
            _ if models == calls => Some(words::counted(models, "model call")),
            _ => Some(words::counted(calls, "call")),
        }
    }

    pub(super) fn time(&self, clock: PageClock) -> String {
        self.node(|node| words::node_span(node, clock))
            .unwrap_or_else(|| {
                if self.run.status().is_final() {
                    "unknown".to_owned()
                } else {
                    "–".to_owned()
                }
            })
    }
}
