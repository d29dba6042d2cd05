//! What a call was given, reported and gave back: error, arguments, progress, log and return value, each apart.

pub mod section;

use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::{Channel, NodeStatus};

use section::OutputSection;

use super::approval::Answered;
use super::words;
use crate::data::run_store::RunStore;
use crate::ui::dynamic::{dynamic_view, memo};
use crate::ui::{CopyButton, Icon, IconName, format};

/// All parts of a call, in the body of its row and in the details panel alike.
#[component]
pub fn IoSections(
    /// The run.
    run: RunStore,
    /// The node.
    node_id: NodeId,
) -> impl IntoView {
    let log = {
        let (run, node_id) = (run.clone(), node_id.clone());
        let has_log = Memo::new({
            let (run, node_id) = (run.clone(), node_id.clone());
            move |_| {
                run.output(&node_id, Channel::Log, |output| {
                    output.bytes > 0 || !output.text.is_empty()
                }) == Some(true)
            }
        });
        move || {
            has_log.get().then(
                || view! { <OutputSection run=run.clone() node_id=node_id.clone() channel=Channel::Log/> },
            )
        }
    };
    view! {
        <Answered run=run.clone() node_id=node_id.clone()/>
        <ErrorSection run=run.clone() node_id=node_id.clone()/>
        <OutputSection run=run.clone() node_id=node_id.clone() channel=Channel::Arguments/>
        <ProgressSection run=run.clone() node_id=node_id.clone()/>
        {log}
        <ResultSection run node_id/>
    }
}

#[component]
fn ErrorSection(run: RunStore, node_id: NodeId) -> impl IntoView {
    let error = memo(move || {
        run.node(&node_id, |node| {
            node.state.end().and_then(|end| end.error.clone())
        })
        .flatten()
    });
    dynamic_view(move || {
        error.get().map(|error| {
            let copied = format!("{}: {}", error.code, error.message);
            view! {
                <section class="io io--error">
                    <div class="io__head">
                        <span class="io__title"><Icon icon=IconName::StateFailed small=true/>"Error"</span>
                        <span class="num">{error.code}</span>
                        <CopyButton label="Copy error" icon_only=true text=std::sync::Arc::new(move || copied.clone())/>
                    </div>
                    <pre class="pre pre--wrap" tabindex="0" role="group" aria-label="Error">
                        {words::visible(&error.message).into_owned()}
                    </pre>
                </section>
            }
        })
    })
}

#[component]
fn ProgressSection(run: RunStore, node_id: NodeId) -> impl IntoView {
    let progress = memo(move || {
        run.node(&node_id, |node| {
            node.progress.clone().filter(|_| node.state.end().is_none())
        })
        .flatten()
    });
    dynamic_view(move || {
        progress.get().map(|progress| {
            let of = progress
                .total
                .map(|total| format!(" of {}", format::count(total)))
                .unwrap_or_default();
            view! {
                <section class="io">
                    <div class="io__head">
                        <span class="io__title">"Progress"</span>
                        <span class="num">{format!("{}{of}", format::count(progress.done))}</span>
                    </div>
                    {progress.note.map(|note| view! { <p class="io__none">{note}</p> })}
                </section>
            }
        })
    })
}

/// The return value, or that there is none.
#[component]
fn ResultSection(run: RunStore, node_id: NodeId) -> impl IntoView {
    let has_result = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            run.output(&node_id, Channel::Result, |output| {
                output.bytes > 0 || !output.text.is_empty()
            }) == Some(true)
        })
    };
    let status = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || run.node(&node_id, |node| node.state.status()))
    };
    dynamic_view(move || {
        if has_result.get() {
            leptos::either::EitherOf3::A(view! {
                <OutputSection run=run.clone() node_id=node_id.clone() channel=Channel::Result/>
            })
        } else if let Some(words) = status.get().and_then(no_result) {
            leptos::either::EitherOf3::B(view! {
                <section class="io">
                    <div class="io__head"><span class="io__title">"Return value"</span></div>
                    <p class="io__none">{words}</p>
                </section>
            })
        } else {
            leptos::either::EitherOf3::C(())
        }
    })
}

/// Why a call that is over gave nothing back.
fn no_result(status: NodeStatus) -> Option<&'static str> {
    match status {
        NodeStatus::Pending | NodeStatus::AwaitingApproval | NodeStatus::Running => None,
        NodeStatus::Succeeded => Some("No return value: the call ended well and gave nothing back."),
        NodeStatus::Failed => Some("No return value: the call ended with an error."),
        NodeStatus::Cancelled => Some("No return value: the call was cancelled."),
        NodeStatus::Interrupted => Some("No return value: the owner of the call went away."),
        NodeStatus::Denied => Some("No return value: a person refused the call."),
        NodeStatus::NotRun => Some("No return value: the call was announced, but never started."),
        NodeStatus::TimedOut => Some("No return value: the time limit ended the call."),
    }
}
