//! Another answer to the last prompt of a session.

use axum::http::StatusCode;
use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::state::{AttemptReason, AttemptStatus, NodeKind, RunStatus};

use crate::attempts::{answer, attempts, conversation};
use crate::harness::TestServer;
use crate::provider::PROVIDERS;
use crate::states::end;

fn node(state: &RunState, kind: NodeKind) -> NodeId {
    let found = state.nodes().iter().find(|node| node.kind == kind);
    found.unwrap().node_id.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_answer_takes_the_place_of_the_last_one_which_stays_readable() {
    for provider in PROVIDERS {
        let server = TestServer::start().await;
        let session = server.session().await;
        let run = server.submit(&session, "echo", provider).await;
        let first = server.ended(&run).await;
        let model = node(&first, NodeKind::Model);
        server.provider.arm("echo:end").await;
        assert_eq!(server.regenerate(&model).await.0, StatusCode::ACCEPTED);
        server.provider.reached("echo:end").await;
        assert_eq!(
            server.regenerate(&model).await.0,
            StatusCode::ACCEPTED,
            "twice is once"
        );
        server.provider.open("echo:end").await;
        let mut viewer = server.watch(&run).await;
        let over = |state: &RunState| state.run().status.is_final() && state.attempts().len() == 2;
        let seen = viewer.until(&run, over).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            attempts(&seen),
            [
                (AttemptReason::Initial, AttemptStatus::Superseded),
                (AttemptReason::Regenerate, AttemptStatus::Completed)
            ]
        );
        assert_eq!(seen.attempts()[1].continues_attempt_id, None);
        for block in first.blocks() {
            assert_eq!(seen.block(&block.block_id).unwrap(), block, "{provider}");
        }
        assert_eq!(answer(&seen), answer(&first), "one answer, not two");
        let requests = server.provider.requests().await;
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0], requests[1], "the prompt, and nothing kept");
        server.assert_same(&seen).await;

        let next = server.submit(&session, "max_tokens", provider).await;
        server.ended(&next).await;
        let last = conversation(&server.provider.requests().await.pop().unwrap());
        assert_eq!(last.len(), 3, "{provider}: {last:?}");
        let (status, code) = server.regenerate(&model).await;
        assert_eq!(
            (status, code.as_deref()),
            (StatusCode::CONFLICT, Some("not_the_last_run"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_answer_that_is_over_can_be_asked_for_again() {
    let server = TestServer::start().await;
    let seen = server.finish("cut_later", "openai").await;
    for kind in [NodeKind::Root, NodeKind::Function] {
        let (status, code) = server.regenerate(&node(&seen, kind)).await;
        assert_eq!(
            (status, code.as_deref()),
            (StatusCode::CONFLICT, Some("not_an_answer"))
        );
    }
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    server.provider.reached("slow:middle").await;
    let mut viewer = server.watch(&run).await;
    let model = node(
        viewer.until(&run, |state| state.nodes().len() > 1).await,
        NodeKind::Model,
    );
    let (status, code) = server.regenerate(&model).await;
    assert_eq!(
        (status, code.as_deref()),
        (StatusCode::CONFLICT, Some("run_not_over"))
    );
    server.cancel(&run).await;
    viewer.until_end(&run).await;
    server.provider.open("slow:middle").await;
    let unknown = NodeId::root(&protocol::id::RunId::from_uuid(uuid::Uuid::now_v7()));
    assert_eq!(server.regenerate(&unknown).await.0, StatusCode::NOT_FOUND);
    // A cancelled answer can be asked for again as well as resumed.
    assert_eq!(server.regenerate(&model).await.0, StatusCode::ACCEPTED);
    let again = |state: &RunState| state.run().status.is_final() && state.attempts().len() == 2;
    let seen = viewer.until(&run, again).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(seen.attempts()[0].state.status(), AttemptStatus::Superseded);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_forms_of_the_page_do_the_same_without_script() {
    let server = TestServer::start().await;
    let run = server.run("server_error_once", "openai").await;
    let failed = server.ended(&run).await;
    let post = |path: String| server.http.post(format!("{}{path}", server.base)).send();
    let answer = post(format!("/runs/{run}/resume")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let session = server.snapshot(&run).await.run.session_id;
    assert_eq!(answer.headers()["location"], format!("/s/{session}").as_str());
    let mut viewer = server.watch(&run).await;
    viewer
        .until(&run, |state| state.run().status == RunStatus::Succeeded)
        .await;
    let refused = post(format!("/runs/{run}/resume")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    assert!(refused.text().await.unwrap().contains("nothing to resume"));
    let model = node(&failed, NodeKind::Model);
    let answer = post(format!("/nodes/{model}/regenerate")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    viewer
        .until(&run, |state| {
            state.attempts().len() == 3 && state.run().status.is_final()
        })
        .await;
}
