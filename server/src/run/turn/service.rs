//! Who serves a model node: its provider with the retries there, and the providers that may take its place.

use std::time::Duration;

use protocol::model::ErrorInfo;
use protocol::state::AttemptReason;
use serde_json::json;
use tokio::time::Instant;

use super::ModelNode;
use crate::provider::{ProviderError, ProviderErrorClass};
use crate::run::live::Live;
use crate::run::ops::{notice, stream_path};
use crate::run::target::Target;
use crate::run::transcripts::{self, MoveError};
use crate::stream::{Decision, Failure, Outage, Retries, Seat, TranscriptEntry};

/// The provider of a node's attempts.
pub(super) struct Service {
    pub(super) retries: Retries,
    pub(super) seat: Seat,
    rotations_left: u32,
    /// How many providers have served the node.
    providers: u32,
}

/// What follows a failure.
pub(super) enum Next {
    /// Another attempt, for this reason.
    Attempt(AttemptReason),
    /// Nothing is left to try.
    Fail(ErrorInfo),
    /// The run or the node was stopped meanwhile.
    Stopped,
}

/// How a wait ended.
enum Waited {
    Over,
    Stopped,
    /// The provider has an outage, and another one can go on.
    Outage,
}

impl ModelNode {
    /// The provider that it begins with.
    pub(super) fn service(&self) -> Service {
        let services = &self.scope.services;
        let policy = services.config.recovery.retry.clone();
        let most_waiting = Duration::from_secs(services.config.limits.rate_limit_seconds);
        Service {
            rotations_left: policy.rotations,
            retries: Retries::new(policy, most_waiting),
            seat: services.health.seat(&self.target.endpoint.provider_id),
            providers: 1,
        }
    }

    /// Before an attempt: a provider that cools down after an outage is not asked where another one can serve. Whether
    /// another one serves now.
    pub(super) async fn leave_cooling(&mut self, service: &mut Service) -> bool {
        if self.fallbacks.is_empty() || service.rotations_left == 0 || service.seat.may_ask() {
            return false;
        }
        let left = self.target.endpoint.provider_id.clone();
        let Some(target) = self.take_fallback() else {
            return false;
        };
        let words = format!(
            "The provider {left} cools down after an outage, so {} serves.",
            target.endpoint.provider_id
        );
        let detail = json!({ "message": words, "provider": left, "to": target.endpoint.provider_id });
        self.scope
            .writer
            .write(notice(Some(&self.node_id), "provider_cools_down", detail))
            .await;
        self.move_to(target, service);
        true
    }

    /// Decides what follows a failure, shows it, and waits for it.
    pub(super) async fn after(
        &mut self,
        failure: &Failure,
        attempts_left: u32,
        service: &mut Service,
        live: &mut Live,
    ) -> Next {
        let is_stall = matches!(
            failure,
            Failure::Provider(ProviderError {
                class: ProviderErrorClass::Stalled,
                ..
            })
        );
        if !is_stall {
            service.seat.failed();
        } else if let Some(outage) = service.seat.stalled() {
            self.tell(&outage).await;
        }
        let has_fallback = self.has_fallback(service);
        let decision = if attempts_left == 0 {
            Decision::Fail
        } else if is_stall && has_fallback && service.seat.current().is_some() {
            // One decision for all of its streams: its retries are left out.
            Decision::Rotate {
                delay: Duration::ZERO,
            }
        } else {
            let share = self.scope.services.jitter.share();
            service.retries.decide(failure, share, has_fallback)
        };
        self.note(&decision, failure).await;
        let waited = match decision {
            Decision::Fail => return Next::Fail(self.failed(failure, service)),
            Decision::Rotate { delay } => return self.rotate(delay, failure, service, live).await,
            Decision::Retry {
                reason,
                delay,
                number,
                max,
            } => {
                live.retrying(number, max, self.until(delay), failure.message());
                (self.wait_or_outage(delay, service).await, reason)
            }
            Decision::Wait { delay } => {
                live.rate_limited(self.until(delay), failure.message());
                (
                    self.wait_or_outage(delay, service).await,
                    AttemptReason::ErrorRetry,
                )
            }
        };
        match waited {
            (Waited::Over, reason) => Next::Attempt(reason),
            (Waited::Stopped, _) => Next::Stopped,
            (Waited::Outage, _) => self.rotate(Duration::ZERO, failure, service, live).await,
        }
    }

    /// Another provider goes on, after a wait.
    async fn rotate(
        &mut self,
        delay: Duration,
        failure: &Failure,
        service: &mut Service,
        live: &mut Live,
    ) -> Next {
        let Some(target) = self.take_fallback() else {
            return Next::Fail(self.failed(failure, service));
        };
        live.rotating(&target.endpoint.provider_id, self.until(delay), failure.message());
        self.wait(delay).await;
        if self.stop.is_stopped() {
            return Next::Stopped;
        }
        self.move_to(target, service);
        Next::Attempt(AttemptReason::ProviderRotation)
    }

    fn move_to(&mut self, target: Target, service: &mut Service) {
        service.retries.rotated();
        service.seat = self.scope.services.health.seat(&target.endpoint.provider_id);
        service.rotations_left = service.rotations_left.saturating_sub(1);
        service.providers += 1;
        self.target = target;
    }

    fn has_fallback(&self, service: &Service) -> bool {
        service.rotations_left > 0 && self.fallback().is_some()
    }

    /// The place of the first provider that may take over.
    fn fallback(&self) -> Option<usize> {
        let health = &self.scope.services.health;
        let may_serve = |target: &Target| !health.is_cooling(&target.endpoint.provider_id);
        self.fallbacks.iter().position(may_serve)
    }

    fn take_fallback(&mut self) -> Option<Target> {
        let place = self.fallback()?;
        self.fallbacks.remove(place)
    }

    /// Why the node fails, and that nobody else could go on.
    fn failed(&self, failure: &Failure, service: &Service) -> ErrorInfo {
        let mut words = failure.message().to_owned();
        if failure.is_retried() && self.scope.services.config.recovery.retry.rotations > 0 {
            let others = match service.providers {
                1 => " No other provider is configured to go on.".to_owned(),
                count => format!(" {count} providers were asked."),
            };
            if !words.ends_with(['.', '!', '?']) {
                words.push('.');
            }
            words.push_str(&others);
        }
        ErrorInfo::new(failure.code(), words)
    }

    /// Waits; ends earlier when the run is stopped, or when the provider has an outage and another one can go on.
    async fn wait_or_outage(&self, delay: Duration, service: &mut Service) -> Waited {
        let deadline = Instant::now() + delay;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => break,
                () = self.stop.token().cancelled() => break,
                outage = service.seat.outage() => {
                    self.tell(&outage).await;
                    if self.has_fallback(service) {
                        return Waited::Outage;
                    }
                }
            }
        }
        if self.stop.is_stopped() {
            Waited::Stopped
        } else {
            Waited::Over
        }
    }

    /// Says once in each run that a provider has an outage.
    pub(super) async fn tell(&self, outage: &Outage) {
        if !self.scope.is_news(outage.number) {
            return;
        }
        let Outage {
            provider_id,
            stalled,
            active,
            ..
        } = outage;
        let words = format!(
            "The provider {provider_id} has an outage: {stalled} of its {active} streams stalled within 15 s. \
             Stalled and waiting streams move to another provider where there is one; healthy ones go on."
        );
        let detail = json!({
            "message": words, "provider": provider_id, "stalled": stalled, "active": active,
        });
        self.scope
            .writer
            .write(notice(None, "provider_outage", detail))
            .await;
    }

    /// Writes the decision down beside what the provider sent.
    async fn note(&self, decision: &Decision, failure: &Failure) {
        let seconds = |delay: &Duration| delay.as_secs_f64();
        let (word, detail) = match decision {
            Decision::Retry {
                reason,
                delay,
                number,
                max,
            } => (
                "retry",
                json!({ "reason": reason, "delay_seconds": seconds(delay), "number": number, "max": max }),
            ),
            Decision::Wait { delay } => ("wait", json!({ "delay_seconds": seconds(delay) })),
            Decision::Rotate { delay } => ("rotate", json!({ "delay_seconds": seconds(delay) })),
            Decision::Fail => ("fail", json!({})),
        };
        let mut detail = detail;
        detail["code"] = json!(failure.code());
        detail["message"] = json!(failure.message());
        let run_id = self.scope.writer.run_id();
        let path = stream_path(&self.node_id);
        let written = async {
            let transcript = transcripts::open(&self.scope.services, run_id, &path).await?;
            let line = TranscriptEntry::guard(word, detail);
            transcript
                .append(self.attempt.attempt_id.as_str(), vec![line])
                .await
                .map_err(MoveError::from)
        };
        if let Err(error) = written.await {
            // The record says what follows; only the transcript misses the reason.
            tracing::warn!(run.id = %run_id, %error, "a decision was not written to the transcript");
        }
    }
}
