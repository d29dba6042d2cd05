//! Programs that call tools: nodes of the same tree, live, with limits and ends of their own.

use std::sync::Arc;

use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::model::{BlockBody, Node};
use protocol::op::Op;
use protocol::state::{Channel, NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};
use server::simulator::Scenario;
use server::store::test_support::TestDatabase;
use server::tool::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput};

use axum::http::StatusCode;
use tokio::sync::Notify;

use crate::command_line::Process;
use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, Provider, scenario};
use crate::states::end;
use crate::viewer::Viewer;

/// A scenario that runs this program once, and then says a word.
fn runs(name: &str, code: &str) -> Scenario {
    let arguments = json!({ "code": code, "description": "Tries" }).to_string();
    let call = toml_call("run_code", &arguments);
    let source = format!(
        "name = \"{name}\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"{name}\"\n[[turns]]\n{call}\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n"
    );
    scenario(name, &source)
}

fn toml_call(tool: &str, arguments: &str) -> String {
    let arguments = Value::from(arguments);
    format!("[[turns.steps]]\nstep = \"tool_call\"\nname = \"{tool}\"\narguments = {arguments}\n")
}

fn program(state: &RunState) -> &Node {
    state
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Code)
        .unwrap()
}

fn sub_calls(state: &RunState) -> Vec<&Node> {
    state.children(&program(state).node_id).collect()
}

fn statuses(state: &RunState) -> Vec<NodeStatus> {
    sub_calls(state).iter().map(|node| node.state.status()).collect()
}

fn output(node: &Node, channel: Channel) -> &str {
    &node.outputs[&channel].text
}

/// The error of a node that has one: its code and its words.
fn error(node: &Node) -> (&str, &str) {
    let error = node.state.end().unwrap().error.as_ref().unwrap();
    (&error.code, &error.message)
}

/// What the provider was told of the last call.
async fn told(server: &TestServer) -> String {
    server.provider.requests().await.last().unwrap().to_string()
}

/// A tool that notes when it runs, and ends when the test lets it.
struct Held {
    info: ToolInfo,
    began: tokio::sync::mpsc::UnboundedSender<String>,
    release: Arc<Notify>,
}

impl Held {
    fn new(
        name: &str,
        concurrency: Concurrency,
    ) -> (
        Arc<Self>,
        tokio::sync::mpsc::UnboundedReceiver<String>,
        Arc<Notify>,
    ) {
        let (began, has_begun) = tokio::sync::mpsc::unbounded_channel();
        let release = Arc::new(Notify::new());
        let info = ToolInfo {
            name: name.to_owned(),
            description: "Waits.".to_owned(),
            parameters: json!({ "type": "object" }),
            concurrency,
            mutating: false,
            exposure: Exposure::Full,
        };
        let tool = Arc::new(Self {
            info,
            began,
            release: Arc::clone(&release),
        });
        (tool, has_begun, release)
    }
}

impl Tool for Held {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, _: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            self.began.send(arguments.to_string()).unwrap();
            tokio::select! {
                () = self.release.notified() => {}
                () = context.cancel.cancelled() => return Err(ToolError::cancelled()),
            }
            Ok(ToolOutput {
                text: arguments.to_string(),
                media_type: "text/plain".to_owned(),
                exit_code: None,
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_program_are_nodes_below_it_and_the_model_sees_one_call() {
    let server = TestServer::start().await;
    for provider in PROVIDERS {
        let seen = server.finish("program", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let code = program(&seen);
        assert_eq!(
            (code.name.as_str(), code.state.status()),
            ("run_code", NodeStatus::Succeeded)
        );
        let value: Value = serde_json::from_str(output(code, Channel::Result)).unwrap();
        assert_eq!(value["missing"], "not_found");
        assert_eq!(
            output(code, Channel::Log).lines().nth(1).unwrap(),
            "read_file failed, and the program goes on"
        );
        let calls = sub_calls(&seen);
        let names: Vec<_> = calls.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(
            names,
            ["read_file", "list_dir", "read_file", "ask_model"],
            "{provider}"
        );
        assert_eq!(
            statuses(&seen),
            [
                NodeStatus::Succeeded,
                NodeStatus::Succeeded,
                NodeStatus::Failed,
                NodeStatus::Succeeded
            ]
        );
        assert_eq!(error(calls[2]).0, "not_found");
        for (ordinal, call) in calls.iter().enumerate() {
            assert_eq!(call.kind, NodeKind::Function);
            assert_eq!(call.ordinal as usize, ordinal);
            assert_eq!(call.parent_id.as_ref(), Some(&code.node_id));
            assert!(
                call.started_at.is_some() && call.state.end().is_some(),
                "{}",
                call.name
            );
        }
        assert_eq!(output(calls[0], Channel::Arguments), "{\"path\":\"README.md\"}");
        assert!(output(calls[0], Channel::Result).contains("Acorn"));
        // What a call asked stands below that call.
        let inner = seen.children(&calls[3].node_id).next().unwrap();
        assert_eq!(inner.kind, NodeKind::Model);
        // One row in the model's content, one call and one result in what it is told.
        let rows = seen.blocks().iter();
        let rows = rows.filter_map(|block| match &block.body {
            BlockBody::ToolRef(row) => row.ref_node_id.as_ref(),
            _ => None,
        });
        let of_answer: Vec<_> = rows.filter(|id| **id == code.node_id).collect();
        assert_eq!(of_answer.len(), 1);
        let told = told(&server).await;
        assert!(told.contains("not_found"), "{told}");
        assert!(
            !told.contains("append-only log"),
            "what its calls gave stays with the program: {told}"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn safe_calls_overlap_and_an_exclusive_one_goes_alone_in_the_order_of_the_program() {
    let (safe, mut safe_began, release_safe) = Held::new("safe", Concurrency::ParallelSafe);
    let (alone, mut alone_began, release_alone) = Held::new("alone", Concurrency::Exclusive);
    let code = "const all = [tools.safe({ n: 0 }), tools.safe({ n: 1 }), tools.alone({ n: 2 }), tools.safe({ n: 3 })]; \
                return await Promise.all(all)";
    let server = TestServer::start_with(Setup {
        scenarios: vec![runs("order", code)],
        tools: vec![safe, alone],
        ..Setup::default()
    })
    .await;
    let run = server.run("order", "anthropic").await;
    assert_eq!(safe_began.recv().await.unwrap(), "{\"n\":0}");
    assert_eq!(safe_began.recv().await.unwrap(), "{\"n\":1}");
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until(&run, |state| state.nodes().len() == 7).await;
    // All four are announced while two of them run.
    assert_eq!(
        statuses(seen),
        [
            NodeStatus::Running,
            NodeStatus::Running,
            NodeStatus::Pending,
            NodeStatus::Pending
        ]
    );
    assert!(alone_began.try_recv().is_err());
    release_safe.notify_one();
    release_safe.notify_one();
    assert_eq!(alone_began.recv().await.unwrap(), "{\"n\":2}");
    assert!(safe_began.try_recv().is_err());
    release_alone.notify_one();
    assert_eq!(safe_began.recv().await.unwrap(), "{\"n\":3}");
    release_safe.notify_one();
    let seen = viewer
        .until(&run, |state| state.run().status.is_final())
        .await
        .clone();
    assert_eq!(statuses(&seen), [NodeStatus::Succeeded; 4]);
    let value: Vec<String> = serde_json::from_str(output(program(&seen), Channel::Result)).unwrap();
    assert_eq!(value, ["{\"n\":0}", "{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_a_program_does_not_wait_for_end_with_it_and_say_so() {
    let (held, mut began, _release) = Held::new("held", Concurrency::Exclusive);
    let code = "tools.held({ n: 0 }); tools.held({ n: 1 }); await tools.list_dir; while (!globalThis.x) { \
                globalThis.x = 1 } console.log('done'); return 'done'";
    let server = TestServer::start_with(Setup {
        scenarios: vec![runs("leaves", code)],
        tools: vec![held],
        ..Setup::default()
    })
    .await;
    let seen = server.finish("leaves", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(program(&seen).state.status(), NodeStatus::Succeeded);
    for call in sub_calls(&seen) {
        let expected = match call.started_at {
            Some(_) => NodeStatus::Cancelled,
            None => NodeStatus::NotRun,
        };
        assert_eq!(call.state.status(), expected);
        assert_eq!(error(call).0, "not_awaited");
    }
    assert_eq!(sub_calls(&seen).len(), 2);
    drop(began.try_recv());
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_programs_end_each_in_its_own_state_and_other_runs_go_on() {
    let cases = [
        ("loops", "console.log('so far'); while (true);", "limit_compute"),
        (
            "allocates",
            "console.log('so far'); const a = []; while (true) a.push('x'.repeat(1e6) + a.length)",
            "limit_memory",
        ),
        (
            "recurses",
            "console.log('so far'); (function f() { return 1 + f(); })()",
            "limit_recursion",
        ),
        (
            "waits",
            "console.log('so far'); await new Promise(() => {})",
            "never_settled",
        ),
        (
            "cycle",
            "console.log('so far'); const a = {}; a.a = a; return a",
            "not_json",
        ),
        (
            "unknown",
            "console.log('so far'); await tools.nothing({})",
            "program_failed",
        ),
        (
            "proto",
            "console.log('so far'); await tools['__proto__']({})",
            "program_failed",
        ),
        (
            "inside",
            "console.log('so far'); await tools.run_code({ code: '1', description: 'x' })",
            "program_failed",
        ),
        (
            "large",
            "console.log('so far'); await tools.read_file({ path: 'x'.repeat(1e7) })",
            "program_failed",
        ),
        ("broken", "console.log('so far'; ", "syntax_error"),
    ];
    let scenarios = cases.iter().map(|(name, code, _)| runs(name, code)).collect();
    let server = TestServer::start_with(Setup {
        scenarios,
        more_config: "\n[limits]\ncode_compute_seconds = 4\ncode_memory_mib = 32\n",
        ..Setup::default()
    })
    .await;
    let mut running = Vec::new();
    for (name, _, _) in cases {
        running.push(server.run(name, "anthropic").await);
    }
    let neighbour = server.finish("reader", "openai").await;
    assert_eq!(end(&neighbour), (RunStatus::Succeeded, None));
    for ((name, _, code), run) in cases.iter().zip(running) {
        let seen = server.ended(&run).await;
        // The model is told, and goes on.
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{name}");
        let node = program(&seen);
        assert_eq!(node.state.status(), NodeStatus::Failed, "{name}");
        assert_eq!(error(node).0, *code, "{name}: {}", error(node).1);
        if *code != "syntax_error" {
            assert_eq!(output(node, Channel::Log), "so far\n", "{name}");
        }
        server.assert_same(&seen).await;
        match *name {
            "unknown" | "proto" | "inside" => {
                let call = sub_calls(&seen)[0];
                assert_eq!(call.state.status(), NodeStatus::NotRun);
                let expected = if *name == "inside" {
                    "not_in_mode"
                } else {
                    "unknown_tool"
                };
                assert_eq!(error(call).0, expected, "{name}");
            }
            "large" => {
                let call = sub_calls(&seen)[0];
                assert_eq!(call.state.status(), NodeStatus::Failed);
                assert!(output(call, Channel::Arguments).len() > 10_000_000);
                // An error cannot be given in parts, so it does not repeat all that it was given.
                for node in [node, call] {
                    assert!(
                        error(node).1.len() <= protocol::MAX_OP_TEXT,
                        "{}",
                        error(node).1.len()
                    );
                }
            }
            _ => assert!(sub_calls(&seen).is_empty(), "{name}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_the_run_the_program_or_one_call_ends_what_runs_within() {
    let (held, mut began, release) = Held::new("held", Concurrency::ParallelSafe);
    let code = "try { await tools.held({}); } catch (error) { return error.code; } return 'ended';";
    let two = "await Promise.all([tools.held({}), tools.ask_model({ prompt: 'reader' })])";
    let server = TestServer::start_with(Setup {
        scenarios: vec![runs("one", code), runs("two", two)],
        tools: vec![held],
        ..Setup::default()
    })
    .await;
    // The run.
    let run = server.run("one", "anthropic").await;
    began.recv().await.unwrap();
    assert_eq!(server.cancel(&run).await, StatusCode::ACCEPTED);
    let seen = server.ended(&run).await;
    assert_eq!(end(&seen), (RunStatus::Cancelled, None));
    assert_eq!(program(&seen).state.status(), NodeStatus::Cancelled);
    assert_eq!(statuses(&seen), [NodeStatus::Cancelled]);
    server.assert_same(&seen).await;
    // One call: the program goes on.
    let run = server.run("one", "anthropic").await;
    began.recv().await.unwrap();
    let mut viewer = server.watch(&run).await;
    let is_running = |state: &RunState| {
        let mut nodes = state.nodes().iter();
        nodes.any(|node| node.name == "held" && node.state.status() == NodeStatus::Running)
    };
    let call = sub_calls(viewer.until(&run, is_running).await)[0].node_id.clone();
    let stopped = server.post(&format!("/api/nodes/{call}/cancel"), json!({})).await;
    assert_eq!(stopped.status(), StatusCode::ACCEPTED);
    let seen = server.ended(&run).await;
    assert_eq!(statuses(&seen), [NodeStatus::Cancelled]);
    assert_eq!(output(program(&seen), Channel::Result), "cancelled");
    server.assert_same(&seen).await;
    // The program: the model goes on.
    server.provider.arm("reader:before-call").await;
    let run = server.run("two", "anthropic").await;
    began.recv().await.unwrap();
    let mut viewer = server.watch(&run).await;
    let seen = viewer.until(&run, |state| state.attempts().len() == 2).await;
    let node = program(seen).node_id.clone();
    let stopped = server.post(&format!("/api/nodes/{node}/cancel"), json!({})).await;
    assert_eq!(stopped.status(), StatusCode::ACCEPTED);
    let seen = server.ended(&run).await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(program(&seen).state.status(), NodeStatus::Cancelled);
    assert_eq!(statuses(&seen), [NodeStatus::Cancelled; 2]);
    assert!(told(&server).await.contains("cancelled"));
    server.assert_same(&seen).await;
    release.notify_one();
    server.provider.open("reader:before-call").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_enforced_by_the_executor_and_offers_only_what_it_allows() {
    let read = toml_call("read_file", "{\"path\": \"README.md\"}");
    let code = toml_call("run_code", "{\"code\": \"return 1\", \"description\": \"One\"}");
    let source = format!(
        "name = \"both\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"both\"\n[[turns]]\n{read}{code}\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n"
    );
    let server = TestServer::start_with(Setup {
        scenarios: vec![scenario("both", &source)],
        ..Setup::default()
    })
    .await;
    for (mode, read, code) in [
        (Some("native"), NodeStatus::Succeeded, NodeStatus::NotRun),
        (Some("code"), NodeStatus::NotRun, NodeStatus::Succeeded),
        (Some("both"), NodeStatus::Succeeded, NodeStatus::Succeeded),
        (None, NodeStatus::Succeeded, NodeStatus::Succeeded),
    ] {
        let session = server.session().await;
        let mut body = json!({ "prompt": "both", "provider": "anthropic" });
        if let Some(mode) = mode {
            body["tool_mode"] = mode.into();
        }
        let created = server.post(&format!("/api/sessions/{session}/runs"), body).await;
        assert_eq!(created.status(), StatusCode::ACCEPTED);
        let created: Value = created.json().await.unwrap();
        let seen = server
            .ended(&created["run_id"].as_str().unwrap().parse().unwrap())
            .await;
        let mut calls = seen.nodes().iter().filter(|node| {
            matches!(node.kind, NodeKind::Function | NodeKind::Code)
                && node.parent_id != Some(program(&seen).node_id.clone())
        });
        let (first, second) = (calls.next().unwrap(), calls.next().unwrap());
        assert_eq!(
            (first.state.status(), second.state.status()),
            (read, code),
            "{mode:?}"
        );
        for node in [first, second] {
            if node.state.status() == NodeStatus::NotRun {
                assert_eq!(error(node).0, "not_in_mode");
            }
        }
        let request = server.provider.requests().await.pop().unwrap();
        let tools: Vec<_> = request["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(
            tools.contains(&"read_file".into()),
            mode != Some("code"),
            "{mode:?}"
        );
        assert_eq!(
            tools.contains(&"run_code".into()),
            mode != Some("native"),
            "{mode:?}"
        );
    }
    let session = server.session().await;
    let body = json!({ "prompt": "both", "tool_mode": "other" });
    let refused = server.post(&format!("/api/sessions/{session}/runs"), body).await;
    assert!(refused.status().is_client_error(), "{}", refused.status());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_calls_of_one_program_are_two_thousand_nodes_in_order() {
    let server = TestServer::start().await;
    let seen = server.finish("program_many", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let value: Value = serde_json::from_str(output(program(&seen), Channel::Result)).unwrap();
    assert_eq!(value, json!({ "failed": 20, "calls": 2000 }));
    let calls = sub_calls(&seen);
    assert_eq!(calls.len(), 2000);
    for (place, call) in calls.iter().enumerate() {
        assert_eq!(call.ordinal as usize, place);
        let expected = if place % 100 == 99 {
            NodeStatus::Failed
        } else {
            NodeStatus::Succeeded
        };
        assert_eq!(call.state.status(), expected, "{place}");
    }
    let run = &seen.run().run_id;
    let verified = server::verify::verify(server.execution.store(), run)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(verified.problems, Vec::<String>::new());
    assert_eq!(verified.rows, digest(&seen));
}

#[tokio::test(flavor = "multi_thread")]
async fn console_lines_are_shown_while_the_program_runs() {
    let (held, mut began, release) = Held::new("held", Concurrency::ParallelSafe);
    let server = TestServer::start_with(Setup {
        scenarios: vec![runs(
            "logs",
            "console.log('before'); await tools.held({}); console.log('after')",
        )],
        tools: vec![held],
        ..Setup::default()
    })
    .await;
    let run = server.run("logs", "anthropic").await;
    began.recv().await.unwrap();
    let mut viewer = server.watch(&run).await;
    let has_line = |state: &RunState| {
        let mut nodes = state.nodes().iter();
        nodes.any(|node| {
            node.outputs
                .get(&Channel::Log)
                .is_some_and(|log| log.text == "before\n")
        })
    };
    viewer.until(&run, has_line).await;
    release.notify_one();
    let seen = server.ended(&run).await;
    assert_eq!(output(program(&seen), Channel::Log), "before\nafter\n");
    let ops = server.ops(&run).await;
    let logged = ops
        .iter()
        .filter(|entry| matches!(&entry.op, Op::NodeOutput(output) if output.channel == Channel::Log));
    assert!(logged.count() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_server_is_killed_is_interrupted_with_its_calls_and_not_run_again() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    provider.arm("reader:middle").await;
    let mut process = Process::serve(&database, &provider.base, "").await;
    let run = process.run("program").await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    viewer.until(&run, |state| state.attempts().len() == 2).await;
    process.kill();
    let server = TestServer::start_with(Setup {
        database: Some(database),
        provider: Some(provider),
        ..Setup::default()
    })
    .await;
    let seen = server.ended(&run).await;
    assert_eq!(end(&seen).0, RunStatus::Interrupted);
    assert_eq!(program(&seen).state.status(), NodeStatus::Interrupted);
    assert_eq!(statuses(&seen).last(), Some(&NodeStatus::Interrupted));
    server.assert_same(&seen).await;
    server.provider.open("reader:middle").await;
    assert_eq!(server.resume(&run).await, StatusCode::ACCEPTED);
    let mut viewer = server.watch(&run).await;
    let seen = viewer
        .until(&run, |state| state.run().status == RunStatus::Succeeded)
        .await
        .clone();
    assert_eq!(sub_calls(&seen).len(), 4, "nothing was run again");
    assert!(told(&server).await.contains("interrupted"));
    server.assert_same(&seen).await;
}
