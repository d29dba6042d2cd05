//! The content of one model node: its attempts in order, each with its blocks by index.

use leptos::prelude::*;
use protocol::id::NodeId;
use protocol::state::NodeStatus;

use super::attempt::AttemptView;
use super::block_list;
use super::model_row::stream_chip;
use super::words;
use crate::data::run_store::{Piece, RunStore};
use crate::shell::replay::is_replaying;
use crate::ui::alone::is_alone;
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, memo};
use crate::ui::{CopyButton, IconName, format};

/// After so many levels the content goes on in the details panel.
pub const LEVELS: usize = 8;

/// What a model node wrote and what it called. Used on every level, and as the root of the details panel.
#[component]
pub fn LlmNodeContent(
    /// The run.
    run: RunStore,
    /// The model node.
    node_id: NodeId,
    /// How many model nodes it lies within, from where it is drawn.
    depth: usize,
    /// The id of its element, for the control that opens it.
    #[prop(optional_no_strip)]
    id: Option<String>,
) -> impl IntoView {
    let attempts = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || run.attempts(&node_id))
    };
    let foot = (depth == 0).then(|| view! { <NodeFoot run=run.clone() node_id=node_id.clone()/> });
    view! {
        <div class="llm" id=id>
            {dynamic_list(
                move || attempts.get(),
                Clone::clone,
                move |attempt_id| view! { <AttemptView run=run.clone() attempt_id attempts depth/> },
            )}
            {foot}
        </div>
    }
}

/// What stands under the content: what the stream is doing, figures, and the two ways to copy.
#[component]
fn NodeFoot(run: RunStore, node_id: NodeId) -> impl IntoView {
    let figures = {
        let (run, node_id) = (run.clone(), node_id.clone());
        memo(move || {
            let attempts = run.attempts(&node_id);
            let blocks: usize = attempts
                .iter()
                .map(|attempt| {
                    run.read(Piece::Blocks(attempt.clone()), |state| {
                        block_list::count(state, attempt)
                    })
                })
                .sum();
            let tokens = attempts.iter().filter_map(|attempt| {
                run.attempt(attempt, |attempt| {
                    attempt
                        .state
                        .end()
                        .and_then(|end| end.usage.as_ref())
                        .map(|usage| usage.output_tokens)
                })
                .flatten()
            });
            (tokens.reduce(u64::saturating_add), blocks)
        })
    };
    let tokens = move || {
        figures.get().0.map(|tokens| {
            format!(
                "{} {} out",
                format::count(tokens),
                if tokens == 1 { "token" } else { "tokens" }
            )
        })
    };
    let blocks = dynamic(move || words::counted(figures.get().1, "block"));
    let chip = {
        let (run, node_id) = (run.clone(), node_id.clone());
        let is_live = Memo::new({
            let (run, node_id) = (run.clone(), node_id.clone());
            move |_| run.node(&node_id, |node| node.state.status()) == Some(NodeStatus::Running)
        });
        // What a stream did at a moment of the past is not recorded.
        let is_past = is_replaying() || is_alone();
        move || (is_live.get() && !is_past).then(|| stream_chip(&run, &node_id, true))
    };
    let answer = {
        let (run, node_id) = (run.clone(), node_id.clone());
        std::sync::Arc::new(move || run.peek(|state| state.answer(&node_id)))
    };
    let record = std::sync::Arc::new(move || run.peek(|state| super::record::of(state, &node_id)));
    view! {
        <div class="nodefoot">
            {chip}
            {dynamic_view(move || tokens().map(|tokens| view! { <span class="num">{tokens}</span> }))}
            <span class="num">{blocks}</span>
            <CopyButton label="Copy text" text=answer/>
            <CopyButton label="Copy full record" text=record icon=IconName::Record/>
        </div>
    }
}
