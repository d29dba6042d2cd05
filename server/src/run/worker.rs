//! Claims queued runs, renews their leases, and closes the runs whose owner is gone.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use protocol::id::{NodeId, RunId};
use protocol::model::ErrorInfo;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::ops::notice;
use super::recorder::{RecordError, Recorder};
use super::recovery::{self, Ending};
use super::{Approvals, Left, Services, StopSignal, Stopped, chat, take_over, transcripts};
use crate::store::StoreError;
use crate::store::commands::{Answer, CommandKind};
use crate::store::queue::Claim;

/// How often leases are renewed, commands are looked for, and orphans are swept up.
const TICK: Duration = Duration::from_secs(5);

/// How often the queue is looked at when nobody says that it changed.
const LOOK: Duration = Duration::from_secs(1);

/// Runs that one server executes at a time.
const MAX_RUNS: usize = 256;

/// How often closing a run is tried; after that its lease ends, and the sweep closes it.
const CLOSE_TRIES: u32 = 3;

/// The ways to reach a run that executes.
#[derive(Clone, Default)]
struct Executing {
    stop: StopSignal,
    approvals: Arc<Approvals>,
}

/// Executes runs as one owner.
pub(super) struct Worker {
    services: Arc<Services>,
    recorder: Recorder,
    /// This process, as the owner of runs.
    owner: String,
    queued: Notify,
    commanded: Notify,
    executing: Mutex<HashMap<RunId, Executing>>,
    slots: Arc<Semaphore>,
    stopping: CancellationToken,
    runs: TaskTracker,
}

impl Worker {
    pub(super) fn start(services: Arc<Services>, recorder: Recorder, tasks: &TaskTracker) -> Arc<Self> {
        let worker = Arc::new(Self {
            services,
            recorder,
            owner: format!("own_{}", Uuid::now_v7().simple()),
            queued: Notify::new(),
            commanded: Notify::new(),
            executing: Mutex::default(),
            slots: Arc::new(Semaphore::new(MAX_RUNS)),
            stopping: CancellationToken::new(),
            runs: TaskTracker::new(),
        });
        tasks.spawn(Arc::clone(&worker).claim_queued());
        tasks.spawn(Arc::clone(&worker).keep_house());
        let left = Arc::clone(&worker);
        tasks.spawn(async move {
            let executes = |run_id: &RunId| left.executing().contains_key(run_id);
            let storing = transcripts::store_left(&left.services, executes);
            left.stopping.run_until_cancelled(storing).await;
        });
        worker
    }

    /// Says that a run was queued.
    pub(super) fn look_at_queue(&self) {
        self.queued.notify_one();
    }

    /// Says that a command was left.
    pub(super) fn look_for_commands(&self) {
        self.commanded.notify_one();
    }

    /// Stops a run that this server executes; `false` when it does not.
    pub(super) fn stop(&self, run_id: &RunId, why: Stopped) -> bool {
        match self.executing().get(run_id) {
            Some(run) => {
                run.stop.stop(why);
                true
            }
            None => false,
        }
    }

    /// Stops one node of a run that this server executes; `false` when it does not.
    pub(super) fn stop_node(&self, run_id: &RunId, node_id: &NodeId) -> bool {
        match self.executing().get(run_id) {
            Some(run) => {
                run.stop.stop_node(node_id);
                true
            }
            None => false,
        }
    }

    /// Brings an answer to a run that this server executes.
    fn answer(&self, run_id: &RunId, answer: Answer) {
        if let Some(run) = self.executing().get(run_id) {
            run.approvals.answer(answer);
        }
    }

    /// Ends a run before it starts; `false` when it is not queued any more.
    pub(super) async fn cancel_queued(&self, run_id: &RunId) -> Result<bool, StoreError> {
        match self.services.store.claim_if_queued(&self.owner, run_id).await? {
            None => Ok(false),
            Some(claim) => {
                let closed = self.close(&claim, &Ending::Cancelled).await;
                if closed.is_err() {
                    self.give_back(&claim).await;
                }
                self.look_at_queue();
                closed.map(|()| true)
            }
        }
    }

    /// Lets runs go on for `grace`, then closes them as interrupted.
    pub(super) async fn shut_down(&self, grace: Duration) {
        self.stopping.cancel();
        self.runs.close();
        if tokio::time::timeout(grace, self.runs.wait()).await.is_err() {
            for run in self.executing().values() {
                run.stop.stop(Stopped::ByShutdown);
            }
            self.runs.wait().await;
        }
        self.recorder.stop().await;
    }

    fn executing(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Executing>> {
        self.executing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn claim_queued(self: Arc<Self>) {
        loop {
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                return;
            };
            // Whoever waits for the runs to end waits for a claim that is under way.
            let claiming = self.runs.token();
            if self.stopping.is_cancelled() {
                return;
            }
            match self.services.store.claim_queued(&self.owner).await {
                Ok(Some(claim)) if self.stopping.is_cancelled() => return self.give_back(&claim).await,
                Ok(Some(claim)) => {
                    let worker = Arc::clone(&self);
                    self.runs.spawn(async move {
                        let run_id = claim.run_id.clone();
                        worker.execute(claim).await;
                        drop(slot);
                        worker.look_at_queue();
                        worker.store_transcripts(&run_id).await;
                    });
                }
                outcome => {
                    drop(claiming);
                    if let Err(error) = outcome {
                        tracing::warn!(%error, "the queue cannot be read");
                    }
                    tokio::select! {
                        () = self.queued.notified() => {}
                        () = tokio::time::sleep(LOOK) => {}
                        () = self.stopping.cancelled() => return,
                    }
                }
            }
        }
    }

    /// Gives back a claim of a run that was not begun.
    async fn give_back(&self, claim: &Claim) {
        if let Err(error) = self.services.store.release(&self.owner, claim).await {
            tracing::warn!(run.id = %claim.run_id, %error, "a claim is not given back; its lease ends");
        }
    }

    /// A run that is over: what its providers sent goes into the database, where every server reaches it.
    async fn store_transcripts(&self, run_id: &RunId) {
        match self.services.store.run_status(run_id).await {
            Ok(Some(status)) if status.is_final() => {
                let goes_on = || self.executing().contains_key(run_id);
                transcripts::store(&self.services, run_id, goes_on).await;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(run.id = %run_id, %error, "the run cannot be looked at"),
        }
    }

    async fn execute(&self, claim: Claim) {
        let run = Executing::default();
        self.executing().insert(claim.run_id.clone(), run.clone());
        // A command may have come between the claim and this moment.
        self.look_for_commands();
        let execution = chat::execute(&self.services, &self.recorder, &claim, &run.stop, &run.approvals);
        let outcome = AssertUnwindSafe(execution).catch_unwind().await;
        self.executing().remove(&claim.run_id);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(_) => {
                tracing::error!(run.id = %claim.run_id, "the execution of the run panicked");
                let info = ErrorInfo::new("internal", "Something broke on the server. Its log says what.");
                return self.close_failed(&claim, info).await;
            }
        };
        match outcome {
            Ok(()) => {}
            Err(chat::ExecuteError::Record(RecordError::LostOwnership)) => {
                tracing::warn!(run.id = %claim.run_id, "another owner has the run; this execution has ended");
            }
            Err(error) => {
                tracing::error!(run.id = %claim.run_id, %error, "the run cannot be executed");
                let info = match error {
                    chat::ExecuteError::Record(_) => ErrorInfo::new(
                        "not_saved",
                        "The database did not take what came, so the run was ended.",
                    ),
                    chat::ExecuteError::Store(_) | chat::ExecuteError::Target(_) => {
                        ErrorInfo::new("cannot_execute", error.to_string())
                    }
                };
                self.close_failed(&claim, info).await;
            }
        }
    }

    async fn close_failed(&self, claim: &Claim, info: ErrorInfo) {
        if let Err(error) = self.close(claim, &Ending::Failed(info)).await {
            tracing::error!(run.id = %claim.run_id, %error, "the run cannot be closed; the sweep will");
        }
    }

    /// Leases, commands and orphans.
    async fn keep_house(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Runs that still execute during the grace period keep their leases.
        let over = async {
            self.stopping.cancelled().await;
            self.runs.wait().await;
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if let Err(error) = self.renew().await {
                        tracing::warn!(%error, "the leases cannot be renewed");
                    }
                    if let Err(error) = self.sweep().await {
                        tracing::warn!(%error, "runs without an owner cannot be closed");
                    }
                }
                () = self.commanded.notified() => {}
                () = &mut over => return,
            }
            if let Err(error) = self.obey().await {
                tracing::warn!(%error, "commands cannot be read");
            }
        }
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let executing: Vec<RunId> = self.executing().keys().cloned().collect();
        if executing.is_empty() {
            return Ok(());
        }
        let owned = self.services.store.renew_leases(&self.owner, &executing).await?;
        for run_id in executing.iter().filter(|run_id| !owned.contains(run_id)) {
            // It may have ended in between; then nobody listens.
            self.stop(run_id, Stopped::Lost);
        }
        Ok(())
    }

    /// Does what was asked of runs that this server executes.
    async fn obey(&self) -> Result<(), StoreError> {
        let executing: Vec<RunId> = self.executing().keys().cloned().collect();
        if executing.is_empty() {
            return Ok(());
        }
        let at = self.services.clock.now_ms();
        for (run_id, command) in self.services.store.take_commands(&executing, at).await? {
            match command {
                CommandKind::Cancel => {
                    self.stop(&run_id, Stopped::ByPerson);
                }
                CommandKind::CancelNode(node_id) => {
                    self.stop_node(&run_id, &node_id);
                }
                CommandKind::Answer(answer) => self.answer(&run_id, answer),
            }
        }
        Ok(())
    }

    async fn sweep(self: &Arc<Self>) -> Result<(), StoreError> {
        while let Some(claim) = self.services.store.claim_orphan(&self.owner).await? {
            // This process may still believe that it owns the run.
            self.stop(&claim.run_id, Stopped::Lost);
            if self.waits_for_a_person(&claim).await? {
                tracing::info!(run.id = %claim.run_id, generation = claim.generation, "its owner is gone: it goes on waiting");
                let worker = Arc::clone(self);
                self.runs.spawn(async move {
                    let run_id = claim.run_id.clone();
                    worker.execute(claim).await;
                    worker.look_at_queue();
                    worker.store_transcripts(&run_id).await;
                });
                continue;
            }
            tracing::info!(run.id = %claim.run_id, generation = claim.generation, "its owner is gone: closing the run");
            let error = recovery::owner_gone();
            if self.services.store.mark_automatic_resume(&claim).await? {
                tracing::info!(run.id = %claim.run_id, "it is resumed, as its policy says");
            }
            self.close(&claim, &Ending::Interrupted(error)).await?;
            self.look_at_queue();
        }
        Ok(())
    }

    /// Whether a run that was taken over waits for a person, and can go on.
    async fn waits_for_a_person(&self, claim: &Claim) -> Result<bool, StoreError> {
        let state = self.services.store.load_run(&claim.run_id).await?;
        Ok(state.is_some_and(|state| !Left::of(&state, &self.services.tools).is_empty()))
    }

    /// Closes a run that nobody executes.
    async fn close(&self, claim: &Claim, ending: &Ending) -> Result<(), StoreError> {
        let mut problem = String::new();
        for _ in 0..CLOSE_TRIES {
            let Some(state) = self.services.store.load_run(&claim.run_id).await? else {
                return Ok(());
            };
            if state.generation() != claim.generation {
                return Ok(());
            }
            let at = self.services.clock.now_ms();
            let (state_then, mut ops) = take_over::begin(&self.services, &state, claim, at).await;
            if state.run().status.is_final() {
                // It was to go on again, and cannot: it stays as it ended, and says why.
                let Ending::Failed(error) = ending else {
                    return Ok(());
                };
                self.services.store.drop_reopen(claim).await?;
                ops.push(notice(
                    None,
                    "cannot_go_on",
                    json!({ "message": error.message, "code": error.code }),
                ));
            } else {
                ops.extend(recovery::close(&state_then, ending, at));
            }
            let closed = async {
                let writer = self.recorder.open(state).await?;
                for op in ops {
                    writer.write(op).await;
                }
                writer.flush().await
            };
            match closed.await {
                Ok(_) => return Ok(()),
                // The last ops of the execution that broke were saved meanwhile.
                Err(error) => {
                    tracing::warn!(run.id = %claim.run_id, %error, "the run was not closed");
                    problem = error.to_string();
                }
            }
        }
        Err(StoreError::NotWritten(problem))
    }
}
