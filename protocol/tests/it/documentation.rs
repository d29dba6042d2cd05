//! The page `docs/protocol.md` tells what the types are: each of its examples reads, and is written again as it stands.

use std::collections::BTreeSet;

use protocol::frame::{ClientFrame, ServerFrame};
use protocol::op::Entry;
use protocol::snapshot::Snapshot;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/protocol.md");

/// The examples of the page: tag, line, text.
fn examples() -> Vec<(&'static str, usize, String)> {
    let mut examples = Vec::new();
    let mut lines = PAGE.lines().enumerate();
    while let Some((place, line)) = lines.next() {
        if let Some(tag) = line.strip_prefix("```") {
            let text: Vec<&str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```")
                .collect();
            examples.push((tag, place + 1, text.join("\n")));
        }
    }
    examples
}

/// Reads an example and writes it again: nothing is lost, added or named otherwise.
fn check<T: DeserializeOwned + Serialize>(place: usize, text: &str) -> Value {
    let thing: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("line {place}: {error}"));
    let expected: Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(thing).unwrap(), expected, "line {place}");
    expected
}

#[test]
fn every_example_reads_and_is_written_again_as_it_stands() {
    let (mut ops, mut server, mut client) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut snapshots = 0;
    for (tag, place, text) in examples() {
        match tag {
            "json op" => {
                ops.insert(check::<Entry>(place, &text)["op"].as_str().unwrap().to_owned());
            }
            "json server" => {
                server.insert(
                    check::<ServerFrame>(place, &text)["type"]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                );
            }
            "json client" => {
                client.extend(
                    check::<ClientFrame>(place, &text)
                        .as_object()
                        .unwrap()
                        .keys()
                        .cloned(),
                );
            }
            "json snapshot" => {
                check::<Snapshot>(place, &text);
                snapshots += 1;
            }
            other => panic!("line {place}: an example is tagged {other:?}"),
        }
    }
    assert_eq!(
        ops,
        crate::ops::NAMES.map(str::to_owned).into(),
        "an example for each op"
    );
    let frames = crate::ops::server_frame_names();
    assert_eq!(
        server,
        frames.into_iter().map(str::to_owned).collect(),
        "and for each frame of the server"
    );
    assert_eq!(
        client,
        ["ack", "pong", "subscribe", "unsubscribe"]
            .map(str::to_owned)
            .into()
    );
    assert_eq!(snapshots, 2);
}

#[test]
fn every_word_of_a_state_is_on_the_page() {
    use protocol::state::{
        AttemptReason, AttemptStatus, BlockStatus, Channel, Executor, MessageState, NodeKind, NodeStatus,
        Retention, RunStatus,
    };
    let words = [
        AttemptReason::ALL
            .iter()
            .map(|word| word.as_str())
            .collect::<Vec<_>>(),
        AttemptStatus::ALL.iter().map(|word| word.as_str()).collect(),
        BlockStatus::ALL.iter().map(|word| word.as_str()).collect(),
        Channel::ALL.iter().map(|word| word.as_str()).collect(),
        Executor::ALL.iter().map(|word| word.as_str()).collect(),
        MessageState::ALL.iter().map(|word| word.as_str()).collect(),
        NodeKind::ALL.iter().map(|word| word.as_str()).collect(),
        NodeStatus::ALL.iter().map(|word| word.as_str()).collect(),
        Retention::ALL.iter().map(|word| word.as_str()).collect(),
        RunStatus::ALL.iter().map(|word| word.as_str()).collect(),
    ];
    for word in words.concat() {
        let told = PAGE.contains(&format!("`{word}`")) || PAGE.contains(&format!("\"{word}\""));
        assert!(told, "{word}");
    }
}
