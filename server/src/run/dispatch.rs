//! Running the calls of one round. Each call is one node and settles exactly once.
//!
//! Safe calls that stand next to each other run at the same time, as a batch whose members are declared; an exclusive
//! call waits for what runs, and goes alone. Results are in the order of the calls, whichever ends first.

mod call;
mod inner;
mod permit;
mod program;
mod reports;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use protocol::Extra;
use protocol::id::{BlockId, GroupId, NodeId};
use protocol::model::{BlockBody, ErrorInfo};
use protocol::op::{BlockUpdated, Op};
use protocol::state::NodeStatus;
use serde_json::Value;

pub(super) use self::call::Allowance;
use super::chat::ExecuteError;
use super::context::{CANCELLED, bounded};
use super::ops::{BlockPlace, OpenNode};
use super::{Scope, StopSignal};
use crate::provider::{RoundCall, ToolResult};
use crate::tool::{CalledBy, Concurrency, Tool, ToolError, ToolRegistry};

/// Whose calls are run: a model node, or a program.
pub(super) struct Caller<'a> {
    pub(super) by: CalledBy,
    pub(super) scope: &'a Arc<Scope>,
    pub(super) node_id: &'a NodeId,
    pub(super) stop: &'a StopSignal,
    /// How many model nodes it lies within.
    pub(super) depth: u32,
    pub(super) tools: &'a ToolRegistry,
}

/// A call that waits to be run.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) node: OpenNode,
    /// Its row.
    pub(super) block_id: BlockId,
    pub(super) call: RoundCall,
}

/// A call that can be run.
struct Prepared {
    node: OpenNode,
    tool: Arc<dyn Tool>,
    arguments: Value,
}

/// A call of a model's round that can be run.
struct OfRound {
    /// Its place among the calls of the round.
    place: usize,
    block_id: BlockId,
    call: RoundCall,
    prepared: Prepared,
}

/// How a call settled, for whoever made it.
enum Settled {
    /// With this result.
    Succeeded(String),
    /// It was never begun.
    NotRun(ErrorInfo),
    /// The tool says why.
    Failed(ErrorInfo),
    /// It took too long.
    TimedOut(ErrorInfo),
    /// A person stopped it.
    Cancelled,
    /// With its caller: whoever stopped that closes the call's node.
    Stopped,
}

/// Runs the calls; gives a result for each, in their order. `next` is where the next block of the attempt stands: a
/// batch takes a place. Calls that an earlier owner left have none, since their batches are declared. Once the caller is stopped, what is not settled is left to whoever closes it.
pub(super) async fn run_calls(
    caller: &Caller<'_>,
    mut next: Option<&mut BlockPlace<'_>>,
    calls: Vec<Call>,
) -> Result<Vec<ToolResult>, ExecuteError> {
    let mut results: Vec<Option<ToolResult>> = Vec::new();
    let mut prepared = Vec::new();
    for (place, call) in calls.into_iter().enumerate() {
        results.push(match find(caller, &call.call) {
            Ok((tool, arguments)) => {
                let Call { node, block_id, call } = call;
                prepared.push(OfRound {
                    place,
                    block_id,
                    call,
                    prepared: Prepared {
                        node,
                        tool,
                        arguments,
                    },
                });
                None
            }
            Err(error) => {
                let settled = refuse(caller, call.node, &error).await;
                Some(told(&call.call, settled))
            }
        });
    }
    let at_once = caller.scope.services.config.limits.parallel_calls as usize;
    let mut groups = 0;
    for batch in batches(prepared, at_once) {
        if caller.stop.is_stopped() {
            break;
        }
        if batch.len() > 1
            && let Some(next) = next.as_deref_mut()
        {
            declare(caller, next, groups, &batch).await;
            groups += 1;
        }
        let mut waiting = batch.into_iter();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < at_once
                && !caller.stop.is_stopped()
                && let Some(call) = waiting.next()
            {
                let OfRound {
                    place,
                    call,
                    prepared,
                    ..
                } = call;
                let settled = call::run(caller, prepared);
                running.push(settled.map(move |settled| (place, call, settled)).boxed());
            }
            let Some((place, call, settled)) = running.next().await else {
                break;
            };
            let settled = settled?;
            if let Some(known) = results.get_mut(place) {
                *known = Some(told(&call, settled));
            }
        }
    }
    Ok(results.into_iter().flatten().collect())
}

/// What runs together: safe calls that stand next to each other, where several may run at once; else one call alone.
fn batches(calls: Vec<OfRound>, at_once: usize) -> Vec<Vec<OfRound>> {
    let is_safe = |call: &OfRound| call.prepared.tool.info().concurrency == Concurrency::ParallelSafe;
    let mut batches: Vec<Vec<OfRound>> = Vec::new();
    for call in calls {
        match batches.last_mut() {
            Some(batch) if at_once > 1 && is_safe(&call) && batch.iter().all(is_safe) => batch.push(call),
            _ => batches.push(vec![call]),
        }
    }
    batches
}

/// Says which calls run together, all at once: their rows are there already.
async fn declare(caller: &Caller<'_>, next: &mut BlockPlace<'_>, number: u32, batch: &[OfRound]) {
    let group_id = GroupId::of_batch(next.node_id, next.attempt_id, next.round, number);
    let members: Vec<BlockId> = batch.iter().map(|call| call.block_id.clone()).collect();
    let mut ops: Vec<Op> = members
        .iter()
        .map(|block_id| {
            Op::BlockUpdated(BlockUpdated {
                block_id: block_id.clone(),
                group_id: Some(group_id.clone()),
                ref_node_id: None,
                tool_name: None,
                members: None,
                retention: None,
                extra: Extra::new(),
            })
        })
        .collect();
    ops.push(next.started(BlockBody::ParallelGroup { group_id, members }));
    next.block_index += 1;
    caller.scope.writer.write_together(ops).await;
}

/// Finds the tool and looks at the arguments, without running anything.
fn find(caller: &Caller<'_>, call: &RoundCall) -> Result<(Arc<dyn Tool>, Value), ToolError> {
    match &call.parsed {
        Ok(arguments) => prepare(caller, &call.name, arguments.clone()),
        Err(problem) => {
            may_call(caller, &call.name)?;
            Err(ToolError::new("invalid_arguments", problem.clone()))
        }
    }
}

/// Whether the caller may call that tool at all: asked before anything else.
fn may_call<'a>(caller: &Caller<'a>, name: &str) -> Result<&'a Arc<dyn Tool>, ToolError> {
    caller.tools.callable(caller.scope.tool_mode, caller.by, name)
}

/// The tool, and arguments that fit it.
fn prepare(caller: &Caller<'_>, name: &str, arguments: Value) -> Result<(Arc<dyn Tool>, Value), ToolError> {
    let tool = may_call(caller, name)?;
    tool.check(&arguments)?;
    Ok((Arc::clone(tool), arguments))
}

/// Settles a call that is never executed: its row says why.
async fn refuse(caller: &Caller<'_>, node: OpenNode, error: &ToolError) -> Settled {
    let info = ErrorInfo::new(error.code, &error.message);
    let at = caller.scope.services.clock.now_ms();
    let status = NodeStatus::NotRun;
    node.finish(&caller.scope.writer, at, status, Some(info.clone()), None)
        .await;
    Settled::NotRun(info)
}

/// What the model is told of a call.
fn told(call: &RoundCall, settled: Settled) -> ToolResult {
    let is_error = !matches!(settled, Settled::Succeeded(_));
    let content = match settled {
        Settled::Succeeded(text) => bounded(&text),
        Settled::NotRun(error) => format!("The call was not run: {}", error.message),
        Settled::Failed(error) => format!("Error: {}", error.message),
        Settled::TimedOut(error) => format!("Error (timed_out): {}", error.message),
        Settled::Cancelled => CANCELLED.to_owned(),
        Settled::Stopped => "The call was stopped.".to_owned(),
    };
    ToolResult {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        is_error,
    }
}
