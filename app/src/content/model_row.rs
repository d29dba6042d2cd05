//! The row of a model node, its card: name, what it says, state and time; opened, its content.

use leptos::either::Either;
use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::StreamActivity;

use super::llm_node_content::LlmNodeContent;
use super::scope::scoped;
use super::tool_row::RowActions;
use super::words;
use crate::data::clock::PageClock;
use crate::data::expansion::{self, Expansion};
use crate::data::live::Live;
use crate::data::run_store::{Piece, RunStore};
use crate::data::selection::Selection;
use crate::ui::dynamic::{dynamic, handler, memo};
use crate::ui::{Icon, IconName, StateKind, StateMark, StreamChip};

/// A model node. It is open by default: whoever opened what lies above it wants to see it.
#[component]
pub fn ModelRow(
    /// The run.
    run: RunStore,
    /// The node.
    node_id: NodeId,
    /// How many model nodes it lies within.
    depth: usize,
) -> impl IntoView {
    let open = Expansion::use_context().row(&expansion::key(&node_id, None), Signal::stored(true));
    let is_open = open.signal();
    let clock = PageClock::use_context();
    let selection = Selection::use_context();
    let (body_id, own_id) = (scoped(format_args!("content-{node_id}")), node_id.to_string());

    let name = node_memo(&run, &node_id, |run, id| {
        run.node(id, |node| node.name.clone()).unwrap_or_default()
    });
    let state = node_memo(&run, &node_id, |run, id| {
        run.shown_state(id).unwrap_or(StateKind::Unresolved)
    });
    let model = node_memo(&run, &node_id, |run, id| {
        run.attempts(id)
            .last()
            .and_then(|attempt| run.attempt(attempt, |attempt| attempt.model.clone()))
            .unwrap_or_default()
    });
    let preview = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            if is_open.get() {
                String::new()
            } else {
                preview(&run, &node_id)
            }
        })
    };
    let summary = dynamic(move || match (model.get(), preview.get()) {
        (model, preview) if preview.is_empty() => model,
        (model, preview) => format!("{model} · {preview}"),
    });
    let meta = node_memo(&run, &node_id, |run, id| {
        let attempts = run.attempts(id).len();
        if attempts > 1 {
            format!("attempt {attempts}")
        } else {
            String::new()
        }
    });
    let time = {
        let (run, node_id) = (run.clone(), node_id.clone());
        move || {
            run.node(&node_id, |node| words::node_span(node, clock))
                .unwrap_or_else(|| "–".to_owned())
        }
    };
    let class = {
        let node_id = node_id.clone();
        memo(
            move || match (selection.is(&node_id), selection.is_within(&node_id)) {
                (true, _) => "row row--model row--selected",
                (false, true) => "row row--model row--marked",
                (false, false) => "row row--model",
            },
        )
    };
    let content = {
        let (run, node_id) = (run.clone(), node_id.clone());
        let content_id = body_id.clone();
        move || {
            let (run, node_id) = (run.clone(), node_id.clone());
            let id = content_id.clone();
            is_open.get().then(|| {
                if depth == 0 {
                    Either::Left(view! { <LlmNodeContent run node_id depth id=Some(id)/> })
                } else {
                    Either::Right(view! { <div class="nest" id=id><LlmNodeContent run node_id depth/></div> })
                }
            })
        }
    };
    view! {
        <div class=class id=scoped(format_args!("node-{own_id}")) data-node-id=own_id data-state=dynamic(move || state.get().class())>
            <button
                type="button"
                class="row__toggle"
                aria-expanded=dynamic(move || is_open.get().to_string())
                aria-controls=body_id
                on:click=handler(move |_| open.toggle())
            >
                <Icon icon=IconName::Chevron class="row__chev"/>
                <Icon icon=IconName::Model class="row__icon"/>
                <span class="row__name row__name--plain">{name}</span>
                <span class="row__sum">{summary}</span>
                <span class="row__meta">{meta}</span>
                <StateMark state/>
                <time class="row__time">{time}</time>
            </button>
            <RowActions run node_id=Signal::stored(Some(node_id))/>
        </div>
        {content}
    }
}

/// Something about a node, read again when it changes.
fn node_memo<T: PartialEq + Send + Sync + 'static>(
    run: &RunStore,
    node_id: &NodeId,
    read: fn(&RunStore, &NodeId) -> T,
) -> Memo<T> {
    let (run, node_id) = (run.clone(), node_id.clone());
    memo(move || read(&run, &node_id))
}

/// The newest line of what a node wrote.
fn preview(run: &RunStore, node_id: &NodeId) -> String {
    let Some(attempt) = run.attempts(node_id).pop() else {
        return String::new();
    };
    let text = run.read(Piece::Blocks(attempt.clone()), |state| {
        let text = |block: &protocol::model::Block| matches!(block.body, protocol::model::BlockBody::Text(_));
        state
            .blocks_of(&attempt)
            .rfind(|block| text(block))
            .map(|block| block.block_id.clone())
    });
    text.and_then(|block| run.content(&block, |text| words::last_line(text, 160)))
        .unwrap_or_default()
}

/// What the stream of a model node is doing, in fixed slots.
pub fn stream_chip(run: &RunStore, node_id: &NodeId, bare: bool) -> impl IntoView + use<> {
    let clock = PageClock::use_context();
    let live = Live::use_context();
    let stream = node_memo(run, node_id, |run, id| {
        run.read(Piece::Streams, |state| state.stream(id).cloned())
    });
    let settled = node_memo(run, node_id, |run, id| {
        run.node(id, |node| words::node_state(node.state.status()))
            .filter(|_| run.node(id, |node| node.state.end().is_some()) == Some(true))
    });
    // What was heard last is then no news.
    let is_lost = memo(move || settled.get().is_none() && live.state().is_lost());
    let state = memo(move || match settled.get() {
        Some(state) => state,
        None if is_lost.get() => StateKind::Waiting,
        None => stream.with(|stream| {
            stream
                .as_ref()
                .map_or(StateKind::Waiting, |stream| activity(stream.state))
        }),
    });
    let words = Signal::derive(move || match settled.get() {
        Some(state) => state.word().to_owned(),
        None if is_lost.get() => "no news".to_owned(),
        None => stream.with(|stream| match stream {
            None => "waiting".to_owned(),
            Some(stream) => activity_words(stream, clock),
        }),
    });
    let is_live = memo(move || settled.get().is_none() && !is_lost.get() && stream.with(Option::is_some));
    let is_doing = move |activities: &[StreamActivity]| {
        is_live.get()
            && stream.with(|stream| {
                stream
                    .as_ref()
                    .is_some_and(|stream| activities.contains(&stream.state))
            })
    };
    // While nothing is to come, a rate and an age say nothing.
    let rate = Signal::derive(move || {
        let rate = stream.with(|stream| stream.as_ref().and_then(|stream| stream.tokens_per_second));
        is_doing(&[StreamActivity::Streaming, StreamActivity::Silent])
            .then(|| rate.unwrap_or(0.0).max(0.0).round() as u64)
    });
    let age = move |name: &str, read: fn(&protocol::model::StreamState) -> Option<i64>| {
        let at = stream.with(|stream| stream.as_ref().and_then(read))?;
        Some(format!("{name} {}", crate::ui::format::duration(clock.since(at))))
    };
    let slots = Signal::derive(move || {
        let is_awaited = is_doing(&[
            StreamActivity::WaitingFirstToken,
            StreamActivity::Streaming,
            StreamActivity::Silent,
        ]);
        if !is_awaited || bare {
            return Vec::new();
        }
        let ages = [
            age("byte", |stream| stream.last_byte_at),
            age("content", |stream| stream.last_content_at),
        ];
        ages.into_iter().flatten().collect()
    });
    view! { <StreamChip state words rate slots bare/> }
}

fn activity(activity: StreamActivity) -> StateKind {
    match activity {
        StreamActivity::WaitingFirstToken | StreamActivity::ToolRunning => StateKind::Waiting,
        StreamActivity::Streaming => StateKind::Streaming,
        StreamActivity::Silent => StateKind::Silent,
        StreamActivity::AwaitingPerson => StateKind::AwaitingApproval,
        StreamActivity::RateLimited => StateKind::RateLimited,
        StreamActivity::Retrying => StateKind::Retrying,
        StreamActivity::Rotating => StateKind::Rotating,
        StreamActivity::Settled => StateKind::Waiting,
    }
}

/// What a stream is doing, in words that go on with the clock.
fn activity_words(stream: &protocol::model::StreamState, clock: PageClock) -> String {
    use protocol::state::LivenessClock;

    use crate::ui::format;
    let since = || {
        stream
            .since
            .map(|at| format!(" {}", format::duration(clock.since(at))))
            .unwrap_or_default()
    };
    let until = || {
        stream
            .until
            .map(|at| u64::try_from(at - clock.now()).unwrap_or(0))
    };
    match stream.state {
        StreamActivity::WaitingFirstToken => format!("waiting for the first token{}", since()),
        StreamActivity::Streaming => "streaming".to_owned(),
        StreamActivity::Silent => match stream.clock {
            // Bytes still come: only content is missing.
            Some(LivenessClock::Content) => format!("silent{} (connection alive)", since()),
            Some(LivenessClock::Byte) | None => format!("silent{}", since()),
        },
        StreamActivity::ToolRunning => "tool running".to_owned(),
        StreamActivity::AwaitingPerson => "needs you".to_owned(),
        StreamActivity::RateLimited => match stream.until {
            Some(at) => format!("rate limited until {}", format::clock(at, clock.zone())),
            None => "rate limited".to_owned(),
        },
        StreamActivity::Retrying => {
            let count = stream
                .attempt_number
                .zip(stream.attempts_max)
                .map(|(n, max)| format!(" {n}/{max}"));
            let wait = until().map(|wait| format!(" in {}", format::duration(wait)));
            let reason = stream
                .reason
                .as_ref()
                .map(|reason| format!(": {}", words::first_line(reason, 60)));
            [
                "retrying".to_owned(),
                count.unwrap_or_default(),
                wait.unwrap_or_default(),
                reason.unwrap_or_default(),
            ]
            .concat()
        }
        StreamActivity::Rotating => {
            let to = stream.to.as_deref().unwrap_or("another provider");
            match until().filter(|wait| *wait > 0) {
                Some(wait) => format!("moves to {to} in {}", format::duration(wait)),
                None => format!("moved to {to}"),
            }
        }
        StreamActivity::Settled => "settled".to_owned(),
    }
}
