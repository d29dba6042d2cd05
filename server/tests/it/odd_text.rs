//! Text that is hard to keep: NUL, characters of four bytes, every byte on its own.

use protocol::model::BlockBody;
use protocol::state::{BlockStatus, Channel, NodeKind, RunStatus};

use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, scenario};
use crate::states::{assert_equal, end, text};

const NUL: &str = r#"
name = "nul"
title = "NUL"
description = "NUL in every text."
order = 90
prompt = "nul"
[[turns]]
[[turns.steps]]
step = "reasoning"
text = "a\u0000b"
[[turns.steps]]
step = "text"
text = "before\u0000after"
[[turns.steps]]
step = "gate"
name = "nul:middle"
[[turns.steps]]
step = "text"
text = " and on\u0000"
[[turns.steps]]
step = "tool_call"
name = "list_dir"
arguments = '{"path": "no\u0000where"}'
[[turns]]
[[turns.steps]]
step = "text"
text = "done"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn nul_in_prompts_texts_and_arguments_is_kept_while_they_grow_and_afterwards() {
    let scenarios = vec![scenario("nul", NUL)];
    let server = TestServer::start_with(Setup {
        scenarios,
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        server.provider.arm("nul:middle").await;
        let run = server.run("nul", provider).await;
        let mut viewer = server.watch(&run).await;
        let middle = viewer.until_text(&run, "before\0after").await.clone();
        let open = protocol::fold::RunState::from_snapshot(server.snapshot(&run).await);
        assert_equal(&open, &middle);
        server.provider.open("nul:middle").await;
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(text(&seen), "before\0after and on\0done", "{provider}");
        server.assert_same(&seen).await;
    }
    let session = server.session().await;
    let run = server.submit(&session, "a prompt\0with NUL", "openai").await;
    let seen = server.ended(&run).await;
    assert_eq!(seen.messages()[0].text, "a prompt\0with NUL");
    server.assert_same(&seen).await;
    assert!(
        server
            .text("/api/sessions")
            .await
            .contains("a prompt\u{2400}with NUL")
    );
    assert_eq!(server.get(&format!("/s/{session}")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_at_every_byte_is_one_clean_text() {
    let server = TestServer::start().await;
    for provider in PROVIDERS {
        let seen = server.finish("odd_bytes", provider).await;
        assert!(
            text(&seen).contains("🧵👩‍👩‍👧: each of these"),
            "{provider}: {}",
            text(&seen)
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_share_an_index_and_long_outputs_are_kept_apart() {
    let server = TestServer::start().await;
    for provider in PROVIDERS {
        let seen = server.finish("index_zero", provider).await;
        let calls: Vec<_> = seen
            .nodes()
            .iter()
            .filter(|node| node.kind == NodeKind::Function)
            .collect();
        let arguments: Vec<&str> = calls
            .iter()
            .map(|call| call.outputs[&Channel::Arguments].text.as_str())
            .collect();
        assert_eq!(
            arguments,
            [r#"{"path": "docs"}"#, r#"{"path": "CHANGELOG.md"}"#],
            "{provider}"
        );
        let texts = seen
            .blocks()
            .iter()
            .filter(|block| matches!(block.body, BlockBody::Text(_)));
        assert!(
            texts
                .clone()
                .all(|block| block.state.status() == BlockStatus::Complete)
        );
        server.assert_same(&seen).await;
    }
}
