//! Runs that go on after they were over: a person resumes one, or asks for another answer.

use protocol::id::{NodeId, RunId};
use protocol::state::{AttemptReason, RunStatus};

use super::Execution;
use crate::store::StoreError;
use crate::store::reopen::{Reopen, ReopenKind, ReopenedBy, Reopening};

/// From where a run can be resumed.
const RESUMABLE: [RunStatus; 3] = [RunStatus::Interrupted, RunStatus::Failed, RunStatus::Cancelled];

/// From where another answer can be asked for.
const OVER: [RunStatus; 4] = [
    RunStatus::Succeeded,
    RunStatus::Interrupted,
    RunStatus::Failed,
    RunStatus::Cancelled,
];

/// Why a run does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// There is no such run.
    #[error("There is no run {0}.")]
    NoSuchRun(RunId),
    /// There is no such node.
    #[error("There is no node {0}.")]
    NoSuchNode(NodeId),
    /// It ended well: there is nothing to resume.
    #[error("The run has succeeded: there is nothing to resume. Another answer can be asked for instead.")]
    NothingToResume,
    /// Only an answer to a prompt can be asked for again.
    #[error("Only the answer of a session's last run can be asked for again; this node is not an answer.")]
    NotAnAnswer,
    /// A later run follows on it.
    #[error(
        "Only the answer of a session's last run can be asked for again; a later run follows on this one."
    )]
    NotLast,
    /// It executes.
    #[error("The run has not ended yet. Stop it first, or wait for its end.")]
    NotOver,
    /// It is history.
    #[error("This run was imported: it is shown as it was, and does not go on.")]
    Imported,
    /// The database does not say.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Execution {
    /// Lets a run that was interrupted, failed or was cancelled go on from where it broke off. Repeating it is harmless.
    pub async fn resume(&self, run_id: &RunId) -> Result<(), ReopenError> {
        let reopen = Reopen {
            kind: ReopenKind::Resume,
            by: ReopenedBy::Person,
        };
        let store = &self.services.store;
        let at = self.services.clock.now_ms();
        match store.request_reopen(run_id, reopen, &RESUMABLE, at).await? {
            Reopening::Accepted => {
                self.worker.look_at_queue();
                Ok(())
            }
            Reopening::Active => Ok(()),
            Reopening::Refused(_) | Reopening::NotLast => Err(ReopenError::NothingToResume),
            Reopening::Imported => Err(ReopenError::Imported),
            Reopening::NoSuchRun => Err(ReopenError::NoSuchRun(run_id.clone())),
        }
    }

    /// Asks for another answer: of the root's model node of the last run of a session. Repeating it is harmless.
    pub async fn regenerate(&self, node_id: &NodeId) -> Result<(), ReopenError> {
        let store = &self.services.store;
        let Some(run_id) = store.run_of_node(node_id).await? else {
            return Err(ReopenError::NoSuchNode(node_id.clone()));
        };
        if !store.is_root_model(node_id).await? {
            return Err(ReopenError::NotAnAnswer);
        }
        let reopen = Reopen {
            kind: ReopenKind::Regenerate,
            by: ReopenedBy::Person,
        };
        let at = self.services.clock.now_ms();
        match store.request_reopen(&run_id, reopen, &OVER, at).await? {
            Reopening::Accepted => {
                self.worker.look_at_queue();
                Ok(())
            }
            Reopening::Active => {
                // The same wish again, while it is being met.
                let reason = store.current_reason(node_id).await?;
                if reason.as_deref() == Some(AttemptReason::Regenerate.as_str()) {
                    Ok(())
                } else {
                    Err(ReopenError::NotOver)
                }
            }
            Reopening::Refused(_) => Err(ReopenError::NotOver),
            Reopening::NotLast => Err(ReopenError::NotLast),
            Reopening::Imported => Err(ReopenError::Imported),
            Reopening::NoSuchRun => Err(ReopenError::NoSuchRun(run_id)),
        }
    }
}
