//! One chat run, from its prompt to its end, or from where it goes on again.

mod beginning;

use std::sync::{Arc, Mutex};
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
use super::turn::{ModelNode, NodeOutcome};
use super::{Budget, Scope, Services, StopSignal, Stopped};
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
    let budget = Budget::of(&state, claim.reopen);
    let scope = Arc::new(Scope {
        services: Arc::clone(services),
        writer: recorder.open(state).await?,
        reasoning: beginning.reasoning(),
        budget,
        told_outages: Mutex::default(),
        tool_mode: services.store.tool_mode(&claim.run_id).await?,
    });
    let writer = &scope.writer;
    tracing::info!(run.id = %claim.run_id, session.id = %session, generation = claim.generation, "the run begins");
    let node = beginning.write(&scope, stop).await;
    let nodes = [node.node_id.clone(), NodeId::root(&claim.run_id)];
    let limit = Duration::from_secs(services.config.limits.run_seconds);
    let ran = guarded(node, writer, stop, limit).await?;
    let at = services.clock.now_ms();
    match ran {
        NodeOutcome::Succeeded(_) => end(&scope, at, nodes, NodeStatus::Succeeded, None).await,
        NodeOutcome::Failed(error) => end(&scope, at, nodes, NodeStatus::Failed, Some(error)).await,
        NodeOutcome::Stopped => close_stopped(&scope, claim, stop, at).await?,
    }
    writer.flush().await?;
    tracing::info!(run.id = %claim.run_id, "the run has ended");
    Ok(())
}

/// Runs the model node until it ends, its time is over, or it may not be written any more.
async fn guarded(
    node: ModelNode,
    writer: &RunWriter,
    stop: &StopSignal,
    limit: Duration,
) -> Result<NodeOutcome, ExecuteError> {
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
async fn end(scope: &Scope, at: i64, nodes: [NodeId; 2], status: NodeStatus, error: Option<ErrorInfo>) {
    let writer = &scope.writer;
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
    let usage = Some(scope.budget.of_run());
    writer.write(run_updated(status, error, usage)).await;
}

/// Closes everything that was open when the run was stopped from outside.
async fn close_stopped(scope: &Scope, claim: &Claim, stop: &StopSignal, at: i64) -> Result<(), ExecuteError> {
    let (services, writer) = (&scope.services, &scope.writer);
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
        Some(Stopped::ByPerson | Stopped::ByCaller) | None => Ending::Cancelled,
    };
    writer.flush().await?;
    // What is open is what the record says.
    if let Some(state) = services.store.load_run(writer.run_id()).await? {
        let of_run = Some(scope.budget.of_run()).filter(|usage| *usage != Usage::default());
        for mut op in recovery::close(&state, &ending, at) {
            // What whole rounds took is known.
            match &mut op {
                Op::AttemptFinished(op) => op.usage = scope.budget.of_attempt(&op.attempt_id),
                Op::RunUpdated(op) => op.usage = of_run.clone(),
                _ => {}
            }
            writer.write(op).await;
        }
    }
    Ok(())
}
