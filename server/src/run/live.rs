//! What a live stream is doing, for those who watch now: not part of the record.

use std::sync::Arc;

use protocol::id::{AttemptId, NodeId, RunId};
use protocol::model::StreamState;
use protocol::state::{LivenessClock, StreamActivity};
use tokio::time::{Duration, Instant};

use super::hub::Channel;
use crate::clock::SharedClock;
use crate::stream::StreamClocks;

/// A stream is shown as silent after this long without content.
const SILENT_AFTER_MS: i64 = 5_000;

/// A state that only moves its clocks is shown this often: with ten streams in a run, more would be a good part of all
/// that its viewers are sent.
const REFRESH: Duration = Duration::from_millis(900);

/// The states of one model node's stream.
pub(super) struct Live {
    channel: Arc<Channel>,
    clock: SharedClock,
    run_id: RunId,
    node_id: NodeId,
    attempt_id: AttemptId,
    n: u64,
    shown: Option<Shown>,
    clocks: Option<Arc<StreamClocks>>,
    /// When the request was made, in milliseconds since the epoch.
    requested_at: i64,
    rate: Rate,
}

/// What was shown last.
struct Shown {
    activity: StreamActivity,
    clock: Option<LivenessClock>,
    at: Instant,
}

/// Characters of the last seconds, for the tokens in a second.
#[derive(Debug, Default)]
struct Rate {
    samples: std::collections::VecDeque<(Instant, u64)>,
}

impl Rate {
    fn tokens_per_second(&mut self, characters: u64) -> Option<f64> {
        let now = Instant::now();
        self.samples.push_back((now, characters));
        while self.samples.len() > 2
            && self
                .samples
                .front()
                .is_some_and(|(at, _)| now - *at > Duration::from_secs(3))
        {
            self.samples.pop_front();
        }
        let (from, before) = *self.samples.front()?;
        let seconds = (now - from).as_secs_f64();
        // Shorter spans say nothing.
        (seconds >= 0.5).then(|| characters.saturating_sub(before) as f64 / 4.0 / seconds)
    }
}

impl Live {
    pub(super) fn new(
        channel: Arc<Channel>,
        clock: SharedClock,
        run_id: RunId,
        node_id: NodeId,
        attempt_id: AttemptId,
    ) -> Self {
        // The count goes on over attempts and owners: a state of an earlier one never replaces a later one.
        let now = clock.now_ms();
        Self {
            channel,
            clock,
            run_id,
            node_id,
            attempt_id,
            n: u64::try_from(now).unwrap_or_default(),
            shown: None,
            clocks: None,
            requested_at: now,
            rate: Rate::default(),
        }
    }

    /// Another attempt goes on.
    pub(super) fn attempt(&mut self, attempt_id: AttemptId) {
        self.attempt_id = attempt_id;
    }

    /// The provider asked to wait until then (milliseconds since the epoch).
    pub(super) fn rate_limited(&mut self, until: i64, reason: &str) {
        self.clocks = None;
        self.show_wait(StreamActivity::RateLimited, until, reason, None);
    }

    /// The try `number` of `max` begins at `until` (milliseconds since the epoch).
    pub(super) fn retrying(&mut self, number: u32, max: u32, until: i64, reason: &str) {
        self.clocks = None;
        self.show_wait(StreamActivity::Retrying, until, reason, Some((number, max)));
    }

    /// The provider `to` goes on at `until` (milliseconds since the epoch).
    pub(super) fn rotating(&mut self, to: &str, until: i64, reason: &str) {
        self.clocks = None;
        let shown = StreamState {
            until: Some(until),
            reason: Some(reason.to_owned()),
            to: Some(to.to_owned()),
            ..self.state(StreamActivity::Rotating)
        };
        self.channel.set_stream(shown);
    }

    /// A new request begins: its clocks are shown from now on.
    pub(super) fn request(&mut self, clocks: Arc<StreamClocks>) {
        self.clocks = Some(clocks);
        self.rate = Rate::default();
        self.requested_at = self.clock.now_ms();
        let since = Some(self.requested_at);
        self.show_reading(StreamActivity::WaitingFirstToken, None, since);
    }

    /// Says where the stream is, by its clocks; called twice a second while it is read.
    pub(super) fn tick(&mut self) {
        let Some(clocks) = &self.clocks else { return };
        let now = self.clock.now_ms();
        let (last_byte, last_content) = (clocks.last_byte_at(), clocks.last_content_at());
        let (activity, clock, since) = match last_content {
            None => (StreamActivity::WaitingFirstToken, None, Some(self.requested_at)),
            Some(content) if now - content >= SILENT_AFTER_MS => {
                let byte_silent = last_byte.is_none_or(|byte| now - byte >= SILENT_AFTER_MS);
                let clock = if byte_silent {
                    LivenessClock::Byte
                } else {
                    LivenessClock::Content
                };
                (StreamActivity::Silent, Some(clock), Some(content))
            }
            Some(_) => (StreamActivity::Streaming, None, None),
        };
        let is_news = self.shown.as_ref().is_none_or(|shown| {
            (shown.activity, shown.clock) != (activity, clock) || shown.at.elapsed() >= REFRESH
        });
        if is_news {
            self.show_reading(activity, clock, since);
        }
    }

    /// Content has come: shown at once when it is the first after something else.
    pub(super) fn content(&mut self) {
        let is_streaming = |shown: &Shown| shown.activity == StreamActivity::Streaming;
        if !self.shown.as_ref().is_some_and(is_streaming) {
            self.tick();
        }
    }

    /// A tool runs.
    pub(super) fn tool_running(&mut self) {
        self.clocks = None;
        self.show(StreamActivity::ToolRunning);
    }

    /// A person is asked, and the model's calls wait for the answer.
    pub(super) fn awaiting_person(&mut self) {
        self.clocks = None;
        self.show(StreamActivity::AwaitingPerson);
    }

    /// It is over.
    pub(super) fn settle(&mut self) {
        self.clocks = None;
        self.show(StreamActivity::Settled);
    }

    fn show_wait(&mut self, state: StreamActivity, until: i64, reason: &str, tries: Option<(u32, u32)>) {
        let (number, max) = tries.unzip();
        let shown = StreamState {
            until: Some(until),
            attempt_number: number,
            attempts_max: max,
            reason: Some(reason.to_owned()),
            ..self.state(state)
        };
        self.channel.set_stream(shown);
    }

    fn show_reading(&mut self, activity: StreamActivity, clock: Option<LivenessClock>, since: Option<i64>) {
        let state = self.state(activity);
        if let Some(shown) = &mut self.shown {
            shown.clock = clock;
        }
        self.channel.set_stream(StreamState {
            clock,
            since,
            ..state
        });
    }

    fn show(&mut self, state: StreamActivity) {
        let state = self.state(state);
        self.channel.set_stream(state);
    }

    /// The next state, without what only some states say.
    fn state(&mut self, state: StreamActivity) -> StreamState {
        self.n += 1;
        self.shown = Some(Shown {
            activity: state,
            clock: None,
            at: Instant::now(),
        });
        let tokens_per_second = match (&self.clocks, state) {
            (Some(clocks), StreamActivity::Streaming | StreamActivity::Silent) => {
                self.rate.tokens_per_second(clocks.content_chars())
            }
            _ => None,
        };
        StreamState {
            run_id: self.run_id.clone(),
            node_id: self.node_id.clone(),
            attempt_id: self.attempt_id.clone(),
            state,
            n: self.n,
            last_byte_at: self.clocks.as_ref().and_then(|clocks| clocks.last_byte_at()),
            last_content_at: self.clocks.as_ref().and_then(|clocks| clocks.last_content_at()),
            tokens_per_second,
            clock: None,
            since: None,
            until: None,
            attempt_number: None,
            attempts_max: None,
            reason: None,
            to: None,
        }
    }
}
