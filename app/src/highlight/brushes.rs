//! The browser's painted ranges: sets of them, each with a name that the style sheet knows.

use js_sys::{Function, Reflect};
use protocol::api::PlaceClass;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Range, StaticRange, StaticRangeInit, Text};

/// One set. Its ranges do not follow changes of the text: one whose text is gone is not painted.
pub(crate) struct Brush {
    ranges: JsValue,
    add: Function,
    delete: Function,
}

/// A painted range, to be taken away again.
pub(crate) struct Stroke(StaticRange);

fn method(object: &JsValue, name: &str) -> Option<Function> {
    Reflect::get(object, &JsValue::from_str(name))
        .ok()?
        .dyn_into()
        .ok()
}

impl Brush {
    /// A set of a name; where several paint, the one of higher priority is seen. None where the browser does not know such
    /// ranges.
    pub(crate) fn new(name: &str, priority: u32) -> Option<Self> {
        let global = js_sys::global();
        let registry = Reflect::get(&global, &JsValue::from_str("CSS"))
            .and_then(|css| Reflect::get(&css, &JsValue::from_str("highlights")))
            .ok()?;
        let set = method(&registry, "set")?;
        let constructor = method(&global, "Highlight")?;
        let ranges = Reflect::construct(&constructor, &js_sys::Array::new()).ok()?;
        Reflect::set(&ranges, &JsValue::from_str("priority"), &priority.into()).ok()?;
        set.call2(&registry, &JsValue::from_str(name), &ranges).ok()?;
        Some(Self {
            add: method(&ranges, "add")?,
            delete: method(&ranges, "delete")?,
            ranges,
        })
    }

    fn add(&self, init: &StaticRangeInit) -> Option<Stroke> {
        let range = StaticRange::new(init).ok()?;
        self.add.call1(&self.ranges, &range).ok()?;
        Some(Stroke(range))
    }

    /// Paints a part of a text.
    fn paint(&self, text: &Text, start: u32, end: u32) -> Option<Stroke> {
        self.add(&StaticRangeInit::new(text, end, text, start))
    }

    /// Paints a range.
    pub(crate) fn paint_range(&self, range: &Range) -> Option<Stroke> {
        let (start, end) = (range.start_container().ok()?, range.end_container().ok()?);
        let (from, to) = (range.start_offset().ok()?, range.end_offset().ok()?);
        self.add(&StaticRangeInit::new(&end, to, &start, from))
    }

    /// Takes it away.
    pub(crate) fn clear(&self, Stroke(range): &Stroke) {
        let _ = self.delete.call1(&self.ranges, range);
    }
}

/// One set for each class of places in code.
pub(super) struct Brushes(Vec<(PlaceClass, Brush)>);

/// A painted place, to be taken away again.
pub(super) struct Painted(PlaceClass, Stroke);

impl Brushes {
    /// None where the browser does not know such ranges.
    pub(super) fn new() -> Option<Self> {
        let brush = |class: &PlaceClass| Some((*class, Brush::new(&["code-", class.as_str()].concat(), 0)?));
        PlaceClass::ALL.iter().map(brush).collect::<Option<_>>().map(Self)
    }

    fn of(&self, class: PlaceClass) -> Option<&Brush> {
        self.0
            .iter()
            .find(|(known, _)| *known == class)
            .map(|(_, brush)| brush)
    }

    /// Paints a part of a text.
    pub(super) fn paint(&self, class: PlaceClass, text: &Text, start: u32, end: u32) -> Option<Painted> {
        let stroke = self.of(class)?.paint(text, start, end)?;
        Some(Painted(class, stroke))
    }

    /// Takes it away.
    pub(super) fn clear(&self, Painted(class, stroke): &Painted) {
        if let Some(brush) = self.of(*class) {
            brush.clear(stroke);
        }
    }
}
