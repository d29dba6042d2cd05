//! What a person answers to a call that waits for that.

use protocol::api::AnswerApproval;
use protocol::id::NodeId;

use super::Execution;
use crate::store::StoreError;
use crate::store::commands::{Answer, CommandKind};

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// It counts, unless another one came before.
    Accepted,
    /// The call was answered for before.
    AlreadyAnswered,
    /// The call does not wait for an answer.
    NotAsked,
    /// There is no such node.
    NotFound,
}

impl Execution {
    /// Answers the request of a call. The first answer counts; repeating it is harmless.
    pub async fn answer(&self, node_id: &NodeId, wish: AnswerApproval) -> Result<AnswerOutcome, StoreError> {
        let store = &self.services.store;
        let Some(place) = store.place_of_node(node_id).await? else {
            return Ok(AnswerOutcome::NotFound);
        };
        let Some(request) = store.last_request_of(&place.run_id, node_id).await? else {
            return Ok(AnswerOutcome::NotAsked);
        };
        if request.resolution.is_some() {
            return Ok(AnswerOutcome::AlreadyAnswered);
        }
        if place.status.is_final() {
            return Ok(AnswerOutcome::NotAsked);
        }
        let answer = CommandKind::Answer(Answer {
            node_id: node_id.clone(),
            approval_id: request.approval_id,
            answer: wish.answer,
            words: wish.words.filter(|words| !words.trim().is_empty()),
        });
        let at = self.services.clock.now_ms();
        store.leave_command(&place.run_id, &answer, at).await?;
        self.worker.look_for_commands();
        Ok(AnswerOutcome::Accepted)
    }
}
