//! The blocks of an attempt, by index: as many as a page can hold, with ways to those before and after.

mod window;

use leptos::ev::MouseEvent;
use leptos::prelude::*;
use protocol::fold::RunState;
use protocol::id::{AttemptId, BlockId, GroupId};
use protocol::model::{Block, BlockBody};
use protocol::snapshot::LeftOut;

use self::window::{Shown, Side, Window};
use super::block::BlockView;
use super::group::ToolGroup;
use super::scope::Scope;
use super::words;
use crate::data::guide::Guide;
use crate::data::port::Earlier;
use crate::data::run_store::{Piece, RunStore};
use crate::data::selection::Part;
use crate::markdown::MOST_ELEMENTS;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, handler, memo};

/// The place that the address of the page leads to, in context.
#[derive(Clone)]
pub struct Place(pub Option<Earlier>);

/// Blocks that are drawn together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its first block, which is also its key.
    pub first: BlockId,
    /// Its blocks in order: one, or tool rows that stand together.
    pub members: Vec<BlockId>,
    /// The concurrent batch that they are.
    pub group: Option<GroupId>,
    is_tools: bool,
    round: u32,
    /// The index of its first block.
    index: u32,
    /// The index after its last block.
    end: u32,
    /// About how many elements it is drawn with.
    weight: usize,
}

/// About how many elements a block is drawn with.
fn weight(block: &Block) -> usize {
    /// Bytes of Markdown for each element.
    const BYTES: usize = 24;
    match &block.body {
        BlockBody::Text(content) => 3 + (content.text.len() / BYTES).min(MOST_ELEMENTS),
        BlockBody::Reasoning { .. } => 12,
        BlockBody::ToolRef(_) => 32,
        BlockBody::Refusal(_) | BlockBody::Unsupported { .. } => 8,
        BlockBody::ParallelGroup { .. } => 0,
    }
}

/// Cuts the blocks of an attempt into chunks. Tool rows that follow each other in one provider round share a chunk from
/// the start, so that none of them moves when the executor declares that they run together.
pub fn chunks<'a>(blocks: impl Iterator<Item = &'a Block>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for block in blocks {
        let (is_tools, group) = match &block.body {
            // It draws nothing at its own index.
            BlockBody::ParallelGroup { .. } => continue,
            BlockBody::ToolRef(reference) => (true, reference.group_id.clone()),
            _ => (false, None),
        };
        match chunks.last_mut() {
            Some(last) if is_tools && last.is_tools && last.round == block.round && last.group == group => {
                last.members.push(block.block_id.clone());
                last.end = block.block_index.saturating_add(1);
                last.weight += weight(block);
            }
            _ => chunks.push(Chunk {
                first: block.block_id.clone(),
                members: vec![block.block_id.clone()],
                group,
                is_tools,
                round: block.round,
                index: block.block_index,
                end: block.block_index.saturating_add(1),
                weight: weight(block),
            }),
        }
    }
    chunks
}

/// How many blocks an attempt has, those that are left out included.
pub fn count(state: &RunState, attempt: &AttemptId) -> usize {
    let left_out: u64 = state.left_out_of(attempt).iter().map(LeftOut::blocks).sum();
    state.blocks_of(attempt).count() + usize::try_from(left_out).unwrap_or(usize::MAX)
}

/// All blocks of an attempt.
#[component]
pub fn BlockList(
    /// The run.
    run: RunStore,
    /// The attempt.
    attempt_id: AttemptId,
    /// How many model nodes it lies within.
    depth: usize,
) -> impl IntoView {
    let read = {
        let (run, attempt_id) = (run.clone(), attempt_id.clone());
        memo(move || {
            run.read(Piece::Blocks(attempt_id.clone()), |state| {
                let blocks = state.blocks_of(&attempt_id);
                (chunks(blocks), state.left_out_of(&attempt_id))
            })
        })
    };
    let chunks = memo(move || read.with(|(chunks, _)| chunks.clone()));
    let place = use_context::<Place>().and_then(|Place(place)| place);
    let before = place
        .filter(|place| place.attempt_id == attempt_id)
        .map(|place| place.before);
    let guide = Guide::use_context();
    // The details begin at their own root.
    let part = match use_context::<Scope>() {
        Some(_) => Part::Details,
        None => Part::Content,
    };
    // The first index that the reader asked for; none: the newest blocks.
    let asked = RwSignal::new(read.with_untracked(|(chunks, gaps)| {
        let led = untrack(|| guide.index_in(&attempt_id, part));
        let led = led.filter(|index| !Window::of(chunks, gaps, None, None).holds(*index));
        let before = before.or(led.map(|index| index.saturating_add(1)));
        before.map(|before| window::start_before(chunks, gaps, before))
    }));
    let all = is_alone();
    let shown = Memo::new(move |known: Option<&Window>| {
        read.with(|(chunks, gaps)| match all {
            true => Window::all(chunks, gaps),
            false => Window::of(chunks, gaps, asked.get(), known),
        })
    });
    let loader = window::Loader::new(run.clone(), attempt_id.clone(), read, shown, asked);
    #[cfg(feature = "hydrate")]
    {
        loader.load_if_empty();
        loader.lead(guide, part);
    }
    view! {
        <SideButton loader side=Side::Earlier/>
        {dynamic_list(
            move || shown.with(|window| window.items.clone()),
            Shown::key,
            move |item| match item {
                Shown::Chunk(chunk) if chunk.is_tools => {
                    view! { <ToolGroup run=run.clone() first=chunk.first chunks depth/> }.into_any()
                }
                Shown::Chunk(chunk) => view! { <BlockView run=run.clone() block_id=chunk.first/> }.into_any(),
                Shown::Gap(gap) => view! { <GapButton loader gap/> }.into_any(),
            },
        )}
        <SideButton loader side=Side::Later/>
    }
}

/// What stands before or after the blocks in the page. A link, so that it also leads there without script.
#[component]
fn SideButton(loader: window::Loader, side: Side) -> impl IntoView {
    let count = memo(move || loader.hidden(side));
    dynamic_view(move || {
        (count.get() > 0).then(|| {
            let words = dynamic(move || {
                let blocks = words::counted(count.get(), side.thing());
                format!("Show {blocks}")
            });
            let class = match side {
                Side::Earlier => "older older--earlier",
                Side::Later => "older older--later",
            };
            view! {
                <div class=class>
                    <a
                        class="btn btn--sm"
                        href=dynamic(move || loader.href(side))
                        aria-busy=dynamic(move || loader.is_busy().to_string())
                        on:click=handler(move |event: MouseEvent| {
                            event.prevent_default();
                            loader.go(side);
                        })
                    >
                        {words}
                    </a>
                    {dynamic_view(move || loader.failed().map(|failed| view! { <span role="alert">{failed}</span> }))}
                </div>
            }
        })
    })
}

/// Blocks that are left out in the middle of what is shown.
#[component]
fn GapButton(loader: window::Loader, gap: LeftOut) -> impl IntoView {
    let words = format!(
        "Show {} that are left out here",
        words::counted(usize::try_from(gap.blocks()).unwrap_or(usize::MAX), "block")
    );
    let href = loader.gap_href(&gap);
    view! {
        <div class="older">
            <a
                class="btn btn--sm"
                href=href
                on:click=handler(move |event: MouseEvent| {
                    event.prevent_default();
                    loader.fill(gap.clone());
                })
            >
                {words}
            </a>
        </div>
    }
}
