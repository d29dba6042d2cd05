//! The browser's painted ranges, one set for each class of places.

use js_sys::{Function, Reflect};
use protocol::api::PlaceClass;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{StaticRange, StaticRangeInit, Text};

/// The page's sets of ranges.
pub(super) struct Brushes(Vec<(PlaceClass, Brush)>);

/// One set. Its ranges do not follow changes of the text: one whose text is gone is not painted.
struct Brush {
    ranges: JsValue,
    add: Function,
    delete: Function,
}

/// A painted range, to be taken away again.
pub(super) struct Painted(PlaceClass, StaticRange);

fn method(object: &JsValue, name: &str) -> Option<Function> {
    Reflect::get(object, &JsValue::from_str(name))
        .ok()?
        .dyn_into()
        .ok()
}

impl Brushes {
    /// None where the browser does not know such ranges.
    pub(super) fn new() -> Option<Self> {
        let global = js_sys::global();
        let registry = Reflect::get(&global, &JsValue::from_str("CSS"))
            .and_then(|css| Reflect::get(&css, &JsValue::from_str("highlights")))
            .ok()?;
        let set = method(&registry, "set")?;
        let constructor = method(&global, "Highlight")?;
        let brush = |class: &PlaceClass| {
            let ranges = Reflect::construct(&constructor, &js_sys::Array::new()).ok()?;
            let name = JsValue::from_str(&["code-", class.as_str()].concat());
            set.call2(&registry, &name, &ranges).ok()?;
            let brush = Brush {
                add: method(&ranges, "add")?,
                delete: method(&ranges, "delete")?,
                ranges,
            };
            Some((*class, brush))
        };
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
        let brush = self.of(class)?;
        let range = StaticRange::new(&StaticRangeInit::new(text, end, text, start)).ok()?;
        brush.add.call1(&brush.ranges, &range).ok()?;
        Some(Painted(class, range))
    }

    /// Takes it away.
    pub(super) fn clear(&self, Painted(class, range): &Painted) {
        if let Some(brush) = self.of(*class) {
            let _ = brush.delete.call1(&brush.ranges, range);
        }
    }
}
