//! Which node is selected: the `node` in the address of a session's page, so that a link leads to it.

mod way;

use std::collections::HashSet;

use leptos::prelude::*;
use protocol::id::NodeId;

pub use way::{Way, above};

/// The selected node and how to select another. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Selection {
    node: Signal<Option<NodeId>>,
    /// The nodes that the selected one lies within.
    above: Signal<HashSet<NodeId>>,
    select: Callback<Option<NodeId>>,
    /// Asks for a node to be brought into view.
    reveal: RwSignal<Option<Reveal>>,
    /// The node that a control of the page selected last; others come by a link.
    asked: StoredValue<Option<NodeId>>,
}

/// A part of the page that shows nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The rows of the content.
    Content,
    /// The items of the tree.
    Tree,
    /// The details panel.
    Details,
}

/// A node that is to be brought into view in a part of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reveal {
    /// Where.
    pub part: Part,
    /// Which.
    pub node: NodeId,
    /// Whether the focus goes there too.
    pub takes_focus: bool,
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
            asked: StoredValue::new(None),
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

    /// The selected node, as it is now.
    pub fn node_untracked(self) -> Option<NodeId> {
        self.node.get_untracked()
    }

    /// Whether this node is the selected one.
    pub fn is(self, node: &NodeId) -> bool {
        self.node.with(|selected| selected.as_ref() == Some(node))
    }

    /// Whether the selected node lies within this one.
    pub fn is_within(self, node: &NodeId) -> bool {
        self.above.with(|above| above.contains(node))
    }

    /// Selects a node and brings its row into view.
    pub fn select(self, node: NodeId) {
        self.show(Part::Content, node, false);
    }

    /// Selects a node and goes to its row.
    pub fn go(self, node: NodeId) {
        self.show(Part::Content, node, true);
    }

    /// Selects a node and goes to its item in the tree.
    pub fn locate(self, node: NodeId) {
        self.show(Part::Tree, node, true);
    }

    /// Opens a node in the details panel and goes there.
    pub fn open(self, node: NodeId) {
        self.show(Part::Details, node, true);
    }

    /// Shows a node in the details panel; the focus stays where it is.
    pub fn show_details(self, node: NodeId) {
        self.show(Part::Details, node, false);
    }

    fn show(self, part: Part, node: NodeId, takes_focus: bool) {
        self.reveal.set(Some(Reveal {
            part,
            node: node.clone(),
            takes_focus,
        }));
        self.asked.set_value(Some(node.clone()));
        // What is selected already is no further step in the browser's history.
        if !untrack(|| self.is(&node)) {
            self.select.run(Some(node));
        }
    }

    /// Selects nothing.
    pub fn clear(self) {
        self.reveal.set(None);
        self.asked.set_value(None);
        if untrack(|| self.node.with(Option::is_some)) {
            self.select.run(None);
        }
    }

    /// Whether the selected node came with the address, not by a control of the page.
    pub fn came_by_link(self, node: &NodeId) -> bool {
        self.asked.with_value(|asked| asked.as_ref() != Some(node))
    }

    /// What was asked for last. It stands until something else is asked for, so that what is drawn late knows it too.
    pub fn revealed(self) -> Option<Reveal> {
        self.reveal.get()
    }

    /// What was asked for is in view.
    pub fn settle(self, node: &NodeId) {
        let is_known = |reveal: &Option<Reveal>| reveal.as_ref().is_some_and(|reveal| reveal.node == *node);
        if self.reveal.try_with_untracked(is_known) == Some(true) {
            self.reveal.set(None);
        }
    }

    /// The address of a node on the page of its session.
    pub fn href(node: &NodeId) -> String {
        format!("?node={node}")
    }
}
