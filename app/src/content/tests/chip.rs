//! What the chip says of a stream.

use leptos::prelude::*;
use protocol::model::StreamState;
use protocol::state::StreamActivity;

use super::words;
use crate::content::model_row::stream_chip;
use crate::data::clock::PageClock;
use crate::data::connection::ConnectionState;
use crate::data::live::Live;
use crate::data::run_store::RunStore;
use crate::fixtures::script::{Script, node};

/// The chip of a stream that said this at 90 s, as a page with this connection shows it at 100 s.
fn chip(activity: StreamActivity, connection: ConnectionState) -> String {
    let owner = Owner::new();
    owner.with(|| {
        provide_context(PageClock::starting_at(100_000));
        provide_context(Live::standing(connection));
        let script = Script::started();
        let run = RunStore::new(script.state());
        run.set_stream(StreamState {
            run_id: run.run_id().clone(),
            node_id: node("call_1"),
            attempt_id: "att_1".parse().unwrap(),
            state: activity,
            n: 1,
            last_byte_at: Some(99_000),
            last_content_at: Some(98_000),
            tokens_per_second: Some(40.0),
            clock: None,
            since: Some(90_000),
            until: None,
            attempt_number: None,
            attempts_max: None,
            reason: None,
            to: None,
        });
        words(&stream_chip(&run, &node("call_1"), false).to_html())
    })
}

#[test]
fn waiting_and_silence_say_since_when() {
    let live = ConnectionState::Live;
    assert!(chip(StreamActivity::WaitingFirstToken, live).starts_with("waiting for the first token 10.0 s"));
    assert!(chip(StreamActivity::Silent, live).starts_with("silent 10.0 s"));
}

#[test]
fn what_was_heard_before_the_connection_was_lost_is_not_said_to_be_so_now() {
    let streaming = chip(StreamActivity::Streaming, ConnectionState::Live);
    assert!(
        streaming.contains("streaming") && streaming.contains("40 tok/s"),
        "{streaming}"
    );
    for lost in [
        ConnectionState::Reconnecting { since: 95_000 },
        ConnectionState::Offline { since: 95_000 },
    ] {
        assert_eq!(chip(StreamActivity::Streaming, lost), "no news");
    }
}
