//! Each call settles once, in its own node, and says how.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use protocol::fold::RunState;
use protocol::model::Node;
use protocol::state::{Channel, NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};
use server::simulator::Scenario;
use server::tool::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo};

use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, scenario};
use crate::states::end;

/// A tool that never returns by itself, and counts its calls.
#[derive(Default)]
pub(crate) struct Waiting {
    calls: AtomicUsize,
    ended: Arc<AtomicUsize>,
}

static INFO: LazyLock<ToolInfo> = LazyLock::new(|| ToolInfo {
    name: "wait".to_owned(),
    description: "Waits.".to_owned(),
    parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    concurrency: Concurrency::ParallelSafe,
    mutating: false,
    exposure: Exposure::Full,
});

impl Waiting {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Counts a call that was dropped.
struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Tool for Waiting {
    fn info(&self) -> &ToolInfo {
        &INFO
    }

    fn check(&self, _: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    fn call<'a>(&'a self, _: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let ends = Ends(Arc::clone(&self.ended));
        context.progress.log("it waits");
        Box::pin(async move {
            let _ends = ends;
            context.cancel.cancelled().await;
            Err(ToolError::cancelled())
        })
    }
}

/// Calls the tool that waits, then says a word.
pub(crate) fn waiting_scenario() -> Scenario {
    let text = r#"
name = "waiting"
order = 99
title = "t"
description = "d"
prompt = "waiting"

[[turns]]
[[turns.steps]]
step = "tool_call"
name = "wait"
arguments = "{}"

[[turns]]
[[turns.steps]]
step = "text"
text = "It goes on."
"#;
    scenario("waiting", text)
}

async fn server(tool: &Arc<Waiting>, more_config: &'static str) -> TestServer {
    TestServer::start_with(Setup {
        tools: vec![tool.clone()],
        scenarios: vec![waiting_scenario(), cut_at_once(), wrong_arguments()],
        more_config,
        ..Setup::default()
    })
    .await
}

fn call(state: &RunState) -> &Node {
    let mut calls = state.nodes().iter();
    calls.rfind(|node| node.kind == NodeKind::Function).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_times_out_and_the_model_is_told() {
    let tool = Arc::new(Waiting::default());
    let server = server(&tool, "[limits]\ntool_seconds = 1\n").await;
    for provider in PROVIDERS {
        let seen = server.finish("waiting", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let ended = call(&seen).state.end().unwrap();
        assert_eq!(ended.status, NodeStatus::TimedOut, "{provider}");
        assert_eq!(ended.error.as_ref().unwrap().code, "timed_out");
        assert_eq!(call(&seen).outputs[&Channel::Log].text, "it waits");
        let said = server.provider.requests().await.pop().unwrap().to_string();
        assert!(said.contains("took longer than 1 s"), "{said}");
        server.assert_same(&seen).await;
    }
    assert_eq!(tool.calls(), 2);
    assert_eq!(tool.ended.load(Ordering::SeqCst), 2, "they are stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_person_stops_is_cancelled() {
    let tool = Arc::new(Waiting::default());
    let server = server(&tool, "").await;
    let run = server.run("waiting", "openai").await;
    let mut viewer = server.watch(&run).await;
    let runs = |state: &RunState| {
        state
            .nodes()
            .iter()
            .any(|node| node.kind == NodeKind::Function && node.started_at.is_some())
    };
    viewer.until(&run, runs).await;
    server.cancel(&run).await;
    let seen = viewer.until_end(&run).await.clone();
    assert_eq!(end(&seen), (RunStatus::Cancelled, None));
    assert_eq!(call(&seen).state.status(), NodeStatus::Cancelled);
    server.assert_same(&seen).await;
}

/// A call in which the output limit came before its first argument.
fn cut_at_once() -> Scenario {
    let text = r#"
name = "cut_at_once"
order = 99
title = "t"
description = "d"
prompt = "cut_at_once"

[[turns]]
[[turns.steps]]
step = "tool_call"
name = "wait"
arguments = "{}"
cut_after = 0

[[turns]]
[[turns.steps]]
step = "text"
text = "It goes on."
"#;
    scenario("cut_at_once", text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_output_limit_cut_before_its_arguments_is_never_executed() {
    let tool = Arc::new(Waiting::default());
    let server = server(&tool, "").await;
    for provider in PROVIDERS {
        let seen = server.finish("cut_at_once", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let ended = call(&seen).state.end().unwrap();
        assert_eq!(ended.status, NodeStatus::NotRun, "{provider}");
        assert_eq!(ended.error.as_ref().unwrap().code, "invalid_arguments");
        assert!(
            !call(&seen).outputs.contains_key(&Channel::Arguments),
            "{provider}: nothing was written"
        );
        let said = server.provider.requests().await.pop().unwrap().to_string();
        assert!(said.contains("output limit"), "{said}");
        server.assert_same(&seen).await;
    }
    assert_eq!(tool.calls(), 0);
}

/// Arguments that are an object, but not the one that the tool takes.
fn wrong_arguments() -> Scenario {
    let text = r#"
name = "wrong_arguments"
order = 99
title = "t"
description = "d"
prompt = "wrong_arguments"

[[turns]]
[[turns.steps]]
step = "tool_call"
name = "read_file"
arguments = '{"path": 5}'

[[turns]]
[[turns.steps]]
step = "text"
text = "It goes on."
"#;
    scenario("wrong_arguments", text)
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_fit_the_schema_are_never_executed() {
    let server = server(&Arc::new(Waiting::default()), "").await;
    for provider in PROVIDERS {
        let seen = server.finish("wrong_arguments", provider).await;
        let ended = call(&seen).state.end().unwrap();
        assert_eq!(
            (ended.status, call(&seen).started_at),
            (NodeStatus::NotRun, None),
            "{provider}"
        );
        assert_eq!(ended.error.as_ref().unwrap().code, "invalid_arguments");
        let said = server.provider.requests().await.pop().unwrap().to_string();
        assert!(said.contains("The call was not run"), "{said}");
        server.assert_same(&seen).await;
    }
}
