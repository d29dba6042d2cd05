//! Which node is selected: the `node` in the address of a session's page, so that a link leads to it.

use std::collections::HashSet;

use leptos::prelude::*;
use protocol::id::NodeId;

/// The selected node and how to select another. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Selection {
    node: Signal<Option<NodeId>>,
    /// The nodes that the selected one lies within.
    above: Signal<HashSet<NodeId>>,
    select: Callback<Option<NodeId>>,
    /// Asks for a node to be scrolled to, in the content or in the tree.
    reveal: RwSignal<Option<Reveal>>,
}

/// Something that is to be scrolled to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reveal {
    /// The row of a node in the content.
    Content(NodeId),
    /// The item of a node in the tree.
    Tree(NodeId),
}

impl Selection {
    /// A selection that follows `node`; `select` is called to change it.
    pub fn new(
        node: Signal<Option<NodeId>>,
        above: Signal<HashSet<NodeId>>,
        select: Callback<Option<NodeId>>,
    ) -> Self {
        Self {
            node,
            above,
            select,
            reveal: RwSignal::new(None),
        }
    }

    /// The selection in context, or one in which nothing is ever selected.
    pub fn use_context() -> Self {
        use_context().unwrap_or_else(|| {
            Self::new(
                Signal::stored(None),
                Signal::stored(HashSet::new()),
                Callback::new(|_| {}),
            )
        })
    }

    /// The selected node.
    pub fn node(self) -> Option<NodeId> {
        self.node.get()
    }

    /// Whether this node is the selected one.
    pub fn is(self, node: &NodeId) -> bool {
        self.node.with(|selected| selected.as_ref() == Some(node))
    }

    /// Whether the selected node lies within this one.
    pub fn is_within(self, node: &NodeId) -> bool {
        self.above.with(|above| above.contains(node))
    }

    /// Selects a node and scrolls the content to its row.
    pub fn select(self, node: NodeId) {
        self.reveal.set(Some(Reveal::Content(node.clone())));
        self.select.run(Some(node));
    }

    /// Selects a node and scrolls the tree to its item.
    pub fn locate(self, node: NodeId) {
        self.reveal.set(Some(Reveal::Tree(node.clone())));
        self.select.run(Some(node));
    }

    /// Opens a node in the details panel.
    pub fn open(self, node: NodeId) {
        self.select.run(Some(node));
    }

    /// Selects nothing.
    pub fn clear(self) {
        self.select.run(None);
    }

    /// What is to be scrolled to.
    pub fn revealed(self) -> Option<Reveal> {
        self.reveal.get()
    }

    /// The address of a node on the page of its session.
    pub fn href(node: &NodeId) -> String {
        format!("?node={node}")
    }
}
