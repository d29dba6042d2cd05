//! One call while it runs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use protocol::model::ErrorInfo;
use protocol::state::{Channel, NodeStatus};
use tokio::time::Instant;

use super::inner;
use super::reports::Reports;
use super::{Caller, Prepared, told};
use crate::provider::ToolResult;
use crate::run::Stopped;
use crate::run::chat::ExecuteError;
use crate::run::context::{CANCELLED, bounded};
use crate::tool::{InnerModels, ToolContext, ToolError, ToolOutput, ToolProgress};

/// How long a call that was stopped may take to return. After that its future is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// How a call ended.
enum Outcome {
    /// By itself.
    Ended(Result<ToolOutput, ToolError>),
    /// It took too long. Its future is dropped: what it still does has no effect on the record.
    TimedOut,
    /// It was stopped, and did not return.
    Abandoned,
}

/// The time that a call may take. It stands still while models that the call asked are at work: those have limits of
/// their own.
struct Allowance {
    left: Duration,
    since: Option<Instant>,
}

impl Allowance {
    fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }

    fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    async fn is_over(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + self.left).await,
            None => std::future::pending().await,
        }
    }
}

/// Runs a call to its end. Where its caller is stopped, what is not settled is left to whoever closes the caller.
pub(super) async fn run(caller: &Caller<'_>, prepared: Prepared) -> Result<ToolResult, ExecuteError> {
    let Prepared {
        mut node,
        call,
        tool,
        arguments,
        ..
    } = prepared;
    let (services, writer) = (&caller.scope.services, &caller.scope.writer);
    let stop = caller.stop.child();
    let _stops = stop.stops(node.id());
    if stop.why() == Some(Stopped::ByPerson) {
        let words = "A person cancelled the call before it began.";
        let info = ErrorInfo::new("cancelled", words);
        let at = services.clock.now_ms();
        node.finish(writer, at, NodeStatus::NotRun, Some(info), None)
            .await;
        return Ok(told(&call, format!("The call was not run: {words}"), true));
    }
    node.run(writer).await;
    if tool.info().mutating {
        // What may change something is in the record before it begins: whatever becomes of this process, nobody takes the
        // call for one that never began and runs it once more.
        writer.flush().await?;
    }
    let reports = Arc::new(Reports::default());
    let (models, mut requests) = InnerModels::channel();
    let context = ToolContext {
        cancel: stop.token().clone(),
        progress: Arc::clone(&reports) as Arc<dyn ToolProgress>,
        models,
    };
    let limit = Duration::from_secs(services.config.limits.tool_seconds);
    let mut allowance = Allowance {
        left: limit,
        since: Some(Instant::now()),
    };
    let mut asked = FuturesUnordered::new();
    let mut next_ordinal = 0;
    let outcome = {
        let mut running = tool.call(arguments, &context);
        let abandoned = async {
            stop.token().cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::pin!(abandoned);
        loop {
            tokio::select! {
                outcome = &mut running => break Outcome::Ended(outcome),
                () = reports.changed() => reports.write(writer, &mut node).await,
                Some(request) = requests.recv() => {
                    allowance.pause();
                    asked.push(inner::run(caller, &stop, node.id().clone(), next_ordinal, request));
                    next_ordinal += 1;
                }
                Some(ended) = asked.next(), if !asked.is_empty() => {
                    ended?;
                    if asked.is_empty() {
                        allowance.go_on();
                    }
                }
                () = allowance.is_over() => {
                    stop.stop(Stopped::ByTimeLimit);
                    break Outcome::TimedOut;
                }
                () = &mut abandoned => break Outcome::Abandoned,
            }
        }
    };
    if !asked.is_empty() {
        // Nobody waits for their answers any more.
        stop.stop(Stopped::ByCaller);
        while let Some(ended) = asked.next().await {
            ended?;
        }
    }
    reports.write(writer, &mut node).await;
    let at = services.clock.now_ms();
    let is_ended_well = matches!(outcome, Outcome::Ended(Ok(_)));
    if caller.stop.is_stopped() && !is_ended_well {
        // Whoever stopped the caller says how this node ended.
        return Ok(told(&call, "The call was stopped.".to_owned(), true));
    }
    if stop.why() == Some(Stopped::ByPerson) && !is_ended_well {
        node.finish(writer, at, NodeStatus::Cancelled, None, None).await;
        return Ok(told(&call, CANCELLED.to_owned(), true));
    }
    Ok(match outcome {
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
            told(&call, content, false)
        }
        Outcome::Ended(Err(error)) => {
            let info = ErrorInfo::new(error.code, &error.message);
            node.finish(writer, at, NodeStatus::Failed, Some(info), None)
                .await;
            told(&call, format!("Error: {error}"), true)
        }
        Outcome::TimedOut | Outcome::Abandoned => {
            let words = format!(
                "The call took longer than {} s, its limit, and was stopped.",
                limit.as_secs()
            );
            let info = ErrorInfo::new("timed_out", &words);
            node.finish(writer, at, NodeStatus::TimedOut, Some(info), None)
                .await;
            told(&call, format!("Error (timed_out): {words}"), true)
        }
    })
}
