//! The parts of a text in the page: closed pieces join the last one, and of a long text those that are far from what is
//! seen are not there. An empty element of their height keeps their place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Weak;

use leptos::prelude::window;
use web_sys::{Document, Element};

use super::Shown;
use super::image::show_again;
use super::watch::{Watch, scroller_of};
use crate::markdown::Piece;
use crate::markdown::parts::Parts;
use crate::markdown::view::push_pieces;
use crate::markdown::window::{MOST, Place, choose};

/// So many elements more are worth another look at what is near.
const SOME: usize = 200;

/// What is in the page of a text.
pub(super) struct Page {
    root: Element,
    tail: Element,
    document: Document,
    parts: Parts,
    /// How many pieces the parts hold.
    pieces: usize,
    /// The parts in the page, by index: the last one, and of those that are full the ones that are shown.
    elements: BTreeMap<usize, Element>,
    shown: Range<usize>,
    /// The height of each full part when it was taken out.
    heights: Vec<f64>,
    /// Before and after what is shown.
    spaces: [Element; 2],
    watch: Option<Watch>,
    /// How many elements there were when it was looked last.
    looked_at: usize,
    text: Weak<RefCell<Shown>>,
}

impl Page {
    /// What the page holds: all of the pieces that it was made from. The first of `pieces` are those.
    pub(super) fn of(root: &Element, pieces: &[Piece], text: Weak<RefCell<Shown>>) -> Option<Self> {
        let document = root.owner_document()?;
        let tail = root.last_element_child()?;
        let mut elements = BTreeMap::new();
        let mut count = 0;
        // Elements only: the framework may leave a marker of its own among the nodes.
        let mut next = root.first_element_child();
        while let Some(element) = next.filter(|element| *element != tail) {
            count += element.child_element_count() as usize;
            next = element.next_element_sibling();
            elements.insert(elements.len(), element);
        }
        let parts = Parts::of(pieces.get(..count)?);
        if parts.all().len() != elements.len() {
            return None;
        }
        let space = || {
            let space = document.create_element("div").ok()?;
            space.set_class_name("md__space");
            Some(space)
        };
        Some(Self {
            spaces: [space()?, space()?],
            root: root.clone(),
            tail,
            document,
            shown: 0..parts.full(),
            heights: vec![0.0; parts.full()],
            parts,
            pieces: count,
            elements,
            watch: None,
            looked_at: 0,
            text,
        })
    }

    pub(super) fn tail(&self) -> &Element {
        &self.tail
    }

    /// How many pieces it was made from.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Draws a piece again, where it is in the page and not the same.
    pub(super) fn change(&self, index: usize, piece: &Piece) {
        let parts = self.parts.all();
        let part = parts.partition_point(|part| part.pieces.end <= index);
        let element = self
            .elements
            .get(&part)
            .zip(parts.get(part))
            .and_then(|(element, part)| {
                let place = u32::try_from(index.checked_sub(part.pieces.start)?).ok()?;
                element.children().item(place)
            });
        if let Some(element) = element.filter(|element| element.inner_html() != piece.html) {
            element.set_inner_html(&piece.html);
            show_again(&element);
        }
    }

    /// Takes in the pieces that were closed since the last time.
    pub(super) fn close(&mut self, pieces: &[Piece]) {
        if pieces.len() == self.pieces {
            return;
        }
        let last = self.parts.full();
        self.parts.grow(pieces);
        for (index, part) in self.parts.all().iter().enumerate().skip(last) {
            let new = part.pieces.start.max(self.pieces)..part.pieces.end;
            let markup = pieces_markup(pieces.get(new).unwrap_or_default());
            if markup.is_empty() {
                continue;
            }
            if let Some(element) = self.elements.get(&index) {
                let _ = element.insert_adjacent_html("beforeend", &markup);
                show_again(element);
            } else if let Some(element) = part_element(&self.document, &markup) {
                let _ = self.root.insert_before(&element, Some(&self.tail));
                self.elements.insert(index, element);
            }
        }
        self.pieces = pieces.len();
        let full = self.parts.full();
        self.heights.resize(full, 0.0);
        if self.shown.end == last {
            self.shown.end = full;
        } else if full > last {
            // What is read is far above: the new ones are not in the page.
            self.take_out(&(last..full).collect::<Vec<_>>());
            self.set_spaces();
        }
    }

    /// Whether so much was added that it is worth a look at what is far away.
    pub(super) fn is_heavy(&self) -> bool {
        let full = self.parts.all().get(self.shown.clone()).unwrap_or_default();
        full.iter().map(|part| part.elements).sum::<usize>() > MOST.max(self.looked_at + SOME)
    }

    /// Brings in what is near to what is seen, and takes out what is far away if there is too much.
    pub(super) fn settle(&mut self, pieces: &[Piece]) {
        let (top, view) = match scroller_of(&self.root) {
            Some(scroller) => (
                scroller.get_bounding_client_rect().top() + f64::from(scroller.client_top()),
                f64::from(scroller.client_height()),
            ),
            None => {
                let height = window().inner_height().ok().and_then(|height| height.as_f64());
                (0.0, height.unwrap_or_default())
            }
        };
        let places = self.places(top);
        let weights: Vec<usize> = self.parts.all().iter().map(|part| part.elements).collect();
        let chosen = choose(self.shown.clone(), &places, &weights, view, |index| {
            self.is_held(index)
        });
        self.show(chosen.clone(), pieces);
        self.looked_at = weights.get(chosen).unwrap_or_default().iter().sum();
    }

    /// Brings in the part with a piece, where it is not in the page: it alone, and what is near it as soon as it is seen.
    pub(super) fn bring(&mut self, piece: usize, pieces: &[Piece]) {
        let part = self.parts.all().partition_point(|part| part.pieces.end <= piece);
        if part < self.parts.full() && !self.elements.contains_key(&part) {
            self.show(part..part + 1, pieces);
        }
    }

    /// Brings in everything, such as for printing.
    pub(super) fn show_all(&mut self, pieces: &[Piece]) {
        self.show(0..self.parts.full(), pieces);
    }

    /// Where each full part stands, as seen from a height in the window.
    fn places(&self, view: f64) -> Vec<Place> {
        let mut top = self.root.get_bounding_client_rect().top() - view;
        let full = self.heights.iter().enumerate();
        full.map(|(index, height)| {
            let bottom = match self.elements.get(&index) {
                Some(element) => {
                    let rect = element.get_bounding_client_rect();
                    top = rect.top() - view;
                    rect.bottom() - view
                }
                None => top + height,
            };
            let place = Place { top, bottom };
            top = bottom;
            place
        })
        .collect()
    }

    /// Whether a person holds on to something in a part: it is selected, or has the focus.
    fn is_held(&self, index: usize) -> bool {
        let Some(element) = self.elements.get(&index) else {
            return false;
        };
        let focused = self.document.active_element();
        let selection = window().get_selection().ok().flatten();
        focused.is_some_and(|focused| element.contains(Some(&focused)))
            || selection.is_some_and(|selection| {
                let is_within = selection.contains_node_with_allow_partial_containment(element, true);
                !selection.is_collapsed() && is_within == Ok(true)
            })
    }

    fn show(&mut self, chosen: Range<usize>, pieces: &[Piece]) {
        if chosen == self.shown {
            return;
        }
        let gone: Vec<usize> = self
            .shown
            .clone()
            .filter(|index| !chosen.contains(index))
            .collect();
        self.take_out(&gone);
        // From the end: each stands before the one after it.
        for index in chosen.clone().rev() {
            let Some(part) = self
                .parts
                .all()
                .get(index)
                .filter(|_| !self.elements.contains_key(&index))
            else {
                continue;
            };
            let markup = pieces_markup(pieces.get(part.pieces.clone()).unwrap_or_default());
            let next = self.elements.range(index..).next().map(|(_, next)| next);
            if let Some(element) = part_element(&self.document, &markup) {
                let _ = self.root.insert_before(&element, next.map(AsRef::as_ref));
                self.elements.insert(index, element);
            }
        }
        self.shown = chosen;
        self.set_spaces();
    }

    /// All are measured before the first one goes.
    fn take_out(&mut self, indices: &[usize]) {
        for index in indices {
            if let Some((height, element)) = self.heights.get_mut(*index).zip(self.elements.get(index)) {
                *height = element.get_bounding_client_rect().height();
            }
        }
        for index in indices {
            if let Some(element) = self.elements.remove(index) {
                element.remove();
            }
        }
    }

    /// Keeps the place of what is not in the page.
    fn set_spaces(&mut self) {
        let sum = |range: Range<usize>| self.heights.get(range).unwrap_or_default().iter().sum::<f64>();
        let heights = [sum(0..self.shown.start), sum(self.shown.end..self.heights.len())];
        let first = self.elements.first_key_value().map(|(_, element)| element);
        let last = self.elements.last_key_value().map(|(_, element)| element);
        for ((space, height), next) in self.spaces.iter().zip(heights).zip([first, last]) {
            space.remove();
            if height > 0.0 {
                super::watch::set_height(space, height);
                let _ = self.root.insert_before(space, next.map(AsRef::as_ref));
            }
        }
        let watch = match self.watch.take() {
            Some(watch) => Some(watch),
            None => Watch::new(scroller_of(&self.root).as_ref(), self.text.clone()),
        };
        if let Some(watch) = &watch {
            self.spaces.iter().for_each(|space| watch.look_at(space));
        }
        self.watch = watch;
    }
}

fn pieces_markup(pieces: &[Piece]) -> String {
    let mut html = String::new();
    push_pieces(&mut html, pieces);
    html
}

fn part_element(document: &Document, markup: &str) -> Option<Element> {
    let element = document.create_element("div").ok()?;
    element.set_class_name("md__part");
    element.set_inner_html(markup);
    show_again(&element);
    Some(element)
}
