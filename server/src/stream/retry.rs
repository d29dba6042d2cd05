//! Whether a provider is asked again after a failure, and when: one pure decision, made in one place.

use std::sync::Arc;
use std::time::Duration;

use protocol::state::AttemptReason;

use crate::config::RetryPolicy;
use crate::provider::{ProviderError, ProviderErrorClass};

/// The least time between two requests.
const LEAST_WAIT: Duration = Duration::from_millis(250);

/// Where the random share of a delay comes from.
pub trait Jitter: Send + Sync + 'static {
    /// A number from 0 to 1.
    fn share(&self) -> f64;
}

/// A source of jitter that can be shared between tasks.
pub type SharedJitter = Arc<dyn Jitter>;

/// The machine's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomJitter;

impl Jitter for RandomJitter {
    fn share(&self) -> f64 {
        rand::random()
    }
}

/// The same share each time, for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct FixedJitter(pub f64);

impl Jitter for FixedJitter {
    fn share(&self) -> f64 {
        self.0
    }
}

/// Why an attempt ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The request was refused, or its stream failed.
    Provider(ProviderError),
    /// The provider ended its answer without any content.
    EmptyReply,
}

impl Failure {
    /// The stable code in the record.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Provider(error) => error.class.code(),
            Self::EmptyReply => "provider_empty_reply",
        }
    }

    /// The reason in plain words.
    pub fn message(&self) -> &str {
        match self {
            Self::Provider(error) => &error.message,
            Self::EmptyReply => "The provider ended its answer without any content.",
        }
    }

    /// Whether the same question may be answered another time, or by another provider.
    pub fn is_retried(&self) -> bool {
        match self {
            Self::EmptyReply => true,
            Self::Provider(error) => match error.class {
                ProviderErrorClass::Stalled
                | ProviderErrorClass::Connect
                | ProviderErrorClass::Broken
                | ProviderErrorClass::Server => true,
                // Garbage in a stream may be whole the next time; an answer that is no stream at all will not be.
                ProviderErrorClass::Protocol => error.status.is_none(),
                ProviderErrorClass::RateLimited
                | ProviderErrorClass::Overloaded
                | ProviderErrorClass::Authentication
                | ProviderErrorClass::Billing
                | ProviderErrorClass::NotFound
                | ProviderErrorClass::InvalidRequest
                | ProviderErrorClass::ContextLength => false,
            },
        }
    }

    /// Whether the provider asks to wait.
    pub fn asks_to_wait(&self) -> bool {
        matches!(
            self,
            Self::Provider(ProviderError {
                class: ProviderErrorClass::RateLimited | ProviderErrorClass::Overloaded,
                ..
            })
        )
    }
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The same provider is asked again, in a new attempt.
    Retry {
        /// Why the new attempt is started.
        reason: AttemptReason,
        /// How long to wait before.
        delay: Duration,
        /// Which try it will be, from 2 on.
        number: u32,
        /// How many tries there are in all.
        max: u32,
    },
    /// The provider asks to wait; that uses up no retry.
    Wait {
        /// How long.
        delay: Duration,
    },
    /// Another provider goes on.
    Rotate {
        /// How long to wait before.
        delay: Duration,
    },
    /// It stays failed.
    Fail,
}

/// The retries of one model node at one provider.
#[derive(Debug, Clone)]
pub struct Retries {
    policy: RetryPolicy,
    /// The longest that all waits for rate limits may take.
    most_waiting: Duration,
    used: usize,
    had_empty_reply: bool,
    waits: usize,
    waited: Duration,
}

impl Retries {
    /// None is used up.
    pub fn new(policy: RetryPolicy, most_waiting: Duration) -> Self {
        Self {
            policy,
            most_waiting,
            used: 0,
            had_empty_reply: false,
            waits: 0,
            waited: Duration::ZERO,
        }
    }

    /// Another provider serves from now on: what was used up was the other one's.
    pub fn rotated(&mut self) {
        *self = Self::new(self.policy.clone(), self.most_waiting);
    }

    /// A round ended whole: what failed before does not count against what fails later. The time that was waited does.
    pub fn note_progress(&mut self) {
        self.used = 0;
        self.waits = 0;
        self.had_empty_reply = false;
    }

    /// Says what follows, and counts it as done. `share` is the random part of the jitter, from 0 to 1; `has_fallback`
    /// says whether another provider could go on.
    pub fn decide(&mut self, failure: &Failure, share: f64, has_fallback: bool) -> Decision {
        if let Failure::Provider(error) = failure
            && failure.asks_to_wait()
        {
            return self.wait(error);
        }
        if !failure.is_retried() {
            return Decision::Fail;
        }
        let reason = match failure {
            Failure::Provider(error) if error.class == ProviderErrorClass::Stalled => {
                AttemptReason::StallRetry
            }
            Failure::Provider(_) | Failure::EmptyReply => AttemptReason::ErrorRetry,
        };
        // An empty reply is asked for again once.
        let is_spent = *failure == Failure::EmptyReply && std::mem::replace(&mut self.had_empty_reply, true);
        let retry = (!is_spent).then(|| self.retry(reason, share)).flatten();
        match retry {
            Some(retry) => retry,
            None if has_fallback => Decision::Rotate {
                delay: self.policy.rotation_delay.max(LEAST_WAIT),
            },
            None => Decision::Fail,
        }
    }

    /// The next retry at the same provider; none when all are used up.
    fn retry(&mut self, reason: AttemptReason, share: f64) -> Option<Decision> {
        let delay = self.policy.delays.get(self.used)?;
        self.used += 1;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Decision::Retry {
            reason,
            delay: delay.mul_f64(1.0 + self.policy.jitter * share.clamp(0.0, 1.0)),
            number: count(self.used + 1),
            max: count(self.policy.delays.len() + 1),
        })
    }

    fn wait(&mut self, error: &ProviderError) -> Decision {
        let delays = &self.policy.rate_limit_delays;
        let own = delays.get(self.waits).or(delays.last()).copied();
        let delay = match error.retry_after_ms {
            Some(ms) => Duration::from_millis(ms).max(LEAST_WAIT),
            None => own.unwrap_or(LEAST_WAIT),
        };
        let waited = self.waited.saturating_add(delay);
        if waited > self.most_waiting {
            return Decision::Fail;
        }
        self.waits += 1;
        self.waited = waited;
        Decision::Wait { delay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retries() -> Retries {
        let seconds = |list: &[u64]| list.iter().copied().map(Duration::from_secs).collect();
        let policy = RetryPolicy {
            delays: seconds(&[2, 8]),
            jitter: 0.5,
            rate_limit_delays: seconds(&[30, 60, 120]),
            rotation_delay: Duration::from_secs(30),
            rotations: 3,
            cooldown: Duration::from_secs(60),
        };
        Retries::new(policy, Duration::from_secs(400))
    }

    fn failed(class: ProviderErrorClass) -> Failure {
        Failure::Provider(ProviderError::new(class, "words"))
    }

    fn limited(retry_after_ms: Option<u64>) -> Failure {
        Failure::Provider(ProviderError {
            retry_after_ms,
            ..ProviderError::new(ProviderErrorClass::RateLimited, "words")
        })
    }

    fn retry(seconds: u64, number: u32) -> Decision {
        Decision::Retry {
            reason: AttemptReason::ErrorRetry,
            delay: Duration::from_secs(seconds),
            number,
            max: 3,
        }
    }

    #[test]
    fn a_broken_stream_is_asked_for_again_as_often_as_there_are_delays() {
        let mut retries = retries();
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Broken), 0.0, false),
            retry(2, 2)
        );
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Server), 0.0, false),
            retry(8, 3)
        );
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Connect), 0.0, false),
            Decision::Fail
        );
        retries.note_progress();
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Protocol), 0.0, false),
            retry(2, 2)
        );
    }

    #[test]
    fn jitter_lengthens_a_delay_by_its_share() {
        let mut retries = retries();
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Broken), 1.0, false),
            retry(3, 2)
        );
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Broken), 0.5, false),
            retry(10, 3)
        );
    }

    #[test]
    fn what_cannot_change_by_asking_again_is_not_asked_again() {
        for class in [
            ProviderErrorClass::Authentication,
            ProviderErrorClass::Billing,
            ProviderErrorClass::NotFound,
            ProviderErrorClass::InvalidRequest,
            ProviderErrorClass::ContextLength,
        ] {
            assert_eq!(
                retries().decide(&failed(class), 0.0, true),
                Decision::Fail,
                "{class:?}"
            );
        }
        let page = Failure::Provider(ProviderError {
            status: Some(200),
            ..ProviderError::new(ProviderErrorClass::Protocol, "an HTML page")
        });
        assert_eq!(retries().decide(&page, 0.0, true), Decision::Fail);
    }

    #[test]
    fn a_stall_is_retried_twice_then_another_provider_goes_on_with_retries_of_its_own() {
        let mut retries = retries();
        let stall = failed(ProviderErrorClass::Stalled);
        let again = |seconds, number| Decision::Retry {
            reason: AttemptReason::StallRetry,
            delay: Duration::from_secs(seconds),
            number,
            max: 3,
        };
        assert_eq!(retries.decide(&stall, 0.0, true), again(2, 2));
        assert_eq!(retries.decide(&stall, 0.0, true), again(8, 3));
        let rotation = Decision::Rotate {
            delay: Duration::from_secs(30),
        };
        assert_eq!(retries.decide(&stall, 0.0, true), rotation);
        retries.rotated();
        assert_eq!(retries.decide(&stall, 0.0, false), again(2, 2));
        assert_eq!(retries.decide(&stall, 0.0, false), again(8, 3));
        assert_eq!(
            retries.decide(&stall, 0.0, false),
            Decision::Fail,
            "there is nobody left"
        );
    }

    #[test]
    fn a_rate_limit_moves_nothing_to_another_provider() {
        let mut retries = retries();
        for _ in 0..3 {
            assert!(matches!(
                retries.decide(&limited(Some(100_000)), 0.0, true),
                Decision::Wait { .. }
            ));
        }
        let twice = retries.decide(&Failure::EmptyReply, 0.0, true);
        assert!(matches!(twice, Decision::Retry { .. }), "{twice:?}");
    }

    #[test]
    fn an_empty_reply_is_asked_for_again_once() {
        let mut retries = retries();
        assert_eq!(retries.decide(&Failure::EmptyReply, 0.0, false), retry(2, 2));
        assert_eq!(retries.decide(&Failure::EmptyReply, 0.0, false), Decision::Fail);
    }

    #[test]
    fn rate_limits_wait_as_told_else_longer_each_time_use_no_retry_and_end_at_the_limit() {
        let mut retries = retries();
        let wait = |ms| Decision::Wait {
            delay: Duration::from_millis(ms),
        };
        assert_eq!(retries.decide(&limited(Some(7_000)), 0.0, false), wait(7_000));
        assert_eq!(
            retries.decide(&limited(Some(0)), 0.0, false),
            wait(250),
            "not at once again"
        );
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Overloaded), 0.0, false),
            wait(120_000)
        );
        assert_eq!(retries.decide(&limited(None), 0.0, false), wait(120_000));
        assert_eq!(
            retries.decide(&failed(ProviderErrorClass::Broken), 0.0, false),
            retry(2, 2)
        );
        assert_eq!(retries.decide(&limited(None), 0.0, false), wait(120_000));
        assert_eq!(
            retries.decide(&limited(None), 0.0, false),
            Decision::Fail,
            "400 s are over"
        );
    }
}
