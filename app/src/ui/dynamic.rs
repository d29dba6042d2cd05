//! Functions of views with their types forgotten.
//!
//! Leptos makes code for each type that stands in a view: to build, hydrate, rebuild, move and drop it. Every closure is
//! a type of its own, so two hundred dynamic places would bring that code two hundred times. Behind these functions
//! there is one type for each kind of value, and the page's wasm stays small.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use leptos::prelude::*;
use leptos::tachys::reactive_graph::SharedReactiveFunction;

/// A value that a view follows: a text, or an attribute's value.
pub type Dynamic<T> = SharedReactiveFunction<T>;

/// A text or an attribute's value that is read again when what it reads changes.
pub fn dynamic<T: 'static>(read: impl FnMut() -> T + Send + 'static) -> Dynamic<T> {
    Arc::new(Mutex::new(read))
}

/// A part of a view that is drawn again when what it reads changes.
pub fn dynamic_view<V: IntoAny>(mut draw: impl FnMut() -> V + Send + 'static) -> Dynamic<AnyView> {
    dynamic(move || draw().into_any())
}

/// A value that is made of others, and is news only when it is another one.
pub fn memo<T>(read: impl Fn() -> T + Send + Sync + 'static) -> Memo<T>
where
    T: PartialEq + Send + Sync + 'static,
{
    #[inline(never)]
    fn erased<T>(read: Box<dyn Fn() -> T + Send + Sync>) -> Memo<T>
    where
        T: PartialEq + Send + Sync + 'static,
    {
        Memo::new(move |_| read())
    }
    erased(Box::new(read))
}

/// What is done in the browser, after the page is drawn and whenever what it reads changes.
pub fn effect(act: impl FnMut() + 'static) {
    #[inline(never)]
    fn erased(mut act: Box<dyn FnMut()>) {
        Effect::new(move |_| act());
    }
    erased(Box::new(act));
}

/// What is done at an event.
pub fn handler<E: 'static>(act: impl FnMut(E) + 'static) -> Box<dyn FnMut(E)> {
    Box::new(act)
}

/// A list that follows `each`: an item whose key was there before keeps its elements, and only a new one is drawn.
pub fn dynamic_list<T, I, K, V>(
    each: impl Fn() -> I + Send + 'static,
    key: impl Fn(&T) -> K + Send + Sync + 'static,
    draw: impl Fn(T) -> V + Send + Sync + 'static,
) -> impl IntoView
where
    T: Send + 'static,
    I: IntoIterator<Item = T>,
    K: Hash + Eq + Send + Sync + 'static,
    V: IntoAny,
{
    let draw = Arc::new(draw);
    list(Box::new(move || {
        let item = |value| {
            let draw = Arc::clone(&draw);
            Item {
                key: Key(Arc::new(key(&value))),
                draw: Box::new(move || draw(value).into_any()),
            }
        };
        each().into_iter().map(item).collect()
    }))
}

struct Item {
    key: Key,
    draw: Box<dyn FnOnce() -> AnyView + Send>,
}

fn list(each: Box<dyn Fn() -> Vec<Item> + Send>) -> impl IntoView {
    view! { <For each key=|item: &Item| item.key.clone() children=|item: Item| (item.draw)()/> }
}

/// The key of an item, whatever its type.
#[derive(Clone)]
struct Key(Arc<dyn AnyKey>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash_into(hasher);
    }
}

trait AnyKey: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn AnyKey) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

impl<K: Hash + Eq + Send + Sync + 'static> AnyKey for K {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn AnyKey) -> bool {
        other.as_any().downcast_ref::<K>() == Some(self)
    }

    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[test]
    fn keys_are_equal_where_type_and_value_are() {
        let key = |key: Arc<dyn AnyKey>| Key(key);
        assert!(key(Arc::new(7_usize)) == key(Arc::new(7_usize)));
        assert!(key(Arc::new(7_usize)) != key(Arc::new(8_usize)));
        assert!(key(Arc::new(7_usize)) != key(Arc::new(7_u64)));
        let state = RandomState::new();
        let hash = |text: &str| state.hash_one(key(Arc::new(text.to_owned())));
        assert_eq!(hash("one"), hash("one"));
        assert_ne!(hash("one"), hash("another"));
    }
}
