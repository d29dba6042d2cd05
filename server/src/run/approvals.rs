//! What of one execution waits for a person, and what works meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::id::{ApprovalId, NodeId};
use tokio::sync::{oneshot, watch};

use crate::store::commands::Answer;

/// A run waits when nothing of it has worked for so long: between the end of one part and the beginning of the next one
/// is a moment.
const SETTLED: Duration = Duration::from_millis(100);

/// Shared by all parts of one execution, and by whoever brings answers.
#[derive(Debug)]
pub(super) struct Approvals {
    load: watch::Sender<Load>,
    open: Mutex<HashMap<ApprovalId, oneshot::Sender<Answer>>>,
    /// The tools whose calls are not asked for any more.
    always: Mutex<BTreeSet<String>>,
}

/// How many parts work and how many wait, by the model node that they belong to.
#[derive(Debug, Default)]
struct Load(HashMap<NodeId, Parts>);

#[derive(Debug, Default)]
struct Parts {
    working: usize,
    waiting: usize,
}

impl Load {
    /// Whether something waits and nothing works, of one model node or of all.
    fn waits(&self, of: Option<&NodeId>) -> bool {
        let (mut working, mut waiting) = (0, 0);
        for (node, parts) in &self.0 {
            if of.is_none_or(|of| of == node) {
                working += parts.working;
                waiting += parts.waiting;
            }
        }
        waiting > 0 && working == 0
    }
}

/// Which number a [`Part`] stands in.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Works,
    Waits,
    /// Of a model that works, while its calls are run: they count instead.
    Rests,
}

/// A part of an execution that counts until it is dropped.
#[derive(Debug)]
pub(super) struct Part {
    approvals: Arc<Approvals>,
    of: NodeId,
    kind: Kind,
}

impl Part {
    fn new(approvals: &Arc<Approvals>, of: &NodeId, kind: Kind) -> Self {
        approvals.count(of, kind, true);
        Self {
            approvals: Arc::clone(approvals),
            of: of.clone(),
            kind,
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.approvals.count(&self.of, self.kind, false);
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct Request {
    approval_id: ApprovalId,
    answer: oneshot::Receiver<Answer>,
    part: Part,
}

impl Request {
    /// The answer. It never comes where the execution ends before.
    pub(super) async fn answered(&mut self) -> Answer {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.part.approvals.lock_open().remove(&self.approval_id);
    }
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            load: watch::Sender::new(Load::default()),
            open: Mutex::default(),
            always: Mutex::default(),
        }
    }
}

impl Approvals {
    /// Something of this model node works, until the answer is dropped.
    pub(super) fn works(self: &Arc<Self>, of: &NodeId) -> Part {
        Part::new(self, of, Kind::Works)
    }

    /// A model that works waits for its calls, until the answer is dropped.
    pub(super) fn rests(self: &Arc<Self>, of: &NodeId) -> Part {
        Part::new(self, of, Kind::Rests)
    }

    /// A call of this model node waits for a person.
    pub(super) fn ask(self: &Arc<Self>, of: &NodeId, approval_id: &ApprovalId) -> Request {
        let (sender, answer) = oneshot::channel();
        self.lock_open().insert(approval_id.clone(), sender);
        Request {
            approval_id: approval_id.clone(),
            answer,
            part: Part::new(self, of, Kind::Waits),
        }
    }

    /// Brings an answer. The first one counts; one to something that does not wait here changes nothing.
    pub(super) fn answer(&self, answer: Answer) {
        let asked = self.lock_open().remove(&answer.approval_id);
        if let Some(asked) = asked {
            // Whoever asked may have been stopped in this moment.
            let _ = asked.send(answer);
        }
    }

    /// Calls of this tool are not asked for any more.
    pub(super) fn allow_always(&self, tool: String) {
        self.always
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(tool);
    }

    /// Whether a person said that calls of this tool are always fine.
    pub(super) fn is_always_allowed(&self, tool: &str) -> bool {
        self.always
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(tool)
    }

    /// Waits until one model node waits for a person, or until it does so no more.
    pub(super) async fn model_turns(&self, of: &NodeId, waits: bool) -> bool {
        self.turns(Some(of), waits).await
    }

    /// Waits until the run waits for a person, or until it does so no more.
    pub(super) async fn run_turns(&self, waits: bool) -> bool {
        loop {
            if !self.turns(None, waits).await {
                return false;
            }
            tokio::select! {
                _ = self.turns(None, true) => {}
                () = tokio::time::sleep(SETTLED) => return true,
            }
        }
    }

    async fn turns(&self, of: Option<&NodeId>, waits: bool) -> bool {
        let mut load = self.load.subscribe();
        // The sender is as old as this.
        let _ = load.wait_for(|load| load.waits(of) != waits).await;
        !waits
    }

    fn count(&self, of: &NodeId, kind: Kind, begins: bool) {
        self.load.send_modify(|load| {
            let parts = load.0.entry(of.clone()).or_default();
            let (number, more) = match kind {
                Kind::Works => (&mut parts.working, begins),
                Kind::Waits => (&mut parts.waiting, begins),
                Kind::Rests => (&mut parts.working, !begins),
            };
            *number = if more {
                *number + 1
            } else {
                number.saturating_sub(1)
            };
        });
    }

    fn lock_open(&self) -> MutexGuard<'_, HashMap<ApprovalId, oneshot::Sender<Answer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use protocol::id::RunId;
    use protocol::state::ApprovalAnswer;
    use uuid::Uuid;

    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId::root(&RunId::from_uuid(Uuid::from_u128(number)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_waits_when_something_is_asked_and_nothing_else_works() {
        let approvals = Arc::new(Approvals::default());
        let (asking, other) = (node(1), node(2));
        let model = approvals.works(&asking);
        let resting = approvals.rests(&asking);
        let elsewhere = approvals.works(&other);
        let id = ApprovalId::from_uuid(Uuid::from_u128(1));
        let request = approvals.ask(&asking, &id);
        assert!(
            approvals.model_turns(&asking, false).await,
            "of its model nothing works"
        );
        assert!(!approvals.load.borrow().waits(None), "another model does");
        drop(elsewhere);
        assert!(approvals.run_turns(false).await);
        drop(request);
        assert!(!approvals.run_turns(true).await);
        drop((resting, model));
        assert!(!approvals.load.borrow().waits(None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_between_two_parts_is_no_waiting() {
        let approvals = Arc::new(Approvals::default());
        let id = ApprovalId::from_uuid(Uuid::from_u128(1));
        let _request = approvals.ask(&node(1), &id);
        let turned = tokio::time::timeout(Duration::from_secs(1), async {
            let waits = approvals.run_turns(false);
            tokio::pin!(waits);
            assert!(tokio::time::timeout(SETTLED / 2, &mut waits).await.is_err());
            let _works = approvals.works(&node(2));
            waits.await
        });
        assert!(turned.await.is_err(), "something works again");
    }

    #[tokio::test]
    async fn the_first_answer_counts() {
        let approvals = Arc::new(Approvals::default());
        let id = ApprovalId::from_uuid(Uuid::from_u128(1));
        let mut request = approvals.ask(&node(1), &id);
        for answer in [ApprovalAnswer::Deny, ApprovalAnswer::Approve] {
            approvals.answer(Answer {
                node_id: node(3),
                approval_id: id.clone(),
                answer,
                words: None,
            });
        }
        assert_eq!(request.answered().await.answer, ApprovalAnswer::Deny);
    }
}
