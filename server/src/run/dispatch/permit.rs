//! Whether a call may run: by the tool's policy, or by what a person says.

use protocol::Extra;
use protocol::id::ApprovalId;
use protocol::model::ErrorInfo;
use protocol::op::{ApprovalRequested, ApprovalResolved, NodeUpdated, Op};
use protocol::state::{ApprovalAnswer, NodeStatus};
use uuid::Uuid;

use super::{Caller, Prepared};
use crate::run::StopSignal;
use crate::run::chat::ExecuteError;
use crate::run::ops::node_running;
use crate::store::commands::Answer;
use crate::tool::Approval;

/// The code of a call that may not run.
const DENIED: &str = "denied";

/// Who answers, until people have names.
const A_PERSON: &str = "a person";

/// What became of the question.
pub(super) enum Verdict {
    /// It runs now; its node says so.
    Runs,
    /// It may not, for this reason.
    Denied(ErrorInfo),
    /// It was stopped before anybody answered.
    Stopped,
}

/// Asks for a call, where its tool wants that, and says that it runs.
pub(super) async fn ask(
    caller: &Caller<'_>,
    stop: &StopSignal,
    prepared: &Prepared,
) -> Result<Verdict, ExecuteError> {
    let (scope, node_id) = (caller.scope, prepared.node.id());
    if scope.left.has_begun(node_id) {
        return Ok(Verdict::Runs);
    }
    let name = &prepared.tool.info().name;
    let policy = scope.services.config.tools.approval_of(prepared.tool.as_ref());
    let approval = match policy {
        Approval::Ask if scope.approvals.is_always_allowed(name) => Approval::Allow,
        other => other,
    };
    match approval {
        Approval::Allow => {
            prepared.node.run(&scope.writer).await;
            Ok(Verdict::Runs)
        }
        Approval::Deny => {
            let words = format!("Calls of `{name}` are denied here.");
            Ok(Verdict::Denied(ErrorInfo::new(DENIED, words)))
        }
        Approval::Ask => {
            let Some(answer) = answer(caller, stop, prepared).await? else {
                return Ok(Verdict::Stopped);
            };
            Ok(resolve(caller, prepared, answer).await)
        }
    }
}

/// Asks, or goes on asking, and waits for the answer; none when the call is stopped before.
async fn answer(
    caller: &Caller<'_>,
    stop: &StopSignal,
    prepared: &Prepared,
) -> Result<Option<Answer>, ExecuteError> {
    let (scope, node_id) = (caller.scope, prepared.node.id());
    let known = scope.left.request_of(node_id).cloned();
    let approval_id = known
        .clone()
        .unwrap_or_else(|| ApprovalId::from_uuid(Uuid::now_v7()));
    let mut request = scope.approvals.ask(caller.node_id, &approval_id);
    if known.is_none() {
        let asked = Op::ApprovalRequested(ApprovalRequested {
            node_id: node_id.clone(),
            approval_id,
            what: prepared.tool.asks(&prepared.arguments),
            extra: Extra::new(),
        });
        let waits = Op::NodeUpdated(NodeUpdated {
            node_id: node_id.clone(),
            status: Some(NodeStatus::AwaitingApproval),
            title: None,
            progress: None,
            started_at: None,
            extra: Extra::new(),
        });
        scope.writer.write_together(vec![asked, waits]).await;
    } else if let Some(answer) = scope
        .services
        .store
        .answer_to(scope.writer.run_id(), &approval_id)
        .await?
    {
        // It was given when nobody executed the run.
        return Ok(Some(answer));
    }
    Ok(tokio::select! {
        answer = request.answered() => Some(answer),
        () = stop.token().cancelled() => None,
    })
}

/// Writes an answer down together with what it means, so that an approved call is never run twice.
async fn resolve(caller: &Caller<'_>, prepared: &Prepared, answer: Answer) -> Verdict {
    let writer = &caller.scope.writer;
    let words = answer.words.clone();
    let resolved = Op::ApprovalResolved(ApprovalResolved {
        node_id: prepared.node.id().clone(),
        approval_id: answer.approval_id,
        answer: answer.answer.to_string(),
        by: A_PERSON.to_owned(),
        words: answer.words,
        extra: Extra::new(),
    });
    match answer.answer {
        ApprovalAnswer::Approve | ApprovalAnswer::Always => {
            if answer.answer == ApprovalAnswer::Always {
                caller
                    .scope
                    .approvals
                    .allow_always(prepared.tool.info().name.clone());
            }
            let runs = node_running(prepared.node.id());
            writer.write_together(vec![resolved, runs]).await;
            Verdict::Runs
        }
        ApprovalAnswer::Deny => {
            writer.write(resolved).await;
            let words = match words {
                Some(words) => format!("A person denied the call: {words}"),
                None => "A person denied the call.".to_owned(),
            };
            Verdict::Denied(ErrorInfo::new(DENIED, words))
        }
    }
}
