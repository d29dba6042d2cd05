//! Generated histories: what execution may write for one run, with everything that can happen in it.
//!
//! A history is told from a tape of numbers, each a choice. A shorter tape or smaller numbers tell a simpler history,
//! so that a failing one shrinks to the least that still fails.

mod writer;

use proptest::prelude::*;
use protocol::fold::{Applied, RunState};
use protocol::op::Entry;

use crate::support::fresh;
use writer::Writer;

/// The journal of one run.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f)?;
        for entry in &self.entries {
            writeln!(f, "{} {}", entry.seq, serde_json::to_string(&entry.op).unwrap())?;
        }
        Ok(())
    }
}

impl History {
    /// The state after all of it, op by op; nothing that execution may write is refused.
    pub(crate) fn straight(&self) -> RunState {
        let mut state = fresh();
        for entry in &self.entries {
            match state.apply(entry) {
                Ok(Applied::Changed(_)) => {}
                other => panic!("seq {}: {other:?}", entry.seq),
            }
        }
        state
    }

    /// A subscription after `seq` gets these, at most `most`.
    pub(crate) fn after(&self, seq: u64, most: usize) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip(usize::try_from(seq).unwrap()).take(most)
    }
}

/// Choices, from which a history is told.
pub(super) struct Tape {
    numbers: std::vec::IntoIter<u32>,
}

impl Tape {
    /// One of `count` choices; the first when the tape is at its end.
    pub(super) fn pick(&mut self, count: usize) -> usize {
        self.numbers.next().unwrap_or(0) as usize % count.max(1)
    }

    pub(super) fn ended(&self) -> bool {
        self.numbers.as_slice().is_empty()
    }
}

fn tape() -> impl Strategy<Value = Tape> {
    proptest::collection::vec(0u32..10_000, 0..200).prop_map(|numbers| Tape {
        numbers: numbers.into_iter(),
    })
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("tape")
    }
}

/// Histories that stop anywhere: things are open, nodes are announced by updates only.
pub(crate) fn unfinished() -> impl Strategy<Value = History> {
    tape().prop_map(|tape| History {
        entries: Writer::new(tape).write(false),
    })
}

/// Histories of runs that ended: everything is closed, in any order.
pub(crate) fn finished() -> impl Strategy<Value = History> {
    tape().prop_map(|tape| History {
        entries: Writer::new(tape).write(true),
    })
}

/// Either.
pub(crate) fn any() -> impl Strategy<Value = History> {
    prop_oneof![unfinished(), finished()]
}

proptest! {
    #![proptest_config(crate::support::config())]

    #[test]
    fn a_generated_history_is_valid_and_a_finished_one_leaves_nothing_open(history in finished()) {
        let state = history.straight();
        prop_assert!(state.run().status.is_final());
        prop_assert!(state.nodes().iter().all(|node| node.state.end().is_some()));
        prop_assert!(state.attempts().iter().all(|attempt| attempt.state.end().is_some()));
        prop_assert!(state.blocks().iter().all(|block| block.state.status().is_final()));
        prop_assert!(state.to_snapshot().held.is_empty());
    }
}

/// A generator that never made something would hold no rule about it.
#[test]
fn generated_histories_hold_everything_that_can_happen() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(crate::support::config());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let history = any().new_tree(&mut runner).unwrap().current();
        let mut state = fresh();
        for entry in &history.entries {
            seen.insert(crate::ops::name(&entry.op).to_owned());
            let held = state.to_snapshot().held.len();
            state.apply(entry).unwrap();
            if state.to_snapshot().held.len() > held {
                seen.insert("held".to_owned());
            }
        }
        seen.extend(
            state
                .blocks()
                .iter()
                .map(|block| format!("block {}", block.body.kind())),
        );
        seen.extend(state.nodes().iter().map(|node| format!("node {}", node.kind)));
        seen.extend(
            state
                .attempts()
                .iter()
                .map(|attempt| format!("reason {}", attempt.reason)),
        );
        seen.extend(
            state
                .attempts()
                .iter()
                .map(|attempt| format!("attempt {}", attempt.state.status())),
        );
        let text = serde_json::to_string(&state.to_snapshot()).unwrap();
        for (what, word) in [
            ("nul", "\\u0000"),
            ("multi-byte", "🦀"),
            ("unknown field", "x_new"),
            ("group", "group_id"),
        ] {
            if text.contains(word) {
                seen.insert(what.to_owned());
            }
        }
        if state.generation() > 1 {
            seen.insert("take-over".to_owned());
        }
    }
    let mut wanted: Vec<String> = crate::ops::NAMES.iter().map(|name| (*name).to_owned()).collect();
    wanted.extend(
        [
            "unknown",
            "held",
            "nul",
            "multi-byte",
            "unknown field",
            "group",
            "take-over",
            "block text",
            "block reasoning",
            "block tool_ref",
            "block parallel_group",
            "block refusal",
            "block unsupported",
            "node root",
            "node phase",
            "node model",
            "node function",
            "node code",
            "reason initial",
            "reason stall_retry",
            "reason error_retry",
            "reason provider_rotation",
            "reason output_repair",
            "reason resume",
            "reason regenerate",
            "attempt completed",
            "attempt stalled",
            "attempt superseded",
            "attempt partial",
        ]
        .map(str::to_owned),
    );
    let missing: Vec<&String> = wanted.iter().filter(|what| !seen.contains(*what)).collect();
    assert!(missing.is_empty(), "never made: {missing:?}");
}
