//! A state that is told as ops again is the same state.

use proptest::prelude::*;
use protocol::digest::digest;
use protocol::fold::{Applied, RunState};
use protocol::op::Entry;

use crate::history;
use crate::support::{config, seen_without_seq};

/// What the ops of a state lead to.
fn told(state: &RunState) -> RunState {
    let mut told = RunState::new(state.run().run_id.clone(), state.run().session_id.clone());
    for ((at, op), seq) in state.retold().into_iter().zip(1..) {
        let entry = Entry {
            run_id: state.run().run_id.clone(),
            generation: state.generation(),
            seq,
            at,
            op,
        };
        let applied = told.apply(&entry).unwrap();
        assert!(matches!(applied, Applied::Changed(_)), "{entry:?}: {applied:?}");
    }
    told
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_state_told_as_ops_again_has_its_digest(history in history::any()) {
        let state = history.straight();
        let again = told(&state);
        prop_assert_eq!(digest(&again), digest(&state));
        // Once times are in order, telling it again changes nothing.
        prop_assert_eq!(seen_without_seq(&told(&again)), seen_without_seq(&again));
    }
}
