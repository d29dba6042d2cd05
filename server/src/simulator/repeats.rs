//! Rounds that are asked for again: how often, and what is done then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::scenario::Turn;
use super::wire::WireFormat;

/// A round: the wire format, the scenario, the prompt, and the number of answered rounds after it.
type Place = (WireFormat, String, String, usize);

/// How often each round with repeats was served.
#[derive(Debug, Default)]
pub(super) struct Repeats(Mutex<HashMap<Place, usize>>);

impl Repeats {
    /// What serves a round this time. A request that goes on from a broken text is never the first one, even if another
    /// simulator served that.
    pub(super) fn pick(&self, place: Place, turn: &Turn, goes_on: bool) -> Turn {
        if turn.again.is_empty() {
            return turn.clone();
        }
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = served.remove(&place).unwrap_or(0).max(usize::from(goes_on));
        if before < turn.again.len() {
            served.insert(place, before + 1);
        }
        let again = before.checked_sub(1).and_then(|index| turn.again.get(index));
        again.unwrap_or(turn).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::scenario::{Bare, Step};

    fn turn(steps: usize, again: Vec<Turn>) -> Turn {
        Turn {
            steps: vec![Step::Cut(Bare {}); steps],
            again,
        }
    }

    #[test]
    fn a_round_with_repeats_goes_through_them_and_begins_anew() {
        let repeats = Repeats::default();
        let place = |prompt: &str| (WireFormat::Anthropic, "x".to_owned(), prompt.to_owned(), 0);
        let round = turn(1, vec![turn(2, Vec::new()), turn(3, Vec::new())]);
        let steps = |prompt: &str, goes_on| repeats.pick(place(prompt), &round, goes_on).steps.len();
        assert_eq!([1, 2, 3, 1, 2], [(); 5].map(|()| steps("a", false)));
        assert_eq!(steps("b", false), 1, "another prompt is another round");
        assert_eq!(steps("c", true), 2, "what goes on is not the first time");
        let plain = turn(1, Vec::new());
        assert_eq!(repeats.pick(place("a"), &plain, true).steps.len(), 1);
    }
}
