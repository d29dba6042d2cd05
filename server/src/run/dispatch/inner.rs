//! A model that a call asks: a model node below the node of the call, run by the same code as any other.

use std::sync::Arc;

use futures::future::BoxFuture;
use protocol::api::ToolMode;
use protocol::id::{NodeId, OccurrenceId};
use protocol::model::ErrorInfo;
use protocol::op::Op;
use protocol::state::{AttemptReason, Executor, NodeKind, NodeStatus};

use tokio_util::task::AbortOnDropHandle;

use super::Caller;
use crate::provider::ModelMessage;
use crate::run::chat::ExecuteError;
use crate::run::context::Origin;
use crate::run::ops::{Announcement, OpenNode, node_running};
use crate::run::recovery::{self, Ending};
use crate::run::target::Target;
use crate::run::turn::{Answer, ModelNode, NewAttempt, NodeOutcome};
use crate::run::{Scope, StopSignal, Stopped};
use crate::store::StoreError;
use crate::tool::{InnerCall, InnerRequest, RUN_CODE, ToolError};

/// What a model is told about its task where nobody else says it.
const SYSTEM: &str = "Another model asks you to do a part of its work. You work in a workspace of files, which you see \
    through tools. Answer in Markdown, with what was asked for: your answer is all that it gets.";

/// The fewest tokens of an answer that breaks off which can serve, where the caller takes a part.
const SALVAGE_TOKENS: u64 = 300;

/// Runs a model that the call of `parent` asks, and gives its answer to the tool. The model ends when the call does, or
/// when nobody waits for its answer. A box, since models ask models without end.
pub(super) fn run<'a>(
    caller: &'a Caller<'a>,
    call_stop: &'a StopSignal,
    parent: NodeId,
    ordinal: u32,
    request: InnerRequest,
) -> BoxFuture<'a, Result<(), ExecuteError>> {
    Box::pin(async move {
        let InnerRequest { call, mut answer } = request;
        let stop = call_stop.child();
        let result = {
            let running = ask(caller, &stop, &parent, ordinal, call);
            tokio::pin!(running);
            tokio::select! {
                result = &mut running => result?,
                () = answer.closed() => {
                    stop.stop(Stopped::ByCaller);
                    running.await?
                }
            }
        };
        // The tool may have ended meanwhile.
        let _ = answer.send(result);
        Ok(())
    })
}

/// The model's answer, or why there is none, in words for the tool.
async fn ask(
    caller: &Caller<'_>,
    stop: &StopSignal,
    parent: &NodeId,
    ordinal: u32,
    call: InnerCall,
) -> Result<Result<String, ToolError>, ExecuteError> {
    let scope = caller.scope;
    let InnerCall {
        prompt,
        system,
        model,
        tools,
        accept_partial,
    } = call;
    let levels = scope.services.config.limits.depth;
    if caller.depth + 1 >= levels {
        let words = format!("Models may ask models on {levels} levels, and this one is the last.");
        return Ok(Err(ToolError::new("limit_depth", words)));
    }
    let target = match Target::inner(&scope.services.config, model.as_deref()) {
        Ok(target) => target.with_reasoning(scope.reasoning),
        Err(unknown) => return Ok(Err(ToolError::new("unknown_model", unknown.to_string()))),
    };
    let tools = match tools {
        None => caller.tools.clone(),
        Some(mut names) => {
            // Where tools are called by programs only, whoever gets tools gets programs.
            if scope.tool_mode == ToolMode::Code && !names.is_empty() {
                names.push(RUN_CODE.to_owned());
            }
            match caller.tools.only(&names) {
                Ok(tools) => tools,
                Err(unknown) => return Ok(Err(unknown)),
            }
        }
    };
    if let Some(passed) = scope.budget.passed(&scope.services.config.limits) {
        return Ok(Err(failed(&passed)));
    }
    let occurrence = OccurrenceId::inner_model_call(parent, ordinal);
    let node_id = NodeId::model(parent, &occurrence);
    let _stops = stop.stops(&node_id);
    let left = scope.left.take(&node_id);
    let announcement = Announcement {
        node_id: node_id.clone(),
        parent_id: Some(parent),
        kind: NodeKind::Model,
        name: "inner model",
        title: &target.model.id,
        ordinal,
        executor: Executor::Runloom,
        occurrence_id: Some(occurrence),
    };
    if left.is_none() {
        scope.writer.write(announcement.op()).await;
        scope.writer.write(node_running(&node_id)).await;
    }
    let (attempt, next_ordinal, rounds) = match &left {
        None => (NewAttempt::new(0, AttemptReason::Initial, None), 0, 0),
        Some(left) => {
            let index = left.attempt_index.saturating_add(1);
            let attempt = NewAttempt::new(index, AttemptReason::Resume, None);
            (attempt, left.next_ordinal, left.rounds)
        }
    };
    let node = ModelNode {
        scope: Arc::clone(scope),
        stop: stop.clone(),
        node_id: node_id.clone(),
        depth: caller.depth + 1,
        attempt,
        fallbacks: target.fallbacks(
            &scope.services.config,
            &scope.services.config.roles.inner,
            scope.reasoning,
        ),
        salvage: accept_partial.then_some(SALVAGE_TOKENS),
        left,
        target,
        system: system.unwrap_or_else(|| SYSTEM.to_owned()),
        tools,
        origin: Origin::Asked(prompt.clone()),
        conversation: vec![ModelMessage::User { text: prompt }],
        next_ordinal,
        rounds,
        answer: Vec::new(),
    };
    // A task of its own: else the stack would grow with each level.
    let running = AbortOnDropHandle::new(tokio::spawn(node.run()));
    let outcome = match running.await {
        Ok(outcome) => outcome?,
        Err(broken) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
        // It is aborted with this future only, and with the process.
        Err(_) => NodeOutcome::Stopped,
    };
    let at = scope.services.clock.now_ms();
    let open = OpenNode::new(node_id.clone());
    Ok(match outcome {
        NodeOutcome::Succeeded(answer) => {
            open.finish(&scope.writer, at, NodeStatus::Succeeded, None, None)
                .await;
            let text = match answer {
                Answer::Whole(text) => text,
                Answer::Recorded => recorded(scope).await?.answer(&node_id),
            };
            match text.is_empty() {
                false => Ok(text),
                true => Err(ToolError::new(
                    "no_answer",
                    "The inner model ended without a text.",
                )),
            }
        }
        NodeOutcome::Failed(error) => {
            open.finish(&scope.writer, at, NodeStatus::Failed, Some(error.clone()), None)
                .await;
            Err(failed(&error))
        }
        NodeOutcome::Stopped => {
            // Whoever stopped the caller closes this one, too.
            if !caller.stop.is_stopped() {
                close(scope, &node_id).await?;
            }
            Err(match stop.why() {
                Some(Stopped::ByPerson) => {
                    ToolError::new("inner_cancelled", "A person stopped the inner model.")
                }
                _ => ToolError::cancelled(),
            })
        }
    })
}

/// The failure of a model as the failure of the call that asked it.
fn failed(error: &ErrorInfo) -> ToolError {
    ToolError::new(
        "inner_failed",
        format!("The inner model failed ({}): {}", error.code, error.message),
    )
}

/// The run as it is in the record.
pub(super) async fn recorded(scope: &Scope) -> Result<protocol::fold::RunState, ExecuteError> {
    scope.writer.flush().await?;
    let run_id = scope.writer.run_id();
    let state = scope.services.store.load_run(run_id).await?;
    Ok(state.ok_or_else(|| StoreError::row("runs", run_id, "it is gone"))?)
}

/// Closes what is open of a model that was stopped alone, and of all that it called.
async fn close(scope: &Scope, node_id: &NodeId) -> Result<(), ExecuteError> {
    let state = recorded(scope).await?;
    let at = scope.services.clock.now_ms();
    for mut op in recovery::close_within(&state, node_id, &Ending::Cancelled, at) {
        if let Op::AttemptFinished(op) = &mut op {
            op.usage = scope.budget.of_attempt(&op.attempt_id);
        }
        scope.writer.write(op).await;
    }
    Ok(())
}
