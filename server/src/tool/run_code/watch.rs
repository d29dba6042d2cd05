//! Watches over a program: its limits, and whether it is to end. The engine asks again and again while it computes.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

use super::CodeLimits;
use super::gate::{Gate, Place};
use crate::tool::{ToolError, words};

/// How long a program computes before others get their turn.
const TURN: Duration = Duration::from_millis(100);

/// The state of one program, on its thread.
pub(super) struct Watch {
    limits: CodeLimits,
    gate: Gate,
    cancel: CancellationToken,
    runtime: Handle,
    /// Says since when it computes; none while it waits.
    alive: Sender<Option<tokio::time::Instant>>,
    began: Instant,
    place: RefCell<Option<(Place, Instant)>>,
    output: Cell<usize>,
    calls: Cell<u32>,
    /// Why it ends, once it has to. Nothing of it runs after that.
    end: RefCell<Option<ToolError>>,
}

impl Watch {
    pub(super) fn new(
        limits: CodeLimits,
        gate: Gate,
        cancel: CancellationToken,
        runtime: Handle,
        alive: Sender<Option<tokio::time::Instant>>,
    ) -> Self {
        Self {
            limits,
            gate,
            cancel,
            runtime,
            alive,
            began: Instant::now(),
            place: RefCell::new(None),
            output: Cell::new(0),
            calls: Cell::new(0),
            end: RefCell::new(None),
        }
    }

    pub(super) fn limits(&self) -> &CodeLimits {
        &self.limits
    }

    /// Ends the program; the first reason counts.
    pub(super) fn end(&self, why: ToolError) {
        self.end.borrow_mut().get_or_insert(why);
    }

    /// Why it ends, where it has to.
    pub(super) fn why(&self) -> Option<ToolError> {
        self.end.borrow().clone()
    }

    /// Waits for something that is not the program's; ends with it, or with the program.
    pub(super) fn wait<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        let left = self.limits.total.saturating_sub(self.began.elapsed());
        let waited = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(ToolError::cancelled()),
                () = tokio::time::sleep(left) => Err(took_too_long(&self.limits)),
                what = what => Ok(what),
            }
        });
        waited.map_err(|why| self.end(why)).ok()
    }

    /// The program begins to compute, as soon as it may.
    pub(super) fn begin_to_compute(&self) {
        if let Some(place) = self.wait(self.gate.enter()) {
            self.place.replace(Some((place, Instant::now())));
            self.alive.send_replace(Some(tokio::time::Instant::now()));
        }
    }

    /// It computes no more for a while.
    pub(super) fn leave_off(&self) {
        self.place.replace(None);
        self.alive.send_replace(None);
    }

    /// Whether it has to end. Asked again and again while it computes.
    pub(super) fn is_over(&self) -> bool {
        if self.end.borrow().is_some() {
            return true;
        }
        if self.cancel.is_cancelled() {
            self.end(ToolError::cancelled());
        } else if self.began.elapsed() > self.limits.total {
            self.end(took_too_long(&self.limits));
        } else if computed() > self.limits.compute {
            self.end(computed_too_long(&self.limits));
        } else {
            let turn = self.place.borrow().as_ref().map(|(_, since)| since.elapsed());
            if turn.is_some_and(|turn| turn > TURN) {
                self.leave_off();
                self.begin_to_compute();
            }
        }
        self.end.borrow().is_some()
    }

    /// Counts what it puts out; `false` when that is too much.
    pub(super) fn puts_out(&self, bytes: usize) -> bool {
        let output = self.output.get().saturating_add(bytes);
        self.output.set(output);
        if output > self.limits.output {
            self.end(ToolError::new(
                "limit_output",
                format!(
                    "The program put out more than {}, its limit.",
                    words::size(self.limits.output as u64)
                ),
            ));
        }
        self.end.borrow().is_none()
    }

    /// Counts a call; `false` when it is one too many.
    pub(super) fn calls(&self) -> bool {
        self.calls.set(self.calls.get().saturating_add(1));
        if self.calls.get() > self.limits.calls {
            self.end(ToolError::new(
                "limit_calls",
                format!(
                    "The program made more than {} calls, its limit.",
                    self.limits.calls
                ),
            ));
        }
        self.end.borrow().is_none()
    }
}

/// How long this thread has computed.
fn computed() -> Duration {
    // Without that clock the limit on the whole time is left.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn took_too_long(limits: &CodeLimits) -> ToolError {
    ToolError::new(
        "limit_time",
        format!(
            "The program took longer than {}, its limit.",
            seconds(limits.total)
        ),
    )
}

pub(super) fn computed_too_long(limits: &CodeLimits) -> ToolError {
    ToolError::new(
        "limit_compute",
        format!(
            "The program computed longer than {}, its limit; waiting does not count.",
            seconds(limits.compute)
        ),
    )
}

/// The memory of a program is used up.
pub(super) fn used_up(limits: &CodeLimits) -> ToolError {
    ToolError::new(
        "limit_memory",
        format!(
            "The program used more than {} of memory, its limit.",
            words::size(limits.memory as u64)
        ),
    )
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
