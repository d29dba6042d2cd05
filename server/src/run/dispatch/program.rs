//! The calls of a program: nodes below the node of its own call, run by the same code as any other call.
//!
//! They begin in the order in which the program makes them. Safe ones overlap, as many as may at once; an exclusive one
//! waits for what runs, and goes alone.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use protocol::id::{NodeId, OccurrenceId};
use protocol::model::ErrorInfo;
use protocol::op::Op;
use protocol::state::{Channel, Executor, NodeKind};

use super::{Caller, Prepared, Settled, call, prepare};
use crate::run::chat::ExecuteError;
use crate::run::ops::{Announcement, OpenNode};
use crate::run::recovery::{self, Ending};
use crate::tool::{Concurrency, SubCallError, SubCallRequest, SubCallResult};

type Answer = tokio::sync::oneshot::Sender<SubCallResult>;

/// The calls of one program.
pub(super) struct ProgramCalls<'a> {
    /// The program, as the caller of its calls.
    caller: &'a Caller<'a>,
    parent: NodeId,
    next_ordinal: u32,
    waiting: VecDeque<(Prepared, Answer)>,
    running: FuturesUnordered<BoxFuture<'a, Result<(), ExecuteError>>>,
    /// What runs goes alone.
    is_exclusive: bool,
}

impl<'a> ProgramCalls<'a> {
    pub(super) fn new(caller: &'a Caller<'a>, parent: NodeId) -> Self {
        Self {
            caller,
            parent,
            next_ordinal: 0,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            is_exclusive: false,
        }
    }

    /// Whether a call runs.
    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Takes a call, and begins it when its turn has come.
    pub(super) async fn take(&mut self, request: SubCallRequest) {
        let SubCallRequest {
            name,
            arguments,
            answer,
        } = request;
        let writer = &self.caller.scope.writer;
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let occurrence = OccurrenceId::sub_call(&self.parent, ordinal);
        let node_id = NodeId::function(&self.parent, &occurrence);
        let announcement = Announcement {
            node_id: node_id.clone(),
            parent_id: Some(&self.parent),
            kind: NodeKind::Function,
            name: &name,
            title: &name,
            ordinal,
            executor: Executor::Runloom,
            occurrence_id: Some(occurrence),
        };
        writer.write(announcement.op()).await;
        let mut node = OpenNode::new(node_id);
        node.append_long(writer, Channel::Arguments, &arguments.to_string())
            .await;
        match prepare(self.caller, &name, arguments) {
            Ok((tool, arguments)) => {
                let prepared = Prepared {
                    node,
                    tool,
                    arguments,
                };
                self.waiting.push_back((prepared, answer));
                self.begin_next();
            }
            Err(error) => {
                let settled = super::refuse(self.caller, node, &error).await;
                // The program may be over.
                let _ = answer.send(given_back(settled));
            }
        }
    }

    /// Waits until a call has ended; begins those whose turn has come.
    pub(super) async fn next(&mut self) -> Result<(), ExecuteError> {
        if let Some(ended) = self.running.next().await {
            ended?;
        }
        self.begin_next();
        Ok(())
    }

    fn begin_next(&mut self) {
        let at_once = self.caller.scope.services.config.limits.parallel_calls as usize;
        if self.running.is_empty() {
            self.is_exclusive = false;
        }
        while !self.is_exclusive
            && self.running.len() < at_once
            && !self.caller.stop.is_stopped()
            && let Some((prepared, _)) = self.waiting.front()
        {
            let is_exclusive = prepared.tool.info().concurrency == Concurrency::Exclusive;
            if is_exclusive && self.is_running() {
                break;
            }
            let Some((prepared, answer)) = self.waiting.pop_front() else {
                break;
            };
            self.is_exclusive = is_exclusive;
            let caller = self.caller;
            let run = async move {
                let settled = call::run(caller, prepared).await?;
                let _ = answer.send(given_back(settled));
                Ok(())
            };
            self.running.push(run.boxed());
        }
    }

    /// The program is over: what it left open ends with it. Where `closes`, its nodes are closed here; else whoever
    /// stopped the program's caller closes them.
    pub(super) async fn end(mut self, why: Option<ErrorInfo>, closes: bool) -> Result<(), ExecuteError> {
        if self.running.is_empty() && self.waiting.is_empty() {
            return Ok(());
        }
        self.caller.stop.stop(crate::run::Stopped::ByCaller);
        while let Some(ended) = self.running.next().await {
            ended?;
        }
        if !closes {
            return Ok(());
        }
        let scope = self.caller.scope;
        let state = super::inner::recorded(scope).await?;
        let at = scope.services.clock.now_ms();
        for mut op in recovery::close_within(&state, &self.parent, &Ending::Cancelled, at) {
            match &mut op {
                Op::NodeFinished(op) if op.node_id == self.parent => continue,
                Op::NodeFinished(op) => op.error = op.error.take().or_else(|| why.clone()),
                Op::AttemptFinished(op) => op.usage = scope.budget.of_attempt(&op.attempt_id),
                _ => {}
            }
            scope.writer.write(op).await;
        }
        Ok(())
    }
}

/// What the program gets.
fn given_back(settled: Settled) -> SubCallResult {
    match settled {
        Settled::Succeeded(text) => Ok(text),
        Settled::NotRun(error) | Settled::Failed(error) | Settled::TimedOut(error) => {
            Err(SubCallError::new(error.code, error.message))
        }
        Settled::Cancelled => Err(SubCallError::new(
            "cancelled",
            "A person cancelled the call. It may have had an effect.",
        )),
        Settled::Stopped => Err(SubCallError::new("cancelled", "The call was stopped.")),
    }
}

/// Why calls end that a program did not wait for.
pub(super) fn not_awaited() -> ErrorInfo {
    ErrorInfo::new("not_awaited", "The program ended without waiting for this call.")
}
