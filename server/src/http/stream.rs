//! The WebSocket `GET /api/stream`: one for each page.
//!
//! A connection has a reader, a writer and one task for each run that it follows. A slow viewer holds back only its
//! own tasks, and gets a snapshot in place of what it missed.

mod follow;

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use protocol::api::SessionSummary;
use protocol::frame::{ClientFrame, ServerFrame, Subject, Topic};
use protocol::id::RunId;
use protocol::model::Timestamp;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::AppState;
use super::error::ApiError;
use crate::run::hub::SessionsChanged;
use crate::store::StoreError;
use crate::store::sessions::SessionFilter;

/// The heartbeat of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// How often a ping is sent.
    pub ping: Duration,
    /// A connection is closed after this long without a frame from the other side. One that is heard of may take its
    /// frames as slowly as it can.
    pub silence: Duration,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(10),
            silence: Duration::from_secs(20),
        }
    }
}

/// The longest frame of a client.
const MAX_CLIENT_FRAME: usize = 64 * 1024;

/// Frames that may wait for the socket.
const OUTGOING: usize = 8;

/// Runs that one connection may follow.
const MAX_SUBSCRIPTIONS: usize = 200;

/// `GET /api/stream`
pub(super) async fn connect(
    State(state): State<AppState>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| ApiError::NotASocket(rejection.body_text()))?;
    Ok(upgrade
        .max_message_size(MAX_CLIENT_FRAME)
        .max_frame_size(MAX_CLIENT_FRAME)
        .on_upgrade(move |socket| serve(state, socket)))
}

/// Where frames of one connection go; closed with it.
type Outgoing = mpsc::Sender<Message>;

async fn serve(state: AppState, socket: WebSocket) {
    let (sink, stream) = socket.split();
    let (outgoing, frames) = mpsc::channel(OUTGOING);
    let closing = CancellationToken::new();
    let writer = tokio::spawn(write(sink, frames, closing.clone()));
    let connection = Connection {
        state,
        outgoing,
        closing: closing.clone(),
        runs: HashMap::new(),
        sessions: None,
    };
    connection.read(stream).await;
    closing.cancel();
    // The writer ends when its senders are gone.
    let _ = writer.await;
}

/// Sends what is to be sent, until the reader hears nothing any more.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut frames: mpsc::Receiver<Message>,
    closing: CancellationToken,
) {
    let sending = async {
        while let Some(frame) = frames.recv().await {
            if sink.send(frame).await.is_err() {
                break;
            }
        }
    };
    closing.run_until_cancelled(sending).await;
    closing.cancel();
    // The other side may be gone already.
    let _ = tokio::time::timeout(Duration::from_secs(1), sink.close()).await;
}

struct Connection {
    state: AppState,
    outgoing: Outgoing,
    closing: CancellationToken,
    runs: HashMap<RunId, (DropGuard, JoinHandle<()>)>,
    sessions: Option<DropGuard>,
}

impl Connection {
    async fn read(mut self, mut stream: SplitStream<WebSocket>) {
        let Heartbeat { ping, silence } = self.state.heartbeat;
        let mut pings = tokio::time::interval_at(Instant::now() + ping, ping);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                message = stream.next() => {
                    heard = Instant::now();
                    match message {
                        Some(Ok(Message::Text(text))) => self.take(text.as_str()).await,
                        Some(Ok(Message::Binary(_))) => {
                            self.error(None, "not_text", "Frames are JSON text.".to_owned()).await;
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    }
                }
                _ = pings.tick() => {
                    let at = self.state.execution.services().clock.now_ms();
                    // A viewer that is behind has frames enough to hear.
                    if let Some(ping) = text(&ServerFrame::Ping { at }) {
                        let _ = self.outgoing.try_send(ping);
                    }
                }
                () = tokio::time::sleep_until(heard + silence) => {
                    tracing::debug!("a viewer fell silent; its connection is closed");
                    return;
                }
                () = self.closing.cancelled() => return,
            }
        }
    }

    async fn take(&mut self, frame: &str) {
        let frame: ClientFrame = match serde_json::from_str(frame) {
            Ok(frame) => frame,
            Err(error) => {
                let known = "subscribe, unsubscribe, ack or pong";
                self.error(
                    None,
                    "invalid_frame",
                    format!("The frame is none of {known}: {error}."),
                )
                .await;
                return;
            }
        };
        match frame {
            ClientFrame::Subscribe(Subject::Run { run, after, window }) => {
                self.follow_run(run, after, window).await;
            }
            ClientFrame::Subscribe(Subject::Topic {
                topic: Topic::Sessions,
                since,
            }) => self.follow_sessions(since),
            ClientFrame::Unsubscribe(Subject::Run { run, .. }) => {
                self.runs.remove(&run);
            }
            ClientFrame::Unsubscribe(Subject::Topic {
                topic: Topic::Sessions,
                ..
            }) => self.sessions = None,
            // Nothing depends on them yet but the time at which they came.
            ClientFrame::Ack { .. } | ClientFrame::Pong(_) => {}
        }
    }

    async fn follow_run(&mut self, run: RunId, after: u64, window: Option<u32>) {
        if self.runs.len() >= MAX_SUBSCRIPTIONS {
            // Those that ended with an error count no more.
            self.runs.retain(|_, (_, follower)| !follower.is_finished());
        }
        if self.runs.len() >= MAX_SUBSCRIPTIONS && !self.runs.contains_key(&run) {
            let detail = format!("One connection follows at most {MAX_SUBSCRIPTIONS} runs.");
            self.error(Some(run), "too_many_subscriptions", detail).await;
            return;
        }
        let token = self.closing.child_token();
        let follower = follow::Follower::new(self.state.clone(), run.clone(), window, self.outgoing.clone());
        let stop = token.clone();
        let follower = tokio::spawn(async move {
            stop.run_until_cancelled(follower.run(after)).await;
        });
        // An earlier subscription of the same run ends here.
        self.runs.insert(run, (token.drop_guard(), follower));
    }

    fn follow_sessions(&mut self, since: Option<Timestamp>) {
        let token = self.closing.child_token();
        let (state, outgoing, stop) = (self.state.clone(), self.outgoing.clone(), token.clone());
        let changed = state.execution.hub().sessions();
        let telling = async move {
            // Subscribed first, read now: nothing falls in between.
            if let Some(since) = since {
                let read = state.execution.store().sessions_changed_since(since).await;
                tell(read, &outgoing).await?;
            }
            sessions(&state, changed, &outgoing).await
        };
        tokio::spawn(async move { stop.run_until_cancelled(telling).await });
        self.sessions = Some(token.drop_guard());
    }

    async fn error(&self, run_id: Option<RunId>, code: &str, detail: String) {
        if let Some(frame) = text(&ServerFrame::Error {
            run_id,
            code: code.to_owned(),
            detail,
        }) {
            // A closed connection hears no errors.
            let _ = self.outgoing.send(frame).await;
        }
    }
}

/// A frame as it goes over the socket.
fn text(frame: &ServerFrame) -> Option<Message> {
    match serde_json::to_string(frame) {
        Ok(json) => Some(Message::Text(json.into())),
        Err(error) => {
            tracing::error!(%error, "a frame could not be serialised");
            None
        }
    }
}

/// Sends the summaries of sessions that change, until the connection is closed.
async fn sessions(
    state: &AppState,
    mut changed: broadcast::Receiver<SessionsChanged>,
    outgoing: &Outgoing,
) -> Option<()> {
    let store = state.execution.store();
    loop {
        let read = match changed.recv().await {
            Ok(SessionsChanged::One(session)) => store.session(&session).await.map(Vec::from_iter),
            // Some were missed: those that changed last are on the first page.
            Ok(SessionsChanged::Any) | Err(broadcast::error::RecvError::Lagged(_)) => store
                .sessions(&SessionFilter::default())
                .await
                .map(|list| list.map(|list| list.sessions).unwrap_or_default()),
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        tell(read, outgoing).await?;
    }
}

/// Sends summaries of sessions; none when the connection is closed.
async fn tell(read: Result<Vec<SessionSummary>, StoreError>, outgoing: &Outgoing) -> Option<()> {
    let sessions = read.unwrap_or_else(|error| {
        tracing::warn!(%error, "sessions could not be read");
        Vec::new()
    });
    for session in sessions {
        let session = Box::new(session);
        if let Some(frame) = text(&ServerFrame::SessionUpdated { session }) {
            outgoing.send(frame).await.ok()?;
        }
    }
    Some(())
}
