//! How long a stream may be silent before it counts as stalled.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a model is for: decides how long its silence is normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelClass {
    /// Thinks long and writes long.
    Thinking,
    /// Acts in many short rounds with tools.
    Action,
}

/// Overrides of the stall limits, all in seconds, each at least 1. What is not set comes from the next wider place:
/// model, provider, class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StallConfig {
    /// First request of an attempt: until the first byte.
    pub first_byte: Option<u64>,
    /// First request of an attempt: until the first token.
    pub first_token: Option<u64>,
    /// While it streams: without any byte.
    pub no_byte: Option<u64>,
    /// While it streams: without text, reasoning or arguments.
    pub no_content: Option<u64>,
    /// Later rounds, until their first token: without any byte.
    pub next_round_no_byte: Option<u64>,
    /// Later rounds, until their first token: without text, reasoning or arguments.
    pub next_round_no_content: Option<u64>,
}

/// The limits of the two clocks in one state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLimits {
    /// The longest time without any byte; pings and comments count as bytes.
    pub no_byte: Duration,
    /// The longest time without text, reasoning or argument bytes.
    pub no_content: Duration,
}

/// The limits that hold for one model. Nothing is limited while tools run, a person is asked, or a rate limit waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallLimits {
    /// First request of an attempt, before the first byte and the first token.
    pub first: ClockLimits,
    /// While content streams.
    pub streaming: ClockLimits,
    /// Later rounds, before their first token.
    pub next_round: ClockLimits,
}

impl StallConfig {
    /// These overrides, and where one is not set, those of `wider`.
    pub fn or(&self, wider: &Self) -> Self {
        Self {
            first_byte: self.first_byte.or(wider.first_byte),
            first_token: self.first_token.or(wider.first_token),
            no_byte: self.no_byte.or(wider.no_byte),
            no_content: self.no_content.or(wider.no_content),
            next_round_no_byte: self.next_round_no_byte.or(wider.next_round_no_byte),
            next_round_no_content: self.next_round_no_content.or(wider.next_round_no_content),
        }
    }

    /// The limits that hold for a model of `class` with these overrides.
    pub fn limits(&self, class: ModelClass) -> StallLimits {
        let streaming_no_byte = match class {
            ModelClass::Thinking => 30,
            ModelClass::Action => 60,
        };
        let clocks = |no_byte: Option<u64>, byte_default, no_content: Option<u64>| ClockLimits {
            no_byte: Duration::from_secs(no_byte.unwrap_or(byte_default)),
            no_content: Duration::from_secs(no_content.unwrap_or(180)),
        };
        StallLimits {
            first: clocks(self.first_byte, 60, self.first_token),
            streaming: clocks(self.no_byte, streaming_no_byte, self.no_content),
            next_round: clocks(self.next_round_no_byte, 45, self.next_round_no_content),
        }
    }

    /// Every override with its key, for the check.
    pub(super) fn fields(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("first_byte", self.first_byte),
            ("first_token", self.first_token),
            ("no_byte", self.no_byte),
            ("no_content", self.no_content),
            ("next_round_no_byte", self.next_round_no_byte),
            ("next_round_no_content", self.next_round_no_content),
        ]
    }
}
