//! Which items of the list are in the page: those near what is seen.

use std::ops::Range;

/// So many items the server renders. Without script the others are reached through the content.
const RENDERED: usize = 120;

/// So many items before and after what is seen are in the page too.
const BESIDE: usize = 12;

/// The window moves by so many items, so that it does not change with each step of the wheel.
const STEP: usize = 8;

/// What is known of what is seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum View {
    /// Nothing yet: so many items from a place on, as the server renders them.
    Rendered { first: usize },
    /// A part of the scrolled height, all in CSS pixels.
    #[cfg_attr(
        not(any(feature = "hydrate", test)),
        expect(dead_code, reason = "only the browser sees")
    )]
    Seen { top: f64, height: f64, item: f64 },
}

impl View {
    /// As the server renders it, with the item at a place among what is there.
    pub(super) fn rendered_at(place: Option<usize>) -> Self {
        let place = place.filter(|place| *place >= RENDERED);
        Self::Rendered {
            first: place.map_or(0, |place| place.saturating_sub(RENDERED / 2)),
        }
    }

    /// Which of `count` items are in the page.
    pub(super) fn range(self, count: usize) -> Range<usize> {
        let (first, end) = match self {
            Self::Rendered { first } => (first, first + RENDERED),
            Self::Seen { top, height, item } => {
                let item = item.max(1.0);
                let first = (top / item).max(0.0) as usize;
                let end = ((top + height) / item).max(0.0) as usize + 1;
                (
                    first.saturating_sub(BESIDE) / STEP * STEP,
                    (end + BESIDE).next_multiple_of(STEP),
                )
            }
        };
        let end = end.min(count);
        first.min(end)..end
    }

    /// The height of so many items, once that is known.
    pub(super) fn height_of(self, items: usize) -> Option<f64> {
        match self {
            Self::Rendered { .. } => None,
            Self::Seen { item, .. } => Some(items as f64 * item),
        }
    }

    /// Where to scroll so that the item at a place is seen; nowhere, where it is.
    #[cfg_attr(
        not(any(feature = "hydrate", test)),
        expect(dead_code, reason = "only the browser scrolls")
    )]
    pub(super) fn scroll_to(self, place: usize) -> Option<f64> {
        let Self::Seen { top, height, item } = self else {
            return None;
        };
        let (start, end) = (place as f64 * item, (place + 1) as f64 * item);
        if start < top {
            Some(start)
        } else if end > top + height {
            Some((end - height).max(0.0))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: View = View::Seen {
        top: 26_000.0,
        height: 780.0,
        item: 26.0,
    };

    #[test]
    fn what_is_seen_is_in_the_page_and_little_besides() {
        let range = SEEN.range(5_000);
        assert!(range.start <= 1_000 && range.end >= 1_030, "{range:?}");
        assert!(range.len() <= 30 + 2 * BESIDE + 2 * STEP, "{range:?}");
    }

    #[test]
    fn the_window_ends_with_the_list_however_far_it_was_scrolled() {
        assert_eq!(SEEN.range(1_010).end, 1_010);
        assert_eq!(SEEN.range(10), 10..10);
        assert_eq!(SEEN.range(0), 0..0);
        assert_eq!(View::Rendered { first: 0 }.range(7), 0..7);
    }

    #[test]
    fn a_small_step_of_the_wheel_changes_nothing() {
        let moved = View::Seen {
            top: 26_026.0,
            height: 780.0,
            item: 26.0,
        };
        assert_eq!(SEEN.range(5_000), moved.range(5_000));
    }

    #[test]
    fn the_server_renders_the_beginning_or_what_the_link_leads_to() {
        assert_eq!(View::rendered_at(None).range(5_000), 0..RENDERED);
        assert_eq!(View::rendered_at(Some(RENDERED - 1)).range(5_000), 0..RENDERED);
        assert!(View::rendered_at(Some(4_000)).range(5_000).contains(&4_000));
    }

    #[test]
    fn only_what_is_out_of_sight_is_scrolled_to_and_only_as_far_as_needed() {
        assert_eq!(SEEN.scroll_to(1_000), None);
        assert_eq!(SEEN.scroll_to(1_029), None);
        assert_eq!(SEEN.scroll_to(999), Some(25_974.0));
        assert_eq!(SEEN.scroll_to(1_030), Some(26_026.0));
    }
}
