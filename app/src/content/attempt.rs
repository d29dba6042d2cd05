//! One attempt of a model node: the current one open, older ones folded above the boundary.

use leptos::prelude::*;
use protocol::id::AttemptId;
use protocol::model::Attempt;
use protocol::state::AttemptStatus;

use super::block_list::{self, BlockList};
use super::gap::Gap;
use super::scope::scoped;
use super::words;
use crate::data::clock::{PageClock, TimeOfDay};
use crate::data::expansion::Expansion;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{Icon, IconName, StateMark, format};

/// An attempt among the attempts of its node.
#[component]
pub fn AttemptView(
    /// The run.
    run: RunStore,
    /// The attempt.
    attempt_id: AttemptId,
    /// All attempts of its node, in order.
    attempts: Memo<Vec<AttemptId>>,
    /// How many model nodes it lies within.
    depth: usize,
) -> impl IntoView {
    let place = {
        let attempt_id = attempt_id.clone();
        memo(move || {
            attempts.with(|attempts| {
                let place = attempts.iter().position(|id| *id == attempt_id);
                let before = place
                    .and_then(|place| place.checked_sub(1))
                    .and_then(|place| attempts.get(place));
                (
                    before.cloned(),
                    place.is_some_and(|place| place + 1 < attempts.len()),
                )
            })
        })
    };
    let before = memo(move || place.get().0);
    let is_older = memo(move || place.get().1);
    let boundary = {
        let (run, attempt_id) = (run.clone(), attempt_id.clone());
        move || {
            before
                .get()
                .map(|before| view! { <Boundary run=run.clone() before after=attempt_id.clone()/> })
        }
    };
    let content = move || {
        let (run, attempt_id) = (run.clone(), attempt_id.clone());
        if is_older.get() {
            leptos::either::Either::Left(view! { <FoldedAttempt run attempt_id depth/> })
        } else {
            leptos::either::Either::Right(view! {
                <BlockList run=run.clone() attempt_id=attempt_id.clone() depth/>
                <AttemptEnd run attempt_id/>
            })
        }
    };
    (boundary, content)
}

/// The line between two attempts: who tried before, what is kept, why, and who goes on.
#[component]
fn Boundary(run: RunStore, before: AttemptId, after: AttemptId) -> impl IntoView {
    let left = {
        let run = run.clone();
        memo(move || {
            run.attempt(&before, |attempt| {
                (title(attempt), attempt.provider.clone(), ending(attempt))
            })
        })
    };
    let right = memo(move || {
        run.attempt(&after, |attempt| {
            let kept = attempt.kept.map(|kept| match kept.tokens {
                0 => "nothing kept".to_owned(),
                1 => "1 token kept".to_owned(),
                tokens => format!("{} tokens kept", format::count(tokens)),
            });
            let reason = words::reason(attempt.reason);
            // With text that is kept it goes on; with none it only begins again.
            let continues =
                attempt.continues_attempt_id.is_some() && attempt.kept.is_none_or(|kept| kept.bytes > 0);
            let step = if continues {
                format!("{reason}, goes on from there")
            } else {
                reason.to_owned()
            };
            (
                title(attempt),
                attempt.provider.clone(),
                step,
                kept,
                attempt.started_at,
            )
        })
    });
    dynamic_view(move || {
        let (left, right) = (left.get()?, right.get()?);
        let moved = left.1 != right.1;
        let icon = if moved {
            IconName::StateRotating
        } else {
            IconName::StateRetrying
        };
        let step = if moved {
            "moved to another provider"
        } else {
            "the same provider again"
        };
        Some(view! {
            <div class="boundary" role="separator" aria-label="Attempt boundary" data-boundary="">
                <span class="boundary__side">
                    <b>{left.0}</b>
                    <span>{left.1}</span>
                    {right.3.map(|kept| view! { <span>{kept}</span> })}
                    <span>{left.2}</span>
                </span>
                <span class="boundary__side">
                    <span class="boundary__arrow" title=step><Icon icon/></span>
                    <b>{right.0}</b>
                    <span>{right.1}</span>
                    <span>{right.2}</span>
                </span>
                <TimeOfDay at=right.4 class="boundary__at"/>
            </div>
        })
    })
}

fn title(attempt: &Attempt) -> String {
    format!("Attempt {}", u64::from(attempt.attempt_index) + 1)
}

/// How an attempt ended, in a few words.
fn ending(attempt: &Attempt) -> String {
    let word = words::attempt_state(attempt.state.status()).word();
    match attempt.state.end() {
        None => word.to_owned(),
        Some(end) => {
            let after = format::duration(u64::try_from(end.finished_at - attempt.started_at).unwrap_or(0));
            match &end.error {
                Some(error) => format!("{word} after {after}: {}", words::first_line(&error.message, 120)),
                None => format!("{word} after {after}"),
            }
        }
    }
}

/// An older attempt: one row, readable when it is opened.
#[component]
fn FoldedAttempt(run: RunStore, attempt_id: AttemptId, depth: usize) -> impl IntoView {
    let open = Expansion::use_context().row(attempt_id.as_str(), Signal::stored(false));
    let clock = PageClock::use_context();
    let body_id = scoped(format_args!("attempt-{attempt_id}"));
    let facts = {
        let (run, attempt_id) = (run.clone(), attempt_id.clone());
        memo(move || {
            let blocks = run.read(Piece::Blocks(attempt_id.clone()), |state| {
                block_list::count(state, &attempt_id)
            });
            let preview = run.peek(|state| {
                let text = state.blocks_of(&attempt_id).find_map(|block| match &block.body {
                    protocol::model::BlockBody::Text(content) => Some(words::first_line(&content.text, 160)),
                    _ => None,
                });
                text.map(|text| format!("“{text}”")).unwrap_or_default()
            });
            run.attempt(&attempt_id, |attempt| {
                let cut = attempt.state.status() != AttemptStatus::Completed;
                let meta = words::counted(blocks, "block") + if cut { " · ended early" } else { "" };
                let span = (attempt.started_at, words::attempt_end(&attempt.state));
                (
                    title(attempt),
                    preview,
                    meta,
                    words::attempt_state(attempt.state.status()),
                    span,
                )
            })
        })
    };
    let part = move || facts.get();
    let state = Signal::derive(move || part().map_or(crate::ui::StateKind::Unresolved, |facts| facts.3));
    let time = dynamic(move || part().map(|facts| words::span(Some(facts.4.0), facts.4.1, clock)));
    let is_open = open.signal();
    let body = {
        let attempt_id = attempt_id.clone();
        move || {
            is_open.get().then(|| {
                view! {
                    <div class="llm">
                        <BlockList run=run.clone() attempt_id=attempt_id.clone() depth/>
                        <AttemptEnd run=run.clone() attempt_id=attempt_id.clone()/>
                    </div>
                }
            })
        }
    };
    view! {
        <div class="row row--superseded" data-attempt-id=attempt_id.to_string() data-state=dynamic(move || state.get().class())>
            <button
                type="button"
                class="row__toggle"
                aria-expanded=dynamic(move || is_open.get().to_string())
                aria-controls=body_id.clone()
                on:click=handler(move |_| open.toggle())
            >
                <Icon icon=IconName::Chevron class="row__chev"/>
                <Icon icon=IconName::StateSuperseded class="row__icon"/>
                <span class="row__name row__name--plain">{dynamic(move || part().map(|facts| facts.0))}</span>
                <span class="row__sum">{dynamic(move || part().map(|facts| facts.1))}</span>
                <span class="row__meta">{dynamic(move || part().map(|facts| facts.2))}</span>
                <StateMark state/>
                <time class="row__time">{time}</time>
            </button>
        </div>
        <div class="nest" id=body_id hidden=dynamic(move || !is_open.get())>{body}</div>
    }
}

/// What is to be said about how an attempt ended, where a word is due.
#[component]
fn AttemptEnd(run: RunStore, attempt_id: AttemptId) -> impl IntoView {
    let id = attempt_id.to_string();
    let end = memo(move || {
        run.attempt(&attempt_id, |attempt| {
            let end = attempt.state.end()?;
            let state = words::attempt_state(end.status);
            let is_stopped =
                end.error.is_none() && end.stop_reason.as_deref().and_then(words::stop_reason).is_some();
            let said = match (
                &end.error,
                end.stop_reason.as_deref().and_then(words::stop_reason),
                end.status,
            ) {
                (Some(error), _, _) => (
                    format!("{}.", words::capitalised(state.word())),
                    words::capitalised(&error.message),
                    error.code.clone(),
                ),
                (None, Some(stop), _) => ("Stopped early.".to_owned(), stop, String::new()),
                (None, None, AttemptStatus::Cancelled) => (
                    "Cancelled.".to_owned(),
                    "A person stopped it; the text so far is kept.".to_owned(),
                    String::new(),
                ),
                (None, None, AttemptStatus::Interrupted) => (
                    "Interrupted.".to_owned(),
                    "Its owner went away; the text so far is kept.".to_owned(),
                    String::new(),
                ),
                (None, None, AttemptStatus::Stalled) => (
                    "Stalled.".to_owned(),
                    "The stream fell silent; the text so far is kept.".to_owned(),
                    String::new(),
                ),
                (None, None, AttemptStatus::Partial) => (
                    "Partial.".to_owned(),
                    "The stream ended early; the text so far is used.".to_owned(),
                    String::new(),
                ),
                (None, None, AttemptStatus::Superseded) => (
                    "Superseded.".to_owned(),
                    "Another answer was asked for.".to_owned(),
                    String::new(),
                ),
                (None, None, AttemptStatus::Running | AttemptStatus::Completed | AttemptStatus::Failed) => {
                    return None;
                }
            };
            // A tick would say that all is there.
            let icon = if is_stopped {
                IconName::NoticeCut
            } else {
                state.icon()
            };
            Some((icon, said))
        })
        .flatten()
    });
    dynamic_view(move || {
        end.get()
            .map(|(icon, (title, cause, size))| view! { <Gap icon title cause size attr:data-attempt-end=id.clone()/> })
    })
}
