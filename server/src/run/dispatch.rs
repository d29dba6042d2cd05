//! Running the calls of one round, one after another. Each call is one node and settles exactly once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::model::{ErrorInfo, Progress};
use protocol::op::{NodeUpdated, Op};
use protocol::state::{Channel, NodeStatus};
use tokio::sync::Notify;

use super::context::bounded;
use super::ops::OpenNode;
use super::recorder::RunWriter;
use super::{Services, StopSignal};
use crate::provider::{RoundCall, ToolResult};
use crate::tool::{ToolContext, ToolError, ToolOutput, ToolProgress};

/// A call that waits to be run.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) node: OpenNode,
    pub(super) call: RoundCall,
}

/// Runs the calls in their order; gives a result for each. Once the run is stopped, what is not settled is left to
/// whoever closes the run.
pub(super) async fn run_calls(
    services: &Arc<Services>,
    writer: &RunWriter,
    stop: &StopSignal,
    calls: Vec<Call>,
) -> Vec<ToolResult> {
    let mut results = Vec::with_capacity(calls.len());
    for Call { node, call } in calls {
        if stop.is_stopped() {
            break;
        }
        results.push(run_call(services, writer, stop, node, &call).await);
    }
    results
}

/// How a call ended.
enum Outcome {
    /// By itself.
    Ended(Result<ToolOutput, ToolError>),
    /// It took too long. Its future is dropped: what it still does has no effect on the record.
    TimedOut,
}

async fn run_call(
    services: &Arc<Services>,
    writer: &RunWriter,
    stop: &StopSignal,
    mut node: OpenNode,
    call: &RoundCall,
) -> ToolResult {
    let told = |content: String, is_error: bool| ToolResult {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        is_error,
    };
    let prepared = match &call.parsed {
        Err(problem) => Err(ToolError::new("invalid_arguments", problem.clone())),
        Ok(arguments) => services.tools.find(&call.name).and_then(|tool| {
            tool.check(arguments)?;
            Ok((Arc::clone(tool), arguments.clone()))
        }),
    };
    let (tool, arguments) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            // It was never executed, and the row says why.
            let info = ErrorInfo::new(error.code, &error.message);
            node.finish(
                writer,
                services.clock.now_ms(),
                NodeStatus::NotRun,
                Some(info),
                None,
            )
            .await;
            return told(format!("The call was not run: {error}"), true);
        }
    };
    node.run(writer).await;
    let reports = Arc::new(Reports::default());
    let context = ToolContext {
        cancel: stop.token().child_token(),
        progress: Arc::clone(&reports) as Arc<dyn ToolProgress>,
    };
    let limit = services.config.limits.tool_seconds;
    let outcome = {
        let mut running = tool.call(arguments, &context);
        let deadline = tokio::time::sleep(Duration::from_secs(limit));
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                outcome = &mut running => break Outcome::Ended(outcome),
                () = reports.changed.notified() => report(writer, &mut node, &reports).await,
                () = &mut deadline => {
                    context.cancel.cancel();
                    break Outcome::TimedOut;
                }
            }
        }
    };
    report(writer, &mut node, &reports).await;
    let at = services.clock.now_ms();
    if stop.is_stopped() && !matches!(outcome, Outcome::Ended(Ok(_))) {
        // Whoever stopped the run says how this node ended.
        return told("The call was stopped.".to_owned(), true);
    }
    match outcome {
        Outcome::Ended(Ok(ToolOutput {
            text,
            media_type,
            exit_code,
        })) => {
            let content = bounded(&text);
            node.append_long(writer, Channel::Result, &text).await;
            node.media_type(Channel::Result, &media_type);
            node.finish(writer, at, NodeStatus::Succeeded, None, exit_code)
                .await;
            told(content, false)
        }
        Outcome::Ended(Err(error)) => {
            let info = ErrorInfo::new(error.code, &error.message);
            node.finish(writer, at, NodeStatus::Failed, Some(info), None)
                .await;
            told(format!("Error: {error}"), true)
        }
        Outcome::TimedOut => {
            let words = format!("The call took longer than {limit} s, its limit, and was stopped.");
            let info = ErrorInfo::new("timed_out", &words);
            node.finish(writer, at, NodeStatus::TimedOut, Some(info), None)
                .await;
            told(format!("Error (timed_out): {words}"), true)
        }
    }
}

/// Writes what a tool reported since the last time.
async fn report(writer: &RunWriter, node: &mut OpenNode, reports: &Reports) {
    let Reported { log, progress } = std::mem::take(&mut *reports.lock());
    node.append_long(writer, Channel::Log, &log).await;
    if progress.is_some() {
        writer
            .write(Op::NodeUpdated(NodeUpdated {
                node_id: node.id().clone(),
                status: None,
                title: None,
                progress,
                started_at: None,
                extra: protocol::Extra::new(),
            }))
            .await;
    }
}

/// What a tool reported and nobody has written yet.
#[derive(Debug, Default)]
struct Reports {
    reported: Mutex<Reported>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Reported {
    log: String,
    progress: Option<Progress>,
}

impl Reports {
    fn lock(&self) -> std::sync::MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolProgress for Reports {
    fn log(&self, text: &str) {
        self.lock().log.push_str(text);
        self.changed.notify_one();
    }

    fn progress(&self, done: u64, total: Option<u64>, note: Option<&str>) {
        self.lock().progress = Some(Progress {
            done,
            total,
            note: note.map(str::to_owned),
        });
        self.changed.notify_one();
    }
}
