//! One model node: its attempts, one after another, until the model stops or nothing is left to try.
//!
//! An attempt (`turn/attempt.rs`) runs the turn loop: request → blocks → tool calls → results → next round. When it
//! ends early, [`Retries`] decides what follows; a further attempt goes on from the record, never from memory.

mod attempt;
mod rebuild;
mod round;
mod service;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use protocol::Extra;
use protocol::fold::RunState;
use protocol::id::{AttemptId, NodeId};
use protocol::model::{ErrorInfo, Kept};
use protocol::op::{AttemptStarted, Op};
use protocol::state::AttemptReason;
use uuid::Uuid;

use self::attempt::AttemptEnd;
pub(super) use self::rebuild::rebuild;
use self::service::Next;
use super::chat::ExecuteError;
use super::context::{self, Origin};
use super::dispatch::{self, Call, Caller};
use super::left::LeftModel;
use super::live::Live;
use super::ops::{BlockPlace, notice};
use super::target::Target;
use super::{Scope, StopSignal};
use crate::provider::{ModelMessage, ToolResult};
use crate::store::StoreError;
use crate::stream::{Decision, Failure, Retries};
use crate::tool::{CalledBy, ToolRegistry};

/// An attempt that is about to start.
#[derive(Debug, Clone)]
pub(super) struct NewAttempt {
    pub(super) attempt_id: AttemptId,
    pub(super) index: u32,
    pub(super) reason: AttemptReason,
    pub(super) continues: Option<(AttemptId, Kept)>,
}

impl NewAttempt {
    /// An attempt with an id of its own.
    pub(super) fn new(index: u32, reason: AttemptReason, continues: Option<(AttemptId, Kept)>) -> Self {
        Self {
            attempt_id: AttemptId::from_uuid(Uuid::now_v7()),
            index,
            reason,
            continues,
        }
    }
}

/// One model node to be executed.
pub(super) struct ModelNode {
    pub(super) scope: Arc<Scope>,
    pub(super) stop: StopSignal,
    pub(super) node_id: NodeId,
    /// How many model nodes it lies within.
    pub(super) depth: u32,
    /// The attempt to begin with.
    pub(super) attempt: NewAttempt,
    /// The calls of an earlier owner that have to end before.
    pub(super) left: Option<LeftModel>,
    pub(super) target: Target,
    /// Who may go on in its place, in order.
    pub(super) fallbacks: VecDeque<Target>,
    /// So many tokens of an answer that breaks off can serve as one.
    pub(super) salvage: Option<u64>,
    pub(super) system: String,
    /// What it may call.
    pub(super) tools: ToolRegistry,
    pub(super) origin: Origin,
    pub(super) conversation: Vec<ModelMessage>,
    /// The place of the next call among the children of the node.
    pub(super) next_ordinal: u32,
    /// Rounds that count against the limit: those before a person asked for more do not.
    pub(super) rounds: u32,
    /// The texts of the current attempt, in order.
    pub(super) answer: Vec<String>,
}

/// What a model node said when it ended by itself.
#[derive(Debug)]
pub(super) enum Answer {
    /// All of it, from its only attempt.
    Whole(String),
    /// It goes on from earlier attempts: the record says what it is.
    Recorded,
}

/// How a model node ended. Its open blocks, calls and attempt are closed, unless it was stopped from outside: then
/// whoever stopped it closes what is open.
#[derive(Debug)]
pub(super) enum NodeOutcome {
    /// The model stopped by itself.
    Succeeded(Answer),
    /// It cannot go on.
    Failed(ErrorInfo),
    /// A person or the server stopped it.
    Stopped,
}

impl ModelNode {
    /// Runs it to its end.
    pub(super) async fn run(mut self) -> Result<NodeOutcome, ExecuteError> {
        let mut live = Live::new(
            Arc::clone(self.scope.writer.channel()),
            self.scope.services.clock.clone(),
            self.scope.writer.run_id().clone(),
            self.node_id.clone(),
            self.attempt.attempt_id.clone(),
        );
        let _works = self.scope.approvals.works(&self.node_id);
        let goes_on = match self.left.take() {
            Some(left) => self.end_left(&mut live, left).await,
            None => Ok(true),
        };
        let outcome = match goes_on {
            Ok(true) => self.attempts(&mut live).await,
            Ok(false) => Ok(NodeOutcome::Stopped),
            Err(error) => Err(error),
        };
        live.settle();
        outcome
    }

    /// Lets calls end that an earlier owner left waiting; what they gave is read from the record. `false` when the node
    /// is stopped before.
    async fn end_left(&mut self, live: &mut Live, left: LeftModel) -> Result<bool, ExecuteError> {
        live.attempt(left.attempt_id);
        self.run_calls(live, None, left.calls).await?;
        if self.stop.is_stopped() {
            return Ok(false);
        }
        self.scope.writer.flush().await?;
        self.prepare(self.attempt.index, self.attempt.reason).await?;
        Ok(true)
    }

    /// Runs calls of the node, and says meanwhile whether a person is waited for.
    async fn run_calls(
        &self,
        live: &mut Live,
        place: Option<&mut BlockPlace<'_>>,
        calls: Vec<Call>,
    ) -> Result<Vec<ToolResult>, ExecuteError> {
        let approvals = &self.scope.approvals;
        let _rests = approvals.rests(&self.node_id);
        let caller = Caller {
            by: CalledBy::Model,
            scope: &self.scope,
            node_id: &self.node_id,
            stop: &self.stop,
            depth: self.depth,
            tools: &self.tools,
        };
        let running = dispatch::run_calls(&caller, place, calls);
        tokio::pin!(running);
        let mut waits = false;
        live.tool_running();
        loop {
            tokio::select! {
                results = &mut running => return results,
                turned = approvals.model_turns(&self.node_id, waits) => {
                    waits = turned;
                    if waits {
                        live.awaiting_person();
                    } else {
                        live.tool_running();
                    }
                }
            }
        }
    }

    async fn attempts(&mut self, live: &mut Live) -> Result<NodeOutcome, ExecuteError> {
        let mut left = self.scope.services.config.limits.attempts_per_node;
        let mut service = self.service();
        loop {
            if self.leave_cooling(&mut service).await && self.attempt.index > 0 {
                self.attempt.reason = AttemptReason::ProviderRotation;
            }
            self.begin(live).await;
            left = left.saturating_sub(1);
            let failure = match self.attempt(live, &mut service).await? {
                AttemptEnd::Completed => {
                    let answer = match self.attempt.continues {
                        None => Answer::Whole(self.answer.join("\n\n")),
                        Some(_) => Answer::Recorded,
                    };
                    return Ok(NodeOutcome::Succeeded(answer));
                }
                AttemptEnd::Salvaged => return Ok(NodeOutcome::Succeeded(Answer::Recorded)),
                AttemptEnd::Stopped => return Ok(NodeOutcome::Stopped),
                AttemptEnd::Limit(error) => return Ok(NodeOutcome::Failed(error)),
                AttemptEnd::Broken(failure) => failure,
            };
            // What is said about the wait follows on an end that is kept.
            self.scope.writer.flush().await?;
            match self.after(&failure, left, &mut service, live).await {
                Next::Attempt(reason) => self.go_on(reason).await?,
                Next::Stopped => return Ok(NodeOutcome::Stopped),
                Next::Fail(error) => {
                    return Ok(match self.salvaged_of_all().await? {
                        true => NodeOutcome::Succeeded(Answer::Recorded),
                        false => NodeOutcome::Failed(error),
                    });
                }
            }
        }
    }

    /// Whether the text that all attempts kept can serve, before anything is called failed.
    async fn salvaged_of_all(&self) -> Result<bool, ExecuteError> {
        let Some(least) = self.salvage else {
            return Ok(false);
        };
        let tokens = estimated_tokens(self.recorded().await?.answer(&self.node_id).chars().count());
        if tokens < least {
            return Ok(false);
        }
        let words =
            format!("No attempt came to its end, but together they hold {tokens} tokens, which can serve.");
        let detail = serde_json::json!({ "message": words, "tokens": tokens });
        let op = notice(Some(&self.node_id), "salvaged", detail);
        self.scope.writer.write(op).await;
        Ok(true)
    }

    /// The run as it is in the record.
    async fn recorded(&self) -> Result<RunState, ExecuteError> {
        let run_id = self.scope.writer.run_id();
        let state = self.scope.services.store.load_run(run_id).await?;
        Ok(state.ok_or_else(|| StoreError::row("runs", run_id, "it is gone"))?)
    }

    /// Opens the attempt.
    async fn begin(&mut self, live: &mut Live) {
        self.answer.clear();
        live.attempt(self.attempt.attempt_id.clone());
        let (continues, kept) = self.attempt.continues.clone().unzip();
        self.scope
            .writer
            .write(Op::AttemptStarted(AttemptStarted {
                node_id: self.node_id.clone(),
                attempt_id: self.attempt.attempt_id.clone(),
                attempt_index: self.attempt.index,
                reason: self.attempt.reason,
                provider: self.target.endpoint.provider_id.clone(),
                model: self.target.model.id.clone(),
                continues_attempt_id: continues,
                kept,
                extra: Extra::new(),
            }))
            .await;
    }

    /// Prepares the attempt after this one, which has ended in the record: what it is asked is read from there.
    async fn go_on(&mut self, reason: AttemptReason) -> Result<(), ExecuteError> {
        let index = self.attempt.index.saturating_add(1);
        self.prepare(index, reason).await
    }

    /// The same where the attempt has this index.
    async fn prepare(&mut self, index: u32, reason: AttemptReason) -> Result<(), ExecuteError> {
        let state = self.recorded().await?;
        let services = &self.scope.services;
        let conversation = match &self.origin {
            Origin::Session => {
                let limit = Some(self.target.model.context);
                let context = context::of_run(services, &state, Some(&self.node_id), limit);
                context.await?.conversation
            }
            Origin::Asked(prompt) => {
                let limit = self.target.model.context;
                context::of_asked(services, &state, prompt.clone(), &self.node_id, limit).await?
            }
        };
        self.conversation = conversation.messages;
        self.attempt = NewAttempt::new(index, reason, conversation.continues);
        Ok(())
    }

    /// When a wait that begins now ends, in milliseconds since the epoch.
    fn until(&self, delay: Duration) -> i64 {
        let ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        self.scope.services.clock.now_ms().saturating_add(ms)
    }

    /// Waits, or until the run is stopped.
    async fn wait(&self, delay: Duration) {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.stop.token().cancelled() => {}
        }
    }

    /// A failure that asks to wait before anything of the round was shown: the same attempt asks again after the wait.
    /// `false` when it is not to wait any more.
    async fn wait_in_attempt(&self, live: &mut Live, retries: &mut Retries, failure: &Failure) -> bool {
        if !failure.asks_to_wait() {
            return false;
        }
        match retries.decide(failure, self.scope.services.jitter.share(), false) {
            Decision::Wait { delay } => {
                live.rate_limited(self.until(delay), failure.message());
                self.wait(delay).await;
                true
            }
            Decision::Retry { .. } | Decision::Rotate { .. } | Decision::Fail => false,
        }
    }
}

/// Tokens of a text, by its characters.
fn estimated_tokens(characters: usize) -> u64 {
    characters.div_ceil(context::CHARACTERS_PER_TOKEN) as u64
}
