//! Where the page is led: to a block, a node or a text of it, which may be closed, not drawn, or not loaded yet.
//!
//! Whoever wants to see something says so here. Lists of blocks draw what the way leads through, long texts load the piece
//! in which the place lies, and rows on the way are open until the user closes them. A link, *locate* in the tree and a hit
//! of a search all go this way.

#[cfg(feature = "hydrate")]
mod browser;

use std::sync::Arc;

use leptos::prelude::*;
use protocol::id::{AttemptId, BlockId, MessageId, NodeId, RunId};
use protocol::search::{SearchField, SearchHit};
use protocol::state::Channel;

use super::expansion::Expansion;
use super::run_store::RunStore;
use super::selection::{Part, Way};
use super::session_store::SessionStore;
use crate::content::llm_node_content::LEVELS;

#[cfg(feature = "hydrate")]
pub use browser::{Arrived, Means, go};

/// What the page can be led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// The row of a node.
    Node(NodeId),
    /// What a node was given, said and gave back.
    Inside(NodeId),
    /// A block.
    Block(BlockId),
    /// The end of an attempt of a node.
    Attempt(AttemptId, NodeId),
    /// What a person said in a run.
    Message(RunId, MessageId),
    /// A run: its notices and its end.
    Run(RunId),
}

impl Goal {
    /// Where a hit of a search is.
    pub fn of(hit: &SearchHit) -> Self {
        use SearchField as F;
        match (
            hit.field,
            &hit.message_id,
            &hit.block_id,
            &hit.node_id,
            &hit.attempt_id,
        ) {
            (F::Message, Some(message), ..) => Self::Message(hit.run_id.clone(), message.clone()),
            (F::Text | F::Reasoning | F::Refusal, _, Some(block), ..) => Self::Block(block.clone()),
            // Of an attempt: a call has its row.
            (F::Error, _, None, Some(node), Some(attempt)) => Self::Attempt(attempt.clone(), node.clone()),
            (F::Name | F::Title, _, _, Some(node), _) => Self::Node(node.clone()),
            (F::Notice, ..) => Self::Run(hit.run_id.clone()),
            (_, _, _, Some(node), _) => Self::Inside(node.clone()),
            _ => Self::Run(hit.run_id.clone()),
        }
    }

    /// The goal of an address: the id of a block, of a node or of a run.
    pub fn of_thing(thing: &str) -> Option<Self> {
        // Each kind of id has its own first letters.
        let block = thing.parse().ok().map(Self::Block);
        let node = || thing.parse().ok().map(Self::Node);
        block.or_else(node).or_else(|| thing.parse().ok().map(Self::Run))
    }

    /// The block or node that has to be known for it.
    pub fn thing(&self) -> Option<String> {
        match self {
            Self::Node(id) | Self::Inside(id) | Self::Attempt(_, id) => Some(id.to_string()),
            Self::Block(id) => Some(id.to_string()),
            Self::Message(..) | Self::Run(_) => None,
        }
    }

    /// The way to it, and the run that it is in, where that is loaded.
    pub fn way(&self, session: SessionStore) -> Option<(RunStore, Way)> {
        let runs = untrack(|| session.runs());
        let of_run = |id: &RunId| runs.iter().find(|run| run.run_id() == id).cloned();
        let first = |way: &dyn Fn(&protocol::fold::RunState) -> Option<Way>| {
            runs.iter().find_map(|run| Some((run.clone(), run.peek(way)?)))
        };
        match self {
            Self::Node(id) => first(&|state| state.node(id).map(|_| Way::to(state, id))),
            Self::Inside(id) => first(&|state| state.node(id).map(|_| Way::within(state, id))),
            Self::Block(id) => first(&|state| Way::to_block(state, id)),
            Self::Attempt(id, _) => first(&|state| Way::into_attempt(state, id)),
            Self::Message(run, _) | Self::Run(run) => of_run(run).map(|run| {
                let way = run.peek(Way::to_run);
                (run, way)
            }),
        }
    }
}

/// A place in a long text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPlace {
    /// The block or the node.
    pub subject: String,
    /// Which text of a node; none: that of a block.
    pub channel: Option<Channel>,
    /// Bytes from its beginning.
    pub offset: u64,
    /// Whether the text is to be shown as it came: in its view the place was not found.
    pub is_raw: bool,
}

impl TextPlace {
    /// Where a hit lies, when its text may be long.
    pub fn of(hit: &SearchHit) -> Option<Self> {
        let channel = match hit.field {
            SearchField::Arguments => Some(Channel::Arguments),
            SearchField::Log => Some(Channel::Log),
            SearchField::Result => Some(Channel::Result),
            SearchField::Text | SearchField::Reasoning => None,
            _ => return None,
        };
        let subject = match channel {
            Some(_) => hit.node_id.as_ref()?.to_string(),
            None => hit.block_id.as_ref()?.to_string(),
        };
        Some(Self {
            subject,
            channel,
            offset: hit.offset,
            is_raw: false,
        })
    }
}

/// Where the page is being led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Led {
    /// What has to be drawn.
    pub way: Arc<Way>,
    /// In which part of the page.
    pub part: Part,
}

/// Leads the page. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Guide {
    led: RwSignal<Option<Led>>,
    text: RwSignal<Option<TextPlace>>,
    /// What of that text is not in the page before the place, from a byte up to another.
    left_out: StoredValue<Option<(u64, u64)>>,
    /// Whether its piece is on its way.
    is_loading: StoredValue<bool>,
    /// The block or node that the page was loaded for: what is not here of it is nowhere.
    loaded: StoredValue<Option<String>>,
}

impl Default for Guide {
    fn default() -> Self {
        Self {
            led: RwSignal::new(None),
            text: RwSignal::new(None),
            left_out: StoredValue::new(None),
            is_loading: StoredValue::new(false),
            loaded: StoredValue::new(None),
        }
    }
}

impl Guide {
    /// The one in context, or one that leads nowhere.
    pub fn use_context() -> Self {
        use_context().unwrap_or_default()
    }

    /// For a page that was loaded with what leads to a block or node.
    pub fn new(loaded: Option<String>) -> Self {
        let guide = Self::default();
        guide.loaded.set_value(loaded);
        guide
    }

    /// Whether the page was loaded for this block or node.
    pub fn is_loaded_for(self, thing: &str) -> bool {
        self.loaded.with_value(|loaded| loaded.as_deref() == Some(thing))
    }

    /// Opens a way and has it drawn. Beyond the levels that the content shows it is drawn in the details.
    pub fn lead(self, expansion: &Expansion, way: Way) -> Part {
        let part = if way.models > LEVELS {
            Part::Details
        } else {
            Part::Content
        };
        for key in &way.open {
            expansion.lead(key);
        }
        let way = Arc::new(way);
        self.led.set(Some(Led { way, part }));
        part
    }

    /// Has the piece of a text loaded in which a place lies.
    pub fn lead_to_text(self, place: Option<TextPlace>) {
        self.left_out.set_value(None);
        self.is_loading.set_value(false);
        self.text.set(place);
    }

    /// The index of the block of an attempt that the way leads through, in a part of the page.
    pub fn index_in(self, attempt: &AttemptId, part: Part) -> Option<u32> {
        self.led.with(|led| {
            let led = led.as_ref().filter(|led| led.part == part)?;
            led.way.index_in(attempt)
        })
    }

    /// Whether the way leads through a node, in a part of the page.
    pub fn leads_through(self, node: &NodeId, part: Part) -> bool {
        self.led.with(|led| {
            let led = led.as_ref().filter(|led| led.part == part);
            led.is_some_and(|led| led.way.path.contains(node))
        })
    }

    /// The place that is wanted of a text, where it is this one.
    pub fn place_in(self, subject: &str, channel: Option<Channel>) -> Option<TextPlace> {
        self.text.with(|place| {
            let is_it = |place: &&TextPlace| place.subject == subject && place.channel == channel;
            place.as_ref().filter(is_it).cloned()
        })
    }

    /// Says that the piece of the place is being loaded.
    pub fn wait(self) {
        self.is_loading.set_value(true);
    }

    /// Whether the piece of the place is being loaded.
    pub fn is_loading(self) -> bool {
        self.is_loading.get_value()
    }

    /// Says that the piece is here, and what of the text is left out before it.
    pub fn leave_out(self, from: u64, to: u64) {
        self.is_loading.set_value(false);
        self.left_out.set_value(Some((from, to)));
    }

    /// What of the text is left out before the place.
    pub fn left_out(self) -> Option<(u64, u64)> {
        self.left_out.get_value()
    }
}
