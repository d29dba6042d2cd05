//! The browser's part: loads what is left out, and keeps what is being read in its place.

use leptos::prelude::*;
use protocol::snapshot::LeftOut;
use wasm_bindgen::JsCast;
use web_sys::Element;

use super::{Loader, Shown, Side, USUAL, items, start_before};
use crate::data::api;
use crate::data::guide::Guide;
use crate::data::selection::Part;
use crate::ui::dynamic::effect;

/// So many blocks are loaded at once.
const LOADED: u32 = 100;

impl Loader {
    /// Shows what is at a side; what is far away from it goes.
    pub(in super::super) fn go(self, side: Side) {
        match side {
            Side::Later => self.later(),
            Side::Earlier => {
                let start = self.shown.with_untracked(|window| window.start);
                let gap = self
                    .read
                    .with_untracked(|(_, gaps)| gaps.iter().find(|gap| gap.to == start).cloned());
                let none = self.shown.with_untracked(|window| window.items.is_empty());
                let gap = gap.or_else(|| {
                    none.then(|| self.read.with_untracked(|(_, gaps)| gaps.last().cloned()))
                        .flatten()
                });
                match gap {
                    Some(gap) => self.load(gap.to, Some(gap.to)),
                    None => self.show_before(start),
                }
            }
        }
    }

    /// Loads the end of what is left out in between.
    pub(in super::super) fn fill(self, gap: LeftOut) {
        self.load(gap.to, None);
    }

    /// Of a call that was left out nothing is here yet: who opens it wants to see it.
    pub(in super::super) fn load_if_empty(self) {
        effect(move || {
            let empty = self.shown.with_untracked(|window| window.items.is_empty());
            let last = self.read.with_untracked(|(_, gaps)| gaps.last().cloned());
            if let (true, Some(gap)) = (empty, last) {
                self.load(gap.to, None);
            }
        });
    }

    /// Draws the block through which a way leads, in a part of the page.
    pub(in super::super) fn lead(self, guide: Guide, part: Part) {
        effect(move || {
            let attempt = self.attempt_id.get_value();
            let Some(index) = guide.index_in(&attempt, part) else {
                return;
            };
            if !self.shown.with_untracked(|window| window.holds(index)) {
                let start = self
                    .read
                    .with_untracked(|(chunks, gaps)| start_before(chunks, gaps, index.saturating_add(1)));
                self.asked.set(Some(start));
            }
        });
    }

    fn show_before(self, before: u32) {
        let start = self
            .read
            .with_untracked(|(chunks, gaps)| start_before(chunks, gaps, before));
        let kept = Kept::first(self);
        self.asked.set(Some(start));
        kept.hold();
    }

    /// Half of what is shown goes, and as much comes after it.
    fn later(self) {
        let (next, is_end) = self.shown.with_untracked(|window| {
            let mut total = 0;
            let half = window.items.iter().find(|item| {
                total += item.weight();
                total > USUAL / 2
            });
            let last = window.items.last();
            let next = half.or(last).map_or(window.start, Shown::index);
            // Where one item is all that is shown, the next one is.
            let next = if next <= window.start { window.end() } else { next };
            let (end, rest) = (
                window.end(),
                self.read.with_untracked(|(chunks, gaps)| items(chunks, gaps)),
            );
            let after: usize = rest
                .iter()
                .filter(|item| item.index() >= end)
                .map(Shown::weight)
                .sum();
            (next, after <= USUAL / 2)
        });
        let gap = self.read.with_untracked(|(_, gaps)| {
            let end = self.shown.with_untracked(super::Window::end);
            gaps.iter().find(|gap| gap.from == end).cloned()
        });
        if let Some(gap) = gap {
            let before = gap.from.saturating_add(LOADED).min(gap.to);
            return self.load(before, None);
        }
        let kept = Kept::last(self);
        self.asked.set((!is_end).then_some(next));
        kept.hold();
    }

    /// Loads blocks before an index. Then what stands before `show` is shown.
    fn load(self, before: u32, show: Option<u32>) {
        if self.is_busy.get_untracked() {
            return;
        }
        self.is_busy.set(true);
        let (run, place) = (self.run.get_value(), self.place(before));
        leptos::task::spawn_local(async move {
            let mut answer = api::earlier(run.run_id(), &place, LOADED).await;
            let mut is_stale = false;
            // Once more where something changed between reading and taking in.
            for _ in 0..2 {
                let Ok(window) = answer else { break };
                let kept = self.shown.try_with_untracked(|_| ()).map(|()| Kept::first(self));
                is_stale = run.add(window).is_err();
                if !is_stale {
                    if let Some(kept) = kept {
                        kept.hold();
                    }
                    answer = Err(crate::data::load::problem("done", ""));
                    break;
                }
                answer = api::earlier(run.run_id(), &place, LOADED).await;
            }
            if self.is_busy.try_set(false).is_some() {
                return;
            }
            match answer {
                Err(problem) if problem.code != "done" => self.failed.set(Some(problem.detail)),
                _ if is_stale => self
                    .failed
                    .set(Some("The run has gone on meanwhile: try again.".to_owned())),
                _ => {
                    self.failed.set(None);
                    if let Some(show) = show {
                        self.show_before(show);
                    }
                }
            }
        });
    }
}

/// An element that stays where it is on the screen while others come and go.
struct Kept(Option<(Element, f64)>);

impl Kept {
    fn first(loader: Loader) -> Self {
        Self::of(
            loader
                .shown
                .with_untracked(|window| window.items.iter().find_map(block)),
        )
    }

    fn last(loader: Loader) -> Self {
        Self::of(
            loader
                .shown
                .with_untracked(|window| window.items.iter().rev().find_map(block)),
        )
    }

    fn of(block: Option<String>) -> Self {
        Self(block.and_then(|block| {
            let element = document()
                .query_selector(&format!("#main [data-block-id=\"{block}\"]"))
                .ok()
                .flatten()?;
            let top = element.get_bounding_client_rect().top();
            Some((element, top))
        }))
    }

    /// Puts it back once the others are drawn.
    fn hold(self) {
        let Some((element, top)) = self.0 else { return };
        request_animation_frame(move || {
            let scroller = element.closest(".main__scroll").ok().flatten();
            if let Some(scroller) = scroller.filter(|_| element.is_connected()) {
                let scroller: Element = scroller.unchecked_into();
                let moved = element.get_bounding_client_rect().top() - top;
                scroller.set_scroll_top(scroller.scroll_top() + moved.round() as i32);
            }
        });
    }
}

fn block(item: &Shown) -> Option<String> {
    match item {
        Shown::Chunk(chunk) => Some(chunk.first.to_string()),
        Shown::Gap(_) => None,
    }
}
