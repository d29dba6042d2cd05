//! Tools that change something, as a model calls them, and those that have to be turned on.

use std::sync::Arc;

use protocol::fold::RunState;
use protocol::model::{BlockBody, Node};
use protocol::state::{Channel, NodeKind, NodeStatus, RunStatus};
use server::store::test_support::TestDatabase;

use crate::command_line::Process;
use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, Provider, scenario};
use crate::states::end;
use crate::viewer::Viewer;

fn calls(state: &RunState) -> Vec<&Node> {
    let nodes = state.nodes().iter();
    nodes.filter(|node| node.kind == NodeKind::Function).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_written_and_edited_one_call_after_the_other_and_the_answer_is_a_diff() {
    let changes = scenario(
        "changes",
        r#"
name = "changes"
order = 99
title = "t"
description = "d"
prompt = "changes"

[[turns]]
[[turns.steps]]
step = "tool_call"
name = "write_file"
arguments = '{"path": "new/a.txt", "content": "one\ntwo\n"}'
[[turns.steps]]
step = "tool_call"
name = "edit_file"
arguments = '{"path": "new/a.txt", "old_string": "two", "new_string": "three"}'

[[turns]]
[[turns.steps]]
step = "text"
text = "It goes on."
"#,
    );
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(Setup {
        scenarios: vec![changes],
        workspace: Some(folder.path().to_owned()),
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        let seen = server.finish("changes", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let written = std::fs::read_to_string(folder.path().join("new/a.txt")).unwrap();
        assert_eq!(written, "one\nthree\n", "{provider}");
        let edited = &calls(&seen)[1].outputs[&Channel::Result];
        assert_eq!(edited.media_type.as_deref(), Some("text/x-diff"));
        assert_eq!(
            edited.text,
            "--- a/new/a.txt\n+++ b/new/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
        );
        let groups = seen.blocks().iter();
        assert!(
            !groups
                .clone()
                .any(|block| matches!(block.body, BlockBody::ParallelGroup { .. }))
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_run_only_where_the_configuration_says_so() {
    for (more_config, status) in [
        ("", NodeStatus::NotRun),
        // Without the last word each command asks a person.
        (
            "[tools]\nshell = true\napproval = { shell = \"allow\" }\n",
            NodeStatus::Succeeded,
        ),
    ] {
        let provider = Provider::start(Vec::new()).await;
        let database = Arc::new(TestDatabase::new().await);
        let mut process = Process::serve(&database, &provider.base, more_config).await;
        let run = process.run("rows").await;
        let mut viewer = Viewer::connect(&process.base).await;
        viewer.subscribe(&run, 0).await;
        let seen = viewer.until_end(&run).await.clone();
        let shell = calls(&seen)[2];
        assert_eq!((shell.name.as_str(), shell.state.status()), ("shell", status));
        let ended = shell.state.end().unwrap();
        match status {
            NodeStatus::Succeeded => assert!(ended.exit_code.is_some()),
            _ => assert_eq!(ended.error.as_ref().unwrap().code, "unknown_tool"),
        }
        process.kill();
    }
}
