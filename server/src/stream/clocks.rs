//! The two clocks of a stream, readable from any task, and the limits that they are held against.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How long a stream may be silent, in milliseconds; `None` is no limit. Defaults: `resilience.md` §2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// From the request to the first byte of the answer's body.
    pub first_byte_ms: Option<u64>,
    /// From the request to the first content.
    pub first_content_ms: Option<u64>,
    /// Between any two bytes after the first.
    pub no_byte_ms: Option<u64>,
    /// Between any two pieces of content after the first.
    pub no_content_ms: Option<u64>,
    /// From the model's stop reason to the end marker. When it is over the answer counts as ended by its server:
    /// some keep the socket open.
    pub after_stop_ms: Option<u64>,
}

impl StreamLimits {
    /// For a model that thinks: 60 s and 180 s to the first byte and content, then 30 s and 180 s.
    pub const fn thinking() -> Self {
        Self {
            first_byte_ms: Some(60_000),
            first_content_ms: Some(180_000),
            no_byte_ms: Some(30_000),
            no_content_ms: Some(180_000),
            after_stop_ms: Some(10_000),
        }
    }

    /// For a model that acts: as [`Self::thinking`], but 60 s without a byte.
    pub const fn action() -> Self {
        Self {
            no_byte_ms: Some(60_000),
            ..Self::thinking()
        }
    }

    /// No limits at all.
    pub const fn none() -> Self {
        Self {
            first_byte_ms: None,
            first_content_ms: None,
            no_byte_ms: None,
            no_content_ms: None,
            after_stop_ms: None,
        }
    }
}

/// Which limit a stream went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// No first byte.
    FirstByte,
    /// Bytes, but no first content.
    FirstContent,
    /// No byte for too long.
    Byte,
    /// Bytes, but no content for too long.
    Content,
    /// The model stopped, but the end marker does not come.
    AfterStop,
}

/// When bytes and content came last. Times are milliseconds since the Unix epoch by the server's clock.
#[derive(Debug, Default)]
pub struct StreamClocks {
    last_byte_at: AtomicI64,
    last_content_at: AtomicI64,
    bytes: AtomicU64,
    content_chars: AtomicU64,
}

impl StreamClocks {
    /// When any byte came last; none before the first.
    pub fn last_byte_at(&self) -> Option<i64> {
        Some(self.last_byte_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// When text, reasoning or arguments came last; none before the first.
    pub fn last_content_at(&self) -> Option<i64> {
        Some(self.last_content_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// How many bytes came.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many characters of content came; a quarter of it estimates the tokens.
    pub fn content_chars(&self) -> u64 {
        self.content_chars.load(Ordering::Relaxed)
    }

    pub(super) fn note_bytes(&self, now_ms: i64, count: u64) {
        self.last_byte_at.store(now_ms, Ordering::Relaxed);
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn note_content(&self, now_ms: i64, chars: u64) {
        self.last_content_at.store(now_ms, Ordering::Relaxed);
        self.content_chars.fetch_add(chars, Ordering::Relaxed);
    }
}

/// The same two clocks in monotonic time, for the limits.
#[derive(Debug)]
pub(super) struct Deadlines {
    limits: StreamLimits,
    began: Instant,
    last_byte: Option<Instant>,
    last_content: Option<Instant>,
    stopped: Option<Instant>,
}

impl Deadlines {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            began: Instant::now(),
            last_byte: None,
            last_content: None,
            stopped: None,
        }
    }

    pub(super) fn note_byte(&mut self) {
        self.last_byte = Some(Instant::now());
    }

    pub(super) fn note_content(&mut self) {
        self.last_content = Some(Instant::now());
    }

    pub(super) fn note_stop(&mut self) {
        self.stopped.get_or_insert_with(Instant::now);
    }

    /// The limit that is reached first, and when.
    pub(super) fn next(&self) -> Option<(Instant, Silence, u64)> {
        let limits = &self.limits;
        if let Some(stopped) = self.stopped {
            return limits
                .after_stop_ms
                .map(|ms| (after(stopped, ms), Silence::AfterStop, ms));
        }
        let byte = match self.last_byte {
            None => limits
                .first_byte_ms
                .map(|ms| (after(self.began, ms), Silence::FirstByte, ms)),
            Some(last) => limits.no_byte_ms.map(|ms| (after(last, ms), Silence::Byte, ms)),
        };
        let content = match self.last_content {
            None => limits
                .first_content_ms
                .map(|ms| (after(self.began, ms), Silence::FirstContent, ms)),
            Some(last) => limits
                .no_content_ms
                .map(|ms| (after(last, ms), Silence::Content, ms)),
        };
        byte.into_iter().chain(content).min_by_key(|(at, _, _)| *at)
    }
}

fn after(instant: Instant, ms: u64) -> Instant {
    // A limit beyond what the clock can show is as good as none: a year.
    let year = Duration::from_secs(365 * 24 * 3600);
    instant + Duration::from_millis(ms).min(year)
}
