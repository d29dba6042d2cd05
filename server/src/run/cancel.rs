//! What a person stops: a run, or one node of it.

use protocol::id::{NodeId, RunId};
use protocol::state::Executor;

use super::{Execution, Stopped};
use crate::store::StoreError;
use crate::store::commands::CommandKind;

/// What became of a wish to stop a run or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It stops now, or its owner is told.
    Accepted,
    /// It was over already.
    AlreadyOver,
    /// There is nothing of this id.
    NotFound,
    /// The provider runs this call: it cannot be stopped alone.
    ProvidersCall,
}

impl Execution {
    /// Stops a run. Repeating it is harmless.
    pub async fn cancel(&self, run_id: &RunId) -> Result<CancelOutcome, StoreError> {
        let Some(state) = self.services.store.run_status(run_id).await? else {
            return Ok(CancelOutcome::NotFound);
        };
        if self.worker.stop(run_id, Stopped::ByPerson) {
            return Ok(CancelOutcome::Accepted);
        }
        let store = &self.services.store;
        if state.is_final() {
            // It may be about to go on again: then it stays as it ended.
            if store.withdraw_reopen(run_id).await? {
                return Ok(CancelOutcome::Accepted);
            }
            if store.reopen_of(run_id).await?.is_none() {
                return Ok(CancelOutcome::AlreadyOver);
            }
        } else if self.worker.cancel_queued(run_id).await? {
            return Ok(CancelOutcome::Accepted);
        }
        self.tell_owner(run_id, &CommandKind::Cancel).await
    }

    /// Stops one call or one inner model of a run, and all below it; the rest goes on. The answer is the whole run.
    /// Repeating it is harmless.
    pub async fn cancel_node(&self, node_id: &NodeId) -> Result<CancelOutcome, StoreError> {
        let Some(place) = self.services.store.place_of_node(node_id).await? else {
            return Ok(CancelOutcome::NotFound);
        };
        if place.is_whole_run {
            return self.cancel(&place.run_id).await;
        }
        if place.status.is_final() {
            return Ok(CancelOutcome::AlreadyOver);
        }
        if place.executor != Executor::Runloom {
            return Ok(CancelOutcome::ProvidersCall);
        }
        if self.worker.stop_node(&place.run_id, node_id) {
            return Ok(CancelOutcome::Accepted);
        }
        let command = CommandKind::CancelNode(node_id.clone());
        self.tell_owner(&place.run_id, &command).await
    }

    /// Another server owns the run, or will in a moment: it finds the command.
    async fn tell_owner(&self, run_id: &RunId, command: &CommandKind) -> Result<CancelOutcome, StoreError> {
        let at = self.services.clock.now_ms();
        self.services.store.leave_command(run_id, command, at).await?;
        self.worker.look_for_commands();
        Ok(CancelOutcome::Accepted)
    }
}
