//! The only reducer: ops in, state out. Execution, storage, server rendering and the browser all use it.
//!
//! What it holds to:
//! - `seq` is the only clock of a run. A known one changes nothing, the next one is applied, a later one is a gap.
//! - Text grows only at its end. An op that overlaps what is known adds the rest; one that leaves a hole is a gap.
//! - What is closed stays closed: late ops are refused and reported, never applied.
//! - An update never blanks a field that it leaves out.
//! - No input makes it panic.

mod apply;
mod content;
mod extra;
mod retell;
mod view;
mod window;

pub use window::AddError;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::id::{ApprovalId, AttemptId, BlockId, MessageId, NodeId, OccurrenceId, RunId, SessionId};
use crate::model::{Approval, Attempt, Block, Message, Node, Notice, Run, StreamState};
use crate::snapshot::{HeldOp, LeftOut, Snapshot};
use crate::state::{Channel, RunStatus};
use crate::{Extra, SCHEMA_VERSION};

/// The most updates that wait for nodes which have not come yet; later ones are refused.
pub const MAX_HELD: usize = 1_000;

/// The state of a run.
#[derive(Debug, Clone)]
pub struct RunState {
    run: Run,
    messages: Vec<Message>,
    nodes: Vec<Node>,
    attempts: Vec<Attempt>,
    blocks: Vec<Block>,
    approvals: Vec<Approval>,
    notices: Vec<Notice>,
    unknown: Vec<Value>,
    held: Vec<HeldOp>,
    left_out: Vec<LeftOut>,
    /// The last op that was about something that is left out: what is loaded later has to hold it already.
    passed_over: u64,
    streams: BTreeMap<NodeId, StreamState>,
    index: Index,
}

/// Where things are. Rebuilt from the lists, never part of the state itself.
#[derive(Debug, Clone, Default)]
struct Index {
    messages: HashMap<MessageId, usize>,
    nodes: HashMap<NodeId, usize>,
    attempts: HashMap<AttemptId, usize>,
    blocks: HashMap<BlockId, usize>,
    approvals: HashMap<ApprovalId, usize>,
    /// The block that shows a call.
    occurrences: HashMap<OccurrenceId, BlockId>,
    /// The node that a call made.
    called: HashMap<OccurrenceId, NodeId>,
    /// The block that points at a node.
    references: HashMap<NodeId, BlockId>,
    /// Children in the order of their ordinal, then of their announcement.
    children: HashMap<NodeId, Vec<usize>>,
    /// Attempts of a node in the order of their index.
    attempts_of: HashMap<NodeId, Vec<usize>>,
    /// Blocks of an attempt in the order of their index.
    blocks_of: HashMap<AttemptId, Vec<usize>>,
}

/// What an op changed, so that a reader touches only that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// The run's own fields.
    Run,
    /// A message was added.
    MessageAdded(MessageId),
    /// A message's state.
    Message(MessageId),
    /// A node was added.
    NodeAdded(NodeId),
    /// A node's fields.
    Node(NodeId),
    /// A channel of a node grew.
    Output(NodeId, Channel),
    /// An attempt was added to a node.
    AttemptAdded(NodeId, AttemptId),
    /// An attempt's fields.
    Attempt(AttemptId),
    /// A block was added to an attempt.
    BlockAdded(AttemptId, BlockId),
    /// A block's fields.
    Block(BlockId),
    /// A block grew.
    BlockContent(BlockId),
    /// A request for approval.
    Approval(ApprovalId),
    /// A notice was added.
    Notice,
    /// An op that is not known was kept.
    Unknown,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// It was known already.
    Duplicate,
    /// It was applied.
    Changed(Vec<Change>),
    /// It has its place in the journal, but changes nothing: to be reported.
    Refused(Refusal),
}

/// Why an op is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is about something that is closed.
    #[error("{0} is closed")]
    Closed(String),
    /// It is about something that never came.
    #[error("{0} is not known")]
    Unknown(String),
    /// The same call has a row already.
    #[error("the call {0} has a row already")]
    RepeatedOccurrence(OccurrenceId),
    /// Another block has this place.
    #[error("{0} is at a place that another block has")]
    TakenPlace(BlockId),
    /// The overlap with what is known differs from it.
    #[error("{0} differs from what is known")]
    OverlapDiffers(String),
    /// The state is not one that this op may set.
    #[error("{thing} cannot become {status} by this op")]
    Transition {
        /// What it is about.
        thing: String,
        /// The state.
        status: String,
    },
    /// Too many updates wait for their node.
    #[error("too many updates wait for a node that has not come")]
    TooManyHeld,
}

/// Why an entry cannot be taken at all: nothing changed, and the caller has to do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// Ops are missing: ask for those after `known`.
    #[error("ops are missing: {known} is known, {found} came")]
    Gap {
        /// The last known `seq`.
        known: u64,
        /// The `seq` that came.
        found: u64,
    },
    /// Text is missing: ask for a snapshot.
    #[error("text of {thing} is missing: {known} bytes are known, the op begins at {offset}")]
    TextGap {
        /// Whose text.
        thing: String,
        /// Bytes that are known.
        known: u64,
        /// Where the op begins.
        offset: u64,
    },
    /// It changes something that is left out: ask for a snapshot.
    #[error("{thing} is left out here")]
    LeftOut {
        /// What it is about.
        thing: String,
    },
    /// An older owner wrote after a newer one.
    #[error("generation {found} wrote after generation {known}")]
    OldGeneration {
        /// The generation that is known.
        known: u64,
        /// The one that came.
        found: u64,
    },
    /// The entry is of another run.
    #[error("the entry is of {found}, not of {expected}")]
    OtherRun {
        /// This run.
        expected: RunId,
        /// The entry's.
        found: RunId,
    },
}

impl RunState {
    /// The state of a run before its first op.
    pub fn new(run_id: RunId, session_id: SessionId) -> Self {
        Self::from_snapshot(Snapshot::empty(Run {
            run_id,
            session_id,
            status: RunStatus::Queued,
            generation: 0,
            last_seq: 0,
            error: None,
            usage: None,
            extra: Extra::new(),
        }))
    }

    /// The state that a snapshot shows. Of things with the same id the first one counts.
    pub fn from_snapshot(snapshot: Snapshot) -> Self {
        let mut state = Self {
            run: snapshot.run,
            messages: Vec::new(),
            nodes: Vec::new(),
            attempts: Vec::new(),
            blocks: Vec::new(),
            approvals: Vec::new(),
            notices: snapshot.notices,
            unknown: snapshot.unknown,
            held: snapshot.held,
            left_out: snapshot.left_out,
            passed_over: 0,
            streams: BTreeMap::new(),
            index: Index::default(),
        };
        state.run.generation = snapshot.generation;
        state.run.last_seq = snapshot.seq;
        for stream in snapshot.streams {
            state.set_stream(stream);
        }
        snapshot
            .messages
            .into_iter()
            .for_each(|message| state.insert_message(message));
        snapshot
            .nodes
            .into_iter()
            .for_each(|node| state.insert_node(node));
        snapshot
            .attempts
            .into_iter()
            .for_each(|attempt| state.insert_attempt(attempt));
        snapshot
            .blocks
            .into_iter()
            .for_each(|block| state.insert_block(block));
        snapshot
            .approvals
            .into_iter()
            .for_each(|approval| state.insert_approval(approval));
        state
    }

    /// The state as a snapshot shows it, with all content that it holds.
    pub fn to_snapshot(&self) -> Snapshot {
        Snapshot {
            schema_version: SCHEMA_VERSION,
            messages: self.messages.clone(),
            nodes: self.nodes.clone(),
            attempts: self.attempts.clone(),
            blocks: self.blocks.clone(),
            approvals: self.approvals.clone(),
            notices: self.notices.clone(),
            unknown: self.unknown.clone(),
            held: self.held.clone(),
            left_out: self.left_out.clone(),
            streams: self.streams.values().cloned().collect(),
            ..Snapshot::empty(self.run.clone())
        }
    }

    /// Takes in what a live stream is doing. An older state than the known one is ignored: then this is `false`.
    pub fn set_stream(&mut self, stream: StreamState) -> bool {
        match self.streams.get(&stream.node_id) {
            Some(known) if known.n >= stream.n => false,
            _ => {
                self.streams.insert(stream.node_id.clone(), stream);
                true
            }
        }
    }

    fn insert_message(&mut self, message: Message) {
        if let std::collections::hash_map::Entry::Vacant(place) =
            self.index.messages.entry(message.message_id.clone())
        {
            place.insert(self.messages.len());
            self.messages.push(message);
        }
    }

    fn insert_node(&mut self, node: Node) {
        let place = self.nodes.len();
        if self.index.nodes.contains_key(&node.node_id) {
            return;
        }
        self.index.nodes.insert(node.node_id.clone(), place);
        if let Some(occurrence) = &node.occurrence_id {
            let called = self.index.called.entry(occurrence.clone());
            called.or_insert_with(|| node.node_id.clone());
        }
        if let Some(parent) = &node.parent_id {
            let siblings = self.index.children.entry(parent.clone()).or_default();
            let after = siblings.partition_point(|&other| self.nodes[other].ordinal <= node.ordinal);
            siblings.insert(after, place);
        }
        self.nodes.push(node);
    }

    fn insert_attempt(&mut self, attempt: Attempt) {
        let place = self.attempts.len();
        if self.index.attempts.contains_key(&attempt.attempt_id) {
            return;
        }
        self.index.attempts.insert(attempt.attempt_id.clone(), place);
        let siblings = self.index.attempts_of.entry(attempt.node_id.clone()).or_default();
        let after =
            siblings.partition_point(|&other| self.attempts[other].attempt_index <= attempt.attempt_index);
        siblings.insert(after, place);
        self.attempts.push(attempt);
    }

    fn insert_block(&mut self, block: Block) {
        let place = self.blocks.len();
        if self.index.blocks.contains_key(&block.block_id) {
            return;
        }
        self.index.blocks.insert(block.block_id.clone(), place);
        if let crate::model::BlockBody::ToolRef(reference) = &block.body {
            self.index
                .occurrences
                .entry(reference.occurrence_id.clone())
                .or_insert_with(|| block.block_id.clone());
            if let Some(node) = &reference.ref_node_id {
                let references = self.index.references.entry(node.clone());
                references.or_insert_with(|| block.block_id.clone());
            }
        }
        let siblings = self.index.blocks_of.entry(block.attempt_id.clone()).or_default();
        let after = siblings.partition_point(|&other| self.blocks[other].block_index <= block.block_index);
        siblings.insert(after, place);
        self.blocks.push(block);
    }

    fn insert_approval(&mut self, approval: Approval) {
        if let std::collections::hash_map::Entry::Vacant(place) =
            self.index.approvals.entry(approval.approval_id.clone())
        {
            place.insert(self.approvals.len());
            self.approvals.push(approval);
        }
    }
}
