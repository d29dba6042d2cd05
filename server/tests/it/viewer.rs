//! A client of the WebSocket that folds what comes, as a page does.

use std::collections::HashMap;

use futures::{SinkExt, StreamExt};
use protocol::fold::{Applied, RunState};
use protocol::frame::{ClientFrame, ServerFrame, Subject};
use protocol::id::RunId;
use protocol::snapshot::Assembler;
use protocol::state::RunStatus;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async};

use crate::harness::PATIENCE;

/// What a viewer knows of one run.
pub(crate) struct Watched {
    pub(crate) state: RunState,
    assembling: Option<(Assembler, bool)>,
    /// Snapshots that came, and how many of them replaced everything.
    pub(crate) snapshots: u32,
    pub(crate) resets: u32,
    /// Parts of the last snapshot.
    pub(crate) parts: u32,
    /// Ops that came one by one.
    pub(crate) ops: u64,
}

/// A connection with what it has seen.
pub(crate) struct Viewer {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub(crate) runs: HashMap<RunId, Watched>,
    /// Codes of the errors that came, each with its run.
    pub(crate) errors: Vec<(Option<RunId>, String)>,
    /// Every frame as it came.
    pub(crate) raw: String,
    pub(crate) pings: u32,
    /// Whether pings are answered.
    answers: bool,
    /// How the connection ended.
    ending: Option<String>,
}

impl Viewer {
    pub(crate) async fn connect(base: &str) -> Self {
        let host = base.strip_prefix("http://").unwrap();
        Self::over(TcpStream::connect(host).await.unwrap(), host).await
    }

    /// The same over a socket that was made in a certain way.
    pub(crate) async fn over(stream: TcpStream, host: &str) -> Self {
        let url = format!("ws://{host}/api/stream");
        let (socket, _) = client_async(url, MaybeTlsStream::Plain(stream)).await.unwrap();
        Self {
            socket,
            runs: HashMap::new(),
            errors: Vec::new(),
            raw: String::new(),
            pings: 0,
            answers: true,
            ending: None,
        }
    }

    /// The same as a page that hangs: it answers no ping.
    pub(crate) fn that_hangs(mut self) -> Self {
        self.answers = false;
        self
    }

    pub(crate) async fn send(&mut self, frame: &ClientFrame) {
        self.send_text(&serde_json::to_string(frame).unwrap()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send_message(Message::text(text)).await;
    }

    pub(crate) async fn send_message(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    pub(crate) async fn subscribe(&mut self, run: &RunId, after: u64) {
        self.subscribe_window(run, after, None).await;
    }

    /// Follows a run with snapshots that are windows.
    pub(crate) async fn subscribe_window(&mut self, run: &RunId, after: u64, window: Option<u32>) {
        let run = run.clone();
        self.send(&ClientFrame::Subscribe(Subject::Run { run, after, window }))
            .await;
    }

    /// Follows a run from a state that is known already.
    pub(crate) async fn resume(&mut self, state: RunState) {
        let (run, after) = (state.run().run_id.clone(), state.seq());
        self.runs.insert(run.clone(), Watched::new(state));
        self.subscribe(&run, after).await;
    }

    /// Takes in the next frame; none when the connection is closed.
    pub(crate) async fn next(&mut self) -> Option<ServerFrame> {
        let message = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        let text = match message.expect("a frame in time") {
            Some(Ok(Message::Text(text))) => text,
            end @ (Some(Ok(Message::Close(_)) | Err(_)) | None) => {
                self.ending = Some(format!("{end:?}"));
                return None;
            }
            Some(Ok(other)) => panic!("not a text frame: {other:?}"),
        };
        self.raw.push_str(&text);
        let frame: ServerFrame = serde_json::from_str(&text).unwrap();
        self.take(frame.clone()).await;
        Some(frame)
    }

    async fn take(&mut self, frame: ServerFrame) {
        match frame {
            ServerFrame::ExecutionStream(frame) => {
                let watched = self.runs.entry(frame.run_id.clone()).or_insert_with(|| {
                    // A page knows the session from elsewhere; `record` leaves it out.
                    let session = "ses_unknown".parse().unwrap();
                    Watched::new(RunState::new(frame.run_id.clone(), session))
                });
                for entry in frame.into_entries() {
                    watched.ops += 1;
                    let applied = watched.state.apply(&entry).expect("ops without a gap");
                    assert!(!matches!(applied, Applied::Refused(_)), "{entry:?}: {applied:?}");
                }
            }
            ServerFrame::StreamState(state) => {
                if let Some(watched) = self.runs.get_mut(&state.run_id) {
                    watched.state.set_stream(state);
                }
            }
            ServerFrame::SnapshotBegin { run, reset, .. } => {
                let watched = self.runs.entry(run.run_id.clone()).or_insert_with(|| {
                    Watched::new(RunState::new(run.run_id.clone(), run.session_id.clone()))
                });
                watched.assembling = Some((Assembler::new(run), reset));
            }
            ServerFrame::SnapshotPart { run_id, number, part } => {
                let (assembler, _) = self.runs.get_mut(&run_id).unwrap().assembling.as_mut().unwrap();
                assembler.add(number, *part).unwrap();
            }
            ServerFrame::SnapshotEnd { run_id, parts } => {
                let watched = self.runs.get_mut(&run_id).unwrap();
                let (assembler, reset) = watched.assembling.take().unwrap();
                let state = RunState::from_snapshot(assembler.finish(parts).unwrap());
                watched.snapshots += 1;
                watched.resets += u32::from(reset);
                watched.parts = parts;
                if reset || state.seq() >= watched.state.seq() {
                    watched.state = state;
                }
            }
            ServerFrame::Error { run_id, code, .. } => self.errors.push((run_id, code)),
            ServerFrame::Ping { at } => {
                self.pings += 1;
                if self.answers {
                    self.send(&ClientFrame::Pong(at)).await;
                }
            }
            ServerFrame::SessionUpdated { .. } => {}
        }
    }

    /// Takes in frames until the state of the run is what is waited for.
    pub(crate) async fn until(&mut self, run: &RunId, wanted: impl Fn(&RunState) -> bool) -> &RunState {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !self.runs.get(run).is_some_and(|watched| wanted(&watched.state)) {
            match tokio::time::timeout_at(deadline, self.next()).await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the connection was closed: {}", self.last_seen(run)),
                Err(_) => panic!("it did not come in time: {}", self.last_seen(run)),
            }
        }
        self.state(run)
    }

    /// How the connection ended, and what had come by then.
    fn last_seen(&self, run: &RunId) -> String {
        let ending = self.ending.as_deref().unwrap_or_default();
        let Some(Watched { state, ops, .. }) = self.runs.get(run) else {
            return format!(
                "{ending} after {} pings, and nothing of {run} had come",
                self.pings
            );
        };
        let (pings, seq, status) = (self.pings, state.seq(), state.run().status);
        let text = crate::states::text(state);
        let errors = &self.errors;
        format!(
            "{ending} after {pings} pings and {ops} ops up to {seq} ({status:?}, errors {errors:?}); its text: {text}"
        )
    }

    /// Takes in frames until the run is over.
    pub(crate) async fn until_end(&mut self, run: &RunId) -> &RunState {
        self.until(run, |state| state.run().status.is_final()).await
    }

    /// Takes in frames until the run executes and shows this text.
    pub(crate) async fn until_text(&mut self, run: &RunId, text: &str) -> &RunState {
        self.until(run, |state| {
            state.run().status == RunStatus::Running && crate::states::text(state).contains(text)
        })
        .await
    }

    pub(crate) fn state(&self, run: &RunId) -> &RunState {
        &self.runs[run].state
    }

    /// Closes the connection as a closed tab does.
    pub(crate) async fn close(mut self) {
        self.socket.close(None).await.unwrap();
    }
}

impl Watched {
    fn new(state: RunState) -> Self {
        Self {
            state,
            assembling: None,
            snapshots: 0,
            resets: 0,
            parts: 0,
            ops: 0,
        }
    }
}
