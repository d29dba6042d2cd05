//! One block that is not a tool row.

use std::sync::Arc;

use leptos::either::EitherOf5;
use leptos::prelude::*;
use protocol::id::BlockId;
use protocol::model::{Block, BlockBody, BlockState};
use protocol::state::BlockStatus;

use super::gap::Gap;
use super::pieces::{Cut, MARKDOWN, PieceControls, PieceList, Pieces, cut};
use super::reasoning::ReasoningRow;
use super::scope::scoped;
use crate::data::run_store::RunStore;
use crate::markdown::{MarkdownText, MarkdownView, ReadText};
use crate::ui::dynamic::{dynamic, memo};
use crate::ui::{IconName, format};

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
pub fn BlockView(
    /// The run.
    run: RunStore,
    /// The block.
    block_id: BlockId,
) -> impl IntoView {
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
        // Of a beginning the part of the last paragraph that is there waits for the rest of it.
        let end = run.block(&block_id, shown_bytes).flatten();
        run.content(&block_id, |text| {
            give(end.and_then(|end| text.get(..end)).unwrap_or(text));
        });
    })
}

/// Of a text whose beginning is here, how much of it is drawn: up to the end of a paragraph.
fn shown_bytes(block: &Block) -> Option<usize> {
    let content = block.body.content()?;
    content.content_ref.as_ref()?;
    Some(cut(&content.text, Cut::Paragraph))
}

/// Whether the text of a block has ended.
pub fn is_finished(run: &RunStore, block_id: &BlockId) -> Signal<bool> {
    let (run, block_id) = (run.clone(), block_id.clone());
    memo(move || {
        run.block(&block_id, |block| block.state.status().is_final())
            .unwrap_or(true)
    })
    .into()
}

/// The word of a block's state.
pub fn block_state(run: &RunStore, block_id: &BlockId) -> Memo<&'static str> {
    let (run, block_id) = (run.clone(), block_id.clone());
    memo(move || {
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
            attr:id=scoped(format_args!("block-{block_id}"))
            attr:data-block-id=id
            attr:data-block-kind="text"
            attr:data-state=dynamic(move || state.get())
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
        memo(move || {
            run.block(&block_id, |block| match &block.state {
                BlockState::Ended(end) if end.status == BlockStatus::Cut => Some(end.bytes),
                _ => None,
            })
            .flatten()
        })
    };
    let whole = {
        let (run, block_id) = (run.clone(), block_id.clone());
        memo(move || {
            run.block(&block_id, |block| {
                let whole = block.body.content()?.content_ref.as_ref()?;
                Some((shown_bytes(block)? as u64, whole.bytes))
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
    let is_long = memo(move || whole.with(Option::is_some));
    let rest = move || {
        is_long.get().then(|| {
            let pieces = Pieces::new(
                format!("/api/blocks/{block_id}/content"),
                Signal::derive(move || whole.get().unwrap_or_default()),
                MARKDOWN,
            )
            .follow(block_id.to_string(), None);
            let (prefix, part_of) = (scoped(&block_id), block_id.to_string());
            let draw = move |start: u64, text: String| {
                view! { <MarkdownText id_prefix=format!("{prefix}-{start}") source=text attr:data-part-of=part_of.clone()/> }.into_any()
            };
            view! {
                <PieceList pieces draw=Arc::new(draw)/>
                <PieceControls pieces/>
            }
        })
    };
    (rest, cut)
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
            id=scoped(format_args!("block-{block_id}"))
            data-block-id=block_id.to_string()
            data-block-kind="refusal"
            data-state=dynamic(move || state.get())
        >
            <crate::ui::Icon icon=IconName::StateDenied/>
            <span><b>"The model declined."</b>" “"{words}"”"</span>
            <span class="gap__size">"refusal"</span>
        </div>
    }
}
