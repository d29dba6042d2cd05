//! The hub: hands what was committed to everybody who watches, at no cost to anyone else.
//!
//! Each run that somebody writes or watches has one channel with a ring of frames. A viewer is a place in the ring;
//! who falls out of it (more than 4 MiB or 10 s behind) is told so and reads the state anew.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use protocol::frame::ServerFrame;
use protocol::id::{NodeId, RunId, SessionId};
use protocol::model::StreamState;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

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
    sessions: broadcast::Sender<SessionId>,
}

/// The channel of one run.
#[derive(Debug)]
pub struct Channel {
    run_id: RunId,
    ring: Mutex<Ring>,
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
            published: watch::Sender::new(0),
        });
        channels.insert(run_id.clone(), Arc::downgrade(&channel));
        channel
    }

    /// What the live streams of a run are doing.
    pub fn streams(&self, run_id: &RunId) -> Vec<StreamState> {
        let channel = lock(&self.channels).get(run_id).and_then(Weak::upgrade);
        channel
            .map(|channel| lock(&channel.ring).streams.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Says that a session changed.
    pub fn session_changed(&self, session_id: SessionId) {
        // Nobody may be listening.
        let _ = self.sessions.send(session_id);
    }

    /// Hears of sessions that changed.
    pub fn sessions(&self) -> broadcast::Receiver<SessionId> {
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

    /// Publishes what a live stream is doing, and keeps it for those who come later.
    pub fn set_stream(&self, state: StreamState) {
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
mod tests {
    use super::*;
    use uuid::Uuid;

    fn frame(text: &str) -> ServerFrame {
        ServerFrame::Error {
            run_id: None,
            code: "test".to_owned(),
            detail: text.to_owned(),
        }
    }

    fn hub_and_channel() -> (Hub, Arc<Channel>) {
        let hub = Hub::default();
        let channel = hub.channel(&RunId::from_uuid(Uuid::from_u128(1)));
        (hub, channel)
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_gets_every_frame_after_its_subscription_in_order() {
        let (_hub, channel) = hub_and_channel();
        channel.publish(&frame("before"), None);
        let mut subscription = channel.subscribe();
        for number in 0..3 {
            channel.publish(&frame(&number.to_string()), Some((number, number)));
        }
        for number in 0..3 {
            let Delivery::Frame(frame) = subscription.next().await else {
                panic!("lagged")
            };
            assert_eq!(frame.first_seq, Some(number));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_too_many_bytes_behind_is_told_and_goes_on_from_now() {
        let (_hub, channel) = hub_and_channel();
        let mut slow = channel.subscribe();
        let text = "x".repeat(64 * 1024);
        for _ in 0..70 {
            channel.publish(&frame(&text), None);
        }
        assert!(matches!(slow.next().await, Delivery::Lagged));
        channel.publish(&frame("now"), None);
        let Delivery::Frame(now) = slow.next().await else {
            panic!("lagged")
        };
        assert!(String::from_utf8_lossy(&now.json).contains("now"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_too_long_behind_is_told() {
        let (_hub, channel) = hub_and_channel();
        let mut slow = channel.subscribe();
        channel.publish(&frame("old"), None);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(matches!(slow.next().await, Delivery::Lagged));
    }

    #[test]
    fn a_channel_that_nobody_holds_is_forgotten() {
        let hub = Hub::default();
        for number in 0..1_000_u128 {
            drop(hub.channel(&RunId::from_uuid(Uuid::from_u128(number))));
        }
        assert!(lock(&hub.channels).len() <= 66);
    }
}
