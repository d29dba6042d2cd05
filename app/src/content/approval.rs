//! A call that waits for a person: what is asked, and the answers. Forms, so that they also work without script.

use leptos::either::Either;
use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::ApprovalAnswer;

use super::asking;
use super::scope::scoped;
use super::words;
use crate::data::clock::PageClock;
use crate::data::run_store::{Piece, RunStore};
use crate::data::selection::Selection;
use crate::shell::replay::is_replaying;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, memo};
use crate::ui::{Icon, IconName, format};

/// Where a card stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// At the row of its call.
    Row,
    /// At the top of its run, from where it leads to its call.
    Top,
}

/// The open requests of a run, at its top: those of calls on every level.
#[component]
pub fn OpenRequests(
    /// The run.
    run: RunStore,
) -> impl IntoView {
    let open = {
        let run = run.clone();
        memo(move || {
            run.track(Piece::Run);
            run.read(Piece::Approvals, |state| {
                asking::open(state)
                    .map(|approval| approval.node_id.clone())
                    .collect::<Vec<_>>()
            })
        })
    };
    view! {
        {dynamic_list(
            move || open.get(),
            Clone::clone,
            move |node_id| view! { <ApprovalCard run=run.clone() node_id stand=Stand::Top/> },
        )}
    }
}

/// The open request of a call, where there is one.
#[component]
pub fn ApprovalCard(
    /// The run.
    run: RunStore,
    /// The call.
    node_id: NodeId,
    /// Where it stands.
    stand: Stand,
) -> impl IntoView {
    let request = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            run.track(Piece::Run);
            run.read(Piece::Approvals, |state| {
                let approval = asking::request_of(state, &node_id)?;
                Some((approval.what.clone(), approval.requested_at))
            })
        })
    };
    dynamic_view(move || {
        request.get().map(|(what, at)| {
            view! { <Asked run=run.clone() node_id=node_id.clone() what at stand/> }
        })
    })
}

#[component]
fn Asked(run: RunStore, node_id: NodeId, what: String, at: i64, stand: Stand) -> impl IntoView {
    let clock = PageClock::use_context();
    let place = match stand {
        Stand::Row => "ask",
        Stand::Top => "ask-top",
    };
    let title_id = scoped(format_args!("{place}-{node_id}"));
    let tool = run.peek(|state| {
        let node = state.node(&node_id);
        node.map_or_else(|| "a call".to_owned(), |node| words::line(&node.name, 60))
    });
    let way = (stand == Stand::Top).then(|| {
        view! {
            <a class="btn btn--quiet btn--sm" href=Selection::href(&node_id)>
                <Icon icon=IconName::Locate small=true/>
                "Show the call"
            </a>
        }
    });
    let waiting = dynamic(move || format!("waiting {}", format::duration(clock.since(at))));
    // Which answer was given, until it is seen in the record.
    let given = RwSignal::new(None::<ApprovalAnswer>);
    let failed = RwSignal::new(None::<String>);
    let words = RwSignal::new(String::new());
    let disabled = dynamic(move || given.get().is_some());
    let path = format!("/nodes/{node_id}/approval");
    let send = {
        let node_id = node_id.clone();
        move |event: leptos::ev::SubmitEvent, answer: ApprovalAnswer| {
            let words = (answer == ApprovalAnswer::Deny).then(|| words.get_untracked());
            send(&event, &node_id, answer, words, given, failed);
        }
    };
    let (deny, allow) = (send.clone(), send);
    // What was asked is shown as it was; the answer is of another time.
    let is_past = is_replaying() || is_alone();
    // The button that is pressed says which; a browser presses the first one for the key Enter.
    let pressed = StoredValue::new(ApprovalAnswer::Approve);
    let choose = move |answer: ApprovalAnswer| move |_: leptos::ev::MouseEvent| pressed.set_value(answer);
    let labelled = title_id.clone();
    let words_name = format!("Words for the model, if {tool} is denied");
    view! {
        <section class="approval" aria-labelledby=labelled data-approval=node_id.to_string()>
            <div class="approval__head">
                <Icon icon=IconName::StateAwaitingApproval/>
                <span id=title_id>{format!("Allow {tool}?")}</span>
                <time>{waiting}</time>
            </div>
            <div class="approval__what"><pre class="pre pre--wrap">{words::visible(&what).into_owned()}</pre></div>
            <div class="approval__bar" hidden=is_past>
                <form method="post" action=path.clone() on:submit=move |event| allow(event, pressed.get_value())>
                    <button
                        type="submit"
                        class="btn btn--primary"
                        name="answer"
                        value="approve"
                        disabled=disabled
                        on:click=choose(ApprovalAnswer::Approve)
                    >
                        "Approve"
                    </button>
                    <button
                        type="submit"
                        class="btn"
                        name="answer"
                        value="always"
                        title=format!("Approve, and ask no more for {tool} in this session")
                        disabled=dynamic(move || given.get().is_some())
                        on:click=choose(ApprovalAnswer::Always)
                    >
                        "Always"
                    </button>
                </form>
                <form method="post" action=path on:submit=move |event| deny(event, ApprovalAnswer::Deny)>
                    <input type="hidden" name="answer" value="deny"/>
                    <button type="submit" class="btn" disabled=dynamic(move || given.get().is_some())>"Deny"</button>
                    <label class="field">
                        <span class="sr-only">{words_name}</span>
                        <input
                            type="text"
                            name="words"
                            maxlength="4000"
                            placeholder="Why not (optional)"
                            on:input=move |event| words.set(event_target_value(&event))
                        />
                    </label>
                </form>
                {way}
                {dynamic_view(move || failed.get().map(|failed| view! { <span class="tag tag--warn" role="alert">{failed}</span> }))}
            </div>
        </section>
    }
}

/// How a request of a call was answered, among the parts of the call.
#[component]
pub fn Answered(
    /// The run.
    run: RunStore,
    /// The call.
    node_id: NodeId,
) -> impl IntoView {
    let answered = memo(move || {
        run.read(Piece::Approvals, |state| {
            let mut of_node = state
                .approvals()
                .iter()
                .filter(|approval| approval.node_id == node_id);
            let approval = of_node.next_back()?;
            let resolution = approval.resolution.as_ref()?;
            let took = u64::try_from(resolution.at - approval.requested_at).unwrap_or_default();
            let answer = match ApprovalAnswer::from_word(&resolution.answer) {
                Some(ApprovalAnswer::Approve) => "Approved by".to_owned(),
                Some(ApprovalAnswer::Always) => "Approved for this session by".to_owned(),
                Some(ApprovalAnswer::Deny) => "Denied by".to_owned(),
                None => format!("Answered ({}) by", resolution.answer),
            };
            Some(format!(
                "{answer} {}, after {}.",
                resolution.by,
                format::duration(took)
            ))
        })
    });
    dynamic_view(move || match answered.get() {
        Some(words) => Either::Left(view! {
            <section class="io">
                <div class="io__head"><span class="io__title">"Approval"</span><span>{words}</span></div>
            </section>
        }),
        None => Either::Right(()),
    })
}

#[cfg(feature = "hydrate")]
fn send(
    event: &leptos::ev::SubmitEvent,
    node_id: &NodeId,
    answer: ApprovalAnswer,
    words: Option<String>,
    given: RwSignal<Option<ApprovalAnswer>>,
    failed: RwSignal<Option<String>>,
) {
    event.prevent_default();
    given.set(Some(answer));
    failed.set(None);
    let wish = protocol::api::AnswerApproval {
        answer,
        words: words.filter(|words| !words.trim().is_empty()),
    };
    let node_id = node_id.clone();
    leptos::task::spawn_local(async move {
        if let Err(problem) = crate::data::api::answer_approval(&node_id, &wish).await {
            let _ = given.try_set(None);
            let _ = failed.try_set(Some(problem.detail));
        }
    });
}

#[cfg(not(feature = "hydrate"))]
fn send(
    _: &leptos::ev::SubmitEvent,
    _: &NodeId,
    _: ApprovalAnswer,
    _: Option<String>,
    _: RwSignal<Option<ApprovalAnswer>>,
    _: RwSignal<Option<String>>,
) {
}
