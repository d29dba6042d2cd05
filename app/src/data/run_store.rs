//! The state of one run, readable piece by piece.
//!
//! A [`RunState`] behind a lock is the truth; beside it stands one trigger for each piece that anything on the page
//! reads. Taking in ops changes the state at once and notes which pieces changed; their readers are told once per
//! animation frame, so that many deltas cost one update of the page. What only grows is told every other frame, or less
//! often where drawing takes long: nobody reads faster, and it halves what a stream costs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use leptos::prelude::*;
use protocol::PREVIEW_BYTES;
use protocol::fold::{AddError, Applied, Change, FoldError, RunState};
use protocol::frame::OpsFrame;
use protocol::id::{AttemptId, BlockId, NodeId, RunId};
use protocol::model::{Attempt, Block, BlockBody, Node, Output, Run, StreamState};
use protocol::snapshot::Snapshot;
use protocol::state::{Channel, RunStatus};

/// A piece of a run that can be read on its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Piece {
    /// The run's own fields.
    Run,
    /// The last op that was taken in.
    Seq,
    /// People's messages.
    Messages,
    /// Notices, and ops that are not known.
    Notices,
    /// What the live streams are doing.
    Streams,
    /// Requests for approval.
    Approvals,
    /// Which nodes there are and how each stands.
    Nodes,
    /// The fields of a node, but for its outputs.
    Node(NodeId),
    /// A channel of a node.
    Output(NodeId, Channel),
    /// The list of a node's children.
    Children(NodeId),
    /// The list of a node's attempts.
    Attempts(NodeId),
    /// The fields of an attempt.
    Attempt(AttemptId),
    /// The list of an attempt's blocks, and how they are grouped.
    Blocks(AttemptId),
    /// The fields of a block, but for its text.
    Block(BlockId),
    /// The text of a block.
    Content(BlockId),
}

/// What has to be fetched before the run can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// The ops after the last known one.
    Ops,
    /// The whole state, even if it is not newer than the known one.
    Whole,
}

/// What became of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Everything up to this `seq` is in.
    Up(u64),
    /// Something is missing.
    Missing(Resync),
    /// The frame contradicts what is known, in words.
    Refused(String),
}

/// The state of one run. Cloning gives another handle on the same state.
#[derive(Clone)]
pub struct RunStore(Arc<Inner>);

struct Inner {
    run_id: RunId,
    state: RwLock<RunState>,
    triggers: Mutex<HashMap<Piece, ArcTrigger>>,
    changed: Mutex<Changed>,
}

#[derive(Default)]
struct Changed {
    pieces: HashSet<Piece>,
    everything: bool,
    is_scheduled: bool,
    /// When the readers were told last, in milliseconds of the browser's clock.
    #[cfg(feature = "hydrate")]
    told_at: f64,
    /// How long what only grows waits after that.
    #[cfg(feature = "hydrate")]
    pause: f64,
}

impl PartialEq for RunStore {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl RunStore {
    /// The run as it is in a state.
    pub fn new(state: RunState) -> Self {
        Self(Arc::new(Inner {
            run_id: state.run().run_id.clone(),
            state: RwLock::new(state),
            triggers: Mutex::default(),
            changed: Mutex::default(),
        }))
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.0.run_id
    }

    /// Reads the state, and subscribes the reader to a piece of it.
    pub fn read<T>(&self, piece: Piece, read: impl FnOnce(&RunState) -> T) -> T {
        self.track(piece);
        self.peek(read)
    }

    /// Reads the state without subscribing to anything.
    pub fn peek<T>(&self, read: impl FnOnce(&RunState) -> T) -> T {
        read(&self.0.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Subscribes the reader to a piece.
    pub fn track(&self, piece: Piece) {
        let trigger = lock(&self.0.triggers).entry(piece).or_default().clone();
        trigger.track();
    }

    /// Reads the run's own fields.
    pub fn run<T>(&self, read: impl FnOnce(&Run) -> T) -> T {
        self.read(Piece::Run, |state| read(state.run()))
    }

    /// The run's state.
    pub fn status(&self) -> RunStatus {
        self.run(|run| run.status)
    }

    /// Reads a node, where it is known.
    pub fn node<T>(&self, id: &NodeId, read: impl FnOnce(&Node) -> T) -> Option<T> {
        self.read(Piece::Node(id.clone()), |state| state.node(id).map(read))
    }

    /// Reads a channel of a node, where it holds anything.
    pub fn output<T>(&self, id: &NodeId, channel: Channel, read: impl FnOnce(&Output) -> T) -> Option<T> {
        self.read(Piece::Output(id.clone(), channel), |state| {
            state
                .node(id)
                .and_then(|node| node.outputs.get(&channel))
                .map(read)
        })
    }

    /// The children of a node, in order.
    pub fn children(&self, id: &NodeId) -> Vec<NodeId> {
        self.read(Piece::Children(id.clone()), |state| {
            state.children(id).map(|node| node.node_id.clone()).collect()
        })
    }

    /// The attempts of a node, in order.
    pub fn attempts(&self, id: &NodeId) -> Vec<AttemptId> {
        self.read(Piece::Attempts(id.clone()), |state| {
            state
                .attempts_of(id)
                .map(|attempt| attempt.attempt_id.clone())
                .collect()
        })
    }

    /// Reads an attempt, where it is known.
    pub fn attempt<T>(&self, id: &AttemptId, read: impl FnOnce(&Attempt) -> T) -> Option<T> {
        self.read(Piece::Attempt(id.clone()), |state| state.attempt(id).map(read))
    }

    /// Reads a block, where it is known.
    pub fn block<T>(&self, id: &BlockId, read: impl FnOnce(&Block) -> T) -> Option<T> {
        self.read(Piece::Block(id.clone()), |state| state.block(id).map(read))
    }

    /// Reads the text of a block, where it has any.
    pub fn content<T>(&self, id: &BlockId, read: impl FnOnce(&str) -> T) -> Option<T> {
        self.read(Piece::Content(id.clone()), |state| {
            state
                .block(id)
                .and_then(|block| block.body.content())
                .map(|content| read(&content.text))
        })
    }

    /// Takes in the ops of a frame, in order, up to the first that cannot be taken.
    pub fn take(&self, frame: OpsFrame) -> Taken {
        let mut pieces = HashSet::from([Piece::Seq]);
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut failed = None;
        for entry in frame.into_entries() {
            match state.apply(&entry) {
                Ok(Applied::Changed(changes)) => {
                    for change in changes {
                        shorten(&mut state, &change);
                        note(&state, change, &mut pieces);
                    }
                }
                Ok(Applied::Duplicate | Applied::Refused(_)) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let known = state.seq();
        drop(state);
        self.changed(pieces);
        match failed {
            None => Taken::Up(known),
            Some(FoldError::Gap { .. }) => Taken::Missing(Resync::Ops),
            Some(FoldError::TextGap { .. } | FoldError::LeftOut { .. }) => Taken::Missing(Resync::Whole),
            Some(error @ (FoldError::OldGeneration { .. } | FoldError::OtherRun { .. })) => {
                Taken::Refused(error.to_string())
            }
        }
    }

    /// Puts a snapshot in the place of the state. One that is older than the state is ignored, unless it is a `reset`.
    /// Gives the `seq` that is known afterwards.
    pub fn replace(&self, snapshot: Snapshot, reset: bool) -> u64 {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        if snapshot.run.run_id != self.0.run_id || (!reset && snapshot.seq < state.seq()) {
            return state.seq();
        }
        let known = std::mem::replace(&mut *state, RunState::from_snapshot(snapshot));
        if !reset {
            state.keep_from(known);
        }
        let known = state.seq();
        drop(state);
        lock(&self.0.changed).everything = true;
        self.schedule();
        known
    }

    /// Adds blocks that were left out, with what they called.
    ///
    /// # Errors
    /// When they have changed since they were read.
    pub fn add(&self, window: Snapshot) -> Result<(), AddError> {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        state.add(window)?;
        drop(state);
        lock(&self.0.changed).everything = true;
        self.flush();
        Ok(())
    }

    /// Takes in what a live stream is doing.
    pub fn set_stream(&self, stream: StreamState) {
        let newer = self
            .0
            .state
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .set_stream(stream);
        if newer {
            self.changed(HashSet::from([Piece::Streams]));
        }
    }

    /// Tells the readers of what changed, now.
    pub fn flush(&self) {
        let (pieces, everything) = {
            let mut changed = lock(&self.0.changed);
            changed.is_scheduled = false;
            (
                std::mem::take(&mut changed.pieces),
                std::mem::take(&mut changed.everything),
            )
        };
        let triggers: Vec<ArcTrigger> = {
            let known = lock(&self.0.triggers);
            if everything {
                known.values().cloned().collect()
            } else {
                pieces
                    .iter()
                    .filter_map(|piece| known.get(piece).cloned())
                    .collect()
            }
        };
        for trigger in triggers {
            trigger.notify();
        }
    }

    fn changed(&self, pieces: HashSet<Piece>) {
        lock(&self.0.changed).pieces.extend(pieces);
        self.schedule();
    }

    /// In the browser: at the next frame, or soon where no frames are drawn.
    #[cfg(feature = "hydrate")]
    fn schedule(&self) {
        use std::time::Duration;
        if std::mem::replace(&mut lock(&self.0.changed).is_scheduled, true) {
            return;
        }
        let store = self.clone();
        if document().hidden() {
            set_timeout(move || store.flush(), Duration::from_millis(250));
        } else {
            at_frame(store);
        }
    }

    #[cfg(not(feature = "hydrate"))]
    fn schedule(&self) {
        self.flush();
    }
}

/// Tells the readers at the next frame, or at a later one if they were told just now.
#[cfg(feature = "hydrate")]
fn at_frame(store: RunStore) {
    request_animation_frame(move || {
        let now = js_sys::Date::now();
        {
            let mut changed = lock(&store.0.changed);
            let is_soon = (0.0..changed.pause).contains(&(now - changed.told_at));
            if is_soon && !changed.everything && changed.pieces.iter().all(only_grows) {
                drop(changed);
                return at_frame(store);
            }
            changed.told_at = now;
        }
        store.flush();
        // After the frame is drawn.
        set_timeout(
            move || {
                let took = js_sys::Date::now() - now;
                lock(&store.0.changed).pause = (2.0 * took).clamp(PAUSE[0], PAUSE[1]);
            },
            std::time::Duration::ZERO,
        );
    });
}

/// What only grows is told so many milliseconds after it was told last, at least and at most: less than two frames of 60 a
/// second where drawing is quick, and else twice what drawing took, so that a slow machine has time for its reader.
#[cfg(feature = "hydrate")]
const PAUSE: [f64; 2] = [25.0, 100.0];

#[cfg(feature = "hydrate")]
fn only_grows(piece: &Piece) -> bool {
    matches!(
        piece,
        Piece::Seq | Piece::Content(_) | Piece::Output(..) | Piece::Streams
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of a channel that holds more the page keeps a beginning; the rest is fetched when it is looked at. Bytes.
const LONG_OUTPUT: usize = 512 * 1024;

/// Keeps the page small while long outputs come in.
fn shorten(state: &mut RunState, change: &Change) {
    match change {
        Change::Output(node, channel) => {
            let output = state.node(node).and_then(|node| node.outputs.get(channel));
            if output.is_some_and(|output| output.text.len() > LONG_OUTPUT) {
                state.shorten_output(node, *channel, PREVIEW_BYTES);
            }
        }
        Change::Node(id) => {
            let long: Vec<Channel> = state
                .node(id)
                .into_iter()
                .flat_map(|node| &node.outputs)
                .filter(|(_, output)| output.text.len() > LONG_OUTPUT)
                .map(|(channel, _)| *channel)
                .collect();
            for channel in long {
                state.shorten_output(id, channel, PREVIEW_BYTES);
            }
        }
        _ => {}
    }
}

/// Which pieces a change touches.
fn note(state: &RunState, change: Change, pieces: &mut HashSet<Piece>) {
    match change {
        Change::Run => drop(pieces.insert(Piece::Run)),
        Change::MessageAdded(_) | Change::Message(_) => drop(pieces.insert(Piece::Messages)),
        Change::NodeAdded(id) => {
            if let Some(parent) = state.node(&id).and_then(|node| node.parent_id.clone()) {
                pieces.insert(Piece::Children(parent));
            }
            // Updates that were held for it have been applied with it.
            let channels = state
                .node(&id)
                .into_iter()
                .flat_map(|node| node.outputs.keys().copied());
            pieces.extend(channels.map(|channel| Piece::Output(id.clone(), channel)));
            pieces.extend([Piece::Nodes, Piece::Node(id)]);
        }
        Change::Node(id) => {
            // Its end says what its channels hold.
            pieces.extend(
                Channel::ALL
                    .iter()
                    .map(|channel| Piece::Output(id.clone(), *channel)),
            );
            // A call that was stopped waits no more.
            if state.approvals().iter().any(|approval| approval.node_id == id) {
                pieces.insert(Piece::Approvals);
            }
            pieces.extend([Piece::Nodes, Piece::Node(id)]);
        }
        Change::Output(id, channel) => drop(pieces.insert(Piece::Output(id, channel))),
        Change::AttemptAdded(node, attempt) => {
            pieces.extend([Piece::Attempts(node), Piece::Attempt(attempt)]);
        }
        Change::Attempt(id) => drop(pieces.insert(Piece::Attempt(id))),
        Change::BlockAdded(attempt, block) => {
            pieces.extend([Piece::Blocks(attempt), Piece::Block(block)]);
        }
        Change::Block(id) => {
            if let Some(block) = state.block(&id)
                && matches!(
                    block.body,
                    BlockBody::ToolRef(_) | BlockBody::ParallelGroup { .. }
                )
            {
                pieces.insert(Piece::Blocks(block.attempt_id.clone()));
            }
            pieces.insert(Piece::Block(id));
        }
        Change::BlockContent(id) => drop(pieces.insert(Piece::Content(id))),
        Change::Approval(_) => drop(pieces.insert(Piece::Approvals)),
        Change::Notice | Change::Unknown => drop(pieces.insert(Piece::Notices)),
    }
}
