//! A listener that is there for as long as it is held.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Event, EventTarget};

/// Hears an event of a target until it is dropped. The target may live longer: it then calls nothing that is gone.
pub struct Listener {
    target: EventTarget,
    event: &'static str,
    heard: Closure<dyn FnMut(Event)>,
}

impl Listener {
    /// Listens from now on.
    pub fn new(target: &EventTarget, event: &'static str, heard: impl FnMut(Event) + 'static) -> Self {
        let heard = Closure::<dyn FnMut(Event)>::new(heard);
        let _ = target.add_event_listener_with_callback(event, heard.as_ref().unchecked_ref());
        Self {
            target: target.clone(),
            event,
            heard,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let heard = self.heard.as_ref().unchecked_ref();
        let _ = self.target.remove_event_listener_with_callback(self.event, heard);
    }
}
