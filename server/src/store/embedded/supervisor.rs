//! The thread that starts PostgreSQL, watches it, and starts it again when it dies.
//!
//! It is one thread for the whole life of the database, because Linux sends a child its parent-death signal when the
//! *thread* that made it ends, and threads of an async runtime come and go.

use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::sync::{oneshot, watch};

use super::EmbeddedOptions;
use super::error::EmbeddedError;
use super::leftover::{self, PidFile, WAYS_TO_END};
use super::plan::Plan;
use crate::provider::Secret;
use crate::store::data_dir::DataDirLock;

const POLL: Duration = Duration::from_millis(15);
/// How often the first start is tried: what an earlier process left may go away by itself.
const FIRST_START_TRIES: u32 = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A PostgreSQL that ran this long was well: its death is not counted with earlier ones.
const LONG_RUN: Duration = Duration::from_secs(60);
/// A start that takes longer is spoken of: it may be repairing a large database.
const LONG_START: Duration = Duration::from_secs(10);
const LOG_TAIL: usize = 4000;

/// How to reach the database.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) socket_folder: PathBuf,
    pub(super) password: Secret,
}

/// The handle of the thread. Dropping it stops PostgreSQL without waiting for it.
#[derive(Debug)]
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    /// How often PostgreSQL came up; closed when the thread has ended.
    starts: watch::Receiver<u32>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The process, while it is certain that the number is its own.
    process: Option<Pid>,
    stopping: bool,
}

impl Supervisor {
    /// Starts the thread. What it sends first is how to reach the running database, or why there is none.
    pub(super) fn spawn(
        lock: DataDirLock,
        options: EmbeddedOptions,
    ) -> Result<(Self, oneshot::Receiver<Result<Access, EmbeddedError>>), EmbeddedError> {
        let shared = Arc::new(Shared::default());
        let (ready, access) = oneshot::channel();
        let (starts_sender, starts) = watch::channel(0);
        let path = lock.data_dir().path().to_path_buf();
        let thread_shared = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || {
                supervise(&lock, &options, &thread_shared, ready, &starts_sender);
                // The folder is free only when nothing uses it any more.
                drop(lock);
                drop(starts_sender);
            })
            .map_err(EmbeddedError::io("start the thread of the database in", path))?;
        Ok((Self { shared, starts }, access))
    }

    /// How often PostgreSQL came up.
    #[cfg(test)]
    pub(super) fn starts(&self) -> watch::Receiver<u32> {
        self.starts.clone()
    }

    /// Ends PostgreSQL, ever more firmly, and returns when it has ended.
    pub(super) async fn stop(mut self) {
        for (signal, patience) in WAYS_TO_END {
            self.shared.stop(signal);
            let ended = async { while self.starts.changed().await.is_ok() {} };
            if tokio::time::timeout(patience, ended).await.is_ok() {
                return;
            }
            tracing::warn!(
                "PostgreSQL has not ended after {signal} within {} s",
                patience.as_secs()
            );
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shared.stop(Signal::SIGINT);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, signal: Signal) {
        let mut state = self.state();
        state.stopping = true;
        send(state.process, signal);
        drop(state);
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    /// Sets the running process. One that comes up after the request to stop is told so at once.
    fn set_process(&self, process: Option<Pid>) {
        let mut state = self.state();
        state.process = process;
        if state.stopping {
            send(process, Signal::SIGINT);
        }
    }

    /// Waits, but not longer than until the request to stop.
    fn pause(&self, time: Duration) {
        let state = self.state();
        let waited = self
            .changed
            .wait_timeout_while(state, time, |state| !state.stopping);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

fn send(process: Option<Pid>, signal: Signal) {
    if let Some(process) = process
        && let Err(error) = kill(process, signal)
        && error != Errno::ESRCH
    {
        tracing::warn!(
            postgres.pid = process.as_raw(),
            "cannot send {signal} to PostgreSQL: {error}"
        );
    }
}

fn supervise(
    lock: &DataDirLock,
    options: &EmbeddedOptions,
    shared: &Shared,
    ready: oneshot::Sender<Result<Access, EmbeddedError>>,
    starts: &watch::Sender<u32>,
) {
    let plan = match Plan::make(lock, options) {
        Ok(plan) => plan,
        Err(error) => {
            // Nobody waits any more: the start was given up.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let mut ready = Some(ready);
    let mut pause = SHORTEST_PAUSE;
    let mut tries = 0;
    loop {
        let start = Instant::now();
        let result = plan.run(shared, || {
            starts.send_modify(|starts| *starts += 1);
            let access = Access {
                socket_folder: plan.socket_folder.clone(),
                password: plan.password.clone(),
            };
            if ready.take().is_some_and(|ready| ready.send(Ok(access)).is_err()) {
                shared.stop(Signal::SIGINT);
            }
        });
        if shared.is_stopping() {
            if let Some(ready) = ready {
                let _ = ready.send(Err(EmbeddedError::Stopped));
            }
            break;
        }
        tries += 1;
        let message = match result {
            Ok(status) => format!("PostgreSQL ended unexpectedly ({status})"),
            Err(error) => {
                let is_final = tries == FIRST_START_TRIES || !matches!(error, EmbeddedError::Start { .. });
                if is_final && let Some(ready) = ready.take() {
                    let _ = ready.send(Err(error));
                    break;
                }
                error.to_string()
            }
        };
        if start.elapsed() > LONG_RUN {
            pause = SHORTEST_PAUSE;
        }
        tracing::error!("{message}\nstarting it again in {} ms", pause.as_millis());
        shared.pause(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    if plan.layout.is_outside(&plan.socket_folder) {
        // Fails when something else lies in it, which is then not ours to remove.
        let _ = std::fs::remove_dir(&plan.socket_folder);
    }
}

impl Plan {
    /// Starts PostgreSQL, calls `on_ready` when it answers, and returns when it has ended.
    fn run(&self, shared: &Shared, on_ready: impl FnOnce()) -> Result<String, EmbeddedError> {
        leftover::clear(&self.layout.data, &self.socket_folder)?;
        let log = self.layout.open_log()?;
        let log_start = log.metadata().map_or(0, |metadata| metadata.len());
        let output = log
            .try_clone()
            .map_err(EmbeddedError::io("open", &self.layout.log))?;
        let mut command = self.command();
        command.stdout(output).stderr(log);
        let mut child = command.spawn().map_err(|error| {
            self.run_as
                .explain(&self.programs.postgres, &self.layout.folder, error)
        })?;
        // A process number always fits.
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        shared.set_process(Some(process));
        let is_ready = self.wait_until_ready(process, &mut child);
        if is_ready {
            tracing::info!(
                postgres.pid = process.as_raw(),
                postgres.version = self.programs.major,
                "PostgreSQL is ready"
            );
            on_ready();
            wait_for_end(process);
        }
        // Until it is reaped, its number cannot become another's; after that it must not be signalled.
        shared.set_process(None);
        let status = child
            .wait()
            .map_err(EmbeddedError::io("wait for", &self.programs.postgres))?
            .to_string();
        if is_ready {
            return Ok(status);
        }
        let output = self.log_since(log_start);
        Err(EmbeddedError::Start {
            status,
            log: self.layout.log.clone(),
            output,
        })
    }

    /// Whether it answers; false when it ended instead. A start may take long: it repairs what a crash left.
    fn wait_until_ready(&self, process: Pid, child: &mut Child) -> bool {
        let start = Instant::now();
        let mut spoken = false;
        loop {
            let is_ready =
                PidFile::read(&self.layout.data).is_some_and(|file| file.pid == process && file.is_ready);
            if is_ready {
                return true;
            }
            if has_ended(process) {
                return false;
            }
            if !spoken && start.elapsed() > LONG_START {
                spoken = true;
                tracing::info!(
                    postgres.pid = child.id(),
                    "PostgreSQL is still starting, see {}",
                    self.layout.log.display()
                );
            }
            std::thread::sleep(POLL);
        }
    }

    fn log_since(&self, start: u64) -> String {
        let bytes = std::fs::read(&self.layout.log).unwrap_or_default();
        let new = usize::try_from(start)
            .ok()
            .and_then(|start| bytes.get(start..))
            .unwrap_or_default();
        let text = String::from_utf8_lossy(new);
        let text = text.trim_end();
        let cut = text.len().saturating_sub(LOG_TAIL);
        let from = text.get(cut..).map_or(0, |_| cut);
        text.get(from..).unwrap_or_default().to_owned()
    }
}

/// Waits for the end of a child and leaves it unreaped.
fn wait_for_end(process: Pid) {
    while waitid(Id::Pid(process), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
}

fn has_ended(process: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    !matches!(
        waitid(Id::Pid(process), flags),
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR)
    )
}
