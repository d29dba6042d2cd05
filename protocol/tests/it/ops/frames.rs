//! The wire form of every frame.

use protocol::api::{RunSummary, SessionKind, SessionSettings, SessionSummary};
use protocol::frame::{ClientFrame, OpsFrame, ServerFrame, Subject, Topic};
use protocol::model::{ErrorInfo, Usage};
use protocol::snapshot::split;
use protocol::state::{Retention, RunStatus};
use serde_json::json;

use super::samples;
use crate::support::{Story, block, delta, id, op};

/// The wire name of a server's frame: a new one has to have its sample.
fn name(frame: &ServerFrame) -> &'static str {
    match frame {
        ServerFrame::ExecutionStream(_) => "execution_stream",
        ServerFrame::StreamState(_) => "stream_state",
        ServerFrame::SnapshotBegin { .. } => "snapshot_begin",
        ServerFrame::SnapshotPart { .. } => "snapshot_part",
        ServerFrame::SnapshotEnd { .. } => "snapshot_end",
        ServerFrame::SessionUpdated { .. } => "session_updated",
        ServerFrame::Ping { .. } => "ping",
        ServerFrame::Error { .. } => "error",
    }
}

fn server_frames() -> Vec<(&'static str, ServerFrame)> {
    let mut story = Story::begun();
    story.ok(block("att_1", "blk_1", 0, "text"));
    story.ok(delta("blk_1", 0, &"long ".repeat(300)));
    let run = story.state.run().clone();
    let mut parts = split(story.state.to_snapshot(), 1024);
    let part = Box::new(parts.remove(1));
    let summary = RunSummary {
        run_id: id("run_1"),
        status: RunStatus::Failed,
        prompt: "Read both files.".to_owned(),
        provider: "main".to_owned(),
        model: "some-model".to_owned(),
        created_at: 1,
        started_at: Some(2),
        finished_at: Some(3),
        last_seq: 57,
        error: Some(ErrorInfo::new("limit_rounds", "50 rounds")),
        usage: Some(Usage::default()),
    };
    let session = Box::new(SessionSummary {
        session_id: id("ses_1"),
        title: "Files".to_owned(),
        kind: SessionKind::Chat,
        created_at: 1,
        updated_at: 3,
        settings: SessionSettings {
            reasoning: Some(Retention::NotSaved),
        },
        runs: vec![summary],
    });
    vec![
        (
            "execution_stream",
            ServerFrame::ExecutionStream(OpsFrame {
                schema_version: 1,
                run_id: id("run_1"),
                generation: 2,
                seq: 57,
                at: 1_790_000_000_000,
                ops: vec![
                    op(block("att_1", "blk_1", 0, "text")),
                    op(delta("blk_1", 0, "hi")),
                    op(json!({ "op": "hologram_projected", "volume": 1 })),
                ],
            }),
        ),
        ("stream_state", ServerFrame::StreamState(samples::stream_state())),
        (
            "snapshot_begin",
            ServerFrame::SnapshotBegin {
                schema_version: 1,
                run,
                reset: true,
            },
        ),
        (
            "snapshot_part",
            ServerFrame::SnapshotPart {
                run_id: id("run_1"),
                number: 1,
                part,
            },
        ),
        (
            "snapshot_end",
            ServerFrame::SnapshotEnd {
                run_id: id("run_1"),
                parts: 3,
            },
        ),
        ("session_updated", ServerFrame::SessionUpdated { session }),
        (
            "ping",
            ServerFrame::Ping {
                at: 1_790_000_000_000,
            },
        ),
        (
            "error",
            ServerFrame::Error {
                run_id: Some(id("run_1")),
                code: "forbidden".to_owned(),
                detail: "You may not read this run.".to_owned(),
            },
        ),
        (
            "error.least",
            ServerFrame::Error {
                run_id: None,
                code: "bad_frame".to_owned(),
                detail: "Not a frame.".to_owned(),
            },
        ),
    ]
}

/// The wire names of the server's frames.
pub(crate) fn server_frame_names() -> Vec<&'static str> {
    server_frames().iter().map(|(_, frame)| name(frame)).collect()
}

fn client_frames() -> Vec<(&'static str, ClientFrame)> {
    let run = |after| Subject::Run {
        run: id("run_1"),
        after,
        window: None,
    };
    let sessions = Subject::Topic {
        topic: Topic::Sessions,
    };
    vec![
        ("subscribe.run", ClientFrame::Subscribe(run(57))),
        ("subscribe.topic", ClientFrame::Subscribe(sessions.clone())),
        ("unsubscribe.run", ClientFrame::Unsubscribe(run(0))),
        ("unsubscribe.topic", ClientFrame::Unsubscribe(sessions)),
        (
            "ack",
            ClientFrame::Ack {
                run: id("run_1"),
                seq: 57,
            },
        ),
        ("pong", ClientFrame::Pong(1_790_000_000_000)),
    ]
}

#[test]
fn every_server_frame_has_its_form_and_reads_back() {
    for (sample, frame) in server_frames() {
        assert_eq!(name(&frame), sample.split('.').next().unwrap());
        let text = serde_json::to_string(&frame).unwrap();
        assert_eq!(
            serde_json::from_str::<ServerFrame>(&text).unwrap(),
            frame,
            "{text}"
        );
        insta::assert_json_snapshot!(format!("server.{sample}"), frame);
    }
}

#[test]
fn every_client_frame_has_its_form_and_reads_back() {
    for (sample, frame) in client_frames() {
        let text = serde_json::to_string(&frame).unwrap();
        assert_eq!(
            serde_json::from_str::<ClientFrame>(&text).unwrap(),
            frame,
            "{text}"
        );
        insta::assert_json_snapshot!(format!("client.{sample}"), frame);
    }
}

#[test]
fn a_subscription_without_after_starts_at_the_beginning() {
    let frame: ClientFrame = serde_json::from_value(json!({ "subscribe": { "run": "run_1" } })).unwrap();
    assert_eq!(
        frame,
        ClientFrame::Subscribe(Subject::Run {
            run: id("run_1"),
            after: 0,
            window: None
        })
    );
    for wrong in [
        json!({ "subscribe": { "run": "ses_1" } }),
        json!({ "subscribe": { "run": "run_1", "topic": "sessions" } }),
        json!({ "subscribe": {} }),
        json!({ "shout": {} }),
    ] {
        assert!(
            serde_json::from_value::<ClientFrame>(wrong.clone()).is_err(),
            "{wrong}"
        );
    }
}
