//! One text in the page that has colours.

use std::ops::Range;
use std::rc::Rc;

use protocol::api::{HIGHLIGHT_BYTES, HighlightText, Highlighted};
use wasm_bindgen::JsCast;
use web_sys::{Element, Node, Text};

use super::brushes::{Brushes, Painted};

/// Text within that is not of the code, such as the names of files.
const BESIDE: &str = "data-plain";

/// What is known of a text.
pub(super) enum Knowledge {
    /// Nothing: it was not in sight yet.
    None,
    /// It was asked for.
    Asked,
    /// Its places.
    Places(Rc<Highlighted>),
    /// The server did not say.
    Refused,
}

/// One text in the page.
pub(super) struct Code {
    element: Element,
    /// Its nodes, each with its first and last unit in the text.
    nodes: Vec<(Text, Range<u32>)>,
    text: HighlightText,
    /// Where its lines begin, in units.
    lines: Vec<u32>,
    pub(super) knowledge: Knowledge,
    /// The lines that are painted.
    painted: Range<usize>,
    ranges: Vec<Painted>,
}

impl Code {
    /// The text of an element, if it can have colours.
    pub(super) fn new(element: Element) -> Option<Self> {
        let attribute = |name| element.get_attribute(name).filter(|value| !value.is_empty());
        let pattern = attribute("data-pattern");
        let language = if pattern.is_some() {
            None
        } else {
            Some(attribute("data-language").or_else(|| language_of_block(&element))?)
        };
        let mut text = String::new();
        let mut nodes = Vec::new();
        let mut end = 0;
        collect(&element, &mut text, &mut end, &mut nodes);
        if text.is_empty() || text.len() > HIGHLIGHT_BYTES {
            return None;
        }
        let mut lines = vec![0];
        let mut place = 0;
        for character in text.chars() {
            place += character.len_utf16() as u32;
            if character == '\n' && place < end {
                lines.push(place);
            }
        }
        let case_sensitive =
            (pattern.is_some() && element.has_attribute("data-ignore-case")).then_some(false);
        Some(Self {
            element,
            nodes,
            text: HighlightText {
                text,
                language,
                pattern,
                case_sensitive,
            },
            lines,
            knowledge: Knowledge::None,
            painted: 0..0,
            ranges: Vec::new(),
        })
    }

    /// What is asked of the server.
    pub(super) fn asks(&self) -> &HighlightText {
        &self.text
    }

    /// Whether it is that of an element.
    pub(super) fn is_of(&self, element: &Element) -> bool {
        self.element.is_same_node(Some(element))
    }

    /// Whether it is still in the page.
    pub(super) fn is_there(&self) -> bool {
        self.element.is_connected()
    }

    /// Takes its colours away.
    pub(super) fn clear(&mut self, brushes: &Brushes) {
        for range in self.ranges.drain(..) {
            brushes.clear(&range);
        }
        self.painted = 0..0;
    }

    /// Paints the lines in sight, and half a window around them. Says whether any is in sight.
    pub(super) fn show(&mut self, height: f64, brushes: &Brushes) -> bool {
        let bounds = self.element.get_bounding_client_rect();
        let margin = height / 2.0;
        let is_near = bounds.height() > 0.0 && bounds.bottom() > -margin && bounds.top() < height + margin;
        if !is_near {
            self.clear(brushes);
            return false;
        }
        let Knowledge::Places(places) = &self.knowledge else {
            return true;
        };
        let line = bounds.height() / self.lines.len() as f64;
        let lines_between = |from: f64, to: f64| {
            let place = |at: f64| ((at - bounds.top()) / line).max(0.0);
            let end = (place(to).ceil() as usize).min(self.lines.len());
            (place(from).floor() as usize).min(end)..end
        };
        let needed = lines_between(0.0, height);
        let is_painted = self.painted.start <= needed.start && needed.end <= self.painted.end;
        if is_painted && !self.painted.is_empty() {
            return true;
        }
        let wanted = lines_between(-margin, height + margin);
        let places = Rc::clone(places);
        self.clear(brushes);
        self.paint(&places, wanted, brushes);
        true
    }

    fn paint(&mut self, places: &Highlighted, lines: Range<usize>, brushes: &Brushes) {
        let unit = |line: usize| self.lines.get(line).copied().unwrap_or(u32::MAX);
        let sight = unit(lines.start)..unit(lines.end);
        for (class, numbers) in &places.places {
            let (pairs, _) = numbers.as_chunks::<2>();
            let first = pairs.partition_point(|[start, length]| start + length <= sight.start);
            let in_sight = pairs
                .iter()
                .skip(first)
                .take_while(|[start, _]| *start < sight.end);
            for [start, length] in in_sight {
                let end = start + length;
                let before = self.nodes.partition_point(|(_, range)| range.end <= *start);
                for (node, range) in self.nodes.iter().skip(before) {
                    if range.start >= end {
                        break;
                    }
                    let from = (*start).max(range.start) - range.start;
                    let to = end.min(range.end) - range.start;
                    self.ranges.extend(brushes.paint(*class, node, from, to));
                }
            }
        }
        self.painted = lines;
    }
}

/// The language that stands above a block of code.
fn language_of_block(code: &Element) -> Option<String> {
    let block = code.closest("figure.codeblock").ok()??;
    let label = block.query_selector("figcaption > span").ok()??;
    label.text_content().filter(|language| !language.is_empty())
}

/// The text nodes within, in order.
fn collect(node: &Node, text: &mut String, end: &mut u32, nodes: &mut Vec<(Text, Range<u32>)>) {
    let mut next = node.first_child();
    while let Some(child) = next {
        if let Some(part) = child.dyn_ref::<Text>() {
            let data = part.data();
            let start = *end;
            *end += data.encode_utf16().count() as u32;
            text.push_str(&data);
            nodes.push((part.clone(), start..*end));
        } else if child
            .dyn_ref::<Element>()
            .is_some_and(|element| !element.has_attribute(BESIDE))
        {
            collect(&child, text, end, nodes);
        }
        next = child.next_sibling();
    }
}
