//! A run as it was at any of its ops: by the call, and on the page.

use axum::http::StatusCode;
use protocol::api::{MarkKind, RunMarks};
use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::snapshot::Snapshot;

use crate::exchange::{exported, imported};
use crate::harness::{Dice, Setup, TestServer};
use crate::states::assert_equal;

async fn at(server: &TestServer, run: &RunId, seq: u64) -> RunState {
    let path = format!("/api/runs/{run}/snapshot?at={seq}");
    let snapshot: Snapshot = serde_json::from_str(&server.text(&path).await).unwrap();
    RunState::from_snapshot(snapshot)
}

async fn marks(server: &TestServer, run: &RunId) -> RunMarks {
    serde_json::from_str(&server.text(&format!("/api/runs/{run}/marks")).await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_at_fifty_random_ops_is_what_its_ops_fold_to() {
    let server = TestServer::start_with(Setup {
        recovery: Some("retry_delays = [0.0]"),
        ..Setup::default()
    })
    .await;
    let mut dice = Dice::new(50);
    // Inner models beside a search, attempts that go on, groups, calls that fail.
    for prompt in ["asking", "cut_later", "nested levels=4", "tool_error", "parallel"] {
        let seen = server.finish(prompt, "anthropic").await;
        let run = &seen.run().run_id;
        let session = server.snapshot(run).await.run.session_id;
        let ops = server.ops(run).await;
        for _ in 0..10 {
            let seq = dice.below(seen.seq() + 1);
            let mut folded = RunState::new(run.clone(), session.clone());
            for entry in ops.iter().take_while(|entry| entry.seq <= seq) {
                folded.apply(entry).unwrap();
            }
            let told = at(&server, run, seq).await;
            assert_equal(&told, &folded);
            assert_eq!(digest(&told), digest(&folded), "{prompt} at {seq}");
        }
        // Further than the last op is the last op.
        assert_eq!(digest(&at(&server, run, 1 << 40).await), digest(&seen));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_a_run_at_an_op_without_script_and_leads_to_its_marks() {
    let server = TestServer::start().await;
    let seen = server.finish("Show me what Runloom does", "anthropic").await;
    let run = &seen.run().run_id;
    let session = server.snapshot(run).await.run.session_id;
    let told = marks(&server, run).await;
    assert_eq!(told.last, seen.seq());
    let kinds: Vec<MarkKind> = told.marks.iter().map(|mark| mark.kind).collect();
    assert_eq!(
        kinds,
        [MarkKind::Attempt, MarkKind::Tool, MarkKind::Tool, MarkKind::Tool]
    );
    assert!(told.marks.is_sorted_by_key(|mark| mark.seq));
    let words: Vec<&str> = told.marks.iter().map(|mark| mark.words.as_str()).collect();
    assert_eq!(
        words,
        ["Attempt 1: initial", "list_dir", "search_files", "read_file"]
    );

    // Right after the first call was announced there is the text before it and nothing of what came later.
    let seq = told.marks[1].seq + 1;
    let page = server.text(&format!("/s/{session}?run={run}&at={seq}")).await;
    assert!(
        page.contains("Welcome to Runloom") && !page.contains("What came out"),
        "{page}"
    );
    assert!(page.contains(&format!("data-seq=\"{seq}\"")), "{page}");
    assert!(
        page.contains("aria-label=\"Replay\"") && page.contains(&format!("max=\"{}\"", seen.seq())),
        "{page}"
    );
    let next = format!("run={run}&amp;at={}", told.marks[2].seq);
    assert!(page.contains(&next), "{next} in {page}");
    // It cannot be stopped or written on: it is over.
    assert!(!page.contains(&format!("/runs/{run}/cancel")), "{page}");
    let now = server.text(&format!("/s/{session}")).await;
    assert!(now.contains("What came out") && !now.contains("aria-label=\"Replay\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_run_is_replayed_like_any_other() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let seen = here.finish("parallel", "anthropic").await;
    let run = &seen.run().run_id;
    imported(&there, exported(&here, run).await).await;
    for seq in [0, 3, seen.seq() / 2, seen.seq()] {
        assert_eq!(
            digest(&at(&there, run, seq).await),
            digest(&at(&here, run, seq).await),
            "{seq}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_its_whole_journal_is_told_from_its_rows() {
    let (server, there) = (TestServer::start().await, TestServer::start().await);
    let seen = server.finish("Show me what Runloom does", "anthropic").await;
    let run = &seen.run().run_id;
    sqlx::query("delete from ops where seq < 40")
        .execute(server.execution.store().pool())
        .await
        .unwrap();
    assert_eq!(digest(&at(&server, run, 1 << 40).await), digest(&seen));
    // So is its export.
    let answer = imported(&there, exported(&server, run).await).await;
    assert_eq!(answer.runs[0].digest, digest(&seen));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_of_no_run_is_not_found_and_one_beside_a_window_is_refused() {
    let server = TestServer::start().await;
    let seen = server.finish("echo", "anthropic").await;
    let run = &seen.run().run_id;
    let missing = "run_0000000000000000000000";
    for path in [
        format!("/api/runs/{missing}/snapshot?at=1"),
        format!("/api/runs/{missing}/marks"),
    ] {
        assert_eq!(server.get(&path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let both = format!("/api/runs/{run}/snapshot?at=1&attempt=att_1&before=2");
    assert_eq!(server.get(&both).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
}
