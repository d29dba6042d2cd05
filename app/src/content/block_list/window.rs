//! Which of an attempt's blocks are in the page: about so many elements of them, the newest or those that were asked for.

use leptos::prelude::*;
use protocol::id::{AttemptId, BlockId};
use protocol::snapshot::LeftOut;

use super::Chunk;
use crate::data::port::Earlier;
use crate::data::run_store::RunStore;

#[cfg(feature = "hydrate")]
mod browser;

/// About so many elements of blocks are in the page.
const USUAL: usize = 1_000;

/// While new blocks come, those before them stay until there are about so many elements.
const MOST: usize = 1_900;

/// Something that is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    Chunk(Chunk),
    Gap(LeftOut),
}

impl Shown {
    /// What stays the same while its place in the page does.
    pub(super) fn key(&self) -> (Option<BlockId>, bool, u32) {
        match self {
            Self::Chunk(chunk) => (Some(chunk.first.clone()), chunk.is_tools, 0),
            Self::Gap(gap) => (None, false, gap.to),
        }
    }

    fn index(&self) -> u32 {
        match self {
            Self::Chunk(chunk) => chunk.index,
            Self::Gap(gap) => gap.from,
        }
    }

    fn end(&self) -> u32 {
        match self {
            Self::Chunk(chunk) => chunk.end,
            Self::Gap(gap) => gap.to,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Chunk(chunk) => chunk.weight,
            Self::Gap(_) => 2,
        }
    }

    fn is_gap(&self) -> bool {
        matches!(self, Self::Gap(_))
    }
}

/// Where the rest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Earlier,
    Later,
}

impl Side {
    pub(super) fn thing(self) -> &'static str {
        match self {
            Self::Earlier => "earlier block",
            Self::Later => "later block",
        }
    }
}

/// Chunks and what is left out between them, by index.
fn items(chunks: &[Chunk], gaps: &[LeftOut]) -> Vec<Shown> {
    let mut items: Vec<Shown> = chunks.iter().cloned().map(Shown::Chunk).collect();
    items.extend(gaps.iter().cloned().map(Shown::Gap));
    items.sort_by_key(Shown::index);
    items
}

/// The index at which a stretch begins that ends before an index and has half of the usual weight.
pub(super) fn start_before(chunks: &[Chunk], gaps: &[LeftOut], before: u32) -> u32 {
    let mut start = before;
    let mut total = 0;
    for item in items(chunks, gaps)
        .iter()
        .rev()
        .filter(|item| item.end() <= before)
    {
        total += item.weight();
        if item.is_gap() || (total > USUAL / 2 && start < before) {
            break;
        }
        start = item.index();
    }
    start
}

/// What is in the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) items: Vec<Shown>,
    /// Blocks before and after.
    earlier: usize,
    later: usize,
    /// The index of the first item, and whether it follows the newest.
    start: u32,
    is_newest: bool,
}

impl Window {
    /// From an index on, or the newest. While the newest are shown and more come, the first one stays for a while.
    pub(super) fn of(chunks: &[Chunk], gaps: &[LeftOut], asked: Option<u32>, known: Option<&Self>) -> Self {
        let all = items(chunks, gaps);
        let weight_from = |start: u32| -> usize {
            let items = all.iter().filter(|item| item.index() >= start);
            items.map(Shown::weight).sum()
        };
        let (first, most) = match asked {
            Some(start) => (all.partition_point(|item| item.end() <= start), MOST),
            None => {
                let kept = known
                    .filter(|known| known.is_newest && !known.items.is_empty())
                    .map(|known| known.start)
                    .filter(|start| weight_from(*start) <= MOST);
                (newest(&all, kept), usize::MAX)
            }
        };
        let mut items: Vec<Shown> = Vec::new();
        let mut total = 0;
        for item in all.get(first..).unwrap_or_default() {
            total += item.weight();
            if total > most && items.iter().any(|item| !item.is_gap()) {
                break;
            }
            items.push(item.clone());
        }
        // What is left out at the edges is reached by the buttons there.
        let leading = items.iter().take_while(|item| item.is_gap()).count();
        let first = first + leading;
        items.drain(..leading);
        let after = first + items.len();
        let trailing = items.iter().rev().take_while(|item| item.is_gap()).count();
        items.truncate(items.len() - trailing);
        let blocks = |items: &[Shown]| {
            let count: u64 = items
                .iter()
                .map(|item| match item {
                    Shown::Chunk(chunk) => chunk.members.len() as u64,
                    Shown::Gap(gap) => gap.blocks(),
                })
                .sum();
            usize::try_from(count).unwrap_or(usize::MAX)
        };
        Self {
            earlier: blocks(all.get(..first).unwrap_or_default()),
            later: blocks(all.get(after - trailing..).unwrap_or_default()),
            start: items.first().map_or(0, Shown::index),
            is_newest: asked.is_none(),
            items,
        }
    }

    /// Everything, however much it is.
    pub(super) fn all(chunks: &[Chunk], gaps: &[LeftOut]) -> Self {
        Self {
            items: items(chunks, gaps),
            is_newest: true,
            ..Self::default()
        }
    }

    /// Whether the block of an index is in the page.
    pub(super) fn holds(&self, index: u32) -> bool {
        let mut chunks = self.items.iter().filter(|item| !item.is_gap());
        chunks.any(|item| item.index() <= index && index < item.end())
    }

    /// The index after the last item.
    fn end(&self) -> u32 {
        self.items.last().map_or(self.start, Shown::end)
    }
}

/// The place of the first item so that those from it on have the usual weight; at least one is there. Without anything
/// left out in between.
fn newest(all: &[Shown], kept: Option<u32>) -> usize {
    if let Some(start) = kept {
        return all.partition_point(|item| item.end() <= start);
    }
    let mut total = 0;
    let mut first = all.len();
    for (place, item) in all.iter().enumerate().rev() {
        total += item.weight();
        if first < all.len() && (total > USUAL || item.is_gap()) {
            break;
        }
        first = place;
    }
    first
}

/// Loads and shows what is not in the page. A copy is another handle on it.
#[derive(Clone, Copy)]
pub(super) struct Loader {
    run: StoredValue<RunStore>,
    attempt_id: StoredValue<AttemptId>,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser goes on")
    )]
    read: Memo<(Vec<Chunk>, Vec<LeftOut>)>,
    shown: Memo<Window>,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser goes on")
    )]
    asked: RwSignal<Option<u32>>,
    is_busy: RwSignal<bool>,
    failed: RwSignal<Option<String>>,
}

impl Loader {
    pub(super) fn new(
        run: RunStore,
        attempt_id: AttemptId,
        read: Memo<(Vec<Chunk>, Vec<LeftOut>)>,
        shown: Memo<Window>,
        asked: RwSignal<Option<u32>>,
    ) -> Self {
        Self {
            run: StoredValue::new(run),
            attempt_id: StoredValue::new(attempt_id),
            read,
            shown,
            asked,
            is_busy: RwSignal::new(false),
            failed: RwSignal::new(None),
        }
    }

    /// How many blocks there are at a side that are not in the page.
    pub(super) fn hidden(self, side: Side) -> usize {
        self.shown.with(|window| match side {
            Side::Earlier => window.earlier,
            Side::Later => window.later,
        })
    }

    pub(super) fn is_busy(self) -> bool {
        self.is_busy.get()
    }

    pub(super) fn failed(self) -> Option<String> {
        self.failed.get()
    }

    /// The address that shows what is at a side.
    pub(super) fn href(self, side: Side) -> String {
        /// So many blocks further.
        const STEP: u32 = 50;
        let before = self.shown.with(|window| match side {
            Side::Earlier => window.start,
            Side::Later => window.end().saturating_add(STEP),
        });
        self.place(before).href()
    }

    /// The address that shows the end of what is left out.
    pub(super) fn gap_href(self, gap: &LeftOut) -> String {
        self.place(gap.to).href()
    }

    fn place(self, before: u32) -> Earlier {
        Earlier {
            attempt_id: self.attempt_id.get_value(),
            before,
        }
    }

    /// Shows what is at a side; what is far away from it goes.
    #[cfg(not(feature = "hydrate"))]
    pub(super) fn go(self, _: Side) {
        let _ = self.run;
    }

    /// Loads the end of what is left out in between.
    #[cfg(not(feature = "hydrate"))]
    pub(super) fn fill(self, _: LeftOut) {}
}

#[cfg(test)]
mod tests;
