//! Tools of MCP servers: what they give, and what is left when a server does what it should not. The server is
//! `mcp/server.mjs`, a process of its own.

use std::sync::Arc;
use std::time::Duration;

use protocol::fold::RunState;
use protocol::model::Node;
use protocol::state::{Channel, NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};
use server::simulator::Scenario;
use server::tool::mcp::{McpServer, McpServerConfig, McpState, McpTransport};
use server::tool::{Tool, ToolSource};

use axum::http::StatusCode;

use crate::harness::{PATIENCE, Setup, TestServer};
use crate::provider::scenario;
use crate::states::end;

/// The configuration of the server in one of its modes.
fn config(mode: &str) -> McpServerConfig {
    McpServerConfig {
        id: "test".to_owned(),
        transport: McpTransport::Stdio {
            command: vec!["node".to_owned(), script(), mode.to_owned()],
            environment: Default::default(),
        },
        start: Duration::from_secs(10),
    }
}

fn script() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/server.mjs").to_owned()
}

/// The settings of a test server with the well-behaved mode.
fn settings() -> &'static str {
    let script = Value::from(script());
    let text = format!(
        "\n[[mcp_servers]]\nid = \"test\"\ncommand = [\"node\", {script}, \"good\"]\nenv = {{ GIVEN = \"yes\" }}\n"
    );
    Box::leak(text.into_boxed_str())
}

/// A scenario that makes these calls, a round each, and then says a word.
fn calls(name: &str, calls: &[(&str, Value)]) -> Scenario {
    let mut source =
        format!("name = \"{name}\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"{name}\"\n");
    for (tool, arguments) in calls {
        let arguments = Value::from(arguments.to_string());
        source.push_str(&format!(
            "[[turns]]\n[[turns.steps]]\nstep = \"tool_call\"\nname = \"{tool}\"\narguments = {arguments}\n"
        ));
    }
    source.push_str("[[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n");
    scenario(name, &source)
}

async fn server(scenarios: Vec<Scenario>) -> TestServer {
    TestServer::start_with(Setup {
        scenarios,
        more_config: settings(),
        ..Setup::default()
    })
    .await
}

fn functions(state: &RunState) -> Vec<&Node> {
    let nodes = state.nodes().iter();
    nodes.filter(|node| node.kind == NodeKind::Function).collect()
}

fn result(node: &Node) -> &str {
    &node.outputs[&Channel::Result].text
}

fn error(node: &Node) -> (&str, &str) {
    let error = node.state.end().unwrap().error.as_ref().unwrap();
    (&error.code, &error.message)
}

/// Waits until the server's state is what is looked for.
async fn until(server: &McpServer, what: impl Fn(&McpState) -> bool) -> McpState {
    let mut state = server.state();
    let found = tokio::time::timeout(PATIENCE, state.wait_for(|state| what(state))).await;
    match found {
        Ok(found) => found.unwrap().clone(),
        Err(_) => panic!("{:?}", server.state().borrow()),
    }
}

fn names(state: &McpState) -> Vec<String> {
    let McpState::Ready(tools) = state else {
        panic!("{state:?}");
    };
    tools.iter().map(|tool| tool.info().name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_server_are_called_by_models_and_programs_with_a_prefix() {
    let program = json!({ "description": "Asks", "code": "return await tools['test__echo']({ text: 'from a program' })" });
    let server = server(vec![calls(
        "all",
        &[
            ("test__echo", json!({ "text": "ü\n2" })),
            ("test__fail", json!({})),
            ("test__refuse", json!({})),
            ("test__steps", json!({})),
            ("test__picture", json!({})),
            ("test__echo", json!({})),
            ("test__long", json!({})),
            ("run_code", program),
        ],
    )])
    .await;
    let seen = server.finish("all", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let nodes = functions(&seen);
    assert_eq!(result(nodes[0]), "ü\n2");
    assert_eq!(error(nodes[1]), ("tool_failed", "It cannot be done."));
    assert_eq!(error(nodes[2]).0, "mcp_refused");
    assert!(error(nodes[2]).1.contains("Not like that."));
    assert_eq!(result(nodes[3]), "done");
    let progress = nodes[3].progress.as_ref().unwrap();
    assert_eq!(
        (progress.done, progress.total, progress.note.as_deref()),
        (3, Some(3), Some("step 3"))
    );
    assert!(result(nodes[4]).contains("image/png"), "{}", result(nodes[4]));
    assert_eq!(
        (nodes[5].state.status(), error(nodes[5]).0),
        (NodeStatus::NotRun, "invalid_arguments")
    );
    assert_eq!(result(nodes[6]).len(), 3_000_000);
    assert_eq!(result(nodes[7]), "from a program");
    let request = server.provider.requests().await.pop().unwrap();
    let offered = request["tools"].as_array().unwrap();
    let echo = offered.iter().find(|tool| tool["name"] == "test__echo").unwrap();
    assert_eq!(echo["description"], "Does echo.");
    assert_eq!(echo["input_schema"]["required"], json!(["text"]));
    assert!(
        !offered
            .iter()
            .any(|tool| tool["name"].as_str().unwrap().contains(' '))
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_of_a_server_gets_nothing_that_could_be_a_key() {
    let server = server(vec![calls("env", &[("test__environment", json!({}))])]).await;
    let seen = server.finish("env", "anthropic").await;
    let environment: serde_json::Map<String, Value> =
        serde_json::from_str(result(functions(&seen)[0])).unwrap();
    assert_eq!(environment["GIVEN"], "yes");
    let allowed = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "GIVEN"];
    let more: Vec<_> = environment
        .keys()
        .filter(|name| !allowed.contains(&name.as_str()))
        .collect();
    assert!(more.is_empty(), "{more:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_cancelled_at_the_server_which_goes_on() {
    let server = server(vec![
        calls("wait", &[("test__wait", json!({}))]),
        calls("ask", &[("test__echo", json!({ "text": "cancelled?" }))]),
    ])
    .await;
    let run = server.run("wait", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    let runs = |state: &RunState| {
        functions(state)
            .first()
            .is_some_and(|node| node.state.status() == NodeStatus::Running)
    };
    let node = functions(viewer.until(&run, runs).await)[0].node_id.clone();
    let stopped = server.post(&format!("/api/nodes/{node}/cancel"), json!({})).await;
    assert_eq!(stopped.status(), StatusCode::ACCEPTED);
    let seen = server.ended(&run).await;
    assert_eq!(functions(&seen)[0].state.status(), NodeStatus::Cancelled);
    let seen = server.finish("ask", "anthropic").await;
    assert_eq!(result(functions(&seen)[0]), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server_too() {
    let text = format!("{}\n[limits]\ntool_seconds = 1\n", settings());
    let server = TestServer::start_with(Setup {
        scenarios: vec![calls(
            "late",
            &[
                ("test__wait", json!({})),
                ("test__echo", json!({ "text": "cancelled?" })),
            ],
        )],
        more_config: Box::leak(text.into_boxed_str()),
        ..Setup::default()
    })
    .await;
    let seen = server.finish("late", "anthropic").await;
    let nodes = functions(&seen);
    assert_eq!(
        (nodes[0].state.status(), error(nodes[0]).0),
        (NodeStatus::TimedOut, "timed_out")
    );
    assert_eq!(result(nodes[1]), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_or_answers_garbage_in_the_middle_fails_that_call_and_is_started_again() {
    let server = server(vec![
        calls("stop", &[("test__stop", json!({}))]),
        calls(
            "garbage",
            &[
                ("test__garbage", json!({})),
                ("test__echo", json!({ "text": "still here" })),
            ],
        ),
    ])
    .await;
    let seen = server.finish("garbage", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(error(functions(&seen)[0]).0, "mcp_answer");
    assert_eq!(result(functions(&seen)[1]), "still here");
    let seen = server.finish("stop", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let node = functions(&seen)[0];
    assert_eq!(
        (node.state.status(), error(node).0),
        (NodeStatus::Failed, "mcp_disconnected")
    );
    server.assert_same(&seen).await;
}

/// A tool of a server that is ready.
async fn tool(server: &McpServer, name: &str) -> Arc<dyn Tool> {
    let state = until(server, |state| matches!(state, McpState::Ready(_))).await;
    let McpState::Ready(tools) = state else {
        unreachable!()
    };
    tools.into_iter().find(|tool| tool.info().name == name).unwrap()
}

struct Quiet;

impl server::tool::ToolProgress for Quiet {
    fn log(&self, _: &str) {}
    fn progress(&self, _: u64, _: Option<u64>, _: Option<&str>) {}
}

/// Hears that a call tells of its progress.
#[derive(Default)]
struct Heard(tokio::sync::Notify);

impl server::tool::ToolProgress for Heard {
    fn log(&self, _: &str) {}

    fn progress(&self, _: u64, _: Option<u64>, _: Option<&str>) {
        self.0.notify_one();
    }
}

fn context() -> server::tool::ToolContext {
    server::tool::ToolContext {
        cancel: tokio_util::sync::CancellationToken::new(),
        progress: Arc::new(Quiet),
        models: server::tool::InnerModels::channel().0,
        calls: server::tool::SubCalls::channel().0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_a_state_with_its_reason() {
    for (mode, reason) in [
        ("dies", "no licence was found"),
        ("silent", "its first answer took longer than 1 s"),
        ("noise", "its first answer took longer than 1 s"),
    ] {
        let server = McpServer::start(McpServerConfig {
            start: Duration::from_secs(1),
            ..config(mode)
        });
        server.settled().await;
        let problem = server.problem().unwrap();
        assert!(problem.contains(reason), "{mode}: {problem}");
        assert!(server.tools().is_empty());
    }
    let nothing = McpTransport::Stdio {
        command: vec!["/no/such/program".to_owned()],
        environment: Default::default(),
    };
    let refused = McpTransport::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        token: None,
    };
    for (transport, reason) in [
        (nothing, "cannot be started"),
        (refused, "cannot be connected to"),
    ] {
        let server = McpServer::start(McpServerConfig {
            transport,
            ..config("")
        });
        server.settled().await;
        let problem = server.problem().unwrap();
        assert!(problem.contains(reason), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_says_which_tools_are_not_there() {
    let text = "\n[[mcp_servers]]\nid = \"lost\"\ncommand = [\"/no/such/program\"]\n";
    let server = TestServer::start_with(Setup {
        more_config: text,
        ..Setup::default()
    })
    .await;
    let seen = server.finish("reader", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let notice = seen
        .notices()
        .iter()
        .find(|notice| notice.code == "tools_unavailable")
        .unwrap();
    let words = notice.detail["message"].as_str().unwrap();
    assert!(
        words.contains("`lost`") && words.contains("cannot be started"),
        "{words}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_or_hangs_is_started_again() {
    let server = McpServer::start(config("good"));
    let stop = tool(&server, "test__stop").await;
    let failed = stop.call(json!({}), &context()).await.unwrap_err();
    assert_eq!(failed.code, "mcp_disconnected");
    let down = until(&server, |state| matches!(state, McpState::Down(_))).await;
    assert!(format!("{down:?}").contains("exit status: 7"), "{down:?}");
    let echo = tool(&server, "test__echo").await;
    assert_eq!(
        echo.call(json!({ "text": "a" }), &context()).await.unwrap().text,
        "a"
    );
    // One that computes for ever: whoever waits is freed, and the server is not waited for either.
    let hang = tool(&server, "test__hang").await;
    let heard = Arc::new(Heard::default());
    let waiting = server::tool::ToolContext {
        progress: heard.clone(),
        ..context()
    };
    let cancel = waiting.cancel.clone();
    let mut hanging = hang.call(json!({}), &waiting);
    tokio::select! {
        ended = &mut hanging => panic!("{ended:?}"),
        () = heard.0.notified() => {}
    }
    cancel.cancel();
    assert_eq!(hanging.await.unwrap_err().code, "cancelled");
    let _ = until(
        &server,
        |state| matches!(state, McpState::Down(reason) if reason.contains("did not answer")),
    )
    .await;
    let echo = tool(&server, "test__echo").await;
    assert_eq!(
        echo.call(json!({ "text": "b" }), &context()).await.unwrap().text,
        "b"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_come_later_are_there_for_the_next_run() {
    let server = McpServer::start(config("good"));
    let more = tool(&server, "test__more").await;
    assert!(!names(&server.state().borrow()).contains(&"test__added".to_owned()));
    more.call(json!({}), &context()).await.unwrap();
    let has_more = |state: &McpState| {
        matches!(state, McpState::Ready(_)) && names(state).contains(&"test__added".to_owned())
    };
    until(&server, has_more).await;
}
