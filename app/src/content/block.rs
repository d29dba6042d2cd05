//! The blocks of an attempt, by index.

use leptos::either::EitherOf5;
use leptos::prelude::*;
use protocol::id::{AttemptId, BlockId, GroupId};
use protocol::model::{Block, BlockBody, BlockState};
use protocol::state::BlockStatus;

use super::gap::Gap;
use super::group::ToolGroup;
use super::reasoning::ReasoningRow;
use super::scope::scoped;
use crate::data::run_store::{Piece, RunStore};
use crate::markdown::{MarkdownView, ReadText};
use crate::ui::{IconName, format};

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
            }
            _ => chunks.push(Chunk {
                first: block.block_id.clone(),
                members: vec![block.block_id.clone()],
                group,
                is_tools,
                round: block.round,
            }),
        }
    }
    chunks
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
    let chunks = {
        let run = run.clone();
        Memo::new(move |_| {
            run.read(Piece::Blocks(attempt_id.clone()), |state| {
                chunks(state.blocks_of(&attempt_id))
            })
        })
    };
    view! {
        <For
            each=move || chunks.get()
            key=|chunk| (chunk.first.clone(), chunk.is_tools)
            children=move |chunk| {
                let run = run.clone();
                if chunk.is_tools {
                    view! { <ToolGroup run first=chunk.first chunks depth/> }.into_any()
                } else {
                    view! { <BlockView run block_id=chunk.first/> }.into_any()
                }
            }
        />
    }
}

/// The kinds of blocks that are drawn here; tool rows have their own component.
enum Kind {
    Text,
    Reasoning,
    Refusal,
    Unsupported(String, u64),
    Nothing,
}

/// One block that is not a tool row. What kind it is never changes.
#[component]
fn BlockView(run: RunStore, block_id: BlockId) -> impl IntoView {
    let kind = run.peek(|state| {
        state
            .block(&block_id)
            .map_or(Kind::Nothing, |block| match &block.body {
                BlockBody::Text(_) => Kind::Text,
                BlockBody::Reasoning { .. } => Kind::Reasoning,
                BlockBody::Refusal(_) => Kind::Refusal,
                BlockBody::Unsupported { raw_kind, bytes } => Kind::Unsupported(raw_kind.clone(), *bytes),
                BlockBody::ToolRef(_) | BlockBody::ParallelGroup { .. } => Kind::Nothing,
            })
    });
    match kind {
        Kind::Text => EitherOf5::A(view! { <TextBlock run block_id/> }),
        Kind::Reasoning => EitherOf5::B(view! { <ReasoningRow run block_id/> }),
        Kind::Refusal => EitherOf5::C(view! { <Refusal run block_id/> }),
        Kind::Unsupported(raw_kind, bytes) => EitherOf5::D(view! {
            <Gap
                icon=IconName::Other
                title=format!("Unsupported block kind “{raw_kind}”.")
                cause="Kept in the record as it came."
                size=format::bytes(bytes)
                attr:data-block-id=block_id.to_string()
                attr:data-block-kind="unsupported"
            />
        }),
        Kind::Nothing => EitherOf5::E(()),
    }
}

/// The text of a block, to be read again whenever it grows.
pub fn read_text(run: &RunStore, block_id: &BlockId) -> ReadText {
    let (run, block_id) = (run.clone(), block_id.clone());
    std::sync::Arc::new(move |give: &mut dyn FnMut(&str)| {
        run.content(&block_id, give);
    })
}

/// Whether the text of a block has ended.
pub fn is_finished(run: &RunStore, block_id: &BlockId) -> Signal<bool> {
    let (run, block_id) = (run.clone(), block_id.clone());
    Memo::new(move |_| {
        run.block(&block_id, |block| block.state.status().is_final())
            .unwrap_or(true)
    })
    .into()
}

/// The word of a block's state.
pub fn block_state(run: &RunStore, block_id: &BlockId) -> Memo<&'static str> {
    let (run, block_id) = (run.clone(), block_id.clone());
    Memo::new(move |_| {
        run.block(&block_id, |block| block.state.status().as_str())
            .unwrap_or("complete")
    })
}

/// Text, as Markdown.
#[component]
fn TextBlock(run: RunStore, block_id: BlockId) -> impl IntoView {
    let (read, finished) = (read_text(&run, &block_id), is_finished(&run, &block_id));
    let state = block_state(&run, &block_id);
    let id = block_id.to_string();
    view! {
        <MarkdownView
            id_prefix=scoped(&block_id)
            read
            finished
            attr:data-block-id=id
            attr:data-block-kind="text"
            attr:data-state=move || state.get()
        />
        <BlockEnd run block_id/>
    }
}

/// What is missing after a text: it was cut, or only its beginning is in the page.
#[component]
pub fn BlockEnd(
    /// The run.
    run: RunStore,
    /// The block.
    block_id: BlockId,
) -> impl IntoView {
    let cut = {
        let (run, block_id) = (run.clone(), block_id.clone());
        Memo::new(move |_| {
            run.block(&block_id, |block| match &block.state {
                BlockState::Ended(end) if end.status == BlockStatus::Cut => Some(end.bytes),
                _ => None,
            })
            .flatten()
        })
    };
    let whole = {
        let block_id = block_id.clone();
        Memo::new(move |_| {
            run.block(&block_id, |block| {
                let content = block.body.content()?;
                content
                    .content_ref
                    .as_ref()
                    .map(|whole| (content.text.len() as u64, whole.bytes))
            })
            .flatten()
        })
    };
    let cut = move || {
        cut.get().map(|bytes| {
            view! {
                <Gap
                    icon=IconName::NoticeCut
                    title="Cut."
                    cause="The stream ended before the text did; what came is above."
                    size=format!("{} kept", format::bytes(bytes))
                />
            }
        })
    };
    let whole = move || {
        whole.get().map(|(shown, bytes)| {
            view! {
                <div class="io__more">
                    <span class="num">{format!("{} of {}", format::bytes(shown), format::bytes(bytes))}</span>
                    <a class="btn btn--sm" href=format!("/api/blocks/{block_id}/content") target="_blank" rel="external">
                        "Open whole"
                    </a>
                </div>
            }
        })
    };
    (whole, cut)
}

/// The model declined.
#[component]
fn Refusal(run: RunStore, block_id: BlockId) -> impl IntoView {
    let words = {
        let (run, block_id) = (run.clone(), block_id.clone());
        move || run.content(&block_id, str::to_owned).unwrap_or_default()
    };
    let state = block_state(&run, &block_id);
    view! {
        <div
            class="gap"
            data-block-id=block_id.to_string()
            data-block-kind="refusal"
            data-state=move || state.get()
        >
            <crate::ui::Icon icon=IconName::StateDenied/>
            <span><b>"The model declined."</b>" “"{words}"”"</span>
            <span class="gap__size">"refusal"</span>
        </div>
    }
}
