//! The calls within a call: all of them, or, of very many, as many as a page can hold, with ways to those before and after.

use std::ops::Range;

use leptos::ev::MouseEvent;
use leptos::prelude::*;
use protocol::id::NodeId;

use super::scope::Scope;
use super::tool_row::child_view;
use super::words;
use crate::data::guide::Guide;
use crate::data::run_store::RunStore;
use crate::data::selection::{Part, Selection};
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, effect, handler, memo};

/// So many calls are in the page.
const USUAL: usize = 40;

/// While new calls come, those before them stay until there are so many.
const MOST: usize = 60;

/// The first of the calls that are in the page. Where none was asked for they are the newest, and the first one stays for
/// a while as more come.
fn first(count: usize, asked: Option<usize>, known: Option<usize>) -> usize {
    match asked {
        _ if count <= MOST => 0,
        Some(first) => first.min(count - 1),
        None => {
            let newest = count - USUAL;
            known
                .filter(|known| *known <= newest && count - known <= MOST)
                .unwrap_or(newest)
        }
    }
}

/// The places of the calls that are in the page.
fn range(count: usize, first: usize, asked: Option<usize>) -> Range<usize> {
    match asked {
        Some(_) if count > MOST => first..(first + USUAL).min(count),
        _ => first..count,
    }
}

/// What is asked for so that the call at a place is in the page; nothing where it is.
fn around(count: usize, shown: &Range<usize>, place: usize) -> Option<usize> {
    (count > MOST && !shown.contains(&place)).then(|| place.saturating_sub(USUAL / 2))
}

/// The rows of what a call called.
#[component]
pub fn Calls(
    /// The run.
    run: RunStore,
    /// What it called, in order.
    #[prop(into)]
    children: Signal<Vec<NodeId>>,
    /// How many model nodes it lies within.
    depth: usize,
) -> impl IntoView {
    let (selection, guide) = (Selection::use_context(), Guide::use_context());
    let part = match use_context::<Scope>() {
        Some(_) => Part::Details,
        None => Part::Content,
    };
    // The call that is selected, or that the way leads through.
    let led = memo(move || {
        children.with(|children| {
            let on_way = |node: &NodeId| guide.leads_through(node, part);
            let is_wanted = |node: &NodeId| selection.is(node) || selection.is_within(node) || on_way(node);
            // Of few all are in the page.
            (children.len() > MOST)
                .then(|| children.iter().position(is_wanted))
                .flatten()
        })
    });
    let asked = RwSignal::new(untrack(|| {
        let count = children.with(Vec::len);
        let newest = first(count, None, None)..count;
        led.get().and_then(|place| around(count, &newest, place))
    }));
    let start = Memo::new(move |known: Option<&usize>| {
        children.with(|children| first(children.len(), asked.get(), known.copied()))
    });
    let shown = memo(move || range(children.with(Vec::len), start.get(), asked.get()));
    effect(move || {
        let place = led.get();
        let count = children.with_untracked(Vec::len);
        let shown = shown.get_untracked();
        if let Some(first) = place.and_then(|place| around(count, &shown, place)) {
            asked.set(Some(first));
        }
    });
    let nodes = memo(move || {
        let shown = shown.get();
        children.with(|children| children.get(shown).unwrap_or_default().to_vec())
    });
    view! {
        <Beside children shown asked is_later=false/>
        {dynamic_list(
            move || nodes.get(),
            Clone::clone,
            move |node| child_view(run.clone(), node, depth),
        )}
        <Beside children shown asked is_later=true/>
    }
}

/// What stands before or after the calls in the page. A link to the next of them, so that it also leads there without
/// script.
#[component]
fn Beside(
    children: Signal<Vec<NodeId>>,
    shown: Memo<Range<usize>>,
    asked: RwSignal<Option<usize>>,
    is_later: bool,
) -> impl IntoView {
    let hidden = memo(move || {
        let shown = shown.get();
        match is_later {
            false => shown.start,
            true => children.with(Vec::len).saturating_sub(shown.end),
        }
    });
    let go = move |event: MouseEvent| {
        event.prevent_default();
        let (shown, count) = (shown.get_untracked(), children.with_untracked(Vec::len));
        asked.set(match is_later {
            false => Some(shown.start.saturating_sub(USUAL)),
            // Those at the end are followed.
            true => Some(shown.end).filter(|first| first + USUAL < count),
        });
    };
    dynamic_view(move || {
        (hidden.get() > 0).then(|| {
            let thing = if is_later { "later call" } else { "earlier call" };
            let href = dynamic(move || {
                let shown = shown.get();
                let next = if is_later {
                    shown.end
                } else {
                    shown.start.saturating_sub(1)
                };
                children.with(|children| children.get(next).map(Selection::href))
            });
            view! {
                <div class="older">
                    <a class="btn btn--sm" href=href on:click=handler(go)>
                        {dynamic(move || format!("Show {}", words::counted(hidden.get(), thing)))}
                    </a>
                </div>
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_calls_all_are_in_the_page_and_of_many_the_newest() {
        for count in [0, 1, MOST] {
            assert_eq!(range(count, first(count, None, None), None), 0..count);
            assert_eq!(range(count, first(count, Some(7), None), Some(7)), 0..count);
        }
        assert_eq!(range(2000, first(2000, None, None), None), 1960..2000);
    }

    #[test]
    fn while_calls_come_the_first_one_stays_for_a_while() {
        let mut known = None;
        let mut moves = 0;
        for count in 0..2000 {
            let next = first(count, None, known);
            moves += usize::from(known.is_some_and(|known| known != next));
            assert!(range(count, next, None).len() <= MOST);
            known = Some(next);
        }
        assert!(moves <= 2000 / (MOST - USUAL), "{moves}");
    }

    #[test]
    fn what_is_asked_for_stays_as_more_come_and_is_never_beyond_the_end() {
        assert_eq!(
            range(2000, first(2000, Some(100), Some(1960)), Some(100)),
            100..140
        );
        assert_eq!(
            range(3000, first(3000, Some(100), Some(100)), Some(100)),
            100..140
        );
        assert_eq!(range(100, first(100, Some(5000), None), Some(5000)), 99..100);
    }

    #[test]
    fn a_call_that_is_wanted_comes_into_the_page() {
        let shown = 1960..2000;
        assert_eq!(around(2000, &shown, 1970), None);
        let first_shown = around(2000, &shown, 500).unwrap();
        assert!(range(2000, first_shown, Some(first_shown)).contains(&500));
        assert_eq!(around(2000, &shown, 3), Some(0));
    }
}
