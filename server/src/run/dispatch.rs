//! Running the calls of one round. Each call is one node and settles exactly once.

mod call;
mod inner;
mod reports;

use std::sync::Arc;

use protocol::model::ErrorInfo;
use protocol::state::NodeStatus;
use serde_json::Value;

use super::chat::ExecuteError;
use super::ops::OpenNode;
use super::{Scope, StopSignal};
use crate::provider::{RoundCall, ToolResult};
use crate::tool::{Tool, ToolError, ToolRegistry};

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
    pub(super) call: RoundCall,
}

/// A call that can be run.
struct Prepared {
    node: OpenNode,
    call: RoundCall,
    tool: Arc<dyn Tool>,
    arguments: Value,
}

/// Runs the calls in their order; gives a result for each. Once the run is stopped, what is not settled is left to
/// whoever closes the run.
pub(super) async fn run_calls(
    caller: &Caller<'_>,
    calls: Vec<Call>,
) -> Result<Vec<ToolResult>, ExecuteError> {
    let mut results = Vec::with_capacity(calls.len());
    for call in calls {
        if caller.stop.is_stopped() {
            break;
        }
        results.push(match prepare(caller, call) {
            Ok(prepared) => call::run(caller, prepared).await?,
            Err((call, error)) => refuse(caller, call, &error).await,
        });
    }
    Ok(results)
}

/// Finds the tool and looks at the arguments, without running anything.
fn prepare(caller: &Caller<'_>, call: Call) -> Result<Prepared, (Call, ToolError)> {
    let found = match &call.call.parsed {
        Err(problem) => Err(ToolError::new("invalid_arguments", problem.clone())),
        Ok(arguments) => caller.tools.find(&call.call.name).and_then(|tool| {
            tool.check(arguments)?;
            Ok((Arc::clone(tool), arguments.clone()))
        }),
    };
    match found {
        Ok((tool, arguments)) => Ok(Prepared {
            node: call.node,
            call: call.call,
            tool,
            arguments,
        }),
        Err(error) => Err((call, error)),
    }
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
