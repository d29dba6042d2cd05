//! Calls that a person is asked about.

use std::sync::Arc;

use axum::http::StatusCode;
use protocol::fold::RunState;
use protocol::id::{NodeId, RunId};
use protocol::model::{Approval, Node};
use protocol::op::Op;
use protocol::state::{
    ApprovalAnswer, AttemptReason, AttemptStatus, NodeKind, NodeStatus, RunStatus, StreamActivity,
};
use serde_json::{Value, json};
use server::simulator::Scenario;
use server::store::Store;
use server::store::commands::{Answer, CommandKind};
use server::store::test_support::TestDatabase;

use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, Provider, scenario};
use crate::states::{end, text};
use crate::viewer::Viewer;

/// Where `read_file` asks, and a server does not wait for the ends of its runs.
const ASKS: &str = "[tools.approval]\nread_file = \"ask\"\n[server]\ngrace_seconds = 0\n";

/// A scenario that makes these calls in one round, and then says a word.
fn calls(name: &str, calls: &[(&str, &Value)]) -> Scenario {
    let steps: String = calls
        .iter()
        .map(|(tool, arguments)| {
            format!("[[turns.steps]]\nstep = \"tool_call\"\nname = \"{tool}\"\narguments = '{arguments}'\n")
        })
        .collect();
    let source = format!(
        "name = \"{name}\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"{name}\"\n[[turns]]\n{steps}\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n"
    );
    scenario(name, &source)
}

/// One call of `read_file`; the same asked by an inner model; two calls side by side.
fn scenarios() -> Vec<Scenario> {
    let read = json!({ "path": "README.md" });
    vec![
        calls("reads", &[("read_file", &read)]),
        calls("outer", &[("ask_model", &json!({ "prompt": "reads" }))]),
        calls(
            "both",
            &[("read_file", &read), ("list_dir", &json!({ "path": "." }))],
        ),
        calls(
            "program",
            &[(
                "run_code",
                &json!({
                    "description": "Reads a file",
                    "code": "return await tools.read_file({ path: \"README.md\" });"
                }),
            )],
        ),
        calls("wrong", &[("read_file", &json!({ "way": "README.md" }))]),
    ]
}

async fn server(more_config: &'static str) -> TestServer {
    TestServer::start_with(Setup {
        scenarios: scenarios(),
        more_config,
        ..Setup::default()
    })
    .await
}

/// A server beside one that lives.
async fn beside(server: &TestServer) -> TestServer {
    TestServer::start_with(Setup {
        database: Some(Arc::clone(&server.database)),
        provider: Some(server.provider.clone()),
        has_neighbours: true,
        more_config: ASKS,
        ..Setup::default()
    })
    .await
}

/// A server after one that is gone.
async fn after(database: Arc<TestDatabase>, provider: Provider) -> TestServer {
    TestServer::start_with(Setup {
        database: Some(database),
        provider: Some(provider),
        more_config: ASKS,
        ..Setup::default()
    })
    .await
}

fn node<'a>(state: &'a RunState, name: &str) -> &'a Node {
    state.nodes().iter().find(|node| node.name == name).unwrap()
}

/// Waits until a run waits for a person; gives the request.
async fn asked(viewer: &mut Viewer, run: &RunId) -> Approval {
    let waits = |state: &RunState| state.run().status == RunStatus::Waiting;
    let seen = viewer.until(run, waits).await;
    let open: Vec<&Approval> = seen
        .approvals()
        .iter()
        .filter(|one| one.resolution.is_none())
        .collect();
    assert_eq!(open.len(), 1);
    open[0].clone()
}

/// Answers, and gives the status and the code of a refusal.
async fn answer(server: &TestServer, node: &NodeId, body: Value) -> (StatusCode, Option<String>) {
    let answer = server.post(&format!("/api/nodes/{node}/approval"), body).await;
    let status = answer.status();
    let body: Value = answer.json().await.unwrap_or_default();
    (status, body["code"].as_str().map(str::to_owned))
}

async fn approve(server: &TestServer, node: &NodeId) {
    let approved = answer(server, node, json!({ "answer": "approve" })).await;
    assert_eq!(approved, (StatusCode::ACCEPTED, None));
}

/// How often a node began to run.
async fn begins(server: &TestServer, run: &RunId, node: &NodeId) -> usize {
    let ops = server.ops(run).await;
    let runs = |op: &Op| matches!(op, Op::NodeUpdated(op) if op.node_id == *node && op.status == Some(NodeStatus::Running));
    ops.iter().filter(|entry| runs(&entry.op)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_asks_waits_and_runs_when_it_is_approved() {
    let server = server(ASKS).await;
    for provider in PROVIDERS {
        let run = server.run("reads", provider).await;
        let mut viewer = server.watch(&run).await;
        let request = asked(&mut viewer, &run).await;
        assert_eq!(request.what, "Call `read_file` with {\"path\":\"README.md\"}");
        let seen = viewer
            .until(&run, |state| {
                let stream = state.streams().next();
                stream.is_some_and(|stream| stream.state == StreamActivity::AwaitingPerson)
            })
            .await;
        assert_eq!(
            node(seen, "read_file").state.status(),
            NodeStatus::AwaitingApproval
        );
        assert_eq!(node(seen, "read_file").started_at, None);

        approve(&server, &request.node_id).await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(node(&seen, "read_file").state.status(), NodeStatus::Succeeded);
        let resolution = seen.approvals()[0].resolution.clone().unwrap();
        assert_eq!((resolution.answer.as_str(), resolution.words), ("approve", None));
        assert_eq!(begins(&server, &run, &request.node_id).await, 1);
        server.assert_same(&seen).await;
        // The answer once more, and another one: nothing changes.
        for again in ["approve", "deny"] {
            let (status, _) = answer(&server, &request.node_id, json!({ "answer": again })).await;
            assert_eq!(status, StatusCode::ACCEPTED);
        }
        assert_eq!(server.snapshot(&run).await.seq, seen.seq());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_program_asks_as_any_other() {
    let server = server(ASKS).await;
    for (given, status) in [("approve", NodeStatus::Succeeded), ("deny", NodeStatus::Denied)] {
        let run = server.run("program", "anthropic").await;
        let mut viewer = server.watch(&run).await;
        let request = asked(&mut viewer, &run).await;
        let (accepted, _) = answer(&server, &request.node_id, json!({ "answer": given })).await;
        assert_eq!(accepted, StatusCode::ACCEPTED);
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None));
        assert_eq!(node(&seen, "read_file").state.status(), status);
        let program = node(&seen, "run_code").state.status();
        assert_eq!(program == NodeStatus::Succeeded, given == "approve", "{program}");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_is_never_run_and_the_model_is_told_the_words() {
    let server = server(ASKS).await;
    let run = server.run("reads", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    let body = json!({ "answer": "deny", "words": "Not that file." });
    assert_eq!(
        answer(&server, &request.node_id, body).await.0,
        StatusCode::ACCEPTED
    );
    let seen = viewer.until_end(&run).await.clone();
    let call = node(&seen, "read_file");
    assert_eq!((call.state.status(), call.started_at), (NodeStatus::Denied, None));
    let error = call.state.end().unwrap().error.as_ref().unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("denied", "A person denied the call: Not that file.")
    );
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(text(&seen), "It goes on.");
    let told = server.provider.requests().await.pop().unwrap().to_string();
    assert!(told.contains("Not that file."), "{told}");
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn always_holds_for_later_calls_of_the_session_and_for_no_other() {
    let server = server(ASKS).await;
    let session = server.session().await;
    let run = server.submit(&session, "reads", "openai").await;
    let mut viewer = server.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    let body = json!({ "answer": "always" });
    assert_eq!(
        answer(&server, &request.node_id, body).await.0,
        StatusCode::ACCEPTED
    );
    viewer.until_end(&run).await;

    let next = server.submit(&session, "outer", "openai").await;
    let seen = server.ended(&next).await;
    assert_eq!(node(&seen, "read_file").state.status(), NodeStatus::Succeeded);
    assert!(seen.approvals().is_empty());

    let other = server.run("reads", "openai").await;
    let mut viewer = server.watch(&other).await;
    asked(&mut viewer, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_the_configuration_denies_is_never_run() {
    let server = server("[tools.approval]\nread_file = \"deny\"\n").await;
    let seen = server.finish("both", "anthropic").await;
    assert_eq!(node(&seen, "read_file").state.status(), NodeStatus::Denied);
    assert_eq!(node(&seen, "list_dir").state.status(), NodeStatus::Succeeded);
    assert!(seen.approvals().is_empty());
    let told = server.provider.requests().await.pop().unwrap().to_string();
    assert!(told.contains("Calls of `read_file` are denied here."), "{told}");
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_looked_at_before_anybody_is_asked() {
    let server = server(ASKS).await;
    let seen = server.finish("wrong", "anthropic").await;
    assert_eq!(node(&seen, "read_file").state.status(), NodeStatus::NotRun);
    assert!(seen.approvals().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_wait_while_a_part_of_it_works() {
    let server = server(ASKS).await;
    let run = server.run("both", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    let seen = viewer.state(&run);
    assert_eq!(
        node(seen, "list_dir").state.status(),
        NodeStatus::Succeeded,
        "what does not ask goes on"
    );
    approve(&server, &request.node_id).await;
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let ops = server.ops(&run).await;
    let states: Vec<RunStatus> = ops
        .iter()
        .filter_map(|entry| match &entry.op {
            Op::RunUpdated(op) => Some(op.status),
            _ => None,
        })
        .collect();
    assert_eq!(states.first(), Some(&RunStatus::Queued));
    assert_eq!(
        states
            .iter()
            .filter(|status| **status == RunStatus::Waiting)
            .count(),
        1
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_asked_cannot_be_answered() {
    let server = server("").await;
    let seen = server.finish("reads", "anthropic").await;
    let call = node(&seen, "read_file").node_id.clone();
    let body = || json!({ "answer": "approve" });
    let (status, code) = answer(&server, &call, body()).await;
    assert_eq!(
        (status, code.as_deref()),
        (StatusCode::CONFLICT, Some("not_asked"))
    );
    let unknown = NodeId::root(&server.run("reads", "anthropic").await);
    let unknown = NodeId::function(
        &unknown,
        &protocol::id::OccurrenceId::inner_model_call(&unknown, 9),
    );
    assert_eq!(answer(&server, &unknown, body()).await.0, StatusCode::NOT_FOUND);
    let wrong = json!({ "answer": "perhaps" });
    assert_eq!(
        answer(&server, &call, wrong).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let long = json!({ "answer": "deny", "words": "x".repeat(4_001) });
    assert_eq!(
        answer(&server, &call, long).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_can_be_stopped_as_a_whole_or_in_part() {
    let server = server(ASKS).await;
    let run = server.run("reads", "openai").await;
    let mut viewer = server.watch(&run).await;
    asked(&mut viewer, &run).await;
    assert_eq!(server.cancel(&run).await, StatusCode::ACCEPTED);
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Cancelled, None));
    assert_eq!(node(&seen, "read_file").state.status(), NodeStatus::NotRun);
    server.assert_same(&seen).await;

    let run = server.run("reads", "openai").await;
    let mut viewer = server.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    let stopped = server
        .post(&format!("/api/nodes/{}/cancel", request.node_id), json!({}))
        .await;
    assert_eq!(stopped.status(), StatusCode::ACCEPTED);
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None), "the rest goes on");
    assert_eq!(node(&seen, "read_file").state.status(), NodeStatus::NotRun);
    let late = answer(&server, &request.node_id, json!({ "answer": "approve" })).await;
    assert_eq!(late.0, StatusCode::CONFLICT);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_be_given_to_any_server() {
    let owner = server(ASKS).await;
    let run = owner.run("outer", "anthropic").await;
    let mut viewer = owner.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    let other = beside(&owner).await;
    approve(&other, &request.node_id).await;
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(seen.generation(), 1);
    other.assert_same(&seen).await;
}

/// Of a run that another owner has gone on with: what holds however that came.
async fn assert_gone_on(server: &TestServer, run: &RunId, request: &Approval, seen: &RunState) {
    assert_eq!(end(seen), (RunStatus::Succeeded, None));
    assert_eq!(seen.approvals().len(), 1, "nobody is asked twice");
    assert_eq!(seen.approvals()[0].approval_id, request.approval_id);
    assert_eq!(node(seen, "read_file").state.status(), NodeStatus::Succeeded);
    assert_eq!(begins(server, run, &request.node_id).await, 1, "it runs once");
    for model in seen.nodes().iter().filter(|node| node.kind == NodeKind::Model) {
        let attempts: Vec<_> = seen
            .attempts_of(&model.node_id)
            .map(|attempt| (attempt.attempt_index, attempt.reason, attempt.state.status()))
            .collect();
        assert_eq!(
            attempts,
            [
                (0, AttemptReason::Initial, AttemptStatus::Interrupted),
                (1, AttemptReason::Resume, AttemptStatus::Completed)
            ]
        );
    }
    server.assert_same(seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_goes_on_waiting_with_the_next_owner() {
    for prompt in ["reads", "outer"] {
        let first = server(ASKS).await;
        let run = first.run(prompt, "anthropic").await;
        let mut viewer = first.watch(&run).await;
        let request = asked(&mut viewer, &run).await;
        let database = Arc::clone(&first.database);
        let provider = first.provider.clone();
        first.stop().await;
        let second = after(database, provider).await;
        let mut viewer = second.watch(&run).await;
        let is_taken = |state: &RunState| state.generation() == 2 && state.run().status == RunStatus::Waiting;
        let seen = viewer.until(&run, is_taken).await;
        assert_eq!(
            node(seen, "read_file").state.status(),
            NodeStatus::AwaitingApproval
        );
        approve(&second, &request.node_id).await;
        let seen = viewer.until_end(&run).await.clone();
        assert_gone_on(&second, &run, &request, &seen).await;
        let told = second.provider.requests().await;
        let read = |request: &&Value| request.to_string().contains("toy key-value store");
        assert!(told.iter().any(|request| read(&request)), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_when_nobody_executed_the_run_is_not_lost() {
    let first = server(ASKS).await;
    let run = first.run("outer", "openai").await;
    let mut viewer = first.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    // As one that was taken and not written down before its server was gone.
    let left = CommandKind::Answer(Answer {
        node_id: request.node_id.clone(),
        approval_id: request.approval_id.clone(),
        answer: ApprovalAnswer::Approve,
        words: None,
    });
    let (database, provider) = (Arc::clone(&first.database), first.provider.clone());
    first.stop().await;
    let store = Store::open(database.options.clone()).await.unwrap();
    store.leave_command(&run, &left, 1).await.unwrap();
    let taken = sqlx::query("update commands set consumed_at = 1");
    taken.execute(store.pool()).await.unwrap();
    let second = after(database, provider).await;
    let seen = second.ended(&run).await;
    assert_gone_on(&second, &run, &request, &seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_is_taken_over_when_the_lease_of_its_owner_ends() {
    let owner = server(ASKS).await;
    let run = owner.run("outer", "openai").await;
    let mut viewer = owner.watch(&run).await;
    let request = asked(&mut viewer, &run).await;
    // As after a long pause of its process.
    let pause = sqlx::query("update runs set lease_expires_at = now() - interval '1 second', owner = 'gone'");
    pause.execute(owner.execution.store().pool()).await.unwrap();
    let other = beside(&owner).await;
    let mut viewer = other.watch(&run).await;
    viewer.until(&run, |state| state.generation() == 2).await;
    approve(&other, &request.node_id).await;
    let seen = viewer.until_end(&run).await.clone();
    assert_gone_on(&other, &run, &request, &seen).await;
}
