//! The rules of the page's one WebSocket (`GET /api/stream`), without I/O: what came in and what time it is give what
//! is to be done. [`super::live`] does it.

mod exchange;

use std::collections::BTreeMap;

use protocol::SCHEMA_VERSION;
use protocol::frame::{ClientFrame, ServerFrame, Subject, Topic};
use protocol::id::RunId;
use protocol::model::Timestamp;
use protocol::snapshot::Assembler;

pub use exchange::{Action, ConnectionState, Input, Problem, UNREACHABLE};

use super::run_store::Resync;

/// Without a frame for this long the connection is given up. Milliseconds.
pub const SILENCE: i64 = 20_000;
/// Coming back to a page whose last frame is older than this, the connection is made anew at once. Milliseconds.
const STALE: i64 = 12_000;
/// The shortest and the longest pause before connecting again. Milliseconds.
const PAUSE: (i64, i64) = (250, 5_000);
/// Acknowledgements and repeated requests for what is missing are at least this far apart. Milliseconds.
const APART: i64 = 1_000;

/// How much earlier than its last known time a page asks for changes of sessions, in milliseconds.
const MARGIN: i64 = 10_000;

#[derive(Debug)]
enum Socket {
    /// None is wanted.
    Absent,
    /// It is being opened, since then.
    Opening(i64),
    /// It is open; the last frame came then.
    Open(i64),
    /// It is opened again at this time.
    Pausing(i64),
}

#[derive(Debug)]
struct Followed {
    /// The last known op.
    seq: u64,
    /// The last acknowledged op, and when that was.
    acknowledged: (u64, i64),
    /// A snapshot that is coming, and whether it is a reset.
    snapshot: Option<(Assembler, bool)>,
    /// When what was missing was last asked for; frames are left alone until it comes.
    asked: Option<i64>,
    /// Whether the server has ended it with an error.
    ended: bool,
}

/// The connection. Feed it with [`handle`](Self::handle), and wake it at [`wake_at`](Self::wake_at).
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    runs: BTreeMap<RunId, Followed>,
    sessions: Option<Timestamp>,
    /// How often in a row connecting has failed.
    failures: u32,
    shown: ConnectionState,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            socket: Socket::Absent,
            runs: BTreeMap::new(),
            sessions: None,
            failures: 0,
            shown: ConnectionState::default(),
        }
    }
}

impl Connection {
    /// What follows from an input. `now` is the browser's clock in milliseconds, `random` lies in 0..1.
    pub fn handle(&mut self, input: Input, now: i64, random: f64) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Follow(run, seq) => self.follow(run, seq, now, &mut actions),
            Input::Unfollow(run) => {
                if self.runs.remove(&run).is_some() && self.is_open() {
                    actions.push(Action::Send(ClientFrame::Unsubscribe(Subject::Run {
                        run,
                        after: 0,
                        window: None,
                    })));
                }
                self.close_if_idle(&mut actions);
            }
            Input::FollowSessions(since) => {
                if self.is_open() && since.or(self.sessions).is_some() {
                    // Whoever comes later may have been read at an earlier time: it is told what came since.
                    actions.push(Action::Send(match since {
                        Some(_) => ClientFrame::Subscribe(sessions(since)),
                        None => ClientFrame::Unsubscribe(sessions(None)),
                    }));
                }
                self.sessions = since;
                self.open_if_wanted(now, &mut actions);
                self.close_if_idle(&mut actions);
            }
            Input::Opened => self.opened(now, &mut actions),
            Input::Closed => self.closed(now, random, &mut actions),
            Input::Frame(frame) => self.frame(*frame, now, &mut actions),
            Input::Unreadable(detail) => {
                self.heard(now, &mut actions);
                actions.push(report(None, "unreadable_frame", detail));
            }
            Input::TakenIn(run, seq) => self.taken_in(&run, seq, now, &mut actions),
            Input::Missing(run, what) => self.missing(&run, what, now, &mut actions),
            Input::Awake => self.awake(now, &mut actions),
            Input::Offline => self.show(ConnectionState::Offline { since: now }, &mut actions),
            Input::Time => self.time(now, random, &mut actions),
        }
        actions
    }

    /// When [`Input::Time`] is due.
    pub fn wake_at(&self) -> Option<i64> {
        let socket = match self.socket {
            Socket::Absent => None,
            Socket::Opening(since) | Socket::Open(since) => Some(since + SILENCE),
            Socket::Pausing(until) => Some(until),
        };
        let acknowledge = self
            .runs
            .values()
            .filter(|run| self.is_open() && run.acknowledged.0 < run.seq)
            .map(|run| run.acknowledged.1 + APART);
        socket.into_iter().chain(acknowledge).min()
    }

    fn is_open(&self) -> bool {
        matches!(self.socket, Socket::Open(_))
    }

    fn show(&mut self, state: ConnectionState, actions: &mut Vec<Action>) {
        if self.shown != state {
            self.shown = state;
            actions.push(Action::Show(state));
        }
    }

    fn follow(&mut self, run: RunId, seq: u64, now: i64, actions: &mut Vec<Action>) {
        let followed = Followed {
            seq,
            acknowledged: (seq, now),
            snapshot: None,
            asked: None,
            ended: false,
        };
        self.runs.insert(run.clone(), followed);
        if self.is_open() {
            actions.push(Action::Send(ClientFrame::Subscribe(subject(run, seq))));
        } else {
            self.open_if_wanted(now, actions);
        }
    }

    fn open_if_wanted(&mut self, now: i64, actions: &mut Vec<Action>) {
        if matches!(self.socket, Socket::Absent) && (self.sessions.is_some() || !self.runs.is_empty()) {
            self.socket = Socket::Opening(now);
            actions.push(Action::Open);
        }
    }

    fn close_if_idle(&mut self, actions: &mut Vec<Action>) {
        if self.sessions.is_none() && self.runs.is_empty() && !matches!(self.socket, Socket::Absent) {
            self.socket = Socket::Absent;
            self.failures = 0;
            actions.push(Action::Close);
            self.show(ConnectionState::Connecting, actions);
        }
    }

    fn opened(&mut self, now: i64, actions: &mut Vec<Action>) {
        self.socket = Socket::Open(now);
        for (run, followed) in &mut self.runs {
            followed.snapshot = None;
            followed.asked = None;
            if !followed.ended {
                actions.push(Action::Send(ClientFrame::Subscribe(subject(
                    run.clone(),
                    followed.seq,
                ))));
            }
        }
        if self.sessions.is_some() {
            actions.push(Action::Send(ClientFrame::Subscribe(sessions(self.sessions))));
        }
        self.show(ConnectionState::Live, actions);
    }

    fn closed(&mut self, now: i64, random: f64, actions: &mut Vec<Action>) {
        if matches!(self.socket, Socket::Absent) {
            return;
        }
        let pause = PAUSE.0.saturating_mul(1 << self.failures.min(10)).min(PAUSE.1);
        let jittered = (pause as f64 * (0.5 + random.clamp(0.0, 1.0) / 2.0)) as i64;
        self.failures = self.failures.saturating_add(1);
        self.socket = Socket::Pausing(now + jittered);
        if !matches!(
            self.shown,
            ConnectionState::Reconnecting { .. } | ConnectionState::Offline { .. }
        ) {
            self.show(ConnectionState::Reconnecting { since: now }, actions);
        }
    }

    /// Gives up a socket that has fallen silent.
    fn give_up(&mut self, now: i64, random: f64, actions: &mut Vec<Action>) {
        actions.push(Action::Close);
        self.closed(now, random, actions);
    }

    fn awake(&mut self, now: i64, actions: &mut Vec<Action>) {
        if let ConnectionState::Offline { since } = self.shown {
            let state = if self.is_open() {
                ConnectionState::Live
            } else {
                ConnectionState::Reconnecting { since }
            };
            self.show(state, actions);
        }
        match self.socket {
            Socket::Open(last) if now - last > STALE => {
                self.give_up(now, 0.0, actions);
                self.socket = Socket::Opening(now);
                actions.push(Action::Open);
            }
            Socket::Pausing(_) => {
                self.socket = Socket::Opening(now);
                actions.push(Action::Open);
            }
            Socket::Absent | Socket::Opening(_) | Socket::Open(_) => {}
        }
    }

    fn time(&mut self, now: i64, random: f64, actions: &mut Vec<Action>) {
        match self.socket {
            Socket::Opening(since) | Socket::Open(since) if now - since >= SILENCE => {
                self.give_up(now, random, actions);
            }
            Socket::Pausing(until) if now >= until => {
                self.socket = Socket::Opening(now);
                actions.push(Action::Open);
            }
            _ => {}
        }
        if self.is_open() {
            for (run, followed) in &mut self.runs {
                acknowledge(run, followed, now, actions);
            }
        }
    }

    fn heard(&mut self, now: i64, actions: &mut Vec<Action>) {
        if self.is_open() {
            self.socket = Socket::Open(now);
            self.failures = 0;
            self.show(ConnectionState::Live, actions);
        }
    }

    fn frame(&mut self, frame: ServerFrame, now: i64, actions: &mut Vec<Action>) {
        self.heard(now, actions);
        match frame {
            ServerFrame::ExecutionStream(frame) => {
                let Some(followed) = self.runs.get_mut(&frame.run_id) else {
                    return;
                };
                if frame.schema_version != SCHEMA_VERSION {
                    other_version(&frame.run_id.clone(), followed, frame.schema_version, actions);
                } else if !followed.ended && followed.snapshot.is_none() {
                    actions.push(Action::Take(frame));
                }
            }
            ServerFrame::StreamState(stream) => actions.push(Action::Stream(stream)),
            ServerFrame::SnapshotBegin {
                schema_version,
                run,
                reset,
            } => {
                let id = run.run_id.clone();
                let Some(followed) = self.runs.get_mut(&id) else {
                    return;
                };
                if schema_version == SCHEMA_VERSION {
                    followed.snapshot = Some((Assembler::new(run), reset));
                } else {
                    other_version(&id, followed, schema_version, actions);
                }
            }
            ServerFrame::SnapshotPart { run_id, number, part } => {
                let Some(followed) = self.runs.get_mut(&run_id) else {
                    return;
                };
                let Some((assembler, _)) = &mut followed.snapshot else {
                    return;
                };
                if assembler.add(number, *part).is_err() {
                    followed.snapshot = None;
                    self.missing(&run_id, Resync::Ops, now, actions);
                }
            }
            ServerFrame::SnapshotEnd { run_id, parts } => {
                let Some(followed) = self.runs.get_mut(&run_id) else {
                    return;
                };
                let Some((assembler, reset)) = followed.snapshot.take() else {
                    return;
                };
                match assembler.finish(parts) {
                    Ok(snapshot) => actions.push(Action::Replace(Box::new(snapshot), reset)),
                    Err(_) => self.missing(&run_id, Resync::Ops, now, actions),
                }
            }
            ServerFrame::SessionUpdated { session } => actions.push(Action::Session(session)),
            ServerFrame::Ping { at } => {
                // What changed before was told before.
                self.sessions = self.sessions.map(|since| since.max(at));
                actions.push(Action::ServerTime(at));
                actions.push(Action::Send(ClientFrame::Pong(at)));
            }
            ServerFrame::Error { run_id, code, detail } => {
                // A subscription that ended with an error is not asked for again: that would be a loop.
                if let Some(followed) = run_id.as_ref().and_then(|run| self.runs.get_mut(run)) {
                    followed.ended = true;
                }
                actions.push(report(run_id, &code, detail));
            }
        }
    }

    fn taken_in(&mut self, run: &RunId, seq: u64, now: i64, actions: &mut Vec<Action>) {
        let is_open = self.is_open();
        if let Some(followed) = self.runs.get_mut(run) {
            followed.seq = seq;
            followed.asked = None;
            // After a reset the run may begin again at an earlier op.
            followed.acknowledged.0 = followed.acknowledged.0.min(seq);
            if is_open {
                acknowledge(run, followed, now, actions);
            }
        }
    }

    fn missing(&mut self, run: &RunId, what: Resync, now: i64, actions: &mut Vec<Action>) {
        let is_open = self.is_open();
        let Some(followed) = self.runs.get_mut(run) else {
            return;
        };
        // What is on its way is not asked for again with every frame that cannot be used without it.
        if !is_open || followed.ended || followed.asked.is_some_and(|asked| now - asked < APART) {
            return;
        }
        followed.asked = Some(now);
        actions.push(Action::Send(ClientFrame::Unsubscribe(Subject::Run {
            run: run.clone(),
            after: 0,
            window: None,
        })));
        match what {
            Resync::Ops => {
                let subject = subject(run.clone(), followed.seq);
                actions.push(Action::Send(ClientFrame::Subscribe(subject)));
            }
            Resync::Whole => actions.push(Action::Fetch(run.clone())),
        }
    }
}

/// A run from after an op, of which the page shows a window.
/// The topic, with what changed since a time; clocks of servers may differ, and a session's own time runs behind.
fn sessions(since: Option<Timestamp>) -> Subject {
    Subject::Topic {
        topic: Topic::Sessions,
        since: since.map(|since| since - MARGIN),
    }
}

fn subject(run: RunId, after: u64) -> Subject {
    Subject::Run {
        run,
        after,
        window: Some(super::port::WINDOW),
    }
}

fn acknowledge(run: &RunId, followed: &mut Followed, now: i64, actions: &mut Vec<Action>) {
    let (seq, at) = followed.acknowledged;
    if followed.seq > seq && now - at >= APART {
        followed.acknowledged = (followed.seq, now);
        actions.push(Action::Send(ClientFrame::Ack {
            run: run.clone(),
            seq: followed.seq,
        }));
    }
}

fn other_version(run: &RunId, followed: &mut Followed, version: u32, actions: &mut Vec<Action>) {
    followed.ended = true;
    let detail = format!(
        "The server speaks version {version} of the protocol, this page version {SCHEMA_VERSION}. Reload the page."
    );
    actions.push(report(Some(run.clone()), "schema_version", detail));
}

fn report(run: Option<RunId>, code: &str, detail: String) -> Action {
    Action::Report(Problem {
        run,
        code: code.to_owned(),
        detail,
    })
}

#[cfg(test)]
mod tests;
