use protocol::frame::OpsFrame;
use protocol::model::Run;
use protocol::snapshot::{Snapshot, SnapshotPart, split};
use protocol::state::RunStatus;

use super::*;

fn run(id: &str) -> RunId {
    id.parse().unwrap()
}

fn state_of(run_id: &RunId, seq: u64) -> Run {
    Run {
        run_id: run_id.clone(),
        session_id: "ses_1".parse().unwrap(),
        status: RunStatus::Running,
        generation: 1,
        last_seq: seq,
        error: None,
        usage: None,
        extra: protocol::Extra::new(),
    }
}

fn subscribe(run_id: &RunId, after: u64) -> Action {
    Action::Send(ClientFrame::Subscribe(Subject::Run {
        run: run_id.clone(),
        after,
        window: Some(crate::data::port::WINDOW),
    }))
}

fn ops(run_id: &RunId, seq: u64) -> ServerFrame {
    ServerFrame::ExecutionStream(OpsFrame {
        schema_version: SCHEMA_VERSION,
        run_id: run_id.clone(),
        generation: 1,
        seq,
        at: 0,
        ops: Vec::new(),
    })
}

fn frame(frame: ServerFrame) -> Input {
    Input::Frame(Box::new(frame))
}

/// A connection that follows run_1 from after 4 and is open since 0.
fn open() -> Connection {
    let mut connection = Connection::default();
    assert_eq!(
        connection.handle(Input::Follow(run("run_1"), 4), 0, 0.0),
        [Action::Open]
    );
    assert_eq!(
        connection.handle(Input::Opened, 0, 0.0),
        [subscribe(&run("run_1"), 4), Action::Show(ConnectionState::Live)]
    );
    connection
}

#[test]
fn twenty_seconds_without_a_frame_close_the_connection_and_open_it_again_from_the_last_seq() {
    let mut connection = open();
    connection.handle(frame(ops(&run("run_1"), 5)), 3_000, 0.0);
    connection.handle(Input::TakenIn(run("run_1"), 9), 3_000, 0.0);
    assert!(connection.handle(Input::Time, 22_999, 0.0).is_empty());
    assert_eq!(connection.wake_at(), Some(23_000));
    assert_eq!(
        connection.handle(Input::Time, 23_000, 0.0),
        [
            Action::Close,
            Action::Show(ConnectionState::Reconnecting { since: 23_000 })
        ]
    );
    let again = connection.wake_at().unwrap();
    assert_eq!(again, 23_125, "half of the shortest pause at the least");
    assert_eq!(connection.handle(Input::Time, again, 0.0), [Action::Open]);
    assert_eq!(
        connection.handle(Input::Opened, again, 0.0),
        [subscribe(&run("run_1"), 9), Action::Show(ConnectionState::Live)]
    );
}

#[test]
fn pauses_grow_to_five_seconds_and_start_over_after_a_frame() {
    let mut connection = open();
    let mut now = 0;
    let mut pauses = Vec::new();
    for _ in 0..7 {
        connection.handle(Input::Closed, now, 1.0);
        let until = connection.wake_at().unwrap();
        pauses.push(until - now);
        now = until;
        assert_eq!(connection.handle(Input::Time, now, 1.0), [Action::Open]);
    }
    assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
    connection.handle(Input::Opened, now, 1.0);
    connection.handle(frame(ServerFrame::Ping { at: 1 }), now, 1.0);
    connection.handle(Input::Closed, now, 1.0);
    assert_eq!(connection.wake_at(), Some(now + 250));
}

#[test]
fn a_ping_is_answered_with_its_time() {
    let mut connection = open();
    assert_eq!(
        connection.handle(frame(ServerFrame::Ping { at: 77 }), 10, 0.0),
        [Action::ServerTime(77), Action::Send(ClientFrame::Pong(77))]
    );
}

#[test]
fn acknowledgements_are_a_second_apart_and_none_is_forgotten() {
    let mut connection = open();
    assert!(
        connection
            .handle(Input::TakenIn(run("run_1"), 5), 900, 0.0)
            .is_empty()
    );
    assert_eq!(connection.wake_at(), Some(1_000));
    let acknowledged = |seq| {
        Action::Send(ClientFrame::Ack {
            run: run("run_1"),
            seq,
        })
    };
    assert_eq!(connection.handle(Input::Time, 1_000, 0.0), [acknowledged(5)]);
    assert!(
        connection
            .handle(Input::TakenIn(run("run_1"), 6), 1_500, 0.0)
            .is_empty()
    );
    assert_eq!(
        connection.handle(Input::TakenIn(run("run_1"), 7), 2_000, 0.0),
        [acknowledged(7)]
    );
    assert!(connection.handle(Input::Time, 3_000, 0.0).is_empty());
}

#[test]
fn a_gap_subscribes_again_from_the_last_seq_once_until_it_is_filled() {
    let mut connection = open();
    let asked = connection.handle(Input::Missing(run("run_1"), Resync::Ops), 100, 0.0);
    assert_eq!(asked.last(), Some(&subscribe(&run("run_1"), 4)));
    assert!(
        connection
            .handle(Input::Missing(run("run_1"), Resync::Ops), 150, 0.0)
            .is_empty()
    );
    connection.handle(Input::TakenIn(run("run_1"), 6), 200, 0.0);
    let asked = connection.handle(Input::Missing(run("run_1"), Resync::Ops), 250, 0.0);
    assert_eq!(asked.last(), Some(&subscribe(&run("run_1"), 6)));
}

#[test]
fn missing_text_fetches_the_whole_state_and_follows_again_from_there() {
    let mut connection = open();
    let asked = connection.handle(Input::Missing(run("run_1"), Resync::Whole), 100, 0.0);
    assert_eq!(asked.last(), Some(&Action::Fetch(run("run_1"))));
    assert_eq!(
        connection.handle(Input::Follow(run("run_1"), 40), 300, 0.0),
        [subscribe(&run("run_1"), 40)]
    );
}

#[test]
fn a_snapshot_is_swapped_in_only_when_whole() {
    let mut connection = open();
    let begin = ServerFrame::SnapshotBegin {
        schema_version: SCHEMA_VERSION,
        run: state_of(&run("run_1"), 30),
        reset: true,
    };
    let part = |number| ServerFrame::SnapshotPart {
        run_id: run("run_1"),
        number,
        part: Box::new(SnapshotPart::default()),
    };
    assert!(connection.handle(frame(begin.clone()), 1, 0.0).is_empty());
    assert!(connection.handle(frame(part(0)), 1, 0.0).is_empty());
    let end = ServerFrame::SnapshotEnd {
        run_id: run("run_1"),
        parts: 1,
    };
    let swapped = connection.handle(frame(end), 1, 0.0);
    let expected = Snapshot::empty(state_of(&run("run_1"), 30));
    assert_eq!(split(expected.clone(), 1024).len(), 1);
    assert_eq!(swapped, [Action::Replace(Box::new(expected), true)]);

    connection.handle(frame(begin), 2, 0.0);
    let broken = connection.handle(frame(part(1)), 2, 0.0);
    assert_eq!(
        broken.last(),
        Some(&subscribe(&run("run_1"), 4)),
        "a part is missing: asked again"
    );
}

#[test]
fn a_subscription_that_ended_with_an_error_is_not_asked_for_again() {
    let mut connection = open();
    let error = ServerFrame::Error {
        run_id: Some(run("run_1")),
        code: "forbidden".to_owned(),
        detail: "No longer yours.".to_owned(),
    };
    let shown = connection.handle(frame(error), 5, 0.0);
    assert_eq!(
        shown,
        [report(
            Some(run("run_1")),
            "forbidden",
            "No longer yours.".to_owned()
        )]
    );
    connection.handle(Input::Closed, 6, 0.0);
    connection.handle(Input::Time, 10_000, 0.0);
    assert_eq!(
        connection.handle(Input::Opened, 10_000, 0.0),
        [Action::Show(ConnectionState::Live)],
        "nothing is subscribed to"
    );
}

#[test]
fn another_version_of_the_protocol_ends_the_stream_with_a_message() {
    let mut connection = open();
    let ServerFrame::ExecutionStream(mut other) = ops(&run("run_1"), 5) else {
        unreachable!()
    };
    other.schema_version = 2;
    let shown = connection.handle(frame(ServerFrame::ExecutionStream(other)), 5, 0.0);
    assert!(
        matches!(&shown[..], [Action::Report(problem)] if problem.code == "schema_version"),
        "{shown:?}"
    );
    assert!(
        connection.handle(frame(ops(&run("run_1"), 5)), 6, 0.0).is_empty(),
        "nothing more is taken"
    );
}

#[test]
fn coming_back_to_a_stale_page_connects_at_once_and_to_a_fresh_one_does_nothing() {
    let mut connection = open();
    assert!(connection.handle(Input::Awake, 12_000, 0.0).is_empty());
    let actions = connection.handle(Input::Awake, 12_001, 0.0);
    assert_eq!(actions.first(), Some(&Action::Close));
    assert_eq!(actions.last(), Some(&Action::Open));

    let mut connection = open();
    connection.handle(Input::Closed, 50, 1.0);
    assert_eq!(connection.handle(Input::Awake, 60, 1.0), [Action::Open]);
}

#[test]
fn a_page_that_follows_nothing_has_no_connection() {
    let mut connection = open();
    let actions = connection.handle(Input::Unfollow(run("run_1")), 5, 0.0);
    assert_eq!(
        actions[1..],
        [Action::Close, Action::Show(ConnectionState::Connecting)]
    );
    assert_eq!(connection.wake_at(), None);
    assert!(
        connection.handle(Input::Closed, 6, 0.0).is_empty(),
        "it is not opened again"
    );
}

#[test]
fn losing_the_network_is_shown_until_frames_come_again() {
    let mut connection = open();
    let offline = ConnectionState::Offline { since: 100 };
    assert_eq!(
        connection.handle(Input::Offline, 100, 0.0),
        [Action::Show(offline)]
    );
    connection.handle(Input::Closed, 200, 0.0);
    let back = connection.handle(Input::Awake, 300, 0.0);
    assert_eq!(
        back,
        [
            Action::Show(ConnectionState::Reconnecting { since: 100 }),
            Action::Open
        ]
    );
}
