//! Reasoning: a row where it occurred, closed by default. Live it shows its newest line, done its first, with its time.

use leptos::either::Either;
use leptos::prelude::*;
use protocol::id::BlockId;
use protocol::model::BlockBody;
use protocol::state::Retention;

use super::block::{BlockEnd, block_state, is_finished, read_text};
use super::gap::Gap;
use super::scope::scoped;
use super::words;
use crate::data::clock::PageClock;
use crate::data::expansion::{self, Expansion};
use crate::data::run_store::RunStore;
use crate::markdown::MarkdownView;
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{Icon, IconName};

/// The most characters of the line that is shown.
const LINE: usize = 240;

/// A block of reasoning.
#[component]
pub fn ReasoningRow(
    /// The run.
    run: RunStore,
    /// The block.
    block_id: BlockId,
) -> impl IntoView {
    let clock = PageClock::use_context();
    let is_gone = {
        let (run, block_id) = (run.clone(), block_id.clone());
        memo(move || {
            run.block(&block_id, |block| {
                let gone = matches!(&block.body, BlockBody::Reasoning { content, retention: Retention::NotSaved }
                    if content.text.is_empty());
                gone && block.state.status().is_final()
            })
            .unwrap_or_default()
        })
    };
    let span = {
        let (run, block_id) = (run.clone(), block_id.clone());
        memo(move || {
            run.block(&block_id, |block| {
                (block.started_at, words::block_end(&block.state))
            })
        })
    };
    let time = move || {
        span.get()
            .map(|(start, end)| words::span(Some(start), end, clock))
    };
    dynamic_view(move || {
        let (run, block_id) = (run.clone(), block_id.clone());
        if is_gone.get() {
            Either::Left(view! {
                <Gap
                    icon=IconName::NoticeNotSaved
                    title="This content was not saved."
                    cause="Reasoning of this run was shown live only."
                    size=untrack(time).unwrap_or_default()
                    attr:data-block-id=block_id.to_string()
                    attr:data-block-kind="reasoning"
                />
            })
        } else {
            Either::Right(
                view! { <Row run block_id time=Signal::derive(move || time().unwrap_or_default())/> },
            )
        }
    })
}

#[component]
fn Row(run: RunStore, block_id: BlockId, time: Signal<String>) -> impl IntoView {
    let key = run.peek(|state| {
        let block = state.block(&block_id)?;
        Some(expansion::key(
            &block.node_id,
            Some((&block.attempt_id, &block.block_id)),
        ))
    });
    let open = Expansion::use_context().row(&key.unwrap_or_default(), Signal::stored(false));
    let is_open = open.signal();
    let finished = is_finished(&run, &block_id);
    let state = block_state(&run, &block_id);
    let line = {
        let (run, block_id) = (run.clone(), block_id.clone());
        memo(move || {
            let line = if finished.get() {
                words::first_line
            } else {
                words::last_line
            };
            let line = run.content(&block_id, |text| words::unmarked(&line(text, LINE)));
            match line {
                Some(line) if !line.is_empty() => line,
                _ if finished.get() => String::new(),
                _ => "Thinking …".to_owned(),
            }
        })
    };
    let body_id = scoped(format_args!("body-{block_id}"));
    let id_prefix = scoped(&block_id);
    let body = {
        let block_id = block_id.clone();
        move || {
            let (run, block_id) = (run.clone(), block_id.clone());
            is_open.get().then(|| {
                view! {
                    <MarkdownView id_prefix=id_prefix.clone() read=read_text(&run, &block_id) finished mini=true/>
                    <BlockEnd run block_id/>
                }
            })
        }
    };
    view! {
        <div
            class="row row--reason"
            id=scoped(format_args!("block-{block_id}"))
            data-block-id=block_id.to_string()
            data-block-kind="reasoning"
            data-state=dynamic(move || state.get())
        >
            <button
                type="button"
                class="row__toggle"
                aria-expanded=dynamic(move || is_open.get().to_string())
                aria-controls=body_id.clone()
                on:click=handler(move |_| open.toggle())
            >
                <Icon icon=IconName::Chevron class="row__chev"/>
                <Icon icon=IconName::Reason class="row__icon"/>
                <span class="row__sum"><span class="sr-only">"Reasoning: "</span>{line}</span>
                <time class="row__time">{time}</time>
            </button>
            <div class="row__body" id=body_id hidden=dynamic(move || !is_open.get())>{body}</div>
        </div>
    }
}
