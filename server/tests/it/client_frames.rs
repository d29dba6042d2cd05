//! Frames of a client that make no sense are told so; the connection stays.

use protocol::state::RunStatus;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::TestServer;
use crate::states::end;
use crate::viewer::Viewer;

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_make_no_sense_get_an_error_and_the_connection_stays() {
    let server = TestServer::start().await;
    let run = server.run("max_tokens", "openai").await;
    let mut viewer = Viewer::connect(&server.base).await;
    let senseless = [
        "nonsense",
        "",
        "{}",
        "[]",
        "{\"dance\":{}}",
        "{\"subscribe\":{\"run\":\"not an id\"}}",
        "{\"subscribe\":{\"run\":\"run_1\",\"after\":-1}}",
        "{\"subscribe\":{\"topic\":\"gossip\"}}",
        "{\"pong\":\"soon\"}",
    ];
    for frame in senseless {
        viewer.send_text(frame).await;
        viewer.next().await.unwrap();
        assert_eq!(
            viewer.errors.pop(),
            Some((None, "invalid_frame".to_owned())),
            "{frame}"
        );
    }
    viewer.send_message(Message::binary(vec![0, 159, 146, 150])).await;
    viewer.next().await.unwrap();
    assert_eq!(viewer.errors.pop(), Some((None, "not_text".to_owned())));
    for harmless in [
        "{\"pong\":1}",
        "{\"ack\":{\"run\":\"run_1\",\"seq\":9}}",
        "{\"unsubscribe\":{\"run\":\"run_1\"}}",
    ] {
        viewer.send_text(harmless).await;
    }
    viewer.subscribe(&run, 0).await;
    assert_eq!(end(viewer.until_end(&run).await), (RunStatus::Succeeded, None));
    assert_eq!(viewer.errors, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_does_not_exist_is_told_to_its_asker_only() {
    let server = TestServer::start().await;
    let (mut asker, mut other) = (
        Viewer::connect(&server.base).await,
        Viewer::connect(&server.base).await,
    );
    let missing = "run_0000000000000000000000".parse().unwrap();
    asker.subscribe(&missing, 0).await;
    asker.next().await.unwrap();
    assert_eq!(asker.errors, [(Some(missing), "not_found".to_owned())]);
    let run = server.run("max_tokens", "openai").await;
    for viewer in [&mut asker, &mut other] {
        viewer.subscribe(&run, 0).await;
        viewer.until_end(&run).await;
    }
    assert_eq!((asker.errors.len(), other.errors.len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_unsubscribing_nothing_of_the_run_comes() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    let mut viewer = server.watch(&run).await;
    viewer.until_text(&run, "takes its time. ").await;
    viewer
        .send_text(&format!("{{\"unsubscribe\":{{\"run\":\"{run}\"}}}}"))
        .await;
    // What is answered after it shows that it was taken in.
    viewer.send_text("nonsense").await;
    while viewer.errors.is_empty() {
        viewer.next().await.unwrap();
    }
    let known = viewer.state(&run).seq();
    server.provider.open("slow:middle").await;
    server.ended(&run).await;
    viewer.send_text("nonsense").await;
    while viewer.errors.len() < 2 {
        viewer.next().await.unwrap();
    }
    assert_eq!(viewer.state(&run).seq(), known);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_the_sessions_hears_of_each_that_changes() {
    let server = TestServer::start().await;
    let mut viewer = Viewer::connect(&server.base).await;
    viewer.send_text("{\"subscribe\":{\"topic\":\"sessions\"}}").await;
    viewer.send_text("nonsense").await;
    while viewer.errors.is_empty() {
        viewer.next().await.unwrap();
    }
    let session = server.session().await;
    let run = server.submit(&session, "max_tokens", "openai").await;
    loop {
        use protocol::frame::ServerFrame;
        if let ServerFrame::SessionUpdated { session: told } = viewer.next().await.unwrap() {
            assert_eq!(told.session_id, session);
            let done = told
                .runs
                .iter()
                .any(|known| known.run_id == run && known.status == RunStatus::Succeeded);
            if done {
                break;
            }
        }
    }
}
