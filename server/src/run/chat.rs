//! One chat run, from its prompt to its end, or from where it goes on again.

mod beginning;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::model::{ErrorInfo, Usage};
use protocol::op::Op;
use protocol::state::{NodeStatus, RunStatus};

use self::beginning::Beginning;
use super::dispatch::Allowance;
use super::ops::{OpenNode, run_updated};
use super::recorder::{RecordError, Recorder};
use super::recovery::{self, Ending};
use super::target::UnknownTarget;
use super::turn::{ModelNode, NodeOutcome};
use super::{Approvals, Budget, Left, Scope, Services, StopSignal, Stopped, take_over};
use crate::store::StoreError;
use crate::store::queue::Claim;
use crate::store::reopen::{Reopen, ReopenKind, ReopenedBy};

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
    approvals: &Arc<Approvals>,
) -> Result<(), ExecuteError> {
    let Some(mut state) = services.store.load_run(&claim.run_id).await? else {
        return Ok(());
    };
    if state.generation() != claim.generation {
        return Err(RecordError::LostOwnership.into());
    }
    let (mut left, mut reopen) = (Left::default(), claim.reopen);
    if claim.predecessor.is_some() {
        left = take_over(services, recorder, claim, state).await?;
        let Some(after) = services.store.load_run(&claim.run_id).await? else {
            return Ok(());
        };
        state = after;
        reopen = Some(Reopen {
            kind: ReopenKind::Resume,
            by: ReopenedBy::Policy,
        });
    }
    let beginning = Beginning::of(services, &state, reopen).await?;
    let session = state.run().session_id.clone();
    let budget = Budget::of(&state, reopen);
    let waits = state.run().status == RunStatus::Waiting;
    for tool in services.store.always_allowed(&session).await? {
        approvals.allow_always(tool);
    }
    let scope = Arc::new(Scope {
        services: Arc::clone(services),
        writer: recorder.open(state).await?,
        reasoning: beginning.reasoning(),
        budget,
        told_outages: Mutex::default(),
        tool_mode: services.store.tool_mode(&claim.run_id).await?,
        approvals: Arc::clone(approvals),
        left,
    });
    let writer = &scope.writer;
    tracing::info!(run.id = %claim.run_id, session.id = %session, generation = claim.generation, "the run begins");
    let node = beginning.write(&scope, stop).await;
    let nodes = [node.node_id.clone(), NodeId::root(&claim.run_id)];
    let limit = Duration::from_secs(services.config.limits.run_seconds);
    let ran = guarded(node, &scope, stop, limit, waits).await?;
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

/// Writes what a new owner writes first for a run that waits for a person; gives what goes on.
async fn take_over(
    services: &Arc<Services>,
    recorder: &Recorder,
    claim: &Claim,
    state: RunState,
) -> Result<Left, ExecuteError> {
    let at = services.clock.now_ms();
    let (after, mut ops) = take_over::begin(services, &state, claim, at).await;
    let left = Left::of(&after, &services.tools);
    let ending = Ending::Interrupted(recovery::owner_gone());
    ops.extend(recovery::close_beside(
        &after,
        |node| left.holds(node),
        &ending,
        at,
    ));
    let writer = recorder.open(state).await?;
    for op in ops {
        writer.write(op).await;
    }
    writer.flush().await?;
    Ok(left)
}

/// Runs the model node until it ends, its time is over, or it may not be written any more. The time in which nothing of
/// the run works but a person is waited for does not count, and the run says so.
async fn guarded(
    node: ModelNode,
    scope: &Scope,
    stop: &StopSignal,
    limit: Duration,
    mut waits: bool,
) -> Result<NodeOutcome, ExecuteError> {
    let writer = &scope.writer;
    let running = node.run();
    tokio::pin!(running);
    let mut allowance = Allowance::begin(limit);
    if waits {
        allowance.pause();
    }
    let (mut lost, mut late) = (false, false);
    loop {
        tokio::select! {
            ran = &mut running => return ran,
            () = writer.ended().cancelled(), if !lost => {
                lost = true;
                stop.stop(Stopped::Lost);
            }
            turned = scope.approvals.run_turns(waits), if !stop.is_stopped() => {
                waits = turned;
                let status = if waits {
                    allowance.pause();
                    RunStatus::Waiting
                } else {
                    allowance.go_on();
                    RunStatus::Running
                };
                writer.write(run_updated(status, None, None)).await;
            }
            () = allowance.is_over(), if !late => {
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

/// Whether something of the run waits for a person that another owner can go on with.
async fn waits_for_a_person(scope: &Scope) -> Result<bool, ExecuteError> {
    scope.writer.flush().await?;
    let state = scope.services.store.load_run(scope.writer.run_id()).await?;
    Ok(state.is_some_and(|state| !Left::of(&state, &scope.services.tools).is_empty()))
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
        Some(Stopped::ByShutdown) if waits_for_a_person(scope).await? => {
            // Whoever takes it over goes on waiting.
            services.store.let_go(claim).await?;
            return Ok(());
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
