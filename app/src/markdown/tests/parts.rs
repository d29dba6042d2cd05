//! The parts of a text, and which of them are in the page.

use std::ops::Range;

use super::corpus::TEXTS;
use crate::markdown::StreamingMarkdown;
use crate::markdown::parts::{Part, Parts};
use crate::markdown::window::{MOST, Place, choose};

#[test]
fn full_parts_never_change_while_the_text_grows() {
    let text = ["# A\n\nb **c**\n\n- d\n- e\n\n".repeat(30), TEXTS.join("\n\n")].concat();
    let mut streaming = StreamingMarkdown::new("p");
    let mut parts = Parts::default();
    for (at, character) in text.char_indices() {
        streaming.push(&text[at..at + character.len_utf8()]);
        let full: Vec<Part> = parts.all()[..parts.full()].to_vec();
        parts.grow(streaming.pieces());
        assert_eq!(parts.all()[..full.len()], full);
    }
    streaming.finish();
    parts.grow(streaming.pieces());
    assert!(parts.full() > 3);
    assert_eq!(parts.all(), Parts::of(streaming.pieces()).all());
    let mut end = 0;
    for part in parts.all() {
        assert_eq!(part.pieces.start, end);
        end = part.pieces.end;
    }
    assert_eq!(end, streaming.pieces().len());
}

#[test]
fn a_part_knows_how_many_elements_it_is_drawn_with() {
    let mut streaming = StreamingMarkdown::new("p");
    streaming.push("a **b** &lt;i>\n\n- c\n\n  d\n\n---\n");
    streaming.finish();
    // The part and three pieces; p and strong; ul, li and two p in it; hr.
    assert_eq!(Parts::of(streaming.pieces()).all()[0].elements, 4 + 2 + 4 + 1);
}

/// The height of what is seen.
const VIEW: f64 = 1_000.0;

/// Parts of 500 px each, of which the one with this index stands at the top of what is seen.
fn places(count: usize, top: usize) -> Vec<Place> {
    (0..count)
        .map(|index| Place {
            top: (index as f64 - top as f64) * 500.0,
            bottom: (index as f64 - top as f64 + 1.0) * 500.0,
        })
        .collect()
}

fn chosen(shown: Range<usize>, top: usize, elements: usize, pinned: &[usize]) -> Range<usize> {
    choose(shown, &places(100, top), &[elements; 100], VIEW, |index| {
        pinned.contains(&index)
    })
}

#[test]
fn what_comes_near_joins_what_is_in_the_page() {
    // Seen are 50 and 51; a view before and after them is near.
    assert_eq!(chosen(52..60, 50, 10, &[]), 48..60);
    assert_eq!(chosen(40..52, 50, 10, &[]), 40..54);
    assert_eq!(chosen(48..54, 50, 10, &[]), 48..54);
}

#[test]
fn after_a_jump_only_what_is_near_is_in_the_page() {
    assert_eq!(chosen(80..100, 50, 10, &[]), 48..54);
    assert_eq!(chosen(0..20, 50, 10, &[]), 48..54);
}

#[test]
fn what_is_far_away_goes_when_there_are_too_many_elements() {
    let elements = MOST / 10;
    let kept = chosen(20..52, 50, elements, &[]);
    assert_eq!(kept.end, 54);
    assert!(kept.start > 20 && kept.start <= 46, "{kept:?}");
    assert!(kept.len() * elements <= MOST);
    let kept = chosen(50..90, 50, elements, &[]);
    assert_eq!(kept.start, 48);
    assert!(kept.end < 90 && kept.end >= 56, "{kept:?}");
}

#[test]
fn what_is_near_stays_however_many_elements_it_has() {
    assert_eq!(chosen(40..60, 50, MOST, &[]), 46..56);
}

#[test]
fn what_is_selected_stays_and_all_up_to_it() {
    assert_eq!(chosen(20..52, 50, MOST, &[30]).start, 30);
    assert_eq!(chosen(50..90, 50, MOST, &[80]).end, 81);
}

#[test]
fn a_text_out_of_sight_keeps_what_it_has_within_the_measure() {
    let elements = MOST / 10;
    let above = choose(90..99, &places(99, 300), &[elements; 99], VIEW, |_| false);
    assert_eq!(above, 90..99);
    let above = choose(50..99, &places(99, 300), &[elements; 99], VIEW, |_| false);
    assert!(above.end == 99 && above.len() * elements <= MOST, "{above:?}");
}
