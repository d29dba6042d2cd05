//! Time in a scenario: how fast it runs, and deadlines that do not drift.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio::time::Instant;

/// How fast scenarios run. 1 is real time, 2 twice as fast; the fastest takes no time at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// As the scenarios say.
    pub const REAL: Self = Self(1.0);
    /// As fast as possible: no waiting except at gates.
    pub const MAX: Self = Self(0.0);

    /// How long a time of the scenario really takes.
    pub fn scale(self, seconds: f64) -> Duration {
        if self.0 == 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(seconds / self.0).unwrap_or(Duration::MAX)
    }
}

impl Default for Speed {
    fn default() -> Self {
        Self::REAL
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 {
            f.write_str("max")
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// A speed that is no number from 0 and not the word `max`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no speed: expected a number such as 1, 0.5 or 20, or `max`")]
pub struct SpeedError(String);

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("max") {
            return Ok(Self::MAX);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(Self(value)),
            _ => Err(SpeedError(text.to_owned())),
        }
    }
}

/// The next moment at which something is due. Waits count from the last deadline, not from when a wait returned, so
/// that a rate holds over a long stream; it never runs behind to make up for a gate or a slow reader.
#[derive(Debug)]
pub(super) struct Pace {
    speed: Speed,
    due: Instant,
}

impl Pace {
    pub(super) fn new(speed: Speed) -> Self {
        Self {
            speed,
            due: Instant::now(),
        }
    }

    /// Forgets how late it is.
    pub(super) fn restart(&mut self) {
        self.due = Instant::now();
    }

    /// Waits until `seconds` of the scenario have passed since the last deadline.
    pub(super) async fn wait(&mut self, seconds: f64) {
        let step = self.speed.scale(seconds);
        if step.is_zero() {
            return;
        }
        let now = Instant::now();
        // A deadline that lies further back than one second is given up, else a burst would follow.
        let base = if now.saturating_duration_since(self.due) > Duration::from_secs(1) {
            now
        } else {
            self.due
        };
        match base.checked_add(step) {
            Some(due) => {
                self.due = due;
                tokio::time::sleep_until(due).await;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_divides_time_and_max_takes_none() {
        let double: Speed = "2".parse().unwrap();
        assert_eq!(double.scale(3.0), Duration::from_millis(1500));
        assert_eq!("max".parse::<Speed>().unwrap().scale(600.0), Duration::ZERO);
        assert_eq!("0".parse::<Speed>().unwrap(), Speed::MAX);
    }

    #[test]
    fn a_wrong_speed_says_what_is_expected() {
        for text in ["fast", "-1", "NaN", "inf", ""] {
            let error = text.parse::<Speed>().unwrap_err().to_string();
            assert!(error.contains("expected a number"), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_does_not_drift() {
        let start = Instant::now();
        let mut pace = Pace::new(Speed::REAL);
        for _ in 0..1000 {
            pace.wait(0.0101).await;
        }
        let late = start.elapsed().saturating_sub(Duration::from_millis(10_100));
        assert!(late < Duration::from_millis(3), "{late:?} late after 1000 waits");
    }
}
