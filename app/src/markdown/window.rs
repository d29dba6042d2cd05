//! Which parts of a long text are in the page: those near what is seen, and as many more as a page can hold.

use std::ops::Range;

/// A text is drawn with about so many elements, unless more are near what is seen.
pub const MOST: usize = 1_500;

/// When there are more, so many stay.
const USUAL: usize = 1_000;

/// What is so many views before or after what is seen comes into the page. The observer's margin says the same.
pub(super) const NEAR: f64 = 1.0;

/// What is nearer than so many views is never taken out.
const FAR: f64 = 1.5;

/// Where a part stands, in CSS pixels from the top of what is seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Place {
    /// How far it is from what is seen.
    fn distance(self, view: f64) -> f64 {
        (-self.bottom).max(self.top - view).max(0.0)
    }
}

/// The parts that shall be in the page, where some are `shown` now. `view` is the height of what is seen; what is
/// `pinned` is not taken out.
pub(super) fn choose(
    shown: Range<usize>,
    places: &[Place],
    elements: &[usize],
    view: f64,
    pinned: impl Fn(usize) -> bool,
) -> Range<usize> {
    let first = places.partition_point(|place| place.bottom <= -NEAR * view);
    let end = places.partition_point(|place| place.top < (1.0 + NEAR) * view);
    let mut chosen = if first >= end {
        shown
    } else if first <= shown.end && shown.start <= end {
        first.min(shown.start)..end.max(shown.end)
    } else {
        first..end
    };
    let sum = |range: Range<usize>| elements.get(range).unwrap_or_default().iter().sum::<usize>();
    let mut total = sum(chosen.clone());
    if total <= MOST {
        return chosen;
    }
    // What is furthest away goes first.
    while total > USUAL && !chosen.is_empty() {
        let [start, last] = [chosen.start, chosen.end - 1];
        let far = |index: usize| {
            let distance = places.get(index).map_or(0.0, |place| place.distance(view));
            if pinned(index) { 0.0 } else { distance }
        };
        let index = if far(start) >= far(last) { start } else { last };
        if far(index) <= FAR * view {
            break;
        }
        total -= sum(index..index + 1);
        if index == start {
            chosen.start += 1;
        } else {
            chosen.end -= 1;
        }
    }
    chosen
}
