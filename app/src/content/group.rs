//! Tool rows that stand together; with a frame and a count once the executor has declared them a concurrent batch.

use leptos::prelude::*;
use protocol::id::BlockId;
use protocol::model::BlockBody;

use super::block_list::Chunk;
use super::tool_row::{Call, ToolRow};
use super::words;
use crate::data::clock::PageClock;
use crate::data::run_store::RunStore;
use crate::data::selection::Selection;
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, memo};
use crate::ui::{Icon, IconName, StateKind, StateMark};

/// The chunk that begins with `first`. Its element and its rows stay the same when they become a group.
#[component]
pub fn ToolGroup(
    /// The run.
    run: RunStore,
    /// Its first block.
    first: BlockId,
    /// All chunks of the attempt.
    chunks: Memo<Vec<Chunk>>,
    /// How many model nodes it lies within.
    depth: usize,
) -> impl IntoView {
    let chunk = memo(move || chunks.with(|chunks| chunks.iter().find(|chunk| chunk.first == first).cloned()));
    let members = memo(move || {
        chunk
            .with(|chunk| chunk.as_ref().map(|chunk| chunk.members.clone()))
            .unwrap_or_default()
    });
    // A batch with words between its members keeps its rows in their places: each part says that it belongs to one.
    let group = memo(move || chunk.with(|chunk| chunk.as_ref().and_then(|chunk| chunk.group.clone())));
    let selection = Selection::use_context();
    let is_marked = {
        let run = run.clone();
        memo(move || {
            group.with(Option::is_some)
                && members.get().iter().any(|block| {
                    node_of(&run, block).is_some_and(|node| selection.is(&node) || selection.is_within(&node))
                })
        })
    };
    let class = dynamic(move || match (group.with(Option::is_some), is_marked.get()) {
        (false, _) => "llm",
        (true, false) => "group",
        (true, true) => "group group--marked",
    });
    let label = dynamic(move || {
        group
            .with(Option::is_some)
            .then(|| format!("Parallel group of {}", members.with(Vec::len)))
    });
    let head = {
        let run = run.clone();
        move || {
            group
                .with(Option::is_some)
                .then(|| view! { <GroupHead run=run.clone() members/> })
        }
    };
    view! {
        <section
            class=class
            aria-label=label
            data-group-id=dynamic(move || group.get().map(|group| group.to_string()))
        >
            {head}
            {dynamic_list(
                move || members.get(),
                Clone::clone,
                move |block| view! { <ToolRow run=run.clone() call=Call::Block(block) depth/> },
            )}
        </section>
    }
}

fn node_of(run: &RunStore, block: &BlockId) -> Option<protocol::id::NodeId> {
    run.block(block, |block| match &block.body {
        BlockBody::ToolRef(reference) => reference.ref_node_id.clone(),
        _ => None,
    })
    .flatten()
}

/// How many run together, how each stands, and how long it has taken.
#[component]
fn GroupHead(run: RunStore, members: Memo<Vec<BlockId>>) -> impl IntoView {
    let clock = PageClock::use_context();
    let facts = memo(move || {
        let mut counts: Vec<(StateKind, usize)> = Vec::new();
        let mut span = (None, Some(i64::MIN));
        for block in members.get() {
            let node = node_of(&run, &block).and_then(|id| {
                let times = run.node(&id, |node| {
                    (node.started_at, node.state.end().map(|end| end.finished_at))
                });
                run.shown_state(&id).zip(times)
            });
            let Some((state, (start, end))) = node else {
                continue;
            };
            match counts.iter_mut().find(|(known, _)| *known == state) {
                Some((_, count)) => *count += 1,
                None => counts.push((state, 1)),
            }
            span.0 = [span.0, start].into_iter().flatten().min();
            span.1 = span.1.zip(end).map(|(known, end): (i64, i64)| known.max(end));
        }
        // Always in the same order, so that nothing changes its place when one ends.
        counts.sort_by_key(|(state, _)| StateKind::ALL.iter().rposition(|known| known == state));
        (counts, span)
    });
    let counts = dynamic_view(move || {
        facts
            .get()
            .0
            .into_iter()
            .map(|(state, count)| {
                let words = Signal::stored(format!("{count} {}", state.word()));
                view! { <StateMark state words/> }
            })
            .collect_view()
    });
    let time = dynamic(move || facts.with(|(_, (start, end))| words::span(*start, *end, clock)));
    view! {
        <div class="group__head">
            <span class="group__title">
                <Icon icon=IconName::Parallel/>
                {dynamic(move || members.with(Vec::len))}
                " "
                <span>"in parallel"</span>
            </span>
            <span class="group__count">{counts}</span>
            <time class="group__time">{time}</time>
        </div>
    }
}
