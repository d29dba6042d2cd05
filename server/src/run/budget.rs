//! What a run takes, over all its model nodes: tokens and cost, and the limits on them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::fold::RunState;
use protocol::id::AttemptId;
use protocol::model::{ErrorInfo, Usage};

use crate::config::Limits;
use crate::store::reopen::{Reopen, ReopenedBy};

/// Shared by all model nodes of one execution.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    /// Of all attempts of the run.
    run: Usage,
    /// Of each attempt of this execution.
    attempts: HashMap<AttemptId, Usage>,
    /// What counts against the limits: what was spent before a person asked for more does not.
    tokens: u64,
    cost: f64,
}

impl Spent {
    fn count(&mut self, usage: &Usage) {
        self.tokens = self
            .tokens
            .saturating_add(usage.input_tokens)
            .saturating_add(usage.output_tokens);
        self.cost += usage.cost.unwrap_or_default();
    }
}

impl Budget {
    /// What a run has taken so far. What a person asks for more of is not held against the limits.
    pub(super) fn of(state: &RunState, reopen: Option<Reopen>) -> Self {
        let counts = reopen.is_some_and(|reopen| reopen.by == ReopenedBy::Policy);
        let mut spent = Spent::default();
        for attempt in state.attempts() {
            if let Some(usage) = attempt.state.end().and_then(|end| end.usage.as_ref()) {
                spent.run.add(usage);
                if counts {
                    spent.count(usage);
                }
            }
        }
        Self {
            spent: Mutex::new(spent),
        }
    }

    /// An attempt has taken this.
    pub(super) fn add(&self, attempt_id: &AttemptId, usage: &Usage) {
        let mut spent = self.lock();
        spent.run.add(usage);
        spent.count(usage);
        spent.attempts.entry(attempt_id.clone()).or_default().add(usage);
    }

    /// What an attempt has taken; none where nothing is known.
    pub(super) fn of_attempt(&self, attempt_id: &AttemptId) -> Option<Usage> {
        self.lock().attempts.get(attempt_id).cloned()
    }

    /// What the run has taken.
    pub(super) fn of_run(&self) -> Usage {
        self.lock().run.clone()
    }

    /// The limit that is passed, if one is.
    pub(super) fn passed(&self, limits: &Limits) -> Option<ErrorInfo> {
        let spent = self.lock();
        if spent.tokens > limits.total_tokens {
            let words = format!(
                "The run used more than {} tokens, its limit.",
                limits.total_tokens
            );
            return Some(ErrorInfo::new("limit_tokens", words));
        }
        let cost = limits.cost.filter(|limit| spent.cost > *limit)?;
        let words = format!("The run cost more than {cost}, its limit.");
        Some(ErrorInfo::new("limit_cost", words))
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
