//! The rows of the list, each alive on its own.

use std::collections::HashMap;

use leptos::either::Either;
use leptos::prelude::*;
use protocol::api::{RunSummary, SessionKind, SessionList, SessionSummary};
use protocol::id::SessionId;
use protocol::model::Timestamp;
use protocol::state::RunStatus;

use super::address;
use crate::content::words;
use crate::data::clock::{PageClock, date, datetime, day_of};
use crate::data::port::{RunFilter, SessionQuery};
use crate::data::session_store::title_words;
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, memo};
use crate::ui::{Icon, IconName, StateMark, format};

/// The sessions that are listed. A copy is another handle on them.
#[derive(Clone, Copy)]
pub struct ListStore {
    order: RwSignal<Vec<SessionId>>,
    rows: StoredValue<HashMap<SessionId, ArcRwSignal<SessionSummary>>>,
    query: StoredValue<SessionQuery>,
}

impl ListStore {
    /// What was loaded for a query.
    pub fn new(list: &SessionList, query: SessionQuery) -> Self {
        let order = list
            .sessions
            .iter()
            .map(|session| session.session_id.clone())
            .collect();
        let rows = list
            .sessions
            .iter()
            .map(|session| (session.session_id.clone(), ArcRwSignal::new(session.clone())))
            .collect();
        Self {
            order: RwSignal::new(order),
            rows: StoredValue::new(rows),
            query: StoredValue::new(query),
        }
    }

    fn row(self, id: &SessionId) -> Option<ArcRwSignal<SessionSummary>> {
        self.rows.with_value(|rows| rows.get(id).cloned())
    }

    /// Takes in a session that changed. A new one goes to the top, where the list shows everything that fits its filter.
    pub fn update(self, session: SessionSummary) {
        let id = session.session_id.clone();
        let fits = self
            .query
            .with_value(|query| query.status.is_none_or(|filter| fits(&session, filter)));
        if let Some(row) = self.row(&id) {
            row.set(session);
            if !fits {
                self.order.update(|order| order.retain(|known| *known != id));
                self.rows.update_value(|rows| drop(rows.remove(&id)));
            }
            return;
        }
        let is_open = self
            .query
            .with_value(|query| query.search.is_none() && query.before.is_none());
        if fits && is_open {
            self.rows
                .update_value(|rows| drop(rows.insert(id.clone(), ArcRwSignal::new(session))));
            self.order.update(|order| order.insert(0, id));
        }
    }
}

/// Whether a session is in a state.
fn fits(session: &SessionSummary, filter: RunFilter) -> bool {
    session.current_run().is_some_and(|run| match filter {
        RunFilter::Live => !run.status.is_final(),
        RunFilter::NeedsYou => run.status == RunStatus::Waiting,
        RunFilter::Failed => run.status == RunStatus::Failed,
    })
}

/// The rows by day, the newest first; or why there are none.
#[component]
pub fn SessionRows(
    /// The sessions.
    list: ListStore,
    /// Whether only the demo provider is set up.
    demo: bool,
    /// What was asked for.
    query: SessionQuery,
    /// Where the next page begins.
    next: Option<String>,
) -> impl IntoView {
    let clock = PageClock::use_context();
    let today = memo(move || day_of(clock.now(), clock.zone()));
    // A day's line stands before the first session of the day.
    let entries = memo(move || {
        let mut entries = Vec::new();
        let mut day_before = None;
        for id in list.order.get() {
            let Some(row) = list.row(&id) else { continue };
            let day = day_of(row.with(|session| session.created_at), clock.zone());
            if day_before != Some(day) {
                entries.push(Entry::Day(day));
            }
            day_before = Some(day);
            entries.push(Entry::Session(id));
        }
        entries
    });
    let is_empty = memo(move || list.order.with(Vec::is_empty));
    let older = next.map(|next| {
        let older = SessionQuery {
            before: Some(next),
            ..query.clone()
        };
        view! { <a class="btn" href=address(&older) rel="next">"Older sessions"</a> }
    });
    let is_plain = query.is_plain();
    let rows = dynamic_view(move || {
        if is_empty.get() {
            Either::Left(view! { <Empty query=query.clone() demo/> })
        } else {
            Either::Right(view! {
                <div class="sessions">
                    {dynamic_list(
                        move || entries.get(),
                        Clone::clone,
                        move |entry| match entry {
                            Entry::Day(day) => Either::Left(view! {
                                <div class="sessions__day">{dynamic(move || day_words(day, today.get()))}</div>
                            }),
                            Entry::Session(id) => Either::Right(list.row(&id).map(|row| view! { <SessionRow row/> })),
                        },
                    )}
                </div>
            })
        }
    });
    let newest =
        (!is_plain).then(|| view! { <a class="btn btn--quiet" href="/">"All sessions, newest first"</a> });
    view! {
        {rows}
        <div class="composer__bar">{older}{newest}</div>
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
enum Entry {
    Day(i64),
    Session(SessionId),
}

fn day_words(day: i64, today: i64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    match today - day {
        0 => "Today".to_owned(),
        1 => "Yesterday".to_owned(),
        _ => {
            let (year, month, number) = date(day);
            let month = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
            if date(today).0 == year {
                format!("{number} {month}")
            } else {
                format!("{number} {month} {year}")
            }
        }
    }
}

#[component]
fn SessionRow(row: ArcRwSignal<SessionSummary>) -> impl IntoView {
    let clock = PageClock::use_context();
    let (id, kind, created_at) =
        row.with_untracked(|session| (session.session_id.clone(), session.kind, session.created_at));
    let title = {
        let row = row.clone();
        memo(move || row.with(|session| title_words(&session.title).to_owned()))
    };
    let current = memo(move || row.with(|session| session.current_run().cloned()));
    let state = Signal::derive(move || {
        current.with(|run| {
            run.as_ref()
                .map_or(crate::ui::StateKind::Pending, |run| words::run_state(run.status))
        })
    });
    let state_words = Signal::derive(move || {
        current
            .with(|run| {
                run.as_ref()
                    .map_or("no prompt yet", |run| words::run_word(run.status))
            })
            .to_owned()
    });
    let now = dynamic(move || current.with(|run| run.as_ref().map(now_words).unwrap_or_default()));
    let side = dynamic_view(move || {
        current.with(|run| {
            run.as_ref().map(|run| {
                let tokens = run.usage.as_ref().map(|usage| {
                    format!(
                        "{} tokens",
                        format::count(usage.input_tokens.saturating_add(usage.output_tokens))
                    )
                });
                let span = run
                    .started_at
                    .map(|start| words::span(Some(start), run.finished_at, clock));
                view! { {tokens.unwrap_or_else(|| run.model.clone())}<br/>{span} }
            })
        })
    });
    view! {
        <a class="ses" href=format!("/s/{id}") data-session-id=id.to_string() data-state=dynamic(move || state.get().class())>
            <StateMark state words=state_words/>
            <div>
                <div class="ses__title">
                    <span>{title}</span>
                    {(kind == SessionKind::Mission).then(|| view! { <span class="tag">"mission"</span> })}
                </div>
                <div class="ses__now">{now}</div>
            </div>
            <div class="ses__side">{side}</div>
            <time class="ses__when" datetime=datetime(created_at)>{dynamic(move || time_words(created_at, clock))}</time>
        </a>
    }
}

/// Hours and minutes.
fn time_words(at: Timestamp, clock: PageClock) -> String {
    let mut words = format::clock(at, clock.zone());
    words.truncate(5);
    words
}

/// What a run is at, or how it ended.
fn now_words(run: &RunSummary) -> String {
    match (&run.error, run.status) {
        (Some(error), RunStatus::Failed) => words::capitalised(&words::first_line(&error.message, 200)),
        (_, RunStatus::Interrupted) => "Its owner went away. What came is kept.".to_owned(),
        (_, RunStatus::Cancelled) => "Stopped by a person. What came is kept.".to_owned(),
        (_, RunStatus::Succeeded) => format!("Answered by {}", run.model),
        (_, RunStatus::Waiting) => format!("Waits for your answer · {}", words::line(&run.prompt, 160)),
        _ => words::line(&run.prompt, 200),
    }
}

/// Why the list is empty, and the way on.
#[component]
fn Empty(query: SessionQuery, demo: bool) -> impl IntoView {
    if query.is_plain() {
        let hint = if demo {
            "Start one above, or pick a sample: it runs on the demo provider and needs no key."
        } else {
            "Start one above."
        };
        return Either::Left(view! {
            <div class="empty"><Icon icon=IconName::Brand/><b>"No sessions yet"</b><span>{hint}</span></div>
        });
    }
    let title = match &query.search {
        Some(words) => format!("No session matches “{words}”"),
        None => "No session here".to_owned(),
    };
    let filter = query
        .status
        .map(|filter| format!("The filter “{}” is on.", filter.label()));
    Either::Right(view! {
        <div class="empty">
            <Icon icon=IconName::Search/>
            <b>{title}</b>
            <span>"Titles and prompts were searched. "{filter}</span>
            <a class="btn" href="/">"Show all"</a>
        </div>
    })
}
