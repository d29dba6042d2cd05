//! What everybody should know about a run: notices of its execution, ops that are not known, and how it ended.

use leptos::prelude::*;
use protocol::state::{AttemptStatus, RunStatus};
use serde_json::Value;

use super::{asking, words};
use crate::data::clock::TimeOfDay;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::dynamic::{dynamic_list, dynamic_view, memo};
use crate::ui::{Icon, IconName};

/// A box with a mark and a sentence.
#[component]
fn NoticeBox(
    /// Loud: something is wrong.
    warning: bool,
    #[prop(into)] title: String,
    #[prop(into)] detail: String,
    #[prop(optional_no_strip)] at: Option<i64>,
    #[prop(optional, into)] code: String,
) -> impl IntoView {
    let icon = if warning {
        IconName::NoticeWarning
    } else {
        IconName::NoticeInfo
    };
    view! {
        <div class=if warning { "notice" } else { "notice notice--info" } role="note" data-code=code>
            <Icon icon/>
            <div><b>{title}</b>" "{detail}</div>
            {at.map(|at| view! { <div class="notice__acts"><TimeOfDay at/></div> })}
        </div>
    }
}

/// The notices of a run, in order.
#[component]
pub fn Notices(
    /// The run.
    run: RunStore,
) -> impl IntoView {
    let count = {
        let run = run.clone();
        memo(move || run.read(Piece::Notices, |state| state.notices().len()))
    };
    let unknown = {
        let run = run.clone();
        memo(move || run.read(Piece::Notices, |state| state.unknown().len()))
    };
    let unknown = dynamic_view(move || {
        let count = unknown.get();
        (count > 0).then(|| {
            let detail = format!(
                "{} kept in the record as {} came.",
                super::words::counted(count, "op"),
                if count == 1 { "it" } else { "they" }
            );
            view! { <NoticeBox warning=false title="Not known to this version." detail/> }
        })
    });
    view! {
        {dynamic_list(
            move || 0..count.get(),
            |place| *place,
            move |place| {
                run.peek(|state| state.notices().get(place).cloned()).map(|notice| {
                    let warning = !matches!(notice.code.as_str(), "taken_over" | "take_over" | "imported" | "not_shown" | "times_unknown" | "context_compacted");
                    view! {
                        <NoticeBox
                            warning
                            title=title(&notice.code)
                            detail=words(&notice.detail)
                            at=Some(notice.at)
                            code=notice.code
                        />
                    }
                })
            },
        )}
        {unknown}
    }
}

/// A code as a title: `provider_mismatch` reads *Provider mismatch.*
fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
        .unwrap_or_default()
}

/// What a notice says. More than words is written out.
fn words(detail: &Value) -> String {
    match detail {
        Value::String(words) => super::words::visible(words).into_owned(),
        Value::Null => String::new(),
        Value::Object(fields) => match fields.get("message").and_then(Value::as_str) {
            Some(words) => super::words::visible(words).into_owned(),
            None => detail.to_string(),
        },
        other => other.to_string(),
    }
}

/// How a run ended, or what it waits for, where its content does not say so.
#[component]
pub fn RunEnd(
    /// The run.
    run: RunStore,
) -> impl IntoView {
    let end = memo(move || {
        let (status, error) = run.run(|run| (run.status, run.error.clone()));
        // The last attempt says it already.
        let is_said = error.as_ref().is_some_and(|error| {
            run.peek(|state| {
                state.attempts().iter().any(|attempt| {
                    attempt
                        .state
                        .end()
                        .and_then(|end| end.error.as_ref())
                        .is_some_and(|known| known.message == error.message)
                })
            })
        });
        let ended_alike = run.peek(|state| {
            let last = state.attempts().last().map(|attempt| attempt.state.status());
            matches!(
                (status, last),
                (RunStatus::Cancelled, Some(AttemptStatus::Cancelled))
                    | (RunStatus::Interrupted, Some(AttemptStatus::Interrupted))
            )
        });
        let asks = run.read(Piece::Approvals, |state| asking::open(state).next().is_some());
        let words = match status {
            RunStatus::Running | RunStatus::Succeeded => return None,
            RunStatus::Failed if is_said => return None,
            RunStatus::Cancelled | RunStatus::Interrupted if ended_alike => return None,
            // What a person is asked stands at the top of the run.
            RunStatus::Waiting if asks => return None,
            RunStatus::Waiting => (true, "Needs you.", "The run waits for an answer.".to_owned()),
            RunStatus::Queued => (
                false,
                "Queued.",
                "It begins when the run before it is over.".to_owned(),
            ),
            RunStatus::Failed => {
                let error =
                    error.map(|error| format!("{} ({})", words::capitalised(&error.message), error.code));
                (
                    true,
                    "The run failed.",
                    error.unwrap_or_else(|| "No reason was recorded.".to_owned()),
                )
            }
            RunStatus::Cancelled => (
                false,
                "Cancelled.",
                "A person stopped this run; what came is kept.".to_owned(),
            ),
            RunStatus::Interrupted => (
                true,
                "Interrupted.",
                "The owner of this run went away; what came is kept.".to_owned(),
            ),
        };
        Some(words)
    });
    dynamic_view(move || {
        end.get()
            .map(|(warning, title, detail)| view! { <NoticeBox warning title detail/> })
    })
}
