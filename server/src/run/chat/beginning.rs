//! How an execution begins: from the prompt, from where an earlier one broke off, or from the prompt once more.

use std::collections::VecDeque;
use std::sync::Arc;

use protocol::Extra;
use protocol::fold::RunState;
use protocol::id::{AttemptId, MessageId, NodeId, OccurrenceId};
use protocol::op::{MessageUpdated, Op};
use protocol::state::{AttemptReason, AttemptStatus, Executor, MessageState, NodeKind, Retention, RunStatus};

use super::ExecuteError;
use crate::run::context::{self, Context, Origin, first_line};
use crate::run::ops::{Announcement, attempt_finished, node_running, notice, run_updated};
use crate::run::target::Target;
use crate::run::turn::{ModelNode, NewAttempt};
use crate::run::{Scope, Services, StopSignal};
use crate::store::reopen::{Reopen, ReopenKind, ReopenedBy};

/// What a model is told about where it works.
const SYSTEM: &str = "You work in a workspace of files, which you see through tools. Answer in Markdown. \
    Say in a sentence what you are about to do before you call a tool, and what you found after it.";

/// What is known before the first op of an execution is written.
pub(super) struct Beginning {
    root: NodeId,
    answer: NodeId,
    occurrence: OccurrenceId,
    title: String,
    /// The nodes are there already.
    is_announced: bool,
    /// Messages that no model has read.
    unread: Vec<MessageId>,
    /// The attempt that another answer takes the place of.
    superseded: Option<AttemptId>,
    attempt: NewAttempt,
    context: Context,
    target: Target,
    fallbacks: VecDeque<Target>,
    next_ordinal: u32,
    rounds: u32,
}

impl Beginning {
    /// Reads from the record what the execution begins with.
    pub(super) async fn of(
        services: &Services,
        state: &RunState,
        reopen: Option<Reopen>,
    ) -> Result<Self, ExecuteError> {
        let run_id = &state.run().run_id;
        let root = NodeId::root(run_id);
        let occurrence = OccurrenceId::inner_model_call(&root, 0);
        let answer = NodeId::model(&root, &occurrence);
        let last = state.attempts_of(&answer).next_back();
        let kind = reopen.map(|reopen| reopen.kind);
        let continues = (kind == Some(ReopenKind::Resume)).then_some(&answer);
        let context = context::of_run(services, state, continues, None).await?;
        let target = Target::choose(&services.config, Some(&context.provider), Some(&context.model))?
            .with_reasoning(context.reasoning);
        let fallbacks = target.fallbacks(&services.config, &services.config.roles.chat, context.reasoning);
        let reason = match kind {
            None => AttemptReason::Initial,
            Some(ReopenKind::Resume) => AttemptReason::Resume,
            Some(ReopenKind::Regenerate) => AttemptReason::Regenerate,
        };
        let superseded = last
            .filter(|attempt| {
                kind == Some(ReopenKind::Regenerate)
                    && attempt
                        .state
                        .end()
                        .is_some_and(|end| end.status != AttemptStatus::Superseded)
            })
            .map(|attempt| attempt.attempt_id.clone());
        let index = last.map_or(0, |attempt| attempt.attempt_index.saturating_add(1));
        let unread = state
            .messages()
            .iter()
            .filter(|message| message.state != MessageState::Delivered)
            .map(|message| message.message_id.clone())
            .collect();
        let title = state
            .messages()
            .first()
            .map(|message| first_line(&message.text))
            .unwrap_or_default();
        let calls = state.children(&answer).map(|node| node.ordinal.saturating_add(1));
        Ok(Self {
            is_announced: state.node(&answer).is_some(),
            next_ordinal: calls.max().unwrap_or(0),
            rounds: rounds(state, &answer, reopen),
            attempt: NewAttempt::new(index, reason, context.conversation.continues.clone()),
            root,
            answer,
            occurrence,
            title,
            unread,
            superseded,
            context,
            target,
            fallbacks,
        })
    }

    /// Whether the session wants reasoning to be kept, where it says so.
    pub(super) fn reasoning(&self) -> Option<Retention> {
        self.context.reasoning
    }

    /// Writes what stands before the attempt; gives the node to be executed. What was over is reopened by the attempt.
    pub(super) async fn write(self, scope: &Arc<Scope>, stop: &StopSignal) -> ModelNode {
        let writer = &scope.writer;
        if self.attempt.reason == AttemptReason::Initial {
            writer.write(run_updated(RunStatus::Running, None, None)).await;
        }
        for message_id in self.unread {
            let state = MessageState::Delivered;
            writer
                .write(Op::MessageUpdated(MessageUpdated {
                    message_id,
                    state,
                    extra: Extra::new(),
                }))
                .await;
        }
        if !self.is_announced {
            let nodes = [
                Announcement {
                    node_id: self.root.clone(),
                    parent_id: None,
                    kind: NodeKind::Root,
                    name: "run",
                    title: &self.title,
                    ordinal: 0,
                    executor: Executor::Runloom,
                    occurrence_id: None,
                },
                Announcement {
                    node_id: self.answer.clone(),
                    parent_id: Some(&self.root),
                    kind: NodeKind::Model,
                    name: "answer",
                    title: &self.target.model.id,
                    ordinal: 0,
                    executor: Executor::Runloom,
                    occurrence_id: Some(self.occurrence),
                },
            ];
            for node in nodes {
                let node_id = node.node_id.clone();
                writer.write(node.op()).await;
                writer.write(node_running(&node_id)).await;
            }
        }
        for (code, detail) in self.context.conversation.notices {
            writer.write(notice(Some(&self.answer), code, detail)).await;
        }
        // A source that has only begun is waited for, unless the run is stopped meanwhile.
        let services = &scope.services;
        let (tools, problems) = tokio::select! {
            biased;
            now = services.tools.now() => now,
            () = stop.token().cancelled() => (services.tools.clone(), Vec::new()),
        };
        for (source, problem) in problems {
            let detail = serde_json::json!({
                "message": format!("The tools of `{source}` are not there: {problem}."),
                "source": source,
            });
            writer
                .write(notice(Some(&self.answer), "tools_unavailable", detail))
                .await;
        }
        if let Some(attempt_id) = self.superseded {
            let status = AttemptStatus::Superseded;
            let op = attempt_finished(&self.answer, &attempt_id, status, None, None, None);
            writer.write(op).await;
        }
        ModelNode {
            left: scope.left.take(&self.answer),
            scope: Arc::clone(scope),
            stop: stop.clone(),
            node_id: self.answer,
            depth: 0,
            attempt: self.attempt,
            fallbacks: self.fallbacks,
            salvage: None,
            target: self.target,
            system: SYSTEM.to_owned(),
            tools,
            origin: Origin::Session,
            conversation: self.context.conversation.messages,
            next_ordinal: self.next_ordinal,
            rounds: self.rounds,
            answer: Vec::new(),
        }
    }
}

/// The rounds of the node so far. What a person asks for more of is not held against the limit.
fn rounds(state: &RunState, answer: &NodeId, reopen: Option<Reopen>) -> u32 {
    if reopen.is_none_or(|reopen| reopen.by == ReopenedBy::Person) {
        return 0;
    }
    let of_attempts = state.attempts_of(answer).map(|attempt| {
        let last = state.blocks_of(&attempt.attempt_id).next_back();
        last.map_or(0, |block| block.round.saturating_add(1))
    });
    of_attempts.fold(0, u32::saturating_add)
}
