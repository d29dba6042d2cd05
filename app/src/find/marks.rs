//! Finding a text among what is drawn, and marking it: every place in sight, and strongly the one that was gone to.
//!
//! Marks are painted ranges, as the colours of code are: no element changes. Only what is in sight is looked at, with each frame
//! in which the page has moved or changed.

use std::cell::RefCell;

use js_sys::{Array, JsString, Reflect, RegExp};
use leptos::prelude::*;
use protocol::search::{SearchHit, Writing, pattern};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, MutationObserver, MutationObserverInit, Node, Range, Text};

use crate::highlight::brushes::{Brush, Stroke};

/// What is no part of a content, though it stands within.
const BESIDE: &str = "button:not(.row__toggle), .io__title, .io__more, .nodefoot, .runinfo, .row__acts, .sr-only, svg, time, [hidden], noscript";

/// What runs on within a line: between others there is an end of a line.
const INLINE: &[&str] = &[
    "A", "B", "CODE", "DEL", "EM", "I", "MARK", "S", "SPAN", "STRONG", "SUB", "SUP", "U",
];

/// The most places that are looked at in a text, and marked in sight.
const MOST: usize = 5_000;
const MOST_MARKS: usize = 400;

/// So many letters around a place are compared.
const AROUND: usize = 24;

/// A place that is looked for.
pub(super) struct Wanted {
    pub(super) found: String,
    pub(super) before: String,
    pub(super) after: String,
    /// How many with the same words around them come before it.
    pub(super) rank: usize,
}

struct Marks {
    every: Option<Brush>,
    current: Option<Brush>,
    strokes: Vec<Stroke>,
    current_stroke: Option<Stroke>,
    /// What is marked.
    regex: Option<RegExp>,
    range: Option<Range>,
    /// Finds the place that was gone to again, where it was drawn anew.
    again: Option<Box<dyn Fn() -> Option<Range>>>,
    row: Option<Element>,
    is_due: bool,
}

thread_local! {
    static MARKS: RefCell<Option<Marks>> = const { RefCell::new(None) };
}

/// The class of a row in which the place that was gone to is not drawn.
const ROW: &str = "found-row";

/// Gets ready, once for all pages.
pub(super) fn start() {
    if MARKS.with_borrow(Option::is_some) {
        return;
    }
    MARKS.set(Some(Marks {
        every: Brush::new("find-every", 1),
        current: Brush::new("find-current", 2),
        strokes: Vec::new(),
        current_stroke: None,
        regex: None,
        range: None,
        again: None,
        row: None,
        is_due: false,
    }));
    let moved = Closure::<dyn FnMut()>::new(look_soon);
    let listener = moved.as_ref().unchecked_ref();
    let _ = document().add_event_listener_with_callback_and_bool("scroll", listener, true);
    let _ = window().add_event_listener_with_callback("resize", listener);
    let options = MutationObserverInit::new();
    options.set_child_list(true);
    options.set_character_data(true);
    options.set_subtree(true);
    if let (Ok(observer), Some(body)) = (MutationObserver::new(listener), document().body()) {
        let _ = observer.observe_with_options(&body, &options);
    }
    // As long as the page lives.
    moved.forget();
}

fn with<T>(act: impl FnOnce(&mut Marks) -> T) -> Option<T> {
    MARKS.with_borrow_mut(|marks| marks.as_mut().map(act))
}

/// Marks every place of a text from now on.
pub(super) fn look_for(words: &str) {
    with(|marks| marks.regex = regex(words));
    look_soon();
}

/// Marks nothing any more.
pub(super) fn clear() {
    with(|marks| {
        marks.regex = None;
        forget_current(marks);
        wipe(marks);
    });
}

/// This is the place that was gone to, and what finds it again when it is drawn anew.
pub(super) fn set_current(range: Range, again: impl Fn() -> Option<Range> + 'static) {
    with(|marks| {
        forget_current(marks);
        marks.range = Some(range);
        marks.again = Some(Box::new(again));
    });
    look_soon();
}

/// This row holds the place that was gone to.
pub(super) fn set_row(row: &Element) {
    with(|marks| {
        forget_current(marks);
        let _ = row.class_list().add_1(ROW);
        marks.row = Some(row.clone());
    });
    look_soon();
}

fn forget_current(marks: &mut Marks) {
    marks.range = None;
    marks.again = None;
    if let Some(row) = marks.row.take() {
        let _ = row.class_list().remove_1(ROW);
    }
}

fn wipe(marks: &mut Marks) {
    let Marks {
        every,
        current,
        strokes,
        current_stroke,
        ..
    } = marks;
    if let Some(brush) = every {
        strokes.drain(..).for_each(|stroke| brush.clear(&stroke));
    }
    if let (Some(brush), Some(stroke)) = (current, current_stroke.take()) {
        brush.clear(&stroke);
    }
}

/// Looks with the next frame, while anything is marked.
fn look_soon() {
    let is_new = with(|marks| marks.regex.is_some() && !std::mem::replace(&mut marks.is_due, true));
    if is_new == Some(true) {
        request_animation_frame(look);
    }
}

fn look() {
    let height = window().inner_height().ok().and_then(|height| height.as_f64());
    with(|marks| {
        marks.is_due = false;
        wipe(marks);
        let (Some(regex), Some(height)) = (&marks.regex, height) else {
            return;
        };
        let is_seen = |element: &Element| {
            let bounds = element.get_bounding_client_rect();
            bounds.height() > 0.0 && bounds.bottom() > 0.0 && bounds.top() < height
        };
        for root in ["#main .main__col", "#details"]
            .iter()
            .flat_map(|selector| all(selector))
        {
            let texts = Texts::of(std::slice::from_ref(&root), &is_seen);
            let places = texts.places(regex);
            // Places stand below each other.
            let bottom = |place: &(u32, u32)| {
                texts
                    .range(*place)
                    .map(|range| range.get_bounding_client_rect().bottom())
            };
            let first = places.partition_point(|place| bottom(place).is_some_and(|bottom| bottom < 0.0));
            for place in places.get(first..).unwrap_or_default().iter().take(MOST_MARKS) {
                let Some(range) = texts.range(*place) else {
                    continue;
                };
                if range.get_bounding_client_rect().top() > height {
                    break;
                }
                let brush = marks.every.as_ref();
                marks
                    .strokes
                    .extend(brush.and_then(|brush| brush.paint_range(&range)));
            }
        }
        if marks.range.as_ref().is_some_and(web_sys::Range::collapsed) {
            let again = marks.again.as_ref().and_then(|again| again());
            marks.range = again.or(marks.range.take());
        }
        let range = marks.range.as_ref().filter(|range| !range.collapsed());
        if let (Some(brush), Some(range)) = (&marks.current, range) {
            marks.current_stroke = brush.paint_range(range);
        }
    });
}

/// All elements that a selector finds.
pub(super) fn all(selector: &str) -> Vec<Element> {
    let Ok(list) = document().query_selector_all(selector) else {
        return Vec::new();
    };
    (0..list.length())
        .filter_map(|place| list.get(place)?.dyn_into().ok())
        .collect()
}

/// What finds words among what is drawn.
fn regex(words: &str) -> Option<RegExp> {
    // What is drawn of arguments may stand there with its escapes.
    let source = pattern(words, Writing::Json);
    let arguments = Array::of2(&JsValue::from_str(&source), &JsValue::from_str("giu"));
    let constructor = Reflect::get(&js_sys::global(), &JsValue::from_str("RegExp")).ok()?;
    let constructor: js_sys::Function = constructor.dyn_into().ok()?;
    let made = Reflect::construct(&constructor, &arguments).ok()?;
    made.dyn_into().ok()
}

/// Texts of the page that stand one after another.
struct Texts {
    joined: JsString,
    /// Each with its first unit.
    nodes: Vec<(Text, u32)>,
}

impl Texts {
    fn of(roots: &[Element], is_wanted: &dyn Fn(&Element) -> bool) -> Self {
        let mut walk = Walk {
            parts: Array::new(),
            nodes: Vec::new(),
            end: 0,
            is_wanted,
        };
        for root in roots {
            walk.within(root);
            walk.line();
        }
        Self {
            joined: walk.parts.join(""),
            nodes: walk.nodes,
        }
    }

    /// Where something is found: its first unit, and how many it has.
    fn places(&self, regex: &RegExp) -> Vec<(u32, u32)> {
        regex.set_last_index(0);
        let index = JsValue::from_str("index");
        let found = self.joined.match_all(regex).into_iter().take(MOST);
        let place = |found: JsValue| {
            let start = Reflect::get(&found, &index).ok()?.as_f64()?;
            let text: JsString = Reflect::get_u32(&found, 0).ok()?.dyn_into().ok()?;
            Some((start as u32, text.length()))
        };
        found.filter_map(|found| place(found.ok()?)).collect()
    }

    fn range(&self, (start, length): (u32, u32)) -> Option<Range> {
        let range = document().create_range().ok()?;
        let (first, from) = self.node(start)?;
        let (last, to) = self.node(start + length.saturating_sub(1))?;
        range.set_start(first, from).ok()?;
        range.set_end(last, to + 1).ok()?;
        Some(range)
    }

    /// The node of a unit, and which of its units it is.
    fn node(&self, unit: u32) -> Option<(&Text, u32)> {
        let place = self.nodes.partition_point(|(_, start)| *start <= unit);
        let (node, start) = self.nodes.get(place.checked_sub(1)?)?;
        let within = unit - start;
        (within < node.length()).then_some((node, within))
    }

    /// The letters before and after a place.
    fn around(&self, (start, length): (u32, u32)) -> (Vec<char>, Vec<char>) {
        // Not all of them are letters.
        let room = AROUND as u32 * 3;
        let slice = |from: u32, to: u32| String::from(self.joined.substring(from, to));
        let end = start + length;
        let mut before = letters(&slice(start.saturating_sub(room), start));
        before.reverse();
        (before, letters(&slice(end, end + room)))
    }
}

fn letters(text: &str) -> Vec<char> {
    let letters = text.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

struct Walk<'a> {
    parts: Array,
    nodes: Vec<(Text, u32)>,
    end: u32,
    is_wanted: &'a dyn Fn(&Element) -> bool,
}

impl Walk<'_> {
    fn within(&mut self, element: &Element) {
        let mut next = element.first_child();
        let is_button = element.tag_name() == "BUTTON";
        while let Some(node) = next {
            next = node.next_sibling();
            if let Some(text) = node.dyn_ref::<Text>() {
                self.text(text);
            } else if node.node_type() == Node::ELEMENT_NODE {
                let inner: &Element = node.unchecked_ref();
                let is_inline = !is_button && INLINE.contains(&inner.tag_name().as_str());
                if inner.matches(BESIDE) == Ok(true) || !(is_inline || (self.is_wanted)(inner)) {
                    continue;
                }
                if !is_inline {
                    self.line();
                }
                self.within(inner);
                if !is_inline {
                    self.line();
                }
            }
        }
    }

    fn text(&mut self, text: &Text) {
        let length = text.length();
        if length > 0 {
            // The text itself stays where it is: it is not copied into this program.
            let data = Reflect::get(text, &JsValue::from_str("data")).unwrap_or(JsValue::NULL);
            self.parts.push(&data);
            self.nodes.push((text.clone(), self.end));
            self.end += length;
        }
    }

    fn line(&mut self) {
        self.parts.push(&JsValue::from_str("\n"));
        self.end += 1;
    }
}

/// The place in these elements that is most like the one that is wanted, and whether it is surely that one.
pub(super) fn occurrence(roots: &[Element], wanted: &Wanted) -> Option<(Range, bool)> {
    let regex = regex(&wanted.found)?;
    let texts = Texts::of(roots, &|_| true);
    let mut before = letters(&wanted.before);
    before.reverse();
    let after = letters(&wanted.after);
    let common = |one: &[char], other: &[char]| {
        let pairs = one.iter().zip(other).take(AROUND);
        pairs.take_while(|(one, other)| one == other).count()
    };
    let most = before.len().min(AROUND) + after.len().min(AROUND);
    let places = texts.places(&regex);
    let scores: Vec<usize> = places
        .iter()
        .map(|place| {
            let (left, right) = texts.around(*place);
            common(&before, &left) + common(&after, &right)
        })
        .collect();
    let best = scores.iter().copied().max()?;
    let alike: Vec<&(u32, u32)> = places
        .iter()
        .zip(&scores)
        .filter(|(_, score)| **score == best)
        .map(|(place, _)| place)
        .collect();
    let place = alike.get(wanted.rank).or(alike.last())?;
    let is_sure = best >= most.min(AROUND) / 2 && alike.len() > wanted.rank;
    Some((texts.range(**place)?, is_sure || most == 0))
}

/// The first hit at or after what is read, or the last one before it.
pub(super) fn nearest(hits: &[SearchHit], is_forward: bool) -> usize {
    let top = all(".main__scroll")
        .first()
        .map_or(0.0, |scroller| scroller.get_bounding_client_rect().top());
    let drawn: std::collections::HashMap<String, f64> =
        all("#main [data-block-id], #main [data-node-id], #main [data-message-id]")
            .into_iter()
            .flat_map(|element| {
                let bottom = element.get_bounding_client_rect().bottom();
                let ids = ["data-block-id", "data-node-id", "data-message-id"];
                let ids = ids.map(|name| element.get_attribute(name));
                ids.into_iter().flatten().map(move |id| (id, bottom))
            })
            .collect();
    let bottom = |hit: &SearchHit| {
        let block = hit.block_id.as_ref().map(ToString::to_string);
        let node = hit.node_id.as_ref().map(ToString::to_string);
        let message = hit.message_id.as_ref().map(ToString::to_string);
        [block, node, message]
            .into_iter()
            .flatten()
            .find_map(|id| drawn.get(&id).copied())
    };
    let is_after = |hit: &SearchHit| bottom(hit).map(|bottom| bottom > top);
    // What is not drawn lies before or after all that is.
    let first = hits.iter().position(|hit| is_after(hit) == Some(true));
    let last_before = hits.iter().rposition(|hit| is_after(hit) == Some(false));
    let first = first.or(last_before.map(|place| place + 1)).unwrap_or(0);
    if is_forward {
        if first < hits.len() { first } else { 0 }
    } else {
        first.checked_sub(1).unwrap_or(hits.len().saturating_sub(1))
    }
}
