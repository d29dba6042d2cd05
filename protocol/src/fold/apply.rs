//! Applying one entry.

mod attempt;
mod node;

use super::content::{Growth, growth};
use super::extra::{APPROVAL, MESSAGE, NOTICE, RUN, keep, kept};
use super::{Applied, Change, FoldError, Refusal, RunState};
use crate::model::{Approval, ApprovalResolution, Message, Notice, Timestamp};
use crate::op::{self, Entry, Op};
use crate::state::MessageState;

/// Why an op of the next `seq` does not change the state.
enum Stop {
    Refused(Refusal),
    Error(FoldError),
    /// It is about something closed that is left out here.
    PassedOver,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

type Outcome = Result<Vec<Change>, Stop>;

fn closed(thing: impl ToString) -> Stop {
    Refusal::Closed(thing.to_string()).into()
}

fn unknown(thing: impl ToString) -> Stop {
    Refusal::Unknown(thing.to_string()).into()
}

/// Appends to a text what an op adds to it.
fn grow(thing: &dyn std::fmt::Display, known: &mut String, offset: u64, text: &str) -> Result<bool, Stop> {
    match growth(known, offset, text) {
        Growth::Append(rest) => {
            known.push_str(rest);
            Ok(!rest.is_empty())
        }
        Growth::Gap => Err(Stop::Error(FoldError::TextGap {
            thing: thing.to_string(),
            known: known.len() as u64,
            offset,
        })),
        Growth::Differs => Err(Refusal::OverlapDiffers(thing.to_string()).into()),
    }
}

impl RunState {
    /// What an op is about is not here. In a window that may be because it is left out: then what the op does cannot be
    /// told from here.
    fn missing(&self, thing: impl ToString) -> Stop {
        if self.left_out.is_empty() {
            return unknown(thing);
        }
        Stop::Error(FoldError::LeftOut {
            thing: thing.to_string(),
        })
    }

    /// Takes in one entry of the journal.
    ///
    /// # Errors
    /// On an error nothing has changed, and the caller has to fetch what is missing (or to stop).
    pub fn apply(&mut self, entry: &Entry) -> Result<Applied, FoldError> {
        if entry.run_id != self.run.run_id {
            return Err(FoldError::OtherRun {
                expected: self.run.run_id.clone(),
                found: entry.run_id.clone(),
            });
        }
        let known = self.run.last_seq;
        if entry.seq <= known {
            return Ok(Applied::Duplicate);
        }
        // Before the gap: what an older owner wrote never fits, whatever is fetched.
        if entry.generation < self.run.generation {
            return Err(FoldError::OldGeneration {
                known: self.run.generation,
                found: entry.generation,
            });
        }
        if entry.seq - known > 1 {
            return Err(FoldError::Gap {
                known,
                found: entry.seq,
            });
        }
        let applied = match self.apply_op(entry) {
            Ok(changes) => Applied::Changed(changes),
            Err(Stop::Refused(refusal)) => Applied::Refused(refusal),
            Err(Stop::PassedOver) => {
                self.passed_over = entry.seq;
                Applied::Changed(Vec::new())
            }
            Err(Stop::Error(error)) => return Err(error),
        };
        self.run.last_seq = entry.seq;
        self.run.generation = entry.generation;
        Ok(applied)
    }

    fn apply_op(&mut self, entry: &Entry) -> Outcome {
        let at = entry.at;
        match &entry.op {
            Op::RunUpdated(op) => self.run_updated(op),
            Op::MessageAdded(op) => Ok(self.message_added(op, at)),
            Op::MessageUpdated(op) => self.message_updated(op),
            Op::NodeStarted(op) => self.node_started(op, at),
            Op::NodeUpdated(_) | Op::NodeOutput(_) | Op::NodeFinished(_) => self.node_op(&entry.op, at),
            Op::ApprovalRequested(op) => self.approval_requested(op, at),
            Op::ApprovalResolved(op) => self.approval_resolved(op, at),
            Op::AttemptStarted(op) => self.attempt_started(op, at),
            Op::AttemptFinished(op) => self.attempt_finished(op, at),
            Op::BlockStarted(op) => self.block_started(op, at),
            Op::BlockDelta(op) => self.block_delta(op),
            Op::BlockUpdated(op) => self.block_updated(op),
            Op::BlockFinished(op) => self.block_finished(op, at),
            Op::Notice(op) => {
                self.notices.push(Notice {
                    seq: entry.seq,
                    at,
                    node_id: op.node_id.clone(),
                    code: op.code.clone(),
                    detail: op.detail.clone(),
                    extra: kept(NOTICE, &op.extra),
                });
                Ok(vec![Change::Notice])
            }
            Op::Withheld(_) => Ok(Vec::new()),
            Op::Unknown(op) => {
                self.unknown.push(serde_json::Value::Object(op.clone()));
                Ok(vec![Change::Unknown])
            }
        }
    }

    fn run_updated(&mut self, op: &op::RunUpdated) -> Outcome {
        // What is over goes on only by an attempt that a person asked for.
        if self.run.status.is_final() && !op.status.is_final() {
            return Err(closed(&self.run.run_id));
        }
        self.run.status = op.status;
        // An error belongs to an end; a run that goes on has none.
        if op.error.is_some() || !op.status.is_final() {
            self.run.error = op.error.clone();
        }
        if op.usage.is_some() {
            self.run.usage = op.usage.clone();
        }
        keep(&mut self.run.extra, RUN, &op.extra);
        Ok(vec![Change::Run])
    }

    fn message_added(&mut self, op: &op::MessageAdded, at: Timestamp) -> Vec<Change> {
        if self.index.messages.contains_key(&op.message_id) {
            return Vec::new();
        }
        self.insert_message(Message {
            message_id: op.message_id.clone(),
            role: op.role,
            text: op.text.clone(),
            state: MessageState::Queued,
            at,
            extra: kept(MESSAGE, &op.extra),
        });
        vec![Change::MessageAdded(op.message_id.clone())]
    }

    fn message_updated(&mut self, op: &op::MessageUpdated) -> Outcome {
        let message = self
            .index
            .messages
            .get(&op.message_id)
            .and_then(|&place| self.messages.get_mut(place))
            .ok_or_else(|| unknown(&op.message_id))?;
        message.state = op.state;
        keep(&mut message.extra, MESSAGE, &op.extra);
        Ok(vec![Change::Message(op.message_id.clone())])
    }

    fn approval_requested(&mut self, op: &op::ApprovalRequested, at: Timestamp) -> Outcome {
        if self.index.approvals.contains_key(&op.approval_id) {
            return Ok(Vec::new());
        }
        if self
            .node(&op.node_id)
            .is_some_and(|node| node.state.end().is_some())
        {
            return Err(closed(&op.node_id));
        }
        self.insert_approval(Approval {
            approval_id: op.approval_id.clone(),
            node_id: op.node_id.clone(),
            what: op.what.clone(),
            requested_at: at,
            resolution: None,
            extra: kept(APPROVAL, &op.extra),
        });
        Ok(vec![
            Change::Approval(op.approval_id.clone()),
            Change::Node(op.node_id.clone()),
        ])
    }

    fn approval_resolved(&mut self, op: &op::ApprovalResolved, at: Timestamp) -> Outcome {
        let approval = self
            .index
            .approvals
            .get(&op.approval_id)
            .and_then(|&place| self.approvals.get_mut(place))
            .ok_or_else(|| unknown(&op.approval_id))?;
        if approval.resolution.is_some() {
            return Err(closed(&op.approval_id));
        }
        approval.resolution = Some(ApprovalResolution {
            answer: op.answer.clone(),
            by: op.by.clone(),
            words: op.words.clone(),
            at,
        });
        keep(&mut approval.extra, APPROVAL, &op.extra);
        Ok(vec![
            Change::Approval(op.approval_id.clone()),
            Change::Node(op.node_id.clone()),
        ])
    }
}

fn transition(thing: &dyn std::fmt::Display, status: impl std::fmt::Display) -> Stop {
    Refusal::Transition {
        thing: thing.to_string(),
        status: status.to_string(),
    }
    .into()
}
