//! Committing and publishing what waits.

use std::collections::HashSet;
use std::time::Duration;

use protocol::fold::{Applied, Change, RunState};
use protocol::frame::{OpsFrame, ServerFrame};
use protocol::id::RunId;
use protocol::op::{Entry, Op};
use protocol::{MAX_FRAME_TEXT, PREVIEW_BYTES, SCHEMA_VERSION};

use super::{Gathered, RecordError, Task};
use crate::store::StoreError;
use crate::store::batch::{self, RunBatch};
use crate::store::wake::{self, WakeUp};

/// How long a commit is tried again while the database cannot be reached.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// What one run adds, already applied to its state.
struct Step {
    run_id: RunId,
    previous_seq: u64,
    steps: Vec<(Entry, Vec<Change>)>,
}

impl Task {
    pub(super) async fn commit(&mut self) {
        self.gathered = Gathered::default();
        let steps = self.prepare();
        if !steps.is_empty() {
            match self.write(&steps, RETRY_FOR).await {
                Ok(written) => self.settle(steps, &written),
                Err(error) if error.is_transient() || steps.len() == 1 => {
                    tracing::error!(%error, "the record could not be written");
                    for step in &steps {
                        self.give_up(
                            &step.run_id,
                            RecordError::NotSaved("the database does not take it".to_owned()),
                        );
                    }
                }
                Err(error) => {
                    // One run's data may be at fault: it must not stop the others.
                    tracing::warn!(%error, "a batch could not be written; its runs are written one by one");
                    for step in steps {
                        self.commit_alone(step).await;
                    }
                }
            }
        }
        self.answer_waiters();
        self.open.retain(|_, run| !run.pending.is_closed());
    }

    async fn commit_alone(&mut self, step: Step) {
        let steps = vec![step];
        match self.write(&steps, RETRY_FOR).await {
            Ok(written) => self.settle(steps, &written),
            Err(error) => {
                for step in &steps {
                    tracing::error!(run.id = %step.run_id, %error, "the run could not be written");
                    self.give_up(
                        &step.run_id,
                        RecordError::NotSaved("the database refused it".to_owned()),
                    );
                }
            }
        }
    }

    /// Gives every waiting op its `seq` and applies it to its run's state.
    fn prepare(&mut self) -> Vec<Step> {
        let at = self.clock.now_ms();
        let mut prepared = Vec::new();
        for (run_id, run) in &mut self.open {
            let previous_seq = run.state.seq();
            let mut steps = Vec::new();
            for mut op in run.pending.drain() {
                // The times of a thing are those of its ops; whoever wrote this one looked at the clock before.
                if let Op::NodeFinished(op) = &mut op {
                    op.finished_at = at;
                }
                let entry = Entry {
                    run_id: run_id.clone(),
                    generation: run.state.generation(),
                    seq: run.state.seq() + 1,
                    at,
                    op,
                };
                match run.state.apply(&entry) {
                    Ok(Applied::Changed(changes)) => steps.push((entry, changes)),
                    Ok(Applied::Refused(refusal)) => {
                        // Every reader refuses it in the same way; its place in the journal stays.
                        tracing::error!(run.id = %run_id, %refusal, op = ?entry.op, "an op does not fit the state");
                        steps.push((entry, Vec::new()));
                    }
                    Ok(Applied::Duplicate) => {}
                    Err(error) => {
                        tracing::error!(run.id = %run_id, %error, op = ?entry.op, "an op was dropped");
                    }
                }
            }
            if !steps.is_empty() {
                prepared.push(Step {
                    run_id: run_id.clone(),
                    previous_seq,
                    steps,
                });
            }
        }
        prepared
    }

    /// Writes in one transaction; tries again while the database cannot be reached.
    async fn write(&self, steps: &[Step], retry_for: Duration) -> Result<HashSet<RunId>, StoreError> {
        let batches: Vec<RunBatch<'_>> = steps
            .iter()
            .filter_map(|step| {
                let state = &self.open.get(&step.run_id)?.state;
                Some(RunBatch {
                    state,
                    previous_seq: step.previous_seq,
                    steps: &step.steps,
                })
            })
            .collect();
        let started = tokio::time::Instant::now();
        let mut delay = Duration::from_millis(50);
        let mut uncertain = false;
        loop {
            match self.write_once(&batches, uncertain).await {
                Err(error) if error.is_transient() && started.elapsed() < retry_for => {
                    tracing::warn!(%error, "the record could not be written; trying again");
                    uncertain = true;
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                outcome => return outcome,
            }
        }
    }

    /// One try. After a broken connection nobody knows whether its commit took place, so runs that are already where
    /// this batch brings them count as written.
    async fn write_once(
        &self,
        batches: &[RunBatch<'_>],
        uncertain: bool,
    ) -> Result<HashSet<RunId>, StoreError> {
        let mut transaction = self.store.pool().begin().await?;
        let mut written = HashSet::new();
        if uncertain {
            for batch in batches {
                let run = batch.state.run();
                let there: Option<(bool,)> =
                    sqlx::query_as("select last_seq = $2 and generation = $3 from runs where run_id = $1")
                        .bind(run.run_id.as_str())
                        .bind(batch.state.seq() as i64)
                        .bind(batch.state.generation() as i64)
                        .fetch_optional(&mut *transaction)
                        .await?;
                if there == Some((true,)) {
                    written.insert(run.run_id.clone());
                }
            }
        }
        let open: Vec<RunBatch<'_>> = batches
            .iter()
            .filter(|batch| !written.contains(&batch.state.run().run_id))
            .map(|batch| RunBatch {
                state: batch.state,
                previous_seq: batch.previous_seq,
                steps: batch.steps,
            })
            .collect();
        let held = batch::write(&mut transaction, &open).await?;
        wake::send(&mut transaction, self.store.process(), &wake_up(&open, &held)).await?;
        written.extend(held);
        transaction.commit().await?;
        Ok(written)
    }

    /// Publishes what was written; runs that were not are another owner's.
    fn settle(&mut self, steps: Vec<Step>, written: &HashSet<RunId>) {
        for step in steps {
            if !written.contains(&step.run_id) {
                self.give_up(&step.run_id, RecordError::LostOwnership);
                continue;
            }
            if let Some(run) = self.open.get_mut(&step.run_id) {
                let changes = step.steps.iter().flat_map(|(_, changes)| changes);
                changes.for_each(|change| forget(&mut run.state, change));
                if step
                    .steps
                    .iter()
                    .any(|(_, changes)| changes.contains(&Change::Run))
                {
                    self.hub.session_changed(run.state.run().session_id.clone());
                }
                run.channel
                    .publish_ops(step.steps.into_iter().map(|(entry, _)| entry));
            }
        }
    }

    /// Stops writing a run.
    pub(super) fn give_up(&mut self, run_id: &RunId, why: RecordError) {
        let Some(run) = self.open.remove(run_id) else {
            return;
        };
        tracing::warn!(run.id = %run_id, %why, "the run is not written any more");
        if let RecordError::NotSaved(_) = why {
            // Without the field `run_id`: its viewers stay subscribed, since the run's end follows.
            let frame = ServerFrame::Error {
                run_id: None,
                code: "not_saved".to_owned(),
                detail: format!(
                    "The database does not take what comes of {run_id}. What is shown up to here is saved."
                ),
            };
            run.channel.publish(&frame, None);
        }
        let _ = run.ended.why.set(why.clone());
        run.ended.token.cancel();
        for waiter in run.waiters {
            // Whoever waited may be gone.
            let _ = waiter.send(Err(why.clone()));
        }
    }

    fn answer_waiters(&mut self) {
        for run in self.open.values_mut() {
            let seq = run.state.seq();
            for waiter in run.waiters.drain(..) {
                let _ = waiter.send(Ok(seq));
            }
        }
    }
}

/// What is closed and saved is not needed here any more: of a long text a beginning stays.
pub(crate) fn forget(state: &mut RunState, change: &Change) {
    match change {
        Change::Block(block) => state.shorten_block(block, PREVIEW_BYTES),
        Change::Node(node) if state.node(node).is_some_and(|node| node.state.end().is_some()) => {
            for channel in protocol::state::Channel::ALL {
                state.shorten_output(node, *channel, PREVIEW_BYTES);
            }
        }
        _ => {}
    }
}

/// What the other servers are told of the batches that hold.
fn wake_up(batches: &[RunBatch<'_>], held: &HashSet<RunId>) -> WakeUp {
    let mut wake_up = WakeUp::default();
    for batch in batches {
        let run = batch.state.run();
        if !held.contains(&run.run_id) {
            continue;
        }
        wake_up.runs.push((run.run_id.clone(), batch.state.seq()));
        if batch
            .steps
            .iter()
            .any(|(_, changes)| changes.contains(&Change::Run))
        {
            wake_up.sessions.push(run.session_id.clone());
            // The next run of its session may begin.
            wake_up.queue |= run.status.is_final();
        }
    }
    wake_up
}

/// Puts consecutive entries that share an envelope into frames of at most [`MAX_FRAME_TEXT`] bytes of text.
pub(crate) fn frames(entries: impl IntoIterator<Item = Entry>) -> Vec<OpsFrame> {
    let mut frames: Vec<OpsFrame> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let text = entry.op.text_bytes() + 64;
        match frames.last_mut() {
            Some(frame)
                if frame.generation == entry.generation
                    && frame.at == entry.at
                    && frame.seq + frame.ops.len() as u64 == entry.seq
                    && bytes + text <= MAX_FRAME_TEXT =>
            {
                bytes += text;
                frame.ops.push(entry.op);
            }
            _ => {
                bytes = text;
                frames.push(OpsFrame {
                    schema_version: SCHEMA_VERSION,
                    run_id: entry.run_id,
                    generation: entry.generation,
                    seq: entry.seq,
                    at: entry.at,
                    ops: vec![entry.op],
                });
            }
        }
    }
    frames
}
