//! One attempt: rounds until the model stops, or something ends it.

use std::sync::Arc;
use std::time::Duration;

use protocol::model::ErrorInfo;
use protocol::state::{AttemptStatus, Retention};

use super::round::{Round, RoundEnd};
use super::service::Service;
use super::{ModelNode, estimated_tokens};
use crate::provider::{
    DecoderOptions, ModelMessage, ModelRequest, ProviderError, ProviderErrorClass, Replay, StopReason,
    ToolDefinition, Usage,
};
use crate::run::chat::ExecuteError;
use crate::run::live::Live;
use crate::run::ops::{BlockPlace, attempt_finished, stream_path};
use crate::run::transcripts;
use crate::stream::{Failure, ModelStream, Seat, StreamItem, StreamStart};

/// How an attempt ended. What it opened is closed, unless it was stopped from outside.
#[derive(Debug)]
pub(super) enum AttemptEnd {
    /// The model stopped by itself.
    Completed,
    /// The stream failed, but what came of the answer can serve.
    Salvaged,
    /// The stream failed; another attempt may follow.
    Broken(Failure),
    /// A limit of the node is reached.
    Limit(ErrorInfo),
    /// A person or the server stopped it.
    Stopped,
}

/// A round whose end marker came.
struct Complete {
    replay: Option<Replay>,
}

impl ModelNode {
    /// Runs the attempt that was begun.
    pub(super) async fn attempt(
        &mut self,
        live: &mut Live,
        service: &mut Service,
    ) -> Result<AttemptEnd, ExecuteError> {
        let scope = Arc::clone(&self.scope);
        let limits = &scope.services.config.limits;
        let attempt_id = self.attempt.attempt_id.clone();
        let node_id = self.node_id.clone();
        let (mut number, mut next_index) = (0, 0);
        while self.rounds < limits.rounds_per_node {
            let mut round = Round::new(
                &scope.writer,
                &node_id,
                &attempt_id,
                number,
                next_index,
                self.next_ordinal,
                self.target.reasoning,
            );
            let ended = self.read_round(&mut round, number, live, &mut service.seat).await;
            if self.stop.is_stopped() {
                return Ok(AttemptEnd::Stopped);
            }
            let complete = match ended {
                Ok(complete) => complete,
                Err(error) => {
                    let failure = Failure::Provider(error);
                    if round.is_blank() && self.wait_in_attempt(live, &mut service.retries, &failure).await {
                        if self.stop.is_stopped() {
                            return Ok(AttemptEnd::Stopped);
                        }
                        continue;
                    }
                    return Ok(self.break_off(round, failure).await);
                }
            };
            let end = round.complete(self.scope.services.clock.now_ms()).await;
            (next_index, self.next_ordinal) = (end.next_index, end.next_ordinal);
            number += 1;
            self.rounds = self.rounds.saturating_add(1);
            self.answer.extend(end.texts.iter().cloned());
            self.spend(end.usage.as_ref());
            // A provider's state holds the reasoning.
            if let Some(replay) = &complete.replay
                && self.target.reasoning == Retention::Saved
            {
                self.keep(end.round, replay).await;
            }
            let goes_on = !end.calls.is_empty() || end.stop == Some(StopReason::PauseTurn);
            if !goes_on {
                return Ok(self.stop_by_itself(end).await);
            }
            service.retries.note_progress();
            let RoundEnd {
                parts, calls, round, ..
            } = end;
            self.conversation.push(ModelMessage::Assistant {
                parts,
                replay: complete.replay,
            });
            if !calls.is_empty() {
                let mut place = BlockPlace {
                    node_id: &node_id,
                    attempt_id: &attempt_id,
                    block_index: next_index,
                    round,
                };
                let results = self.run_calls(live, Some(&mut place), calls).await?;
                next_index = place.block_index;
                if self.stop.is_stopped() {
                    return Ok(AttemptEnd::Stopped);
                }
                self.conversation.push(ModelMessage::ToolResults { results });
            }
            if let Some(error) = self.scope.budget.passed(limits) {
                return Ok(self.reach(error).await);
            }
        }
        let words = format!(
            "The model asked for tools in {} rounds, the limit of one node.",
            limits.rounds_per_node
        );
        Ok(self.reach(ErrorInfo::new("limit_rounds", words)).await)
    }

    /// Keeps what the provider wants back.
    async fn keep(&self, round: u32, replay: &Replay) {
        let put = self.scope.services.store.put_replay(
            self.scope.writer.run_id(),
            &self.node_id,
            &self.attempt.attempt_id,
            round,
            replay,
        );
        if let Err(error) = put.await {
            // Only a later run would miss it, and it can do without.
            tracing::warn!(run.id = %self.scope.writer.run_id(), %error, "the provider's state was not kept");
        }
    }

    /// Asks the provider, and writes what comes.
    async fn read_round(
        &self,
        round: &mut Round<'_>,
        number: u32,
        live: &mut Live,
        seat: &mut Seat,
    ) -> Result<Complete, ProviderError> {
        let services = &self.scope.services;
        let tools = self.tools.offered(self.scope.tool_mode).into_iter();
        let tools = tools.map(|tool| ToolDefinition {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        });
        let request = ModelRequest {
            model: self.target.model.id.clone(),
            system: Some(self.system.clone()),
            messages: self.conversation.clone(),
            tools: tools.collect(),
            max_tokens: self.target.model.max_tokens,
        };
        let path = stream_path(&self.node_id);
        let transcript = transcripts::open(services, self.scope.writer.run_id(), &path)
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
            attempt_id: self.attempt.attempt_id.to_string(),
            limits: self.target.limits(number > 0),
            options: DecoderOptions::default(),
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
        let mut is_answered = false;
        loop {
            tokio::select! {
                item = stream.next() => match item {
                    None => break,
                    Some(StreamItem::Events(events)) => {
                        live.content();
                        if !is_answered && stream.clocks().content_chars() > 0 {
                            is_answered = true;
                            seat.answered();
                        }
                        for event in events {
                            round.take(event).await;
                        }
                    }
                    Some(StreamItem::Clocks { .. }) => {}
                },
                _ = ticks.tick() => live.tick(),
                // This stream is a healthy one: it only says so.
                outage = seat.outage() => self.tell(&outage).await,
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
    async fn stop_by_itself(&self, end: RoundEnd) -> AttemptEnd {
        if !end.has_content && end.round == 0 {
            let failure = Failure::EmptyReply;
            self.finish(AttemptStatus::Failed, end.stop_word, Some(info(&failure)))
                .await;
            return AttemptEnd::Broken(failure);
        }
        self.finish(AttemptStatus::Completed, end.stop_word, None).await;
        AttemptEnd::Completed
    }

    /// The round broke: what came is kept, what is open is cut, and no call of it is run.
    async fn break_off(&mut self, round: Round<'_>, failure: Failure) -> AttemptEnd {
        let end = round.cut(self.scope.services.clock.now_ms()).await;
        self.next_ordinal = end.next_ordinal;
        self.spend(end.usage.as_ref());
        let is_retried = failure.is_retried();
        let characters = self
            .answer
            .iter()
            .chain(&end.texts)
            .map(|text| text.chars().count());
        let tokens = estimated_tokens(characters.sum());
        let status = match &failure {
            _ if is_retried && self.salvage.is_some_and(|least| tokens >= least) => AttemptStatus::Partial,
            Failure::Provider(error) if error.class == ProviderErrorClass::Stalled => AttemptStatus::Stalled,
            Failure::Provider(_) | Failure::EmptyReply => AttemptStatus::Failed,
        };
        self.finish(status, None, Some(info(&failure))).await;
        match status {
            AttemptStatus::Partial => AttemptEnd::Salvaged,
            _ => AttemptEnd::Broken(failure),
        }
    }

    /// Counts what a round took.
    fn spend(&self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            let usage = self.target.usage(usage);
            self.scope.budget.add(&self.attempt.attempt_id, &usage);
        }
    }

    async fn reach(&self, error: ErrorInfo) -> AttemptEnd {
        self.finish(AttemptStatus::Failed, None, Some(error.clone()))
            .await;
        AttemptEnd::Limit(error)
    }

    async fn finish(&self, status: AttemptStatus, stop_reason: Option<String>, error: Option<ErrorInfo>) {
        let usage = self.scope.budget.of_attempt(&self.attempt.attempt_id);
        let usage = Some(usage.unwrap_or_default());
        let op = attempt_finished(
            &self.node_id,
            &self.attempt.attempt_id,
            status,
            stop_reason,
            usage,
            error,
        );
        self.scope.writer.write(op).await;
    }
}

fn info(failure: &Failure) -> ErrorInfo {
    ErrorInfo::new(failure.code(), failure.message())
}
