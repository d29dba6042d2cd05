//! The recorder: the only writer of ops. It persists first and announces second.
//!
//! One recorder serves all runs of the process. It gives `seq`, merges deltas of one text, and commits the
//! ops of all runs together; only then the hub hears of them. So what any viewer has ever seen is in the database.

mod commit;
mod pending;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use protocol::MAX_OP_TEXT;
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::op::Op;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::commit::{forget, frames};
use self::pending::Pending;
use super::hub::{Channel, Hub, Ownership};
use crate::clock::SharedClock;
use crate::store::Store;

/// How long deltas are gathered before they are committed.
const WINDOW: Duration = Duration::from_millis(25);

/// Text that is committed without waiting for the window to end.
const WINDOW_BYTES: usize = MAX_OP_TEXT;

/// The most text that one transaction takes; what is above waits for the next one.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Ops that may wait for the recorder, of all runs; a writer waits when there are more.
const QUEUE: usize = 4096;

/// Why a run is not written any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Another owner has the run: nothing more may be written.
    #[error("another owner has the run")]
    LostOwnership,
    /// The database does not take it. What was shown before is kept.
    #[error("not saved: {0}")]
    NotSaved(String),
    /// The recorder has stopped.
    #[error("the recorder has stopped")]
    Stopped,
}

/// A handle to the recorder.
#[derive(Debug, Clone)]
pub struct Recorder {
    requests: mpsc::Sender<Request>,
    hub: Arc<Hub>,
    writers: Arc<AtomicU64>,
}

/// Tells the writers of one run apart: a run that was taken over has an old one that may still write.
type WriterNumber = u64;

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all requests are writes: a box for each would cost more than the room"
)]
enum Request {
    Open {
        run_id: RunId,
        run: Box<OpenRun>,
    },
    Write {
        run_id: RunId,
        writer: WriterNumber,
        op: Op,
    },
    WriteTogether {
        run_id: RunId,
        writer: WriterNumber,
        ops: Vec<Op>,
    },
    Flush {
        run_id: RunId,
        writer: WriterNumber,
        reply: oneshot::Sender<Result<u64, RecordError>>,
    },
    Close {
        run_id: RunId,
        writer: WriterNumber,
    },
    Stop,
}

/// A run that is being written.
#[derive(Debug)]
struct OpenRun {
    writer: WriterNumber,
    state: RunState,
    pending: Pending,
    waiters: Vec<oneshot::Sender<Result<u64, RecordError>>>,
    channel: Arc<Channel>,
    _ownership: Ownership,
    ended: Arc<Ended>,
}

/// How a run's writer learns that it may not write any more.
#[derive(Debug, Default)]
struct Ended {
    why: OnceLock<RecordError>,
    token: CancellationToken,
}

/// Writes the ops of one run. Dropping it closes the run in the recorder, after what was written.
#[derive(Debug)]
pub struct RunWriter {
    run_id: RunId,
    number: WriterNumber,
    requests: mpsc::Sender<Request>,
    channel: Arc<Channel>,
    ended: Arc<Ended>,
}

impl Recorder {
    /// Starts the recorder's task. It ends after [`Recorder::stop`], or when all handles and writers are dropped; in
    /// both cases after the last commit.
    pub fn start(store: Store, hub: Arc<Hub>, clock: SharedClock, tasks: &TaskTracker) -> Self {
        let (requests, received) = mpsc::channel(QUEUE);
        let task = Task {
            store,
            hub: Arc::clone(&hub),
            clock,
            received,
            open: HashMap::new(),
            gathered: Gathered::default(),
            stopping: false,
        };
        tasks.spawn(task.run());
        Self {
            requests,
            hub,
            writers: Arc::default(),
        }
    }

    /// Commits what was handed over, then ends the task. What is written later is dropped.
    pub async fn stop(&self) {
        // It may have ended already.
        let _ = self.requests.send(Request::Stop).await;
    }

    /// Begins to write a run, from the state that its last committed op left and in the generation of its new owner.
    /// An earlier writer of the same run loses it.
    pub async fn open(&self, state: RunState) -> Result<RunWriter, RecordError> {
        let run_id = state.run().run_id.clone();
        let channel = self.hub.channel(&run_id);
        let ended = Arc::new(Ended::default());
        let number = self.writers.fetch_add(1, Ordering::Relaxed);
        let run = Box::new(OpenRun {
            writer: number,
            state,
            pending: Pending::default(),
            waiters: Vec::new(),
            _ownership: channel.own(),
            channel: Arc::clone(&channel),
            ended: Arc::clone(&ended),
        });
        self.requests
            .send(Request::Open {
                run_id: run_id.clone(),
                run,
            })
            .await
            .map_err(|_| RecordError::Stopped)?;
        Ok(RunWriter {
            run_id,
            number,
            requests: self.requests.clone(),
            channel,
            ended,
        })
    }
}

/// What a writer handed over that writes to nobody.
pub(super) struct Collected(mpsc::Receiver<Request>);

impl Collected {
    /// All ops, once the writer is dropped.
    pub(super) async fn ops(mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        while let Some(request) = self.0.recv().await {
            match request {
                Request::Write { op, .. } => ops.push(op),
                Request::WriteTogether { ops: more, .. } => ops.extend(more),
                Request::Open { .. } | Request::Flush { .. } | Request::Close { .. } | Request::Stop => {}
            }
        }
        ops
    }
}

impl RunWriter {
    /// A writer whose ops go nowhere but into the second answer, which has to be read at the same time.
    pub(super) fn collecting(run_id: &RunId) -> (Self, Collected) {
        let (requests, received) = mpsc::channel(QUEUE);
        let writer = Self {
            run_id: run_id.clone(),
            number: 0,
            requests,
            channel: Hub::default().channel(run_id),
            ended: Arc::default(),
        };
        (writer, Collected(received))
    }

    /// Hands over one op. It waits only when too many ops wait already. Once the run may not be written any more, ops
    /// are dropped: [`RunWriter::ended`] and [`RunWriter::flush`] say so.
    pub async fn write(&self, op: Op) {
        // The task has ended only when the process ends.
        let _ = self
            .requests
            .send(Request::Write {
                run_id: self.run_id.clone(),
                writer: self.number,
                op,
            })
            .await;
    }

    /// Hands over ops that are committed in one transaction, so that nobody ever sees some of them alone.
    pub async fn write_together(&self, ops: Vec<Op>) {
        // The task has ended only when the process ends.
        let _ = self
            .requests
            .send(Request::WriteTogether {
                run_id: self.run_id.clone(),
                writer: self.number,
                ops,
            })
            .await;
    }

    /// Waits until all ops so far are committed; gives the last `seq`.
    pub async fn flush(&self) -> Result<u64, RecordError> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Request::Flush {
                run_id: self.run_id.clone(),
                writer: self.number,
                reply,
            })
            .await
            .map_err(|_| RecordError::Stopped)?;
        answer.await.map_err(|_| RecordError::Stopped)?
    }

    /// Ends when the run may not be written any more.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended.token
    }

    /// Why it may not be written any more.
    pub fn why_ended(&self) -> Option<&RecordError> {
        self.ended.why.get()
    }

    /// The run's channel, for what is live only.
    pub fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        let request = Request::Close {
            run_id: self.run_id.clone(),
            writer: self.number,
        };
        if let Err(mpsc::error::TrySendError::Full(request)) = self.requests.try_send(request) {
            let requests = self.requests.clone();
            tokio::spawn(async move { requests.send(request).await });
        }
    }
}

struct Task {
    store: Store,
    hub: Arc<Hub>,
    clock: SharedClock,
    received: mpsc::Receiver<Request>,
    open: HashMap<RunId, OpenRun>,
    gathered: Gathered,
    stopping: bool,
}

/// What waits for the next commit, over all runs.
#[derive(Debug, Default)]
struct Gathered {
    /// Something is to be done at all.
    is_any: bool,
    /// It should not wait for the window to end.
    is_urgent: bool,
    /// Bytes of text.
    bytes: usize,
}

impl Task {
    async fn run(mut self) {
        while let Some(request) = self.received.recv().await {
            self.take(request);
            self.gather().await;
            self.commit().await;
            if self.stopping {
                break;
            }
        }
    }

    /// Takes in more until the window ends, somebody waits, or there is enough.
    async fn gather(&mut self) {
        let deadline = Instant::now() + WINDOW;
        while self.gathered.is_any && !self.gathered.is_urgent {
            match tokio::time::timeout_at(deadline, self.received.recv()).await {
                Ok(Some(request)) => self.take(request),
                Ok(None) | Err(_) => break,
            }
        }
        // What is there already costs no time. What comes meanwhile waits for the next commit: else many busy runs
        // could put it off for as long as they are busy.
        for _ in 0..self.received.len() {
            if self.gathered.bytes >= MAX_BATCH_BYTES {
                break;
            }
            let Ok(request) = self.received.try_recv() else {
                break;
            };
            self.take(request);
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Open { run_id, run } => {
                // The state of the new writer is newer than what the old one has not saved.
                self.give_up(&run_id, RecordError::LostOwnership);
                self.open.insert(run_id, *run);
            }
            Request::Write { run_id, writer, op } => self.push(&run_id, writer, [op]),
            Request::WriteTogether { run_id, writer, ops } => self.push(&run_id, writer, ops),
            Request::Flush {
                run_id,
                writer,
                reply,
            } => match self.run_of(&run_id, writer) {
                Some(run) => {
                    run.waiters.push(reply);
                    self.gathered.is_any = true;
                    self.gathered.is_urgent = true;
                }
                None => {
                    // Its writer has heard why; this answer only has to come.
                    let _ = reply.send(Err(RecordError::LostOwnership));
                }
            },
            Request::Close { run_id, writer } => {
                if let Some(run) = self.run_of(&run_id, writer) {
                    run.pending.close();
                    self.gathered.is_any = true;
                }
            }
            Request::Stop => {
                self.stopping = true;
                self.gathered.is_urgent = true;
            }
        }
    }

    fn push(&mut self, run_id: &RunId, writer: WriterNumber, ops: impl IntoIterator<Item = Op>) {
        let Some(run) = self.run_of(run_id, writer) else {
            return;
        };
        let mut bytes = 0;
        for op in ops {
            bytes += op.text_bytes();
            run.pending.push(op);
        }
        let is_enough = run.pending.bytes() >= WINDOW_BYTES;
        self.gathered.is_any = true;
        self.gathered.is_urgent |= is_enough;
        self.gathered.bytes += bytes;
    }

    /// The run, as long as this writer is the one that has it.
    fn run_of(&mut self, run_id: &RunId, writer: WriterNumber) -> Option<&mut OpenRun> {
        self.open.get_mut(run_id).filter(|run| run.writer == writer)
    }
}
