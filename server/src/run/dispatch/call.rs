//! One call while it runs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use protocol::model::ErrorInfo;
use protocol::state::{Channel, NodeStatus};
use tokio::time::Instant;

use super::inner;
use super::permit::{self, Verdict};
use super::program::{ProgramCalls, not_awaited};
use super::reports::Reports;
use super::{Caller, Prepared, Settled, refuse};
use crate::run::Stopped;
use crate::run::chat::ExecuteError;
use crate::tool::{CalledBy, InnerModels, SubCalls, ToolContext, ToolError, ToolOutput, ToolProgress};

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

/// The time that something may take, which can stand still. That of a call does while models that the call asked are at
/// work, which have limits of their own; that of a run does while it waits for a person.
pub(in crate::run) struct Allowance {
    left: Duration,
    since: Option<Instant>,
}

impl Allowance {
    /// Begins now.
    pub(in crate::run) fn begin(left: Duration) -> Self {
        Self {
            left,
            since: Some(Instant::now()),
        }
    }

    /// From now on time does not count.
    pub(in crate::run) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }

    /// It counts again.
    pub(in crate::run) fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Waits until nothing is left.
    pub(in crate::run) async fn is_over(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + self.left).await,
            None => std::future::pending().await,
        }
    }
}

/// Runs a call to its end. Where its caller is stopped, what is not settled is left to whoever closes the caller.
pub(super) async fn run(caller: &Caller<'_>, prepared: Prepared) -> Result<Settled, ExecuteError> {
    let (services, writer) = (&caller.scope.services, &caller.scope.writer);
    let stop = caller.stop.child();
    let _stops = stop.stops(prepared.node.id());
    let verdict = match stop.why() {
        Some(Stopped::ByPerson) => Verdict::Stopped,
        _ => permit::ask(caller, &stop, &prepared).await?,
    };
    let Prepared {
        mut node,
        tool,
        arguments,
    } = prepared;
    match verdict {
        Verdict::Runs => {}
        Verdict::Denied(info) => {
            let at = services.clock.now_ms();
            node.finish(writer, at, NodeStatus::Denied, Some(info.clone()), None)
                .await;
            return Ok(Settled::NotRun(info));
        }
        // Whoever stopped the caller says how this node ended.
        Verdict::Stopped if caller.stop.is_stopped() => return Ok(Settled::Stopped),
        Verdict::Stopped => {
            let words = "A person cancelled the call before it began.";
            return Ok(refuse(caller, node, &ToolError::new("cancelled", words)).await);
        }
    }
    if tool.info().mutating {
        // What may change something is in the record before it begins: whatever becomes of this process, nobody takes the
        // call for one that never began and runs it once more.
        writer.flush().await?;
    }
    let approvals = &caller.scope.approvals;
    let mut works = Some(approvals.works(caller.node_id));
    let (node_id, mut waits) = (node.id().clone(), false);
    let reports = Arc::new(Reports::default());
    let (models, mut requests) = InnerModels::channel();
    let (calls, mut called) = SubCalls::channel();
    let context = ToolContext {
        cancel: stop.token().clone(),
        progress: Arc::clone(&reports) as Arc<dyn ToolProgress>,
        models,
        calls,
    };
    let configured = Duration::from_secs(services.config.limits.tool_seconds);
    let limit = tool.own_limit().unwrap_or(configured);
    let mut allowance = Allowance::begin(limit);
    let mut asked = FuturesUnordered::new();
    let mut next_ordinal = 0;
    // What a program calls ends when the program does.
    let within = stop.child();
    let program = Caller {
        by: CalledBy::Program,
        scope: caller.scope,
        node_id: &node_id,
        stop: &within,
        depth: caller.depth,
        tools: caller.tools,
    };
    let mut sub_calls = ProgramCalls::new(&program, node.id().clone());
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
                    works = None;
                    asked.push(inner::run(caller, &stop, node.id().clone(), next_ordinal, request));
                    next_ordinal += 1;
                }
                Some(ended) = asked.next(), if !asked.is_empty() => {
                    ended?;
                    if asked.is_empty() {
                        allowance.go_on();
                        works.get_or_insert_with(|| approvals.works(caller.node_id));
                    }
                }
                Some(request) = called.recv() => sub_calls.take(request).await,
                ended = sub_calls.next(), if sub_calls.is_running() => ended?,
                turned = approvals.model_turns(&node_id, waits), if sub_calls.is_running() || waits => {
                    // A program that waits for a person does nothing else.
                    waits = turned;
                    if waits {
                        allowance.pause();
                        works = None;
                    } else {
                        allowance.go_on();
                        works.get_or_insert_with(|| approvals.works(caller.node_id));
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
    let is_ended_well = matches!(outcome, Outcome::Ended(Ok(_)));
    // Calls that the program made with its last breath have their nodes, too.
    while let Ok(request) = called.try_recv() {
        sub_calls.take(request).await;
    }
    let why = is_ended_well.then(not_awaited);
    sub_calls.end(why, !caller.stop.is_stopped()).await?;
    reports.write(writer, &mut node).await;
    let at = services.clock.now_ms();
    if caller.stop.is_stopped() && !is_ended_well {
        // Whoever stopped the caller says how this node ended.
        return Ok(Settled::Stopped);
    }
    if stop.why() == Some(Stopped::ByPerson) && !is_ended_well {
        node.finish(writer, at, NodeStatus::Cancelled, None, None).await;
        return Ok(Settled::Cancelled);
    }
    Ok(match outcome {
        Outcome::Ended(Ok(ToolOutput {
            text,
            media_type,
            exit_code,
        })) => {
            node.append_long(writer, Channel::Result, &text).await;
            node.media_type(Channel::Result, &media_type);
            node.finish(writer, at, NodeStatus::Succeeded, None, exit_code)
                .await;
            Settled::Succeeded(text)
        }
        Outcome::Ended(Err(error)) => {
            let info = ErrorInfo::new(error.code, &error.message);
            node.finish(writer, at, NodeStatus::Failed, Some(info.clone()), None)
                .await;
            Settled::Failed(info)
        }
        Outcome::TimedOut | Outcome::Abandoned => {
            let words = format!(
                "The call took longer than {} s, its limit, and was stopped.",
                limit.as_secs()
            );
            let info = ErrorInfo::new("timed_out", &words);
            node.finish(writer, at, NodeStatus::TimedOut, Some(info.clone()), None)
                .await;
            Settled::TimedOut(info)
        }
    })
}
