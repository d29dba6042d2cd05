//! The items of the tree, one after another as they are seen.

use std::collections::{HashMap, HashSet};

use protocol::fold::RunState;
use protocol::id::{NodeId, RunId};

use super::facts;
use crate::data::run_store::{Piece, RunStore};

/// What an item stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub(super) enum Key {
    Run(RunId),
    Node(NodeId),
}

impl Key {
    /// The id of what it stands for.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Run(id) => id.as_str(),
            Self::Node(id) => id.as_str(),
        }
    }

    /// The key under which the user's choice is kept.
    pub(super) fn expansion(&self) -> String {
        format!("tree/{}", self.as_str())
    }
}

/// Whether an item has others within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branch {
    Leaf,
    Closed,
    Open,
}

/// An item among the items that are seen.
#[derive(Clone, PartialEq)]
pub(super) struct Item {
    pub(super) key: Key,
    pub(super) run: RunStore,
    /// The place of its run in the session, from 1.
    pub(super) number: usize,
    /// From 1.
    pub(super) level: usize,
    /// Its place among those beside it, from 1, and how many they are.
    pub(super) place: usize,
    pub(super) count: usize,
    pub(super) branch: Branch,
    /// The place in the list of the item that it lies within.
    pub(super) parent: Option<usize>,
    /// Whether it stands here only as the way to a match.
    pub(super) is_way: bool,
}

/// What is searched for: words that an item holds, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query(Vec<String>);

impl Query {
    /// None where nothing is searched for.
    pub(super) fn of(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    fn fits(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.0.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Items in the order in which they are seen.
#[derive(Clone, Default)]
pub(super) struct List {
    items: Vec<Item>,
    places: HashMap<Key, usize>,
    /// How many match, where something is searched for.
    hits: Option<usize>,
}

/// The places follow from the items.
impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.hits == other.hits && self.items == other.items
    }
}

/// Which items are seen.
enum Choice<'a> {
    /// Those within what is open.
    Opened(&'a dyn Fn(&Key) -> bool),
    /// Those that match, and what leads to them.
    Matching {
        hits: HashSet<NodeId>,
        ways: HashSet<NodeId>,
    },
}

impl Choice<'_> {
    fn has(&self, node: &NodeId) -> bool {
        match self {
            Self::Opened(_) => true,
            Self::Matching { hits, ways } => hits.contains(node) || ways.contains(node),
        }
    }

    fn is_way(&self, node: &NodeId) -> bool {
        matches!(self, Self::Matching { hits, .. } if !hits.contains(node))
    }

    /// Whether something is open is asked only where there is something within.
    fn branch(&self, key: &Key, children: &[NodeId]) -> Branch {
        let is_open = || match self {
            Self::Opened(is_open) => is_open(key),
            Self::Matching { .. } => true,
        };
        if children.is_empty() {
            Branch::Leaf
        } else if is_open() {
            Branch::Open
        } else {
            Branch::Closed
        }
    }
}

/// A node that is still to be listed.
struct Next {
    node: NodeId,
    level: usize,
    place: usize,
    count: usize,
    parent: usize,
}

impl Next {
    /// The children of an item, the first one last.
    fn within(children: Vec<NodeId>, branch: Branch, level: usize, parent: usize) -> Vec<Self> {
        if branch != Branch::Open {
            return Vec::new();
        }
        let count = children.len();
        let numbered = children.into_iter().enumerate().rev();
        numbered
            .map(|(place, node)| Self {
                node,
                level,
                place: place + 1,
                count,
                parent,
            })
            .collect()
    }
}

impl List {
    /// What lies within open items. Follows the runs' nodes and what is open.
    pub(super) fn opened(runs: &[RunStore], is_open: &dyn Fn(&Key) -> bool) -> Self {
        let mut list = Self::default();
        for (place, run) in runs.iter().enumerate() {
            run.track(Piece::Nodes);
            run.peek(|state| list.add(run, state, place + 1, false, &Choice::Opened(is_open)));
        }
        list.count_runs();
        list
    }

    /// What matches, with the way to it, however much of it is closed.
    pub(super) fn matching(runs: &[RunStore], query: &Query) -> Self {
        let mut list = Self::default();
        let mut total = 0;
        for (place, run) in runs.iter().enumerate() {
            run.track(Piece::Nodes);
            run.peek(|state| {
                let mut hits = HashSet::new();
                let mut ways = HashSet::new();
                let root = state.root().map(|root| &root.node_id);
                for node in state.nodes().iter().filter(|node| Some(&node.node_id) != root) {
                    if !query.fits(&facts::of_node(state, node).text()) {
                        continue;
                    }
                    hits.insert(node.node_id.clone());
                    let mut next = node.parent_id.as_ref();
                    while let Some(above) = next.filter(|above| ways.insert((*above).clone())) {
                        next = state.node(above).and_then(|node| node.parent_id.as_ref());
                    }
                }
                let is_hit = query.fits(&facts::of_run(state, place + 1).text());
                total += hits.len() + usize::from(is_hit);
                if is_hit || !hits.is_empty() {
                    list.add(run, state, place + 1, !is_hit, &Choice::Matching { hits, ways });
                }
            });
        }
        list.count_runs();
        list.hits = Some(total);
        list
    }

    /// The items.
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Where an item stands.
    pub(super) fn place(&self, key: &Key) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// An item by what it stands for.
    pub(super) fn item(&self, key: &Key) -> Option<&Item> {
        self.items.get(self.place(key)?)
    }

    /// How many match, where something is searched for.
    pub(super) fn hits(&self) -> Option<usize> {
        self.hits
    }

    fn push(&mut self, item: Item) -> usize {
        let at = self.items.len();
        self.places.insert(item.key.clone(), at);
        self.items.push(item);
        at
    }

    /// How many runs are listed is known at the end.
    fn count_runs(&mut self) {
        let is_run = |item: &&mut Item| item.parent.is_none();
        let count = self.items.iter_mut().filter(is_run).count();
        for (place, item) in self.items.iter_mut().filter(is_run).enumerate() {
            (item.place, item.count) = (place + 1, count);
        }
    }

    fn add(&mut self, run: &RunStore, state: &RunState, number: usize, is_way: bool, choice: &Choice<'_>) {
        let within = |node: &NodeId| -> Vec<NodeId> {
            let nodes = state.children(node).map(|node| &node.node_id);
            nodes.filter(|node| choice.has(node)).cloned().collect()
        };
        let key = Key::Run(run.run_id().clone());
        let children = state.root().map(|root| within(&root.node_id)).unwrap_or_default();
        let branch = choice.branch(&key, &children);
        let at = self.push(Item {
            key,
            run: run.clone(),
            number,
            level: 1,
            place: 1,
            count: 1,
            branch,
            parent: None,
            is_way,
        });
        let mut pending = Next::within(children, branch, 2, at);
        while let Some(next) = pending.pop() {
            let children = within(&next.node);
            let is_way = choice.is_way(&next.node);
            let key = Key::Node(next.node);
            let branch = choice.branch(&key, &children);
            let at = self.push(Item {
                key,
                run: run.clone(),
                number,
                level: next.level,
                place: next.place,
                count: next.count,
                branch,
                parent: Some(next.parent),
                is_way,
            });
            pending.append(&mut Next::within(children, branch, next.level + 1, at));
        }
    }
}
