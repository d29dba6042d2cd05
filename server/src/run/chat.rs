//! One chat run, from its prompt to its end.

use std::sync::Arc;
use std::time::Duration;

use protocol::Extra;
use protocol::id::{AttemptId, NodeId, OccurrenceId};
use protocol::model::{ErrorInfo, Usage};
use protocol::op::{MessageUpdated, Op};
use protocol::state::{Executor, MessageState, NodeKind, NodeStatus, RunStatus};
use uuid::Uuid;

use super::context;
use super::ops::{Announcement, OpenNode, node_running, notice, run_updated};
use super::recorder::{RecordError, Recorder, RunWriter};
use super::recovery::{self, Ending};
use super::target::{Target, UnknownTarget};
use super::turn::{ModelNode, NodeOutcome};
use super::{Services, StopSignal, Stopped};
use crate::store::StoreError;
use crate::store::queue::Claim;

/// What a model is told about where it works.
const SYSTEM: &str = "You work in a workspace of files, which you see through tools. Answer in Markdown. \
    Say in a sentence what you are about to do before you call a tool, and what you found after it.";

/// Why a run could not be executed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExecuteError {
    /// It cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// What it needs cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its provider or model is not configured any more.
    #[error(transparent)]
    Target(#[from] UnknownTarget),
}

/// Executes a claimed run to its end.
pub(super) async fn execute(
    services: &Arc<Services>,
    recorder: &Recorder,
    claim: &Claim,
    stop: &StopSignal,
) -> Result<(), ExecuteError> {
    let Some(state) = services.store.load_run(&claim.run_id).await? else {
        return Ok(());
    };
    if state.generation() != claim.generation {
        return Err(RecordError::LostOwnership.into());
    }
    let context = context::of_run(services, &state).await?;
    let target = Target::choose(&services.config, Some(&context.provider), Some(&context.model))?
        .with_reasoning(context.reasoning);
    let root = NodeId::root(&claim.run_id);
    let occurrence = OccurrenceId::inner_model_call(&root, 0);
    let answer = NodeId::model(&root, &occurrence);
    let title = state
        .messages()
        .first()
        .map(|message| context::first_line(&message.text))
        .unwrap_or_default();
    let queued: Vec<_> = state
        .messages()
        .iter()
        .filter(|message| message.state == MessageState::Queued)
        .map(|message| message.message_id.clone())
        .collect();
    let session = state.run().session_id.clone();
    let writer = recorder.open(state).await?;
    tracing::info!(run.id = %claim.run_id, session.id = %session, generation = claim.generation, "the run begins");

    writer.write(run_updated(RunStatus::Running, None, None)).await;
    for message_id in queued {
        let state = MessageState::Delivered;
        writer
            .write(Op::MessageUpdated(MessageUpdated {
                message_id,
                state,
                extra: Extra::new(),
            }))
            .await;
    }
    let nodes = [
        Announcement {
            node_id: root.clone(),
            parent_id: None,
            kind: NodeKind::Root,
            name: "run",
            title: &title,
            ordinal: 0,
            executor: Executor::Runloom,
            occurrence_id: None,
        },
        Announcement {
            node_id: answer.clone(),
            parent_id: Some(&root),
            kind: NodeKind::Model,
            name: "answer",
            title: &target.model.id,
            ordinal: 0,
            executor: Executor::Runloom,
            occurrence_id: Some(occurrence),
        },
    ];
    for node in nodes {
        let node_id = node.node_id.clone();
        writer.write(node.op()).await;
        writer.write(node_running(&node_id)).await;
    }
    for (code, detail) in context.notices {
        writer.write(notice(Some(&answer), code, detail)).await;
    }
    let model_node = ModelNode {
        services,
        writer: &writer,
        stop,
        node_id: answer.clone(),
        attempt_id: AttemptId::from_uuid(Uuid::now_v7()),
        target,
        system: SYSTEM.to_owned(),
        conversation: context.conversation,
    };
    let limit = Duration::from_secs(services.config.limits.run_seconds);
    let ran = guarded(model_node, &writer, stop, limit).await?;
    let at = services.clock.now_ms();
    match ran {
        (NodeOutcome::Succeeded, usage) => {
            end(&writer, at, [answer, root], NodeStatus::Succeeded, None, usage).await;
        }
        (NodeOutcome::Failed(error), usage) => {
            end(
                &writer,
                at,
                [answer, root],
                NodeStatus::Failed,
                Some(error),
                usage,
            )
            .await;
        }
        (NodeOutcome::Stopped, usage) => close_stopped(services, &writer, stop, at, usage).await?,
    }
    writer.flush().await?;
    tracing::info!(run.id = %claim.run_id, "the run has ended");
    Ok(())
}

/// Runs the model node until it ends, its time is over, or it may not be written any more.
async fn guarded(
    node: ModelNode<'_>,
    writer: &RunWriter,
    stop: &StopSignal,
    limit: Duration,
) -> Result<(NodeOutcome, Usage), RecordError> {
    let running = node.run();
    tokio::pin!(running);
    let deadline = tokio::time::sleep(limit);
    tokio::pin!(deadline);
    let (mut lost, mut late) = (false, false);
    loop {
        tokio::select! {
            ran = &mut running => return ran,
            () = writer.ended().cancelled(), if !lost => {
                lost = true;
                stop.stop(Stopped::Lost);
            }
            () = &mut deadline, if !late => {
                late = true;
                stop.stop(Stopped::ByTimeLimit);
            }
        }
    }
}

/// Closes model node and root, and the run.
async fn end(
    writer: &RunWriter,
    at: i64,
    nodes: [NodeId; 2],
    status: NodeStatus,
    error: Option<ErrorInfo>,
    usage: Usage,
) {
    for node_id in nodes {
        OpenNode::new(node_id)
            .finish(writer, at, status, error.clone(), None)
            .await;
    }
    let status = if error.is_none() {
        RunStatus::Succeeded
    } else {
        RunStatus::Failed
    };
    writer.write(run_updated(status, error, Some(usage))).await;
}

/// Closes everything that was open when the run was stopped from outside.
async fn close_stopped(
    services: &Services,
    writer: &RunWriter,
    stop: &StopSignal,
    at: i64,
    usage: Usage,
) -> Result<(), ExecuteError> {
    let ending = match stop.why() {
        Some(Stopped::Lost) => {
            return Err(writer
                .why_ended()
                .cloned()
                .unwrap_or(RecordError::LostOwnership)
                .into());
        }
        Some(Stopped::ByShutdown) => Ending::Interrupted(ErrorInfo::new(
            "server_stopped",
            "The server was stopped. What it showed is kept.",
        )),
        Some(Stopped::ByTimeLimit) => {
            let seconds = services.config.limits.run_seconds;
            Ending::Failed(ErrorInfo::new(
                "limit_time",
                format!("The run took longer than {seconds} s, its limit."),
            ))
        }
        Some(Stopped::ByPerson) | None => Ending::Cancelled,
    };
    writer.flush().await?;
    // What is open is what the record says.
    if let Some(state) = services.store.load_run(writer.run_id()).await? {
        let usage = (usage != Usage::default()).then_some(usage);
        for mut op in recovery::close(&state, &ending, at) {
            // What whole rounds took is known.
            match &mut op {
                Op::AttemptFinished(op) => op.usage = usage.clone(),
                Op::RunUpdated(op) => op.usage = usage.clone(),
                _ => {}
            }
            writer.write(op).await;
        }
    }
    Ok(())
}
