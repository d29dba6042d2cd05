//! The table of `docs/protocol.md`: what becomes of everything that is open when an execution ends from outside.

use protocol::Extra;
use protocol::fold::{Applied, RunState};
use protocol::id::{AttemptId, NodeId, RunId, SessionId};
use protocol::model::ErrorInfo;
use protocol::op::{Entry, Op};
use protocol::state::{AttemptStatus, BlockStatus, Channel, NodeStatus, RunStatus};
use serde_json::json;
use server::run::recovery::{Ending, close};
use uuid::Uuid;

fn apply(state: &mut RunState, op: Op) {
    let entry = Entry {
        run_id: state.run().run_id.clone(),
        generation: 1,
        seq: state.seq() + 1,
        at: 1000,
        op,
    };
    let applied = state.apply(&entry).unwrap();
    assert!(matches!(applied, Applied::Changed(_)), "{entry:?}: {applied:?}");
}

fn node(name: &str) -> NodeId {
    format!("exec_{name}").parse().unwrap()
}

/// A run in the middle: text that grows, a call that runs, one that was announced, one that is done.
fn in_the_middle() -> RunState {
    let run = RunId::from_uuid(Uuid::from_u128(1));
    let mut state = RunState::new(run.clone(), SessionId::from_uuid(Uuid::from_u128(2)));
    let attempt = AttemptId::from_uuid(Uuid::from_u128(3));
    let (root, model) = (NodeId::root(&run), "call_answer");
    let started = |id: &str, parent: Option<&str>, kind: &str, ordinal: u32| {
        json!({ "op": "node_started", "node_id": id, "parent_id": parent, "after": [], "kind": kind,
            "name": id, "title": id, "ordinal": ordinal, "executor": "runloom" })
    };
    let runs = |id: &str| json!({ "op": "node_updated", "node_id": id, "status": "running" });
    let output = |id: &str, channel: &str, text: &str| json!({ "op": "node_output", "node_id": id, "channel": channel, "offset": 0, "text": text });
    let ops = [
        json!({ "op": "run_updated", "status": "running" }),
        started(root.as_str(), None, "root", 0),
        runs(root.as_str()),
        started(model, Some(root.as_str()), "model", 0),
        runs(model),
        json!({ "op": "attempt_started", "node_id": model, "attempt_id": attempt, "attempt_index": 0,
            "reason": "initial", "provider": "p", "model": "m" }),
        json!({ "op": "block_started", "node_id": model, "attempt_id": attempt, "block_id": "blk_text",
            "block_index": 0, "round": 0, "kind": "text" }),
        json!({ "op": "block_delta", "block_id": "blk_text", "offset": 0, "delta": "half a sen" }),
        started("exec_runs", Some(model), "function", 0),
        output("exec_runs", "arguments", "{}"),
        runs("exec_runs"),
        output("exec_runs", "log", "so far"),
        started("exec_waits", Some(model), "function", 1),
        output("exec_waits", "arguments", "{\"pa"),
        started("exec_done", Some(model), "function", 2),
        runs("exec_done"),
        json!({ "op": "node_finished", "node_id": "exec_done", "status": "succeeded", "finished_at": 5, "outputs": {} }),
    ];
    for op in ops {
        apply(&mut state, serde_json::from_value(op).unwrap());
    }
    state
}

#[test]
fn everything_that_is_open_ends_as_the_table_says_and_what_is_closed_stays() {
    let error = || ErrorInfo::new("a_code", "In words.");
    let table = [
        (
            Ending::Cancelled,
            RunStatus::Cancelled,
            AttemptStatus::Cancelled,
            NodeStatus::Cancelled,
            NodeStatus::Cancelled,
        ),
        (
            Ending::Interrupted(error()),
            RunStatus::Interrupted,
            AttemptStatus::Interrupted,
            NodeStatus::Interrupted,
            NodeStatus::Interrupted,
        ),
        (
            Ending::Failed(error()),
            RunStatus::Failed,
            AttemptStatus::Failed,
            NodeStatus::Failed,
            NodeStatus::Cancelled,
        ),
    ];
    for (ending, run, attempt, model, call) in table {
        let mut state = in_the_middle();
        for op in close(&state, &ending, 2000) {
            apply(&mut state, op);
        }
        assert_eq!(state.run().status, run);
        assert_eq!(state.run().error.is_some(), ending != Ending::Cancelled);
        assert_eq!(state.attempts()[0].state.status(), attempt);
        let status = |id: &NodeId| state.node(id).unwrap().state.status();
        assert_eq!(status(&"call_answer".parse().unwrap()), model);
        assert_eq!(status(&state.root().unwrap().node_id), model);
        assert_eq!(status(&node("runs")), call);
        assert_eq!(status(&node("waits")), NodeStatus::NotRun);
        assert_eq!(status(&node("done")), NodeStatus::Succeeded);
        let block = &state.blocks()[0];
        assert_eq!(block.state.status(), BlockStatus::Cut);
        assert_eq!(block.body.content().unwrap().text, "half a sen");
        let outputs = &state.node(&node("runs")).unwrap().outputs;
        assert_eq!(outputs[&Channel::Log].text, "so far");
        assert_eq!(outputs[&Channel::Log].media_type.as_deref(), Some("text/plain"));
        assert_eq!(
            outputs[&Channel::Arguments].media_type.as_deref(),
            Some("application/json")
        );
        assert_eq!(close(&state, &ending, 3000), [], "closing again writes nothing");
        assert_eq!(state.run().extra, Extra::new());
    }
}
