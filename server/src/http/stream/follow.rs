//! Following one run: subscribe first, then read, then drop by `seq`.

use std::sync::Arc;

use axum::extract::ws::{Message, Utf8Bytes};
use protocol::MAX_FRAME_TEXT;
use protocol::SCHEMA_VERSION;
use protocol::frame::ServerFrame;
use protocol::id::RunId;
use protocol::snapshot::split;

use super::{Outgoing, text};
use crate::http::error::ApiError;
use crate::http::{AppState, runs};
use crate::run::hub::{Channel, Delivery, Subscription};
use crate::run::recorder::frames;
use crate::store::{StoreError, journal};

/// The most ops that are sent one by one to a viewer who comes back; more are sent as a snapshot.
const MAX_OPS: u64 = 2_000;

/// A viewer who has nothing yet gets this many ops one by one.
const FEW_OPS: u64 = 16;

/// The most bytes of such ops.
const MAX_OPS_BYTES: u64 = 512 * 1024;

/// A viewer of one run.
pub(super) struct Follower {
    state: AppState,
    run_id: RunId,
    /// Snapshots are windows of about so many blocks; whole where it is absent.
    window: Option<u32>,
    outgoing: Outgoing,
    /// The last op that the viewer has.
    known: u64,
}

/// Why following ends.
enum End {
    /// The connection is closed.
    Closed,
    /// The viewer is told this.
    Error { code: &'static str, detail: String },
}

impl End {
    fn unreadable(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a run could not be read for a viewer");
        Self::Error {
            code: "internal",
            detail: "The run could not be read. The server's log says why.".to_owned(),
        }
    }
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::unreadable(&error)
    }
}

impl Follower {
    pub(super) fn new(state: AppState, run_id: RunId, window: Option<u32>, outgoing: Outgoing) -> Self {
        Self {
            state,
            run_id,
            window,
            outgoing,
            known: 0,
        }
    }

    pub(super) async fn run(mut self, after: u64) {
        let channel = self.state.execution.hub().channel(&self.run_id);
        let subscription = channel.subscribe();
        self.known = after;
        if let Err(End::Error { code, detail }) = self.follow(&channel, subscription).await {
            let error = ServerFrame::Error {
                run_id: Some(self.run_id.clone()),
                code: code.to_owned(),
                detail,
            };
            if let Some(frame) = text(&error) {
                // A closed connection hears no errors.
                let _ = self.outgoing.send(frame).await;
            }
        }
    }

    async fn follow(&mut self, channel: &Arc<Channel>, mut subscription: Subscription) -> Result<(), End> {
        self.catch_up(false).await?;
        if self.state.execution.follow(channel, self.known) > self.known {
            self.catch_up(false).await?;
        }
        for stream in self.state.execution.hub().streams(&self.run_id) {
            self.send(&ServerFrame::StreamState(stream)).await?;
        }
        loop {
            let frame = match subscription.next().await {
                Delivery::Lagged => {
                    self.catch_up(true).await?;
                    continue;
                }
                Delivery::Frame(frame) => frame,
            };
            if let (Some(first), Some(last)) = (frame.first_seq, frame.last_seq) {
                if last <= self.known {
                    continue;
                }
                if first > self.known + 1 {
                    self.catch_up(false).await?;
                    continue;
                }
                self.known = last;
            }
            let json = Utf8Bytes::try_from(frame.json.clone()).map_err(|_| End::Closed)?;
            self.outgoing
                .send(Message::Text(json))
                .await
                .map_err(|_| End::Closed)?;
        }
    }

    /// Sends what the viewer does not have: ops when they are few, else a snapshot.
    async fn catch_up(&mut self, behind: bool) -> Result<(), End> {
        let store = self.state.execution.store();
        let last = store.last_seq(&self.run_id).await?.ok_or_else(|| End::Error {
            code: "not_found",
            detail: format!("There is no run {}.", self.run_id),
        })?;
        if last < self.known {
            // The viewer knows ops that do not exist: what it shows is replaced.
            return self.snapshot(true).await;
        }
        let (ops, bytes) = journal::size_after(store.pool(), &self.run_id, self.known).await?;
        // Who has nothing yet gets the state in one piece: an op for every few characters is ten times as long.
        let is_new = self.known == 0 && ops > FEW_OPS;
        if behind || is_new || ops > MAX_OPS || bytes > MAX_OPS_BYTES {
            return self.snapshot(false).await;
        }
        let limit = u32::try_from(ops).unwrap_or(u32::MAX);
        let entries = journal::after(store.pool(), &self.run_id, self.known, limit).await?;
        for frame in frames(entries) {
            self.known = frame.seq + frame.ops.len() as u64 - 1;
            self.send(&ServerFrame::ExecutionStream(frame)).await?;
        }
        Ok(())
    }

    async fn snapshot(&mut self, reset: bool) -> Result<(), End> {
        let snapshot = match runs::load_snapshot(&self.state, &self.run_id, self.window).await {
            Ok(snapshot) => snapshot,
            // It was there a moment ago: it has been removed meanwhile.
            Err(ApiError::NotFound { .. }) => return Err(End::Closed),
            Err(ApiError::Internal(error)) => return Err(End::unreadable(&error)),
            Err(error) => return Err(End::unreadable(&error)),
        };
        let (run, run_id) = (snapshot.run.clone(), self.run_id.clone());
        self.known = snapshot.seq;
        self.send(&ServerFrame::SnapshotBegin {
            schema_version: SCHEMA_VERSION,
            run,
            reset,
        })
        .await?;
        let parts = split(snapshot, MAX_FRAME_TEXT);
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        for (part, number) in parts.into_iter().zip(0..) {
            let part = Box::new(part);
            self.send(&ServerFrame::SnapshotPart {
                run_id: run_id.clone(),
                number,
                part,
            })
            .await?;
        }
        self.send(&ServerFrame::SnapshotEnd { run_id, parts: count })
            .await
    }

    async fn send(&self, frame: &ServerFrame) -> Result<(), End> {
        let Some(frame) = text(frame) else {
            return Err(End::Closed);
        };
        self.outgoing.send(frame).await.map_err(|_| End::Closed)
    }
}
