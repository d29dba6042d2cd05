//! The browser's part: a thread-local shell around the state machine. There is one page and so one connection.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use protocol::api::SessionSummary;
use protocol::frame::ServerFrame;
use protocol::id::RunId;
use protocol::model::Timestamp;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{MessageEvent, WebSocket};

use super::Live;
use crate::data::api;
use crate::data::connection::{Action, Connection, ConnectionState, Input, Problem, UNREACHABLE};
use crate::data::port::WINDOW;
use crate::data::run_store::{RunStore, Taken};

thread_local! {
    static SHELL: RefCell<Option<Shell>> = const { RefCell::new(None) };
}

type Heard = Rc<dyn Fn(SessionSummary)>;

struct Shell {
    live: Live,
    connection: Connection,
    socket: Option<Socket>,
    runs: HashMap<RunId, RunStore>,
    listeners: Vec<(u64, Heard)>,
    next_listener: u64,
    timer: Option<TimeoutHandle>,
}

/// A socket with its handlers, which live as long as it does.
struct Socket {
    socket: WebSocket,
    _handlers: [Closure<dyn FnMut(MessageEvent)>; 1],
    _plain: [Closure<dyn FnMut()>; 2],
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        let _ = self.socket.close();
    }
}

fn now() -> i64 {
    js_sys::Date::now() as i64
}

/// Sets up the shell and listens to the browser's own signs of life.
pub(super) fn begin(live: Live) {
    SHELL.with_borrow_mut(|shell| {
        *shell = Some(Shell {
            live,
            connection: Connection::default(),
            socket: None,
            runs: HashMap::new(),
            listeners: Vec::new(),
            next_listener: 0,
            timer: None,
        });
    });
    let listeners = [
        window_event_listener_untyped("online", |_| feed(Input::Awake)),
        window_event_listener_untyped("offline", |_| feed(Input::Offline)),
        window_event_listener_untyped("pageshow", |_| feed(Input::Awake)),
    ];
    let seen = Closure::<dyn FnMut()>::new(|| {
        if document().hidden() {
            return;
        }
        // What came while nobody looked is drawn at once.
        let runs: Vec<RunStore> = with(|shell| shell.runs.values().cloned().collect()).unwrap_or_default();
        runs.iter().for_each(RunStore::flush);
        feed(Input::Awake);
    });
    let callback = seen.as_ref().unchecked_ref();
    let _ = document().add_event_listener_with_callback("visibilitychange", callback);
    // The page's own life is theirs.
    seen.forget();
    std::mem::forget(listeners);
}

fn with<T>(act: impl FnOnce(&mut Shell) -> T) -> Option<T> {
    SHELL.with_borrow_mut(|shell| shell.as_mut().map(act))
}

pub(super) fn follow(run: &RunStore) {
    let id = run.run_id().clone();
    let seq = run.peek(protocol::fold::RunState::seq);
    let _ = with(|shell| shell.runs.insert(id.clone(), run.clone()));
    // After hydration: what only the browser knows comes when both trees are equal.
    let followed = id.clone();
    queue_microtask(move || {
        if with(|shell| shell.runs.contains_key(&followed)) == Some(true) {
            feed(Input::Follow(followed, seq));
        }
    });
    let run = run.clone();
    Owner::on_cleanup(move || {
        let is_ours = with(|shell| {
            let is_ours = shell.runs.get(&id) == Some(&run);
            if is_ours {
                shell.runs.remove(&id);
            }
            is_ours
        });
        if is_ours == Some(true) {
            feed(Input::Unfollow(id));
        }
    });
}

pub(super) fn follow_sessions(since: Timestamp, heard: impl Fn(SessionSummary) + 'static) {
    let Some(number) = with(|shell| {
        shell.next_listener += 1;
        shell.listeners.push((shell.next_listener, Rc::new(heard)));
        shell.next_listener
    }) else {
        return;
    };
    queue_microtask(move || {
        if with(|shell| !shell.listeners.is_empty()) == Some(true) {
            feed(Input::FollowSessions(Some(since)));
        }
    });
    Owner::on_cleanup(move || {
        let is_last = with(|shell| {
            shell.listeners.retain(|(known, _)| *known != number);
            shell.listeners.is_empty()
        });
        if is_last == Some(true) {
            feed(Input::FollowSessions(None));
        }
    });
}

/// Gives an input to the state machine, does what follows, and sets the alarm for what is due next.
fn feed(input: Input) {
    let Some(actions) = with(|shell| shell.connection.handle(input, now(), js_sys::Math::random())) else {
        return;
    };
    for action in actions {
        act(action);
    }
    let _ = with(|shell| {
        if let Some(timer) = shell.timer.take() {
            timer.clear();
        }
        if let Some(at) = shell.connection.wake_at() {
            let wait = Duration::from_millis(u64::try_from(at - now()).unwrap_or(0));
            shell.timer = set_timeout_with_handle(|| feed(Input::Time), wait).ok();
        }
    });
}

fn store(run: &RunId) -> Option<RunStore> {
    with(|shell| shell.runs.get(run).cloned()).flatten()
}

/// Never borrows the shell while it calls into stores, listeners or itself.
fn act(action: Action) {
    match action {
        Action::Open => open(),
        Action::Close => drop(with(|shell| shell.socket.take())),
        Action::Send(frame) => {
            let sent = serde_json::to_string(&frame).ok().and_then(|text| {
                with(|shell| {
                    shell
                        .socket
                        .as_ref()
                        .map(|socket| socket.socket.send_with_str(&text).is_ok())
                })
            });
            if sent.flatten() == Some(false) {
                // Not within the socket's own handler, which goes with it.
                queue_microtask(|| {
                    let _ = with(|shell| shell.socket.take());
                    feed(Input::Closed);
                });
            }
        }
        Action::Take(frame) => {
            let id = frame.run_id.clone();
            let Some(store) = store(&id) else { return };
            feed(match store.take(frame) {
                Taken::Up(seq) => Input::TakenIn(id, seq),
                Taken::Missing(what) => Input::Missing(id, what),
                Taken::Refused(detail) => {
                    return act(Action::Report(Problem {
                        run: Some(id),
                        code: "protocol".to_owned(),
                        detail: format!("The server sent what does not fit: {detail}."),
                    }));
                }
            });
        }
        Action::Replace(snapshot, reset) => {
            let id = snapshot.run.run_id.clone();
            if let Some(store) = store(&id) {
                let seq = store.replace(*snapshot, reset);
                feed(Input::TakenIn(id, seq));
            }
        }
        Action::Stream(stream) => {
            if let Some(store) = store(&stream.run_id) {
                store.set_stream(stream);
            }
        }
        Action::Session(session) => {
            let listeners: Vec<Heard> = with(|shell| {
                shell
                    .listeners
                    .iter()
                    .map(|(_, heard)| Rc::clone(heard))
                    .collect()
            })
            .unwrap_or_default();
            for heard in listeners {
                heard((*session).clone());
            }
        }
        Action::Fetch(run) => leptos::task::spawn_local(async move {
            let fetched = api::window(&run, WINDOW).await;
            let Some(store) = store(&run) else { return };
            match fetched {
                Ok(snapshot) => {
                    let seq = store.replace(snapshot, true);
                    feed(Input::Follow(run, seq));
                }
                Err(problem) => act(Action::Report(Problem {
                    run: Some(run),
                    code: problem.code,
                    detail: problem.detail,
                })),
            }
        }),
        Action::ServerTime(at) => {
            if let Some(live) = with(|shell| shell.live) {
                live.clock.set_right(at);
            }
        }
        Action::Report(problem) => {
            if let Some(live) = with(|shell| shell.live) {
                live.report(problem);
            }
        }
        Action::Show(state) => {
            if let Some(live) = with(|shell| shell.live) {
                live.state.set(state);
                let is_over = |problem: &Problem| problem.code == UNREACHABLE;
                if state == ConnectionState::Live
                    && live
                        .problems
                        .with_untracked(|problems| problems.iter().any(is_over))
                {
                    live.problems
                        .update(|problems| problems.retain(|problem| !is_over(problem)));
                }
            }
        }
    }
}

fn open() {
    let scheme = if location().protocol().as_deref() == Ok("https:") {
        "wss"
    } else {
        "ws"
    };
    let host = location().host().unwrap_or_default();
    let Ok(socket) = WebSocket::new(&format!("{scheme}://{host}/api/stream")) else {
        // Not within this call: the state machine is told afterwards.
        return queue_microtask(|| feed(Input::Closed));
    };
    let on_open = Closure::<dyn FnMut()>::new(|| feed(Input::Opened));
    let on_close = Closure::<dyn FnMut()>::new(|| {
        // Handlers may not be dropped while they run.
        queue_microtask(|| {
            let _ = with(|shell| shell.socket.take());
            feed(Input::Closed);
        });
    });
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let Some(text) = event.data().as_string() else {
            return;
        };
        feed(match protocol::from_json::<ServerFrame>(&text) {
            Ok(frame) => Input::Frame(Box::new(frame)),
            Err(error) => Input::Unreadable(format!("A frame of the stream cannot be read: {error}")),
        });
    });
    socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
    socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
    socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    let socket = Socket {
        socket,
        _handlers: [on_message],
        _plain: [on_open, on_close],
    };
    let _ = with(|shell| shell.socket.replace(socket));
}
