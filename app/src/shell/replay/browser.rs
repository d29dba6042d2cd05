//! Going to an op, and playing on from it.

use std::collections::VecDeque;
use std::time::Duration;

use leptos::prelude::*;
use protocol::fold::RunState;
use protocol::frame::OpsFrame;
use protocol::op::Entry;

use super::{Player, moment_of};
use crate::data::api;
use crate::data::run_store::{RunStore, Taken};

/// Milliseconds between two steps of the player.
const STEP: u64 = 50;

/// A pause of the run that is longer is played as so many milliseconds.
const LONGEST_PAUSE: i64 = 1_500;

/// Ops that are fetched at once.
const OPS: u32 = 500;

/// What was fetched of the ops to come, and where the run's time stands.
#[derive(Default)]
struct Ahead {
    entries: VecDeque<Entry>,
    now: i64,
    is_asked: bool,
    /// The op that the reader went to while another one was fetched.
    wanted: Option<u64>,
}

thread_local! {
    static AHEAD: std::cell::RefCell<Ahead> = std::cell::RefCell::default();
}

fn ahead<T>(act: impl FnOnce(&mut Ahead) -> T) -> T {
    AHEAD.with_borrow_mut(act)
}

/// Steps as long as the bar is there.
pub(super) fn start(player: Player) {
    ahead(|ahead| *ahead = Ahead::default());
    crate::ui::dynamic::effect(move || {
        if !player.is_playing.get() {
            return;
        }
        let ticking = set_interval_with_handle(move || player.step(), Duration::from_millis(STEP));
        on_cleanup(move || {
            if let Ok(ticking) = ticking {
                ticking.clear();
            }
        });
    });
}

impl Player {
    /// Shows the run as it was at an op.
    pub(super) fn go(self, seq: u64) {
        let seq = seq.min(self.last);
        self.seq.set(seq);
        self.is_playing.set(false);
        let is_busy = ahead(|ahead| {
            ahead.entries.clear();
            ahead.wanted.replace(seq).is_some()
        });
        if is_busy {
            return;
        }
        let run = self.run.get_value();
        leptos::task::spawn_local(async move {
            while let Some(seq) = ahead(|ahead| ahead.wanted) {
                let answer = api::moment(run.run_id(), seq).await;
                match answer {
                    Ok(snapshot) => {
                        let _ = self.failed.try_set(None);
                        run.replace(snapshot, true);
                        self.stand(&run);
                    }
                    Err(problem) => drop(self.failed.try_set(Some(problem.detail))),
                }
                ahead(|ahead| {
                    if ahead.wanted == Some(seq) {
                        ahead.wanted = None;
                    }
                });
            }
        });
    }

    /// The page's time is that of what is shown.
    fn stand(self, run: &RunStore) {
        let at = run.peek(moment_of);
        ahead(|ahead| ahead.now = at);
        self.clock.stand_at(at);
    }

    pub(super) fn drag(self, event: &leptos::ev::Event) {
        if let Ok(seq) = event_target_value(event).parse() {
            self.go(seq);
        }
    }

    pub(super) fn choose(self, event: &leptos::ev::Event) {
        if let Ok(speed) = event_target_value(event).parse() {
            self.speed.set(speed);
        }
    }

    /// Plays on, or stops. At the end it begins anew.
    pub(super) fn toggle(self) {
        let is_playing = self.is_playing.get_untracked();
        if !is_playing && self.seq.get_untracked() >= self.last {
            self.go(0);
        }
        if !is_playing {
            let run = self.run.get_value();
            self.stand(&run);
        }
        self.is_playing.set(!is_playing);
    }

    fn step(self) {
        let run = self.run.get_value();
        let known = run.peek(RunState::seq);
        if ahead(|ahead| ahead.wanted.is_some()) {
            return;
        }
        if known >= self.last {
            self.is_playing.set(false);
            return;
        }
        let speed = i64::from(self.speed.get_untracked());
        let due: Vec<Entry> = ahead(|ahead| {
            if ahead.now == 0 {
                ahead.now = ahead.entries.front().map_or(0, |entry| entry.at);
            }
            ahead.now += STEP as i64 * speed;
            if let Some(next) = ahead.entries.front() {
                ahead.now = ahead.now.max(next.at - LONGEST_PAUSE);
            }
            let count = ahead
                .entries
                .iter()
                .take_while(|entry| entry.at <= ahead.now)
                .count();
            ahead.entries.drain(..count).collect()
        });
        for entry in due {
            let at = entry.at;
            let seq = entry.seq;
            let frame = OpsFrame {
                schema_version: protocol::SCHEMA_VERSION,
                run_id: entry.run_id,
                generation: entry.generation,
                seq,
                at,
                ops: vec![entry.op],
            };
            if let Taken::Missing(_) | Taken::Refused(_) = run.take(frame) {
                self.go(seq);
                self.is_playing.set(true);
                return;
            }
            self.seq.set(seq);
            self.clock.stand_at(at);
        }
        if ahead(|ahead| ahead.entries.len() < OPS as usize / 2 && !ahead.is_asked) {
            self.fetch(run);
        }
    }

    fn fetch(self, run: RunStore) {
        let after = ahead(|ahead| {
            ahead.is_asked = true;
            ahead.entries.back().map(|entry| entry.seq)
        });
        let after = after.unwrap_or_else(|| run.peek(RunState::seq));
        leptos::task::spawn_local(async move {
            let answer = api::ops(run.run_id(), after, OPS).await;
            ahead(|ahead| ahead.is_asked = false);
            match answer {
                Ok(entries) => ahead(|ahead| {
                    let last = ahead.entries.back().map(|entry| entry.seq);
                    let follows = last.unwrap_or_else(|| run.peek(RunState::seq)) == after;
                    if follows {
                        ahead.entries.extend(entries);
                    }
                }),
                Err(problem) => {
                    let _ = self.failed.try_set(Some(problem.detail));
                    let _ = self.is_playing.try_set(false);
                }
            }
        });
    }
}
