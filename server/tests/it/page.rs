//! A page without a browser: the page's own rules of its connection (`app::data::connection`), with a clock that may be
//! wrong and a socket that may break at any time.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use app::data::connection::{Action, Connection, Input};
use app::data::run_store::Resync;
use futures::{SinkExt, StreamExt};
use protocol::fold::{Applied, FoldError, RunState};
use protocol::frame::ServerFrame;
use protocol::id::RunId;
use protocol::snapshot::Snapshot;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async};

use crate::harness::{PATIENCE, client};

/// A page that shows one run.
pub(crate) struct Page {
    base: String,
    http: reqwest::Client,
    run: RunId,
    connection: Connection,
    socket: Option<WebSocketStream<MaybeTlsStream<TcpStream>>>,
    pub(crate) state: RunState,
    /// How wrong its clock is. Milliseconds.
    offset: i64,
    /// Ops that came although they were known.
    pub(crate) doubled: u64,
    /// Ops that were taken in, one by one.
    pub(crate) taken: u64,
    /// Snapshots that were taken in.
    pub(crate) snapshots: u64,
}

impl Page {
    /// Opens it with the state that the server has now, as a page that was rendered by it.
    pub(crate) async fn open(base: &str, run: &RunId, offset: Duration, is_behind: bool) -> Self {
        let http = client();
        let state = RunState::from_snapshot(fetch(&http, base, run).await);
        let offset = i64::try_from(offset.as_millis()).unwrap();
        let mut page = Self {
            base: base.to_owned(),
            http,
            run: run.clone(),
            connection: Connection::default(),
            socket: None,
            offset: if is_behind { -offset } else { offset },
            doubled: 0,
            taken: 0,
            snapshots: 0,
            state,
        };
        let seq = page.state.seq();
        page.act(Input::Follow(run.clone(), seq)).await;
        page
    }

    fn now(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(now.as_millis()).unwrap() + self.offset
    }

    /// Lets the connection go on with an input, and does all that it asks for.
    async fn act(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for action in self.connection.handle(input, self.now(), 0.5) {
                self.perform(action, &mut inputs).await;
            }
        }
    }

    async fn perform(&mut self, action: Action, inputs: &mut VecDeque<Input>) {
        match action {
            Action::Open => {
                let host = self.base.strip_prefix("http://").unwrap();
                let stream = TcpStream::connect(host).await.unwrap();
                let url = format!("ws://{host}/api/stream");
                let (socket, _) = client_async(url, MaybeTlsStream::Plain(stream)).await.unwrap();
                self.socket = Some(socket);
                inputs.push_back(Input::Opened);
            }
            Action::Close => self.socket = None,
            Action::Send(frame) => {
                let text = serde_json::to_string(&frame).unwrap();
                if let Some(socket) = &mut self.socket
                    && socket.send(Message::text(text)).await.is_err()
                {
                    self.socket = None;
                    inputs.push_back(Input::Closed);
                }
            }
            Action::Take(frame) => {
                for entry in frame.into_entries() {
                    match self.state.apply(&entry) {
                        Ok(Applied::Changed(_)) => self.taken += 1,
                        Ok(Applied::Duplicate) => self.doubled += 1,
                        Ok(Applied::Refused(refusal)) => panic!("{entry:?}: {refusal}"),
                        Err(FoldError::Gap { .. }) => {
                            inputs.push_back(Input::Missing(self.run.clone(), Resync::Ops));
                            return;
                        }
                        Err(error) => panic!("{entry:?}: {error}"),
                    }
                }
                inputs.push_back(Input::TakenIn(self.run.clone(), self.state.seq()));
            }
            Action::Replace(snapshot, reset) => {
                self.replace(RunState::from_snapshot(*snapshot), reset);
                inputs.push_back(Input::TakenIn(self.run.clone(), self.state.seq()));
            }
            Action::Fetch(run) => {
                let snapshot = fetch(&self.http, &self.base, &run).await;
                self.replace(RunState::from_snapshot(snapshot), true);
                inputs.push_back(Input::Follow(run, self.state.seq()));
            }
            Action::Report(problem) => panic!("{problem:?}"),
            Action::Stream(_) | Action::Session(_) | Action::ServerTime(_) | Action::Show(_) => {}
        }
    }

    fn replace(&mut self, state: RunState, reset: bool) {
        self.snapshots += 1;
        if reset || state.seq() >= self.state.seq() {
            self.state = state;
        }
    }

    /// Takes in the next frame, when one comes within this time.
    pub(crate) async fn step(&mut self, within: Duration) {
        let Some(socket) = &mut self.socket else {
            return self.act(Input::Awake).await;
        };
        let input = match tokio::time::timeout(within, socket.next()).await {
            Err(_) => Input::Time,
            Ok(Some(Ok(Message::Text(text)))) => {
                let frame: ServerFrame = serde_json::from_str(&text).unwrap();
                Input::Frame(Box::new(frame))
            }
            Ok(Some(Ok(other))) => panic!("{other:?}"),
            Ok(Some(Err(_)) | None) => {
                self.socket = None;
                Input::Closed
            }
        };
        self.act(input).await;
    }

    /// The connection breaks without a word. With `doubled` the page forgets that it has the last ops, so that they
    /// come once more.
    pub(crate) async fn break_off(&mut self, doubled: Option<u64>) {
        self.socket = None;
        self.act(Input::Closed).await;
        if let Some(ops) = doubled {
            let seq = self.state.seq().saturating_sub(ops);
            self.act(Input::Follow(self.run.clone(), seq)).await;
        }
        // The browser says that it has a network again.
        self.act(Input::Awake).await;
    }

    /// Goes on until the run is over.
    pub(crate) async fn until_end(&mut self) -> &RunState {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !self.state.run().status.is_final() {
            assert!(tokio::time::Instant::now() < deadline, "the run does not end");
            self.step(Duration::from_secs(1)).await;
        }
        &self.state
    }
}

async fn fetch(http: &reqwest::Client, base: &str, run: &RunId) -> Snapshot {
    let answer = http
        .get(format!("{base}/api/runs/{run}/snapshot"))
        .send()
        .await
        .unwrap();
    answer.json().await.unwrap()
}
