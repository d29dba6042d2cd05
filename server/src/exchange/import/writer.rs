//! Writes one imported run, op by op, as its owner would have written it.
//!
//! What is written follows from the file alone. So an import that was killed goes on when its file is read again: the
//! ops that are there are folded, not written. A record that cannot be taken keeps its place in the journal, and a notice at
//! the end of the run says what it was.

use std::collections::HashMap;

use protocol::Extra;
use protocol::api::{ImportedRun, Outcome};
use protocol::digest::{digest, sha256};
use protocol::fold::{Applied, Change, FoldError, RunState};
use protocol::id::NodeId;
use protocol::model::{BlockBody, ErrorInfo, Timestamp};
use protocol::op::{BlockFinished, Entry, NodeFinished, Notice, Op, Withheld};
use protocol::state::{BlockStatus, Retention};
use serde_json::json;

use super::ImportError;
use super::sound::sound;
use crate::run::recorder::forget;
use crate::run::recovery::{Ending, close};
use crate::store::Store;
use crate::store::batch::RunBatch;
use crate::store::imports::{ImportState, Imported, Known, RunHead, SessionHead, Written};

/// Ops, and bytes of text, that one transaction writes.
const OPS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 128 * 1024;

/// So many ops may be missing in one place; a number further away is taken for a wrong one.
const MOST_MISSING: u64 = 10_000;

/// So many records that could not be taken are told one by one.
const MOST_TOLD: usize = 100;

/// A run that is being imported.
pub(super) struct RunWriter<'a> {
    store: &'a Store,
    format: &'static str,
    state: RunState,
    steps: Vec<(Entry, Vec<Change>)>,
    bytes: usize,
    known: Known,
    /// The last op that the database has.
    stored: u64,
    /// How much longer or shorter a text is here than in the file.
    shifts: HashMap<String, i64>,
    quarantine: Vec<Quarantined>,
    /// Records that could not be taken since the last one that could.
    bad_since: u64,
    /// What was not taken of each kind is told once.
    untold: usize,
}

/// A record that was not taken as it came.
struct Quarantined {
    node_id: Option<NodeId>,
    record: String,
    reason: String,
}

impl<'a> RunWriter<'a> {
    pub(super) async fn begin(
        store: &'a Store,
        session: &SessionHead,
        run: &RunHead,
        format: &'static str,
    ) -> Result<Self, ImportError> {
        let known = store.begin_import(session, run, format).await?;
        let stored = match known {
            Known::New => 0,
            Known::Imported { seq, .. } | Known::Native { seq } => seq,
        };
        Ok(Self {
            store,
            format,
            state: RunState::new(run.run_id.clone(), session.session_id.clone()),
            steps: Vec::new(),
            bytes: 0,
            known,
            stored,
            shifts: HashMap::new(),
            quarantine: Vec::new(),
            bad_since: 0,
            untold: 0,
        })
    }

    /// The last op that was taken.
    pub(super) fn seq(&self) -> u64 {
        self.state.seq()
    }

    /// A record that could not be taken.
    pub(super) fn reject(&mut self, record: impl Into<String>, reason: impl ToString) {
        self.bad_since += 1;
        self.quarantine(None, record.into(), reason.to_string());
    }

    fn quarantine(&mut self, node_id: Option<NodeId>, record: String, reason: String) {
        if self.quarantine.len() < MOST_TOLD {
            self.quarantine.push(Quarantined {
                node_id,
                record,
                reason,
            });
        } else {
            self.untold += 1;
        }
    }

    /// Takes an entry of a journal; `record` is where it stood.
    pub(super) async fn entry(&mut self, record: String, mut entry: Entry) -> Result<(), ImportError> {
        if entry.run_id != self.state.run().run_id {
            self.reject(record, format!("it is of {}, another run", entry.run_id));
            return Ok(());
        }
        if let Err(problem) = sound(&mut entry) {
            self.reject(record, problem);
            return Ok(());
        }
        let known = self.state.seq();
        if entry.seq <= known {
            return Ok(());
        }
        if entry.generation < self.state.generation() {
            self.reject(record, format!("its generation {} is over", entry.generation));
            return Ok(());
        }
        let missing = entry.seq - known - 1;
        if missing > MOST_MISSING {
            self.reject(
                record,
                format!("its seq {} does not follow on {known}", entry.seq),
            );
            return Ok(());
        }
        if missing > self.bad_since {
            let range = format!("ops {} to {}", known + 1, entry.seq - 1);
            self.quarantine(None, range, "they are not in the file".to_owned());
        }
        for seq in known + 1..entry.seq {
            let place = Op::Withheld(Withheld::default());
            self.apply(
                &record,
                Entry {
                    seq,
                    op: place,
                    ..entry.clone()
                },
            )
            .await?;
        }
        self.bad_since = 0;
        self.apply(&record, entry).await
    }

    /// Takes the next op, which this server makes.
    pub(super) async fn op(&mut self, at: Timestamp, op: Op) -> Result<(), ImportError> {
        let mut entry = Entry {
            run_id: self.state.run().run_id.clone(),
            generation: self.state.generation(),
            seq: self.state.seq() + 1,
            at,
            op,
        };
        let record = format!("op {}", entry.seq);
        match sound(&mut entry) {
            Ok(()) => self.apply(&record, entry).await,
            Err(problem) => {
                self.quarantine(None, record, problem);
                Ok(())
            }
        }
    }

    async fn apply(&mut self, record: &str, mut entry: Entry) -> Result<(), ImportError> {
        self.shift(&mut entry.op);
        self.correct(record, &mut entry.op);
        let changes = match self.state.apply(&entry) {
            Ok(Applied::Changed(changes)) => changes,
            Ok(Applied::Duplicate) => return Ok(()),
            Ok(Applied::Refused(refusal)) => {
                self.quarantine(None, record.to_owned(), refusal.to_string());
                entry.op = Op::Withheld(Withheld::default());
                Vec::new()
            }
            Err(FoldError::TextGap { known, offset, .. }) => {
                self.bridge(record, &mut entry.op, known, offset);
                match self.state.apply(&entry) {
                    Ok(Applied::Changed(changes)) => changes,
                    _ => return Ok(()),
                }
            }
            Err(error) => {
                self.reject(record, error);
                return Ok(());
            }
        };
        let is_written = matches!(self.known, Known::Native { .. }) || entry.seq <= self.stored;
        if is_written {
            changes.iter().for_each(|change| forget(&mut self.state, change));
            return Ok(());
        }
        self.bytes += entry.op.text_bytes();
        self.steps.push((entry, changes));
        if self.steps.len() >= OPS_AT_ONCE || self.bytes >= BYTES_AT_ONCE {
            self.flush(None).await?;
        }
        Ok(())
    }

    /// Moves an op's offset by what its text is longer here.
    fn shift(&self, op: &mut Op) {
        let (key, offset) = match op {
            Op::BlockDelta(op) => (op.block_id.to_string(), &mut op.offset),
            Op::NodeOutput(op) => (format!("{} {}", op.node_id, op.channel), &mut op.offset),
            _ => return,
        };
        if let Some(shift) = self.shifts.get(&key) {
            *offset = offset.saturating_add_signed(*shift);
        }
    }

    /// Says in the text itself that some of it is missing, and goes on behind that.
    fn bridge(&mut self, record: &str, op: &mut Op, known: u64, offset: u64) {
        let missing = offset.saturating_sub(known);
        let mark = format!("\n\n[{missing} bytes of this text are missing in the imported record]\n\n");
        let (key, node_id, place, text) = match op {
            Op::BlockDelta(op) => {
                let node_id = self.state.block(&op.block_id).map(|block| block.node_id.clone());
                (op.block_id.to_string(), node_id, &mut op.offset, &mut op.delta)
            }
            Op::NodeOutput(op) => {
                let key = format!("{} {}", op.node_id, op.channel);
                (key, Some(op.node_id.clone()), &mut op.offset, &mut op.text)
            }
            _ => return,
        };
        let longer = mark.len() as i64 - i64::try_from(missing).unwrap_or(0);
        *place = known;
        text.insert_str(0, &mark);
        *self.shifts.entry(key.clone()).or_default() += longer;
        self.quarantine(
            node_id,
            record.to_owned(),
            format!("{missing} bytes of {key} before it are missing"),
        );
    }

    /// An end says of its text what the text here is.
    fn correct(&mut self, record: &str, op: &mut Op) {
        match op {
            Op::BlockFinished(end) => self.correct_block(record, end),
            Op::NodeFinished(end) => self.correct_node(record, end),
            _ => {}
        }
    }

    fn correct_block(&mut self, record: &str, end: &mut BlockFinished) {
        let Some(block) = self.state.block(&end.block_id) else {
            return;
        };
        let is_unsaved = matches!(
            block.body,
            BlockBody::Reasoning {
                retention: Retention::NotSaved,
                ..
            }
        );
        let Some(content) = block.body.content().filter(|_| !is_unsaved) else {
            return;
        };
        let (bytes, hash) = (content.text.len() as u64, sha256(content.text.as_bytes()));
        if (end.bytes, &end.sha256) == (bytes, &hash) {
            return;
        }
        let node_id = block.node_id.clone();
        if !self.shifts.contains_key(end.block_id.as_str()) {
            let reason = differs(end.block_id.as_str(), bytes, end.bytes);
            self.quarantine(Some(node_id), record.to_owned(), reason);
        }
        (end.bytes, end.sha256, end.status) = (bytes, hash, BlockStatus::Cut);
    }

    fn correct_node(&mut self, record: &str, end: &mut NodeFinished) {
        for (channel, told) in &mut end.outputs {
            let output = self
                .state
                .node(&end.node_id)
                .and_then(|node| node.outputs.get(channel));
            let text = output.map_or("", |output| &output.text);
            let (bytes, hash) = (text.len() as u64, sha256(text.as_bytes()));
            if (told.bytes, &told.sha256) == (bytes, &hash) {
                continue;
            }
            let key = format!("{} {channel}", end.node_id);
            let reason = differs(&key, bytes, told.bytes);
            (told.bytes, told.sha256) = (bytes, hash);
            if !self.shifts.contains_key(&key) {
                let (node_id, record) = (end.node_id.clone(), record.to_owned());
                self.quarantine(Some(node_id), record, reason);
            }
        }
    }

    async fn flush(&mut self, ended: Option<&Imported>) -> Result<(), ImportError> {
        if self.steps.is_empty() && ended.is_none() {
            return Ok(());
        }
        let batch = RunBatch {
            state: &self.state,
            previous_seq: self.stored,
            steps: &self.steps,
        };
        match self.store.write_import(&batch, ended).await? {
            Written::Done => {}
            Written::Busy => return Err(ImportError::Busy(self.state.run().run_id.clone())),
            Written::Taken(thing) => {
                return Err(ImportError::Taken {
                    run: self.state.run().run_id.clone(),
                    thing,
                });
            }
        }
        self.stored = self.state.seq();
        for (_, changes) in std::mem::take(&mut self.steps) {
            changes.iter().for_each(|change| forget(&mut self.state, change));
        }
        self.bytes = 0;
        Ok(())
    }

    /// The digest of what was taken so far.
    pub(super) fn digest(&self) -> String {
        digest(&self.state)
    }

    /// Closes the run: what the file leaves open is interrupted, and notices say what it did not hold. `whole` says
    /// whether the file has its end; `at` when this is done.
    pub(super) async fn finish(mut self, whole: bool, now: Timestamp) -> Result<ImportedRun, ImportError> {
        let run_id = self.state.run().run_id.clone();
        if let Known::Native { seq } = self.known {
            let digest = self.store.run_digest(&run_id).await?.map(|known| known.digest);
            return Ok(ImportedRun {
                run_id,
                outcome: Outcome::Native,
                seq,
                digest: digest.unwrap_or_default(),
                quarantined: 0,
            });
        }
        let at = self.last_at();
        let ending = Ending::Interrupted(ErrorInfo {
            code: "record_ends".to_owned(),
            message: "the imported record ends before the run does".to_owned(),
        });
        for op in close(&self.state, &ending, at) {
            self.op(at, op).await?;
        }
        let quarantined = self.quarantine.len() + self.untold;
        for bad in std::mem::take(&mut self.quarantine) {
            let message = format!("{}: {}.", bad.record, bad.reason);
            let detail = json!({ "message": message, "record": bad.record, "reason": bad.reason });
            self.notice(at, bad.node_id, "quarantined_record", detail).await?;
        }
        if self.untold > 0 {
            let message = format!("{} more records could not be taken.", self.untold);
            self.notice(at, None, "quarantined_record", json!({ "message": message }))
                .await?;
        }
        let state = if whole {
            ImportState::Whole
        } else {
            ImportState::Cut
        };
        let is_there = matches!(
            self.known,
            Known::Imported {
                state: ImportState::Whole,
                ..
            }
        );
        if is_there {
            return self.compare(quarantined).await;
        }
        if let Known::Imported { seq, .. } = self.known
            && self.state.seq() < seq
        {
            return Err(ImportError::Differs(run_id));
        }
        let from = super::format_words(self.format);
        let detail = json!({
            "message": format!("This run was executed elsewhere. It comes from {from} and is shown as it was."),
            "format": self.format,
            "imported_at": now,
        });
        self.notice(at, None, "imported", detail).await?;
        let imported = Imported {
            state,
            format: self.format.to_owned(),
        };
        self.flush(Some(&imported)).await?;
        let (seq, digest) = (self.state.seq(), digest(&self.state));
        let kept = self.store.run_digest(&run_id).await?.map(|known| known.digest);
        if kept.as_ref() != Some(&digest) {
            return Err(ImportError::Differs(run_id));
        }
        Ok(ImportedRun {
            run_id,
            outcome: if whole { Outcome::Imported } else { Outcome::Cut },
            seq,
            digest,
            quarantined,
        })
    }

    /// The run is here: the file has to say the same.
    async fn compare(self, quarantined: usize) -> Result<ImportedRun, ImportError> {
        let run_id = self.state.run().run_id.clone();
        let known = self.store.run_digest(&run_id).await?;
        match known {
            Some(known) if known.digest == digest(&self.state) => Ok(ImportedRun {
                run_id,
                outcome: Outcome::Known,
                seq: known.seq,
                digest: known.digest,
                quarantined,
            }),
            _ => Err(ImportError::Differs(run_id)),
        }
    }

    async fn notice(
        &mut self,
        at: Timestamp,
        node_id: Option<NodeId>,
        code: &str,
        detail: serde_json::Value,
    ) -> Result<(), ImportError> {
        let op = Op::Notice(Notice {
            node_id,
            code: code.to_owned(),
            detail,
            extra: Extra::new(),
        });
        self.op(at, op).await
    }

    /// When the last thing of the record happened.
    fn last_at(&self) -> Timestamp {
        let nodes = self.state.nodes().iter();
        let ends = nodes.map(|node| node.state.end().map_or(node.announced_at, |end| end.finished_at));
        let messages = self.state.messages().iter().map(|message| message.at);
        ends.chain(messages).max().unwrap_or_default()
    }
}

fn differs(thing: &str, bytes: u64, told: u64) -> String {
    if bytes == told {
        format!("{thing} does not have the hash that closes it")
    } else {
        format!("{thing} has {bytes} bytes, not {told} as its end says")
    }
}
