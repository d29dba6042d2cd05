use serde_json::{Value, json};

use super::*;
use crate::clock::ManualClock;
use crate::provider::SseEvent;

fn clock() -> SharedClock {
    Arc::new(ManualClock::at(1_000))
}

fn event(data: &str) -> TranscriptEntry {
    TranscriptEntry::event(&SseEvent {
        event: Some("message_start".to_owned()),
        data: data.to_owned(),
        bytes: 1,
    })
}

async fn lines(store: &TranscriptStore, stream: &str) -> Vec<String> {
    let mut reader = store.read("run_1", stream).await.expect("opens");
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().await.expect("reads") {
        lines.push(line);
    }
    lines
}

#[tokio::test]
async fn lines_are_in_the_file_when_append_returns_and_raw_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TranscriptStore::new(folder.path());
    let transcript = store.open("run_1", "chat/call_1", clock()).await.expect("opens");
    let data = r#"{"delta":{"signature":"SECRET"}}"#;
    transcript
        .append("att_1", vec![event(data), TranscriptEntry::end("complete", None)])
        .await
        .expect("writes");
    let path = folder.path().join("transcripts/run_1/chat/call_1.ndjson");
    let raw = std::fs::read_to_string(&path).expect("reads");
    let first: Value = serde_json::from_str(raw.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        first,
        json!({"at":1000,"attempt":"att_1","kind":"event","event":"message_start","data":data})
    );
    assert_eq!(raw.lines().count(), 2);
    let shown = lines(&store, "chat/call_1").await;
    assert!(
        shown[0].contains("[6 bytes]") && !shown[0].contains("SECRET"),
        "{shown:?}"
    );
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_broken_last_line_is_cut_when_the_file_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TranscriptStore::new(folder.path());
    let path = folder.path().join("transcripts/run_1/chat/call_1.ndjson");
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    for (before, kept) in [
        ("{\"at\":1}\n{\"at\":2,\"da".to_owned(), 1),
        ("{\"at\":".to_owned(), 0),
        (format!("{{\"at\":1}}\n{{\"data\":\"{}", "x".repeat(200_000)), 1),
        ("{\"at\":1}\n".to_owned(), 1),
        (String::new(), 0),
    ] {
        std::fs::write(&path, &before).expect("writes");
        let transcript = store.open("run_1", "chat/call_1", clock()).await.expect("opens");
        transcript
            .append("att_2", vec![event("{}")])
            .await
            .expect("writes");
        let raw = std::fs::read_to_string(&path).expect("reads");
        assert_eq!(raw.lines().count(), kept + 1);
        assert!(
            raw.lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok()),
            "{raw:.100}"
        );
    }
}

#[tokio::test]
async fn a_growing_file_is_followed_by_whole_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TranscriptStore::new(folder.path());
    let transcript = store.open("run_1", "chat/call_1", clock()).await.expect("opens");
    let mut reader = store.read("run_1", "chat/call_1").await.expect("opens");
    assert_eq!(reader.next_line().await.expect("reads"), None);
    transcript
        .append("att_1", vec![event("1")])
        .await
        .expect("writes");
    assert!(reader.next_line().await.expect("reads").is_some());
    let path = folder.path().join("transcripts/run_1/chat/call_1.ndjson");
    let mut file = OpenOptions::new().append(true).open(&path).expect("opens");
    file.write_all(b"{\"half\":").expect("writes");
    assert_eq!(reader.next_line().await.expect("reads"), None);
    file.write_all(b"true}\n").expect("writes");
    assert_eq!(
        reader.next_line().await.expect("reads").as_deref(),
        Some("{\"half\":true}")
    );
}

#[tokio::test]
async fn a_listing_names_every_stream_of_a_run_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TranscriptStore::new(folder.path());
    for (run, stream) in [("run_1", "wave_1/b"), ("run_1", "chat/a"), ("run_2", "chat/c")] {
        store.open(run, stream, clock()).await.expect("opens");
    }
    let streams: Vec<String> = store
        .list("run_1")
        .await
        .expect("lists")
        .into_iter()
        .map(|file| file.stream)
        .collect();
    assert_eq!(streams, ["chat/a", "wave_1/b"]);
    assert!(store.list("run_3").await.expect("lists").is_empty());
}

#[tokio::test]
async fn a_path_never_leads_out_of_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TranscriptStore::new(folder.path());
    for (run, stream) in [
        ("..", "chat/a"),
        ("run_1", "../../etc"),
        ("run_1", "/etc/passwd"),
        ("run_1", "chat//a"),
        ("run_1", "chat/.hidden"),
        ("run_1", "chat/a\0"),
        ("run_1", "chat/"),
        ("run/1", "a"),
        ("", "a"),
        ("run_1", "chat\\..\\a"),
    ] {
        assert!(
            matches!(
                store.open(run, stream, clock()).await,
                Err(TranscriptError::Path(_))
            ),
            "{run} {stream}"
        );
        assert!(
            matches!(store.read(run, stream).await, Err(TranscriptError::Path(_))),
            "{run} {stream}"
        );
    }
    assert!(matches!(store.list("../x").await, Err(TranscriptError::Path(_))));
    assert!(matches!(
        store.read("run_1", "chat/none").await,
        Err(TranscriptError::NotFound(_))
    ));
}
