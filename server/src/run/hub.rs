//! The hub: hands what was committed to everybody who watches, at no cost to anyone else.
//!
//! Each run that somebody writes or watches has one channel with a ring of frames. A viewer is a place in the ring;
//! who falls out of it (more than 4 MiB or 10 s behind) is told so and reads the state anew.
//!
//! What a channel publishes comes from the recorder where this process owns the run, else from one reader that reads
//! the journal whenever another owner wakes it ([`super::wake`]). Each op is published once, whoever comes with it.

mod outgoing;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use protocol::frame::ServerFrame;
use protocol::id::{NodeId, RunId, SessionId};
use protocol::model::StreamState;
use protocol::op::Entry;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;

pub(super) use self::outgoing::OutgoingStreams;
use super::recorder::frames;

/// The most bytes of frames that a viewer may be behind.
const MAX_BEHIND_BYTES: usize = 4 * 1024 * 1024;

/// The longest that a viewer may be behind.
const MAX_BEHIND: Duration = Duration::from_secs(10);

/// One frame, serialised once for all of its readers.
#[derive(Debug)]
pub struct Frame {
    /// The last `seq` of its ops; none for a frame without ops.
    pub last_seq: Option<u64>,
    /// The first `seq` of its ops.
    pub first_seq: Option<u64>,
    /// The frame as JSON in UTF-8.
    pub json: Bytes,
    published_at: Instant,
}

/// All channels.
#[derive(Debug)]
pub struct Hub {
    channels: Mutex<HashMap<RunId, Weak<Channel>>>,
    sessions: broadcast::Sender<SessionsChanged>,
    /// What the streams of this process are doing, on its way to the other ones.
    outgoing: Arc<OutgoingStreams>,
}

/// Which sessions changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsChanged {
    /// This one.
    One(SessionId),
    /// Any of them: changes may have been missed.
    Any,
}

/// The channel of one run.
#[derive(Debug)]
pub struct Channel {
    run_id: RunId,
    ring: Mutex<Ring>,
    /// The last op that was published, or from which on ops are: none while nobody has said so.
    last_seq: Mutex<Option<u64>>,
    /// Writers of this process.
    owners: AtomicUsize,
    /// Wakes the reader of the journal, where there is one.
    reader: OnceLock<Arc<Notify>>,
    outgoing: Arc<OutgoingStreams>,
    /// Counts the frames that were ever published.
    published: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    frames: VecDeque<Arc<Frame>>,
    /// The number of the first frame in the ring.
    first: u64,
    bytes: usize,
    streams: BTreeMap<NodeId, StreamState>,
}

/// A lock whose data is never left half written, so that a panic elsewhere does not spread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            channels: Mutex::default(),
            sessions: broadcast::channel(1024).0,
            outgoing: Arc::default(),
        }
    }
}

impl Hub {
    /// The channel of a run, for as long as somebody holds it.
    pub fn channel(&self, run_id: &RunId) -> Arc<Channel> {
        let mut channels = lock(&self.channels);
        if let Some(channel) = channels.get(run_id).and_then(Weak::upgrade) {
            return channel;
        }
        // Channels that nobody holds any more are swept when there are twice as many as live ones.
        if channels.len() > 64
            && channels
                .values()
                .filter(|channel| channel.strong_count() > 0)
                .count()
                * 2
                < channels.len()
        {
            channels.retain(|_, channel| channel.strong_count() > 0);
        }
        let channel = Arc::new(Channel {
            run_id: run_id.clone(),
            ring: Mutex::default(),
            last_seq: Mutex::default(),
            owners: AtomicUsize::new(0),
            reader: OnceLock::new(),
            outgoing: Arc::clone(&self.outgoing),
            published: watch::Sender::new(0),
        });
        channels.insert(run_id.clone(), Arc::downgrade(&channel));
        channel
    }

    /// What the live streams of a run are doing.
    pub fn streams(&self, run_id: &RunId) -> Vec<StreamState> {
        self.existing(run_id)
            .map(|channel| lock(&channel.ring).streams.values().cloned().collect())
            .unwrap_or_default()
    }

    /// The channel of a run, when somebody holds it.
    pub(super) fn existing(&self, run_id: &RunId) -> Option<Arc<Channel>> {
        lock(&self.channels).get(run_id).and_then(Weak::upgrade)
    }

    /// The channels that are published by a reader: their runs are watched here and written elsewhere, or over.
    pub(super) fn read_channels(&self) -> Vec<Arc<Channel>> {
        let channels: Vec<_> = lock(&self.channels).values().filter_map(Weak::upgrade).collect();
        channels
            .into_iter()
            .filter(|channel| channel.reader.get().is_some() && !channel.is_owned())
            .collect()
    }

    /// What the streams of this process are doing, for the other ones.
    pub(super) fn outgoing(&self) -> &Arc<OutgoingStreams> {
        &self.outgoing
    }

    /// Says that a session changed.
    pub fn session_changed(&self, session_id: SessionId) {
        // Nobody may be listening.
        let _ = self.sessions.send(SessionsChanged::One(session_id));
    }

    /// Says that any session may have changed.
    pub(super) fn sessions_changed(&self) {
        let _ = self.sessions.send(SessionsChanged::Any);
    }

    /// Hears of sessions that changed.
    pub fn sessions(&self) -> broadcast::Receiver<SessionsChanged> {
        self.sessions.subscribe()
    }
}

impl Channel {
    /// Publishes a frame whose ops are committed.
    pub fn publish(&self, frame: &ServerFrame, seqs: Option<(u64, u64)>) {
        match serde_json::to_vec(frame) {
            Ok(json) => self.push(Frame {
                first_seq: seqs.map(|(first, _)| first),
                last_seq: seqs.map(|(_, last)| last),
                json: json.into(),
                published_at: Instant::now(),
            }),
            Err(error) => tracing::error!(run.id = %self.run_id, %error, "a frame could not be serialised"),
        }
    }

    /// Publishes ops that are committed, in order. Those that were published before are left out.
    pub(super) fn publish_ops(&self, entries: impl IntoIterator<Item = Entry>) {
        let mut last_seq = lock(&self.last_seq);
        let new = entries
            .into_iter()
            .filter(|entry| last_seq.is_none_or(|known| entry.seq > known));
        let mut published = None;
        for frame in frames(new) {
            let seqs = (frame.seq, frame.seq + frame.ops.len() as u64 - 1);
            self.publish(&ServerFrame::ExecutionStream(frame), Some(seqs));
            published = Some(seqs.1);
        }
        *last_seq = published.or(*last_seq);
    }

    /// Ops after this one are to be published, where nobody has said so yet: a viewer has read the state up to it.
    /// Gives the op after which they are. Who knows less has to read once more: another viewer, who subscribed later,
    /// may have read more and said so before.
    #[must_use]
    pub(super) fn publish_after(&self, seq: u64) -> u64 {
        *lock(&self.last_seq).get_or_insert(seq)
    }

    /// The last op that was published; none while nobody has asked for any.
    pub(super) fn last_seq(&self) -> Option<u64> {
        *lock(&self.last_seq)
    }

    /// The run.
    pub(super) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// From now on this process writes the run, until the answer is dropped. What the streams of an owner before did
    /// is over.
    pub(super) fn own(self: &Arc<Self>) -> Ownership {
        self.owners.fetch_add(1, Ordering::SeqCst);
        lock(&self.ring).streams.clear();
        Ownership(Arc::clone(self))
    }

    /// Whether this process writes the run.
    pub(super) fn is_owned(&self) -> bool {
        self.owners.load(Ordering::SeqCst) > 0
    }

    /// Wakes the reader, if there is one.
    pub(super) fn wake_reader(&self) {
        if let Some(reader) = self.reader.get() {
            reader.notify_one();
        }
    }

    /// The reader's alarm, when there is no reader yet: the asker has to become it.
    pub(super) fn become_reader(&self) -> Option<Arc<Notify>> {
        let alarm = Arc::new(Notify::new());
        self.reader.set(Arc::clone(&alarm)).ok().map(|()| alarm)
    }

    /// Publishes what a live stream of this process is doing, and keeps it for those who come later.
    pub fn set_stream(&self, state: StreamState) {
        self.outgoing.put(state.clone());
        self.show_stream(state);
    }

    /// The same for a stream of another process. An older state than the known one is left out.
    pub(super) fn set_foreign_stream(&self, state: StreamState) {
        let is_newer = {
            let ring = lock(&self.ring);
            ring.streams
                .get(&state.node_id)
                .is_none_or(|known| known.n < state.n)
        };
        if is_newer && !self.is_owned() {
            self.show_stream(state);
        }
    }

    fn show_stream(&self, state: StreamState) {
        let frame = ServerFrame::StreamState(state.clone());
        lock(&self.ring).streams.insert(state.node_id.clone(), state);
        self.publish(&frame, None);
    }

    fn push(&self, frame: Frame) {
        let mut ring = lock(&self.ring);
        ring.bytes += frame.json.len();
        ring.frames.push_back(Arc::new(frame));
        while ring.bytes > MAX_BEHIND_BYTES
            || ring
                .frames
                .front()
                .is_some_and(|oldest| oldest.published_at.elapsed() > MAX_BEHIND)
        {
            // The frame that was just added stays, whatever its size.
            if ring.frames.len() <= 1 {
                break;
            }
            if let Some(oldest) = ring.frames.pop_front() {
                ring.bytes -= oldest.json.len();
                ring.first += 1;
            }
        }
        let published = ring.first + ring.frames.len() as u64;
        drop(ring);
        self.published.send_replace(published);
    }

    /// Begins to watch from now on. Subscribe first, then read the state, then drop by `seq`.
    pub fn subscribe(self: &Arc<Self>) -> Subscription {
        let published = self.published.subscribe();
        let next = *published.borrow();
        Subscription {
            channel: Arc::clone(self),
            published,
            next,
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Its reader ends.
        self.wake_reader();
    }
}

/// Says that this process writes a run.
#[derive(Debug)]
pub(super) struct Ownership(Arc<Channel>);

impl Drop for Ownership {
    fn drop(&mut self) {
        self.0.owners.fetch_sub(1, Ordering::SeqCst);
        // Another owner may have written meanwhile.
        self.0.wake_reader();
    }
}

/// A viewer's place in a channel.
#[derive(Debug)]
pub struct Subscription {
    channel: Arc<Channel>,
    published: watch::Receiver<u64>,
    next: u64,
}

/// What a viewer gets.
#[derive(Debug)]
pub enum Delivery {
    /// The next frame.
    Frame(Arc<Frame>),
    /// The viewer is too far behind: it has to read the state anew. Frames from now on follow.
    Lagged,
}

impl Subscription {
    /// Waits for the next frame. Cancel-safe.
    pub async fn next(&mut self) -> Delivery {
        loop {
            if let Some(delivery) = self.take() {
                return delivery;
            }
            // The channel is held by this subscription, so its sender lives.
            if self.published.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The next frame, if there is one.
    fn take(&mut self) -> Option<Delivery> {
        let ring = lock(&self.channel.ring);
        let end = ring.first + ring.frames.len() as u64;
        if self.next >= end {
            return None;
        }
        let frame = self
            .next
            .checked_sub(ring.first)
            .and_then(|place| ring.frames.get(usize::try_from(place).ok()?));
        match frame {
            Some(frame) if frame.published_at.elapsed() <= MAX_BEHIND => {
                self.next += 1;
                Some(Delivery::Frame(Arc::clone(frame)))
            }
            _ => {
                self.next = end;
                Some(Delivery::Lagged)
            }
        }
    }
}

#[cfg(test)]
mod tests;
