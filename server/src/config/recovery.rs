//! What follows when a stream fails, or the owner of a run goes away.

use std::time::Duration;

use protocol::api::InterruptionPolicy;

/// `[recovery]`, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// How often and when a provider is asked again.
    pub retry: RetryPolicy,
    /// What becomes of an interrupted run where its creator does not say.
    pub on_interruption: InterruptionPolicy,
}

/// How often and when a provider is asked again after a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// The wait before each retry: as many retries as there are delays.
    pub delays: Vec<Duration>,
    /// Each delay is lengthened by a random share of itself, up to this one.
    pub jitter: f64,
    /// The waits after rate limits and overload where the provider does not say how long; the last one repeats. Never
    /// empty.
    pub rate_limit_delays: Vec<Duration>,
    /// The wait before another provider goes on.
    pub rotation_delay: Duration,
    /// How often a node may move to another provider.
    pub rotations: u32,
    /// How long a provider is left alone after an outage, before one stream tries it again.
    pub cooldown: Duration,
}
