//! One chat run, from its prompt to its end, or from where it goes on again.

mod beginning;

use std::sync::Arc;
use std::time::Duration;

use protocol::id::NodeId;
use protocol::model::{ErrorInfo, Usage};
use protocol::op::Op;
use protocol::state::{NodeStatus, RunStatus};

use self::beginning::Beginning;
use super::ops::{OpenNode, run_updated};
use super::recorder::{RecordError, Recorder, RunWriter};
use super::recovery::{self, Ending};
use super::target::UnknownTarget;
use super::turn::{ModelNode, NodeOutcome, Spent};
use super::{Services, StopSignal, Stopped};
use crate::store::StoreError;
use crate::store::queue::Claim;

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
    let beginning = Beginning::of(services, &state, claim.reopen).await?;
    let session = state.run().session_id.clone();
    let writer = recorder.open(state).await?;
    tracing::info!(run.id = %claim.run_id, session.id = %session, generation = claim.generation, "the run begins");
    let node = beginning.write(services, &writer, stop).await;
    let nodes = [node.node_id.clone(), NodeId::root(&claim.run_id)];
    let limit = Duration::from_secs(services.config.limits.run_seconds);
    let ran = guarded(node, &writer, stop, limit).await?;
    let at = services.clock.now_ms();
    match ran {
        (NodeOutcome::Succeeded, spent) => {
            end(&writer, at, nodes, NodeStatus::Succeeded, None, spent.node).await;
        }
        (NodeOutcome::Failed(error), spent) => {
            end(&writer, at, nodes, NodeStatus::Failed, Some(error), spent.node).await;
        }
        (NodeOutcome::Stopped, spent) => close_stopped(services, claim, &writer, stop, at, spent).await?,
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
) -> Result<(NodeOutcome, Spent), ExecuteError> {
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
    claim: &Claim,
    writer: &RunWriter,
    stop: &StopSignal,
    at: i64,
    spent: Spent,
) -> Result<(), ExecuteError> {
    let ending = match stop.why() {
        Some(Stopped::Lost) => {
            return Err(writer
                .why_ended()
                .cloned()
                .unwrap_or(RecordError::LostOwnership)
                .into());
        }
        Some(Stopped::ByShutdown) => {
            services.store.mark_automatic_resume(claim).await?;
            Ending::Interrupted(ErrorInfo::new(
                "server_stopped",
                "The server was stopped. What it showed is kept.",
            ))
        }
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
        let known = |usage: Usage| (usage != Usage::default()).then_some(usage);
        for mut op in recovery::close(&state, &ending, at) {
            // What whole rounds took is known.
            match &mut op {
                Op::AttemptFinished(op) => op.usage = known(spent.attempt.clone()),
                Op::RunUpdated(op) => op.usage = known(spent.node.clone()),
                _ => {}
            }
            writer.write(op).await;
        }
    }
    Ok(())
}
