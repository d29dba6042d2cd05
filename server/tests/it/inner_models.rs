//! Models that a call asks: nodes of the same tree, with limits and ends of their own.

use std::sync::{Arc, LazyLock};

use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::model::{BlockBody, Node};
use protocol::op::Op;
use protocol::state::{AttemptStatus, Channel, NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};
use server::simulator::Scenario;
use server::tool::{
    Concurrency, Exposure, InnerCall, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput,
};

use axum::http::StatusCode;
use server::store::test_support::TestDatabase;

use crate::command_line::Process;
use crate::harness::{Setup, TestServer};
use crate::provider::{PROVIDERS, Provider, scenario};
use crate::states::{end, text};
use crate::viewer::Viewer;

/// A scenario that asks a model once, with these arguments, and then says a word.
fn asks(name: &str, arguments: &Value) -> Scenario {
    let source = format!(
        "name = \"{name}\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"{name}\"\n[[turns]]\n\
         [[turns.steps]]\nstep = \"tool_call\"\nname = \"ask_model\"\narguments = '{arguments}'\n\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n"
    );
    scenario(name, &source)
}

async fn server(scenarios: Vec<Scenario>, more_config: &'static str) -> TestServer {
    TestServer::start_with(Setup {
        scenarios,
        more_config,
        ..Setup::default()
    })
    .await
}

fn of_kind(state: &RunState, kind: NodeKind) -> Vec<&Node> {
    state.nodes().iter().filter(|node| node.kind == kind).collect()
}

/// The error of a node that has one: its code and its words.
fn error(node: &Node) -> (&str, &str) {
    let error = node.state.end().unwrap().error.as_ref().unwrap();
    (&error.code, &error.message)
}

fn result(node: &Node) -> &str {
    &node.outputs[&Channel::Result].text
}

/// What a run looks like below its root: each node's kind, name and state, indented.
fn tree(state: &RunState) -> String {
    fn write(state: &RunState, node: &NodeId, depth: usize, out: &mut String) {
        for child in state.children(node) {
            let kind = format!("{:?}", child.kind).to_lowercase();
            let status = child.state.status();
            out.push_str(&format!("{:depth$}{kind} {} {status}\n", "", child.name));
            write(state, &child.node_id, depth + 1, out);
        }
    }
    let mut out = String::new();
    write(state, &state.root().unwrap().node_id, 0, &mut out);
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_model_is_a_node_below_its_call_and_its_answer_is_the_result() {
    let server = server(vec![asks("outer", &json!({ "prompt": "reader" }))], "").await;
    for provider in PROVIDERS {
        let before = server.provider.requests().await.len();
        let seen = server.finish("outer", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        assert_eq!(
            tree(&seen),
            "model answer succeeded\n function ask_model succeeded\n  model inner model succeeded\n   function \
             read_file succeeded\n",
            "{provider}"
        );
        let call = of_kind(&seen, NodeKind::Function)[0];
        let inner = of_kind(&seen, NodeKind::Model)[1];
        assert_eq!(inner.parent_id.as_ref(), Some(&call.node_id));
        assert_eq!(result(call), seen.answer(&inner.node_id));
        assert_eq!(
            result(call),
            "I read the design.\n\nThe log is read once, from its beginning."
        );
        // Its content is blocks of its own attempt, and none of the outer one's.
        let attempt = seen.attempts_of(&inner.node_id).next().unwrap();
        assert_eq!(attempt.state.status(), AttemptStatus::Completed);
        let kinds: Vec<_> = seen
            .blocks_of(&attempt.attempt_id)
            .map(|block| block.body.kind())
            .collect();
        assert_eq!(kinds, ["text", "tool_ref", "text"]);
        // What it took counts for the run.
        let attempts = seen.attempts().iter();
        let used = attempts.filter_map(|attempt| attempt.state.end()?.usage.clone());
        let tokens: u64 = used.map(|usage| usage.output_tokens).sum();
        assert_eq!(seen.run().usage.as_ref().unwrap().output_tokens, tokens);

        let requests = server.provider.requests().await.split_off(before);
        assert_eq!(requests.len(), 4, "{provider}");
        let asked = requests[1].to_string();
        assert!(
            asked.contains("reader") && !asked.contains("\"outer\""),
            "{asked}"
        );
        let told = requests[3].to_string();
        assert!(
            told.contains("The log is read once, from its beginning."),
            "{told}"
        );
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_call_chooses_its_model_its_tools_and_its_role() {
    let arguments = json!({
        "prompt": "reader", "model": "openai/sim", "tools": ["list_dir"], "system": "You are a clerk.",
    });
    let server = server(vec![asks("outer", &arguments)], "").await;
    let seen = server.finish("outer", "anthropic").await;
    let inner = of_kind(&seen, NodeKind::Model)[1];
    let attempt = seen.attempts_of(&inner.node_id).next().unwrap();
    assert_eq!(
        (attempt.provider.as_str(), attempt.model.as_str()),
        ("openai", "sim")
    );
    // A tool that it was not given is not run, though the server has it.
    let read = of_kind(&seen, NodeKind::Function)[1];
    assert_eq!(
        (read.name.as_str(), read.state.status()),
        ("read_file", NodeStatus::NotRun)
    );
    assert_eq!(error(read).0, "unknown_tool");
    let request = &server.provider.requests().await[1];
    let tools: Vec<_> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(tools, [&json!("list_dir")]);
    assert_eq!(request["messages"][0]["content"], "You are a clerk.");
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_cannot_be_asked_fails_its_call_and_asks_nobody() {
    let server = server(
        vec![
            asks("no_model", &json!({ "prompt": "reader", "model": "nobody" })),
            asks("no_tool", &json!({ "prompt": "reader", "tools": ["rm"] })),
        ],
        "",
    )
    .await;
    for (prompt, code, words) in [
        ("no_model", "unknown_model", "anthropic/sim, openai/sim"),
        ("no_tool", "unknown_tool", "There is no tool named `rm`"),
    ] {
        let seen = server.finish(prompt, "openai").await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{prompt}");
        assert_eq!(of_kind(&seen, NodeKind::Model).len(), 1, "{prompt}");
        let call = of_kind(&seen, NodeKind::Function)[0];
        assert_eq!(call.state.status(), NodeStatus::Failed);
        assert_eq!(error(call).0, code);
        assert!(error(call).1.contains(words), "{}", error(call).1);
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_models_within_each_other_answer_one_another() {
    let server = TestServer::start().await;
    let seen = server.finish("nested levels=12", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let models = of_kind(&seen, NodeKind::Model);
    assert_eq!(models.len(), 12);
    assert!(
        models
            .iter()
            .all(|node| node.state.status() == NodeStatus::Succeeded)
    );
    assert_eq!(
        tree(&seen).lines().last().unwrap(),
        format!("{:23}function read_file succeeded", "")
    );
    let deepest = seen.answer(&models[11].node_id);
    assert!(
        deepest.ends_with("a key-value store as small as a nutshell."),
        "{deepest}"
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_levels_as_can_be_configured_need_no_deep_stack() {
    let server = server(Vec::new(), "[limits]\ndepth = 64\n").await;
    let seen = server.finish("nested levels=64", "openai").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(of_kind(&seen, NodeKind::Model).len(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_of_the_configuration_ends_recursion_with_its_own_reason() {
    // The depth: the last level may not ask, is told so, and answers.
    let server = server(Vec::new(), "[limits]\ndepth = 3\n").await;
    let seen = server.finish("nested levels=12", "openai").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(of_kind(&seen, NodeKind::Model).len(), 3);
    let calls = of_kind(&seen, NodeKind::Function);
    let (last, others) = calls.split_last().unwrap();
    assert_eq!(error(last).0, "limit_depth");
    assert!(
        others
            .iter()
            .all(|call| call.state.status() == NodeStatus::Succeeded)
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_model_that_reaches_a_limit_fails_and_its_call_says_which() {
    // It asks for the same tool in every round.
    let forever = scenario(
        "forever",
        "name = \"forever\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"forever\"\n[[turns]]\n\
         [[turns.steps]]\nstep = \"tool_call\"\nname = \"list_dir\"\narguments = '{}'\n",
    );
    let server = server(
        vec![asks("outer", &json!({ "prompt": "forever" })), forever],
        "[limits]\nrounds_per_node = 4\n",
    )
    .await;
    let seen = server.finish("outer", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let inner = of_kind(&seen, NodeKind::Model)[1];
    assert_eq!(
        (inner.state.status(), error(inner).0),
        (NodeStatus::Failed, "limit_rounds")
    );
    assert_eq!(
        seen.attempts_of(&inner.node_id).next().unwrap().state.status(),
        AttemptStatus::Failed
    );
    let call = of_kind(&seen, NodeKind::Function)[0];
    assert_eq!(call.state.status(), NodeStatus::Failed);
    assert_eq!(error(call).0, "inner_failed");
    assert!(error(call).1.contains("limit_rounds"), "{}", error(call).1);
    let told = server.provider.requests().await.pop().unwrap().to_string();
    assert!(told.contains("The inner model failed (limit_rounds)"), "{told}");
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_cost_and_time_are_limited_over_all_models_of_a_run() {
    let price = "[limits]\ncost = 0.000001\n";
    for (more_config, code) in [
        ("[limits]\ntotal_tokens = 1\n", "limit_tokens"),
        (price, "limit_cost"),
    ] {
        let server = TestServer::start_with(Setup {
            scenarios: vec![asks("outer", &json!({ "prompt": "reader" }))],
            more_config,
            priced: true,
            ..Setup::default()
        })
        .await;
        let seen = server.finish("outer", "anthropic").await;
        assert_eq!(end(&seen), (RunStatus::Failed, Some(code)));
        // The outer model's own round has passed the limit: no other model is asked.
        assert_eq!(of_kind(&seen, NodeKind::Model).len(), 1, "{code}");
        let call = of_kind(&seen, NodeKind::Function)[0];
        assert!(error(call).1.contains(code), "{}", error(call).1);
        server.assert_same(&seen).await;
    }

    let server = server(Vec::new(), "[limits]\nrun_seconds = 2\n").await;
    server.provider.arm("nested:bottom").await;
    let seen = server.finish("nested levels=3", "openai").await;
    assert_eq!(end(&seen), (RunStatus::Failed, Some("limit_time")));
    for node in of_kind(&seen, NodeKind::Model) {
        assert_eq!(
            (node.state.status(), error(node).0),
            (NodeStatus::Failed, "limit_time")
        );
    }
    assert!(server.provider.is_idle_within(1000).await);
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_the_run_stops_the_innermost_model_and_keeps_what_it_said() {
    let server = TestServer::start().await;
    for provider in PROVIDERS {
        server.provider.arm("nested:bottom").await;
        let run = server.run("nested levels=4", provider).await;
        let mut viewer = server.watch(&run).await;
        viewer.until_text(&run, "It is about Acorn, ").await;
        server.cancel(&run).await;
        assert!(server.provider.is_idle_within(1000).await, "{provider}");
        let seen = viewer.until_end(&run).await.clone();
        assert_eq!(end(&seen), (RunStatus::Cancelled, None), "{provider}");
        for node in of_kind(&seen, NodeKind::Model) {
            assert_eq!(node.state.status(), NodeStatus::Cancelled, "{provider}");
        }
        let asking = of_kind(&seen, NodeKind::Function);
        let (read, asking) = asking.split_last().unwrap();
        assert!(
            asking
                .iter()
                .all(|call| call.state.status() == NodeStatus::Cancelled)
        );
        assert_eq!(read.state.status(), NodeStatus::Succeeded);
        assert!(text(&seen).contains("It is about Acorn, "));
        server.provider.open("nested:bottom").await;
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_model_that_was_cut_goes_on_in_an_attempt_of_its_own() {
    let server = TestServer::start_with(Setup {
        scenarios: vec![asks("outer", &json!({ "prompt": "cut_once" }))],
        recovery: Some("retry_delays = [0.01]"),
        ..Setup::default()
    })
    .await;
    for provider in PROVIDERS {
        let before = server.provider.requests().await.len();
        let seen = server.finish("outer", provider).await;
        assert_eq!(end(&seen), (RunStatus::Succeeded, None), "{provider}");
        let models = of_kind(&seen, NodeKind::Model);
        assert_eq!(seen.attempts_of(&models[0].node_id).count(), 1);
        assert_eq!(seen.attempts_of(&models[1].node_id).count(), 2);
        let answer = seen.answer(&models[1].node_id);
        assert!(answer.starts_with("The log is a file of lines"), "{answer}");
        assert_eq!(
            result(of_kind(&seen, NodeKind::Function)[0]),
            answer,
            "{provider}"
        );
        // The second attempt is asked the inner question, and nothing of the session.
        let again = server.provider.requests().await[before + 2].to_string();
        assert!(again.contains("cut_once") && !again.contains("outer"), "{again}");
        server.assert_same(&seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_in_an_inner_model_every_level_says_so_and_a_resumed_run_does_not_ask_it_again() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let mut process = Process::serve(&database, &provider.base, "").await;
    provider.arm("nested:bottom").await;
    let run = process.run("nested levels=3").await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    viewer.until_text(&run, "It is about Acorn, ").await;
    process.kill();
    provider.open("nested:bottom").await;

    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(&database)),
        provider: Some(provider.clone()),
        ..Setup::default()
    })
    .await;
    let interrupted = server.ended(&run).await;
    assert_eq!(end(&interrupted), (RunStatus::Interrupted, Some("owner_gone")));
    assert_eq!(
        tree(&interrupted),
        "model answer interrupted\n function ask_model interrupted\n  model inner model interrupted\n   function \
         ask_model interrupted\n    model inner model interrupted\n     function read_file succeeded\n"
    );
    assert!(
        interrupted
            .attempts()
            .iter()
            .all(|attempt| attempt.state.status() == AttemptStatus::Interrupted)
    );

    let before = provider.requests().await.len();
    assert_eq!(server.resume(&run).await, StatusCode::ACCEPTED);
    let mut viewer = server.watch(&run).await;
    let over = |state: &RunState| state.run().status.is_final() && state.attempts().len() == 4;
    let seen = viewer.until(&run, over).await.clone();
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    assert_eq!(of_kind(&seen, NodeKind::Model).len(), 3, "nothing is asked again");
    let requests = provider.requests().await.split_off(before);
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0].to_string().contains("It was not run again."),
        "{}",
        requests[0]
    );
    // What is below the answer stays as it ended.
    for node in interrupted
        .nodes()
        .iter()
        .filter(|node| node.kind == NodeKind::Function)
    {
        assert_eq!(seen.node(&node.node_id), Some(node));
    }
    server.assert_same(&seen).await;
}

/// A tool that asks two models at once, and one more that it does not wait for.
struct Panel;

static INFO: LazyLock<ToolInfo> = LazyLock::new(|| ToolInfo {
    name: "panel".to_owned(),
    description: "Asks several.".to_owned(),
    parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    concurrency: Concurrency::ParallelSafe,
    mutating: false,
    exposure: Exposure::Full,
});

impl Tool for Panel {
    fn info(&self) -> &ToolInfo {
        &INFO
    }

    fn check(&self, _: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    fn call<'a>(&'a self, _: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        let ask = |prompt: &str| {
            context.models.ask(InnerCall {
                prompt: prompt.to_owned(),
                system: None,
                model: None,
                tools: Some(Vec::new()),
                accept_partial: false,
            })
        };
        Box::pin(async move {
            let (mut one, mut other, mut third) = (
                Box::pin(ask("max_tokens")),
                Box::pin(ask("max_tokens")),
                Box::pin(ask("slow")),
            );
            let both = async { tokio::join!(&mut one, &mut other) };
            tokio::select! {
                // In this order, so that the third is asked last.
                biased;
                (one, other) = both => Ok(ToolOutput {
                    text: format!("{}|{}", one?, other?),
                    media_type: "text/plain".to_owned(),
                    exit_code: None,
                }),
                third = &mut third => Err(ToolError::new("too_early", format!("{third:?}"))),
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_one_tool_asks_are_nodes_of_their_own_and_end_with_it() {
    let call = scenario(
        "panel",
        "name = \"panel\"\norder = 99\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"panel\"\n[[turns]]\n\
         [[turns.steps]]\nstep = \"tool_call\"\nname = \"panel\"\narguments = '{}'\n[[turns]]\n\
         [[turns.steps]]\nstep = \"text\"\ntext = \"It goes on.\"\n",
    );
    let server = TestServer::start_with(Setup {
        scenarios: vec![call],
        tools: vec![Arc::new(Panel)],
        ..Setup::default()
    })
    .await;
    server.provider.arm("slow:middle").await;
    let seen = server.finish("panel", "anthropic").await;
    assert_eq!(end(&seen), (RunStatus::Succeeded, None));
    let call = of_kind(&seen, NodeKind::Function)[0];
    let children: Vec<_> = seen.children(&call.node_id).collect();
    let ordinals: Vec<_> = children.iter().map(|node| node.ordinal).collect();
    assert_eq!(ordinals, [0, 1, 2]);
    let states: Vec<_> = children.iter().map(|node| node.state.status()).collect();
    assert_eq!(
        states,
        [
            NodeStatus::Succeeded,
            NodeStatus::Succeeded,
            NodeStatus::Cancelled
        ]
    );
    let answers: Vec<_> = children[..2]
        .iter()
        .map(|node| seen.answer(&node.node_id))
        .collect();
    assert_eq!(result(call), answers.join("|"));
    assert!(
        server.provider.is_idle_within(1000).await,
        "nobody waits for the third"
    );
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_names_its_parent_before_anything_of_it_is_told() {
    let server = TestServer::start().await;
    let seen = server.finish("nested levels=3", "openai").await;
    let mut announced = Vec::new();
    for entry in server.ops(&seen.run().run_id).await {
        match &entry.op {
            Op::NodeStarted(op) => {
                let is_known = |parent: &NodeId| announced.contains(parent);
                assert!(op.parent_id.as_ref().is_none_or(is_known), "{op:?}");
                announced.push(op.node_id.clone());
            }
            Op::AttemptStarted(op) => assert!(announced.contains(&op.node_id)),
            _ => {}
        }
    }
    // The rows of calls belong to the model that made them.
    for block in seen.blocks() {
        if let BlockBody::ToolRef(reference) = &block.body {
            let called = seen.node(reference.ref_node_id.as_ref().unwrap()).unwrap();
            assert_eq!(called.parent_id.as_ref(), Some(&block.node_id));
        }
    }
}
