//! The turn loop of one model node: request → blocks → tool calls → results → next round, in one attempt, until the
//! model stops or something ends it.

mod rebuild;
mod round;

use std::sync::Arc;
use std::time::Duration;

use protocol::Extra;
use protocol::id::{AttemptId, NodeId};
use protocol::model::{ErrorInfo, Usage};
use protocol::op::{AttemptStarted, Op};
use protocol::state::{AttemptReason, AttemptStatus, Retention};

pub(super) use self::rebuild::rebuild;
use self::round::{Round, RoundEnd};
use super::dispatch;
use super::live::Live;
use super::ops::{attempt_finished, stream_path};
use super::recorder::{RecordError, RunWriter};
use super::target::Target;
use super::{Services, StopSignal};
use crate::provider::{
    ModelMessage, ModelRequest, ProviderError, ProviderErrorClass, StopReason, ToolDefinition,
};
use crate::stream::{ModelStream, StreamStart};

/// One model node to be executed.
pub(super) struct ModelNode<'a> {
    pub(super) services: &'a Arc<Services>,
    pub(super) writer: &'a RunWriter,
    pub(super) stop: &'a StopSignal,
    pub(super) node_id: NodeId,
    pub(super) attempt_id: AttemptId,
    pub(super) target: Target,
    pub(super) system: String,
    pub(super) conversation: Vec<ModelMessage>,
}

/// How a model node ended. Its open blocks, calls and attempt are closed, unless it was stopped from outside: then
/// whoever stopped it closes what is open.
#[derive(Debug)]
pub(super) enum NodeOutcome {
    /// The model stopped by itself.
    Succeeded,
    /// It cannot go on.
    Failed(ErrorInfo),
    /// A person or the server stopped it.
    Stopped,
}

impl ModelNode<'_> {
    /// Runs it to its end. Gives the tokens of all rounds.
    pub(super) async fn run(mut self) -> Result<(NodeOutcome, Usage), RecordError> {
        self.writer
            .write(Op::AttemptStarted(AttemptStarted {
                node_id: self.node_id.clone(),
                attempt_id: self.attempt_id.clone(),
                attempt_index: 0,
                reason: AttemptReason::Initial,
                provider: self.target.endpoint.provider_id.clone(),
                model: self.target.model.id.clone(),
                continues_attempt_id: None,
                kept: None,
                extra: Extra::new(),
            }))
            .await;
        let mut live = Live::new(
            Arc::clone(self.writer.channel()),
            self.services.clock.clone(),
            self.writer.run_id().clone(),
            self.node_id.clone(),
            self.attempt_id.clone(),
        );
        let mut usage = Usage::default();
        let outcome = self.rounds(&mut live, &mut usage).await;
        live.settle();
        Ok((outcome?, usage))
    }

    async fn rounds(&mut self, live: &mut Live, usage: &mut Usage) -> Result<NodeOutcome, RecordError> {
        let mut next_index = 0;
        let mut next_ordinal = 0;
        for number in 0..self.services.config.limits.rounds_per_node {
            let mut round = Round::new(
                self.writer,
                &self.node_id,
                &self.attempt_id,
                number,
                next_index,
                next_ordinal,
                self.target.reasoning,
            );
            let ended = self.read_round(&mut round, number, live).await;
            if self.stop.is_stopped() {
                return Ok(NodeOutcome::Stopped);
            }
            let complete = match ended {
                Ok(complete) => complete,
                Err(error) => return self.fail(round, usage, &error).await,
            };
            let end = round.complete(self.services.clock.now_ms()).await;
            (next_index, next_ordinal) = (end.next_index, end.next_ordinal);
            if let Some(round_usage) = &end.usage {
                usage.add(&self.target.usage(round_usage));
            }
            // A provider's state holds the reasoning.
            if let Some(replay) = &complete.replay
                && self.target.reasoning == Retention::Saved
            {
                let put = self.services.store.put_replay(
                    self.writer.run_id(),
                    &self.node_id,
                    &self.attempt_id,
                    number,
                    replay,
                );
                if let Err(error) = put.await {
                    // Only a later run would miss it, and it can do without.
                    tracing::warn!(run.id = %self.writer.run_id(), %error, "the provider's state was not kept");
                }
            }
            let goes_on = match (&end.calls[..], end.stop) {
                ([], Some(StopReason::PauseTurn)) => true,
                ([], _) => false,
                _ => true,
            };
            if !goes_on {
                return self.stop_by_itself(end, usage).await;
            }
            let RoundEnd { parts, calls, .. } = end;
            self.conversation.push(ModelMessage::Assistant {
                parts,
                replay: complete.replay,
            });
            if !calls.is_empty() {
                live.tool_running();
                let results = dispatch::run_calls(self.services, self.writer, self.stop, calls).await;
                if self.stop.is_stopped() {
                    return Ok(NodeOutcome::Stopped);
                }
                self.conversation.push(ModelMessage::ToolResults { results });
            }
            if usage.input_tokens.saturating_add(usage.output_tokens)
                > self.services.config.limits.total_tokens
            {
                let error = ErrorInfo::new(
                    "limit_tokens",
                    format!(
                        "The run used more than {} tokens, its limit.",
                        self.services.config.limits.total_tokens
                    ),
                );
                return self.end(AttemptStatus::Failed, None, usage, Some(error)).await;
            }
        }
        let limit = self.services.config.limits.rounds_per_node;
        let error = ErrorInfo::new(
            "limit_rounds",
            format!("The model asked for tools in {limit} rounds, the limit of one node."),
        );
        self.end(AttemptStatus::Failed, None, usage, Some(error)).await
    }

    /// Asks the provider, and writes what comes.
    async fn read_round(
        &self,
        round: &mut Round<'_>,
        number: u32,
        live: &mut Live,
    ) -> Result<Complete, ProviderError> {
        let services = self.services;
        let tools = services.tools.definitions().map(|tool| ToolDefinition {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        });
        let request = ModelRequest {
            model: self.target.model.id.clone(),
            system: Some(self.system.clone()),
            messages: self.conversation.clone(),
            tools: tools.collect(),
            max_tokens: self.target.model.max_tokens,
        };
        let run_id = self.writer.run_id().as_str();
        let transcript = services
            .transcripts
            .open(run_id, &stream_path(&self.node_id), services.clock.clone())
            .await
            .map_err(|error| {
                ProviderError::new(
                    ProviderErrorClass::Protocol,
                    format!("The transcript cannot be written: {error}"),
                )
            })?;
        let start = StreamStart {
            endpoint: self.target.endpoint.clone(),
            request,
            attempt_id: self.attempt_id.to_string(),
            limits: self.target.limits(number > 0),
            options: crate::provider::DecoderOptions::default(),
            reasoning: self.target.reasoning,
        };
        let mut stream = ModelStream::start(
            &services.client,
            transcript,
            services.clock.clone(),
            start,
            self.stop.token().clone(),
        )?;
        live.request(stream.clocks());
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                item = stream.next() => match item {
                    None => break,
                    Some(crate::stream::StreamItem::Events(events)) => {
                        live.content();
                        for event in events {
                            round.take(event).await;
                        }
                    }
                    Some(crate::stream::StreamItem::Clocks { .. }) => {}
                },
                _ = ticks.tick() => live.tick(),
            }
        }
        match round.take_error() {
            Some(error) => Err(error),
            None if round.is_complete() => Ok(Complete {
                replay: stream.replay(),
            }),
            None => Err(ProviderError::new(
                ProviderErrorClass::Broken,
                "The stream ended without its end marker.",
            )),
        }
    }

    /// The model has nothing more to do.
    async fn stop_by_itself(&self, end: RoundEnd, usage: &Usage) -> Result<NodeOutcome, RecordError> {
        if !end.has_content && end.round == 0 {
            let error = ErrorInfo::new(
                "provider_empty_reply",
                "The provider ended its answer without any content.",
            );
            return self
                .end(AttemptStatus::Failed, end.stop_word, usage, Some(error))
                .await;
        }
        self.end(AttemptStatus::Completed, end.stop_word, usage, None)
            .await
    }

    /// The round broke: what came is kept, what is open is cut.
    async fn fail(
        &self,
        round: Round<'_>,
        usage: &mut Usage,
        error: &ProviderError,
    ) -> Result<NodeOutcome, RecordError> {
        let partial = round.cut(self.services.clock.now_ms()).await;
        if let Some(partial) = &partial {
            usage.add(&self.target.usage(partial));
        }
        let status = match error.class {
            ProviderErrorClass::Stalled => AttemptStatus::Stalled,
            _ => AttemptStatus::Failed,
        };
        self.end(
            status,
            None,
            usage,
            Some(ErrorInfo::new(error.class.code(), &error.message)),
        )
        .await
    }

    async fn end(
        &self,
        status: AttemptStatus,
        stop_reason: Option<String>,
        usage: &Usage,
        error: Option<ErrorInfo>,
    ) -> Result<NodeOutcome, RecordError> {
        let op = attempt_finished(
            &self.node_id,
            &self.attempt_id,
            status,
            stop_reason,
            Some(usage.clone()),
            error.clone(),
        );
        self.writer.write(op).await;
        Ok(match error {
            None => NodeOutcome::Succeeded,
            Some(error) => NodeOutcome::Failed(error),
        })
    }
}

/// A round whose end marker came.
struct Complete {
    replay: Option<crate::provider::Replay>,
}
