//! Running the calls of one round. Each call is one node and settles exactly once.
//!
//! Safe calls that stand next to each other run at the same time, as a batch whose members are declared; an exclusive
//! call waits for what runs, and goes alone. Results are in the order of the calls, whichever ends first.

mod call;
mod inner;
mod reports;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use protocol::Extra;
use protocol::id::{BlockId, GroupId};
use protocol::model::{BlockBody, ErrorInfo};
use protocol::op::{BlockUpdated, Op};
use protocol::state::NodeStatus;
use serde_json::Value;

use super::chat::ExecuteError;
use super::ops::{BlockPlace, OpenNode};
use super::{Scope, StopSignal};
use crate::provider::{RoundCall, ToolResult};
use crate::tool::{Concurrency, Tool, ToolError, ToolRegistry};

/// The model node whose calls are run.
pub(super) struct Caller<'a> {
    pub(super) scope: &'a Arc<Scope>,
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
    /// Its place among the calls of the round.
    place: usize,
    block_id: BlockId,
    node: OpenNode,
    call: RoundCall,
    tool: Arc<dyn Tool>,
    arguments: Value,
}

/// Runs the calls; gives a result for each, in their order. `next` is where the next block of the attempt stands: a
/// batch takes a place. Once the caller is stopped, what is not settled is left to whoever closes it.
pub(super) async fn run_calls(
    caller: &Caller<'_>,
    next: &mut BlockPlace<'_>,
    calls: Vec<Call>,
) -> Result<Vec<ToolResult>, ExecuteError> {
    let mut results: Vec<Option<ToolResult>> = Vec::new();
    let mut prepared = Vec::new();
    for (place, call) in calls.into_iter().enumerate() {
        results.push(match find(caller, &call.call) {
            Ok((tool, arguments)) => {
                prepared.push(Prepared {
                    place,
                    block_id: call.block_id,
                    node: call.node,
                    call: call.call,
                    tool,
                    arguments,
                });
                None
            }
            Err(error) => Some(refuse(caller, call, &error).await),
        });
    }
    let at_once = caller.scope.services.config.limits.parallel_calls as usize;
    let mut groups = 0;
    for batch in batches(prepared, at_once) {
        if caller.stop.is_stopped() {
            break;
        }
        if batch.len() > 1 {
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
                let place = call.place;
                running.push(call::run(caller, call).map(move |result| (place, result)).boxed());
            }
            let Some((place, result)) = running.next().await else {
                break;
            };
            let result = result?;
            if let Some(known) = results.get_mut(place) {
                *known = Some(result);
            }
        }
    }
    Ok(results.into_iter().flatten().collect())
}

/// What runs together: safe calls that stand next to each other, where several may run at once; else one call alone.
fn batches(calls: Vec<Prepared>, at_once: usize) -> Vec<Vec<Prepared>> {
    let is_safe = |call: &Prepared| call.tool.info().concurrency == Concurrency::ParallelSafe;
    let mut batches: Vec<Vec<Prepared>> = Vec::new();
    for call in calls {
        match batches.last_mut() {
            Some(batch) if at_once > 1 && is_safe(&call) && batch.iter().all(is_safe) => batch.push(call),
            _ => batches.push(vec![call]),
        }
    }
    batches
}

/// Says which calls run together, all at once: their rows are there already.
async fn declare(caller: &Caller<'_>, next: &mut BlockPlace<'_>, number: u32, batch: &[Prepared]) {
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
    let arguments = match &call.parsed {
        Ok(arguments) => arguments.clone(),
        Err(problem) => return Err(ToolError::new("invalid_arguments", problem.clone())),
    };
    let tool = caller.tools.find(&call.name)?;
    tool.check(&arguments)?;
    Ok((Arc::clone(tool), arguments))
}

/// Settles a call that is never executed: its row says why.
async fn refuse(caller: &Caller<'_>, call: Call, error: &ToolError) -> ToolResult {
    let Call { node, call, .. } = call;
    let info = ErrorInfo::new(error.code, &error.message);
    let at = caller.scope.services.clock.now_ms();
    node.finish(&caller.scope.writer, at, NodeStatus::NotRun, Some(info), None)
        .await;
    told(&call, format!("The call was not run: {error}"), true)
}

/// What the model is told of a call.
fn told(call: &RoundCall, content: String, is_error: bool) -> ToolResult {
    ToolResult {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        is_error,
    }
}
