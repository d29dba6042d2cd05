//! Records of other programs and of an older form: each in our blocks and nodes, with what they lack shown as a gap.

use protocol::api::{ImportAnswer, Outcome};
use protocol::fold::RunState;
use protocol::model::{BlockBody, Node};
use protocol::state::{AttemptReason, Channel, NodeKind, NodeStatus, Retention, RunStatus};
use serde_json::{Value, json};

use crate::exchange::{imported, kept, notices};
use crate::harness::TestServer;
use crate::states::{kinds, text};

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Imports a file twice, which is the same as once; gives the states of its runs. No model is asked.
async fn states(server: &TestServer, file: &str, format: &str) -> (ImportAnswer, Vec<RunState>) {
    let answer = imported(server, file.to_owned()).await;
    assert_eq!(answer.format, format);
    let mut states = Vec::new();
    for run in &answer.runs {
        assert_eq!(run.outcome, Outcome::Imported);
        let state = kept(server, &run.run_id).await;
        assert_eq!(notices(&state, "imported").len(), 1);
        assert!(state.run().status.is_final());
        states.push(state);
    }
    let again = imported(server, file.to_owned()).await;
    assert!(
        again.runs.iter().all(|run| run.outcome == Outcome::Known),
        "{again:?}"
    );
    let page = server.text(&format!("/s/{}", answer.session_id)).await;
    assert!(page.contains("This run was executed elsewhere"), "{page}");
    assert_eq!(server.provider.requests().await, Vec::<Value>::new());
    (answer, states)
}

fn node<'a>(state: &'a RunState, name: &str) -> &'a Node {
    state.nodes().iter().find(|node| node.name == name).unwrap()
}

fn result(node: &Node) -> &str {
    node.outputs
        .get(&Channel::Result)
        .map_or("", |output| &output.text)
}

/// A line of a log of Claude Code.
fn claude(id: &str, parent: Option<&str>, second: u32, kind: &str, message: Value) -> Value {
    json!({
        "uuid": id, "parentUuid": parent, "sessionId": "0c1d", "isSidechain": false, "type": kind,
        "timestamp": format!("2026-02-03T04:05:{second:02}.500Z"), "message": message,
    })
}

fn claude_says(id: &str, parent: &str, second: u32, part: Value) -> Value {
    let message = json!({
        "id": format!("msg_{}", &id[..2]), "role": "assistant", "model": "claude-x", "content": [part],
        "usage": { "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90 },
    });
    claude(id, Some(parent), second, "assistant", message)
}

fn claude_results(id: &str, parent: &str, second: u32, call: &str, content: Value, is_error: bool) -> Value {
    let part =
        json!({ "type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error });
    claude(
        id,
        Some(parent),
        second,
        "user",
        json!({ "role": "user", "content": [part] }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_log_of_claude_code_has_a_run_for_each_prompt_with_its_calls_in_place() {
    let side = |mut line: Value| {
        line["isSidechain"] = true.into();
        line
    };
    let file = lines(&[
        json!({ "type": "summary", "summary": "Fix the log", "leafUuid": "b2" }),
        json!({ "type": "file-history-snapshot", "messageId": "a1", "snapshot": {} }),
        claude(
            "a1",
            None,
            1,
            "user",
            json!({ "role": "user", "content": "Why does it fail?" }),
        ),
        claude_says(
            "m1a",
            "a1",
            2,
            json!({ "type": "thinking", "thinking": "Look first.", "signature": "secret-signature" }),
        ),
        claude_says(
            "m1b",
            "m1a",
            3,
            json!({ "type": "thinking", "thinking": "", "signature": "secret-signature" }),
        ),
        claude_says("m1c", "m1b", 4, json!({ "type": "text", "text": "I **look**." })),
        claude_says(
            "m1d",
            "m1c",
            5,
            json!({ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": { "command": "false" } }),
        ),
        claude_says(
            "m1e",
            "m1d",
            5,
            json!({ "type": "tool_use", "id": "toolu_2", "name": "Task", "input": { "prompt": "Read it" } }),
        ),
        side(claude(
            "s1",
            None,
            6,
            "user",
            json!({ "role": "user", "content": "Read it" }),
        )),
        side(claude_says(
            "n1a",
            "s1",
            7,
            json!({ "type": "text", "text": "Inner words." }),
        )),
        claude_results("r1", "m1d", 8, "toolu_1", json!("Exit 1\nno such file"), true),
        claude_results(
            "r2",
            "m1e",
            9,
            "toolu_2",
            json!([{ "type": "text", "text": "It was read." }]),
            false,
        ),
        claude_results("r3", "m1e", 9, "toolu_9", json!("whose?"), false),
        claude_says("m2a", "r2", 10, json!({ "type": "text", "text": "It is fixed." })),
        claude_says("m2a", "r2", 10, json!({ "type": "text", "text": "It is fixed." })),
        json!("no object"),
        claude(
            "b1",
            Some("m2a"),
            20,
            "user",
            json!({ "role": "user", "content": [
            { "type": "text", "text": "And this?" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
        ] }),
        ),
        claude_says("m3a", "b1", 21, json!({ "type": "hologram", "data": 1 })),
        claude_says(
            "m3b",
            "m3a",
            22,
            json!({ "type": "tool_use", "id": "toolu_1", "name": "Read", "input": { "file_path": "a" } }),
        ),
    ]);
    let server = TestServer::start().await;
    let (answer, states) = states(&server, &file, "claude_code").await;
    let session: Value =
        serde_json::from_str(&server.text(&format!("/api/sessions/{}", answer.session_id)).await).unwrap();
    assert_eq!(session["title"], "Fix the log");
    assert_eq!(states.len(), 2);

    let first = &states[0];
    assert_eq!(first.messages()[0].text, "Why does it fail?");
    assert_eq!(first.run().status, RunStatus::Succeeded);
    let answer = &first.attempts()[0];
    assert_eq!(
        (answer.reason, answer.model.as_str()),
        (AttemptReason::Legacy, "claude-x")
    );
    let blocks: Vec<&str> = first
        .blocks_of(&answer.attempt_id)
        .map(|block| block.body.kind())
        .collect();
    assert_eq!(
        blocks,
        ["reasoning", "reasoning", "text", "tool_ref", "tool_ref", "text"]
    );
    let retentions: Vec<Retention> = first
        .blocks()
        .iter()
        .filter_map(|block| match &block.body {
            BlockBody::Reasoning { retention, .. } => Some(*retention),
            _ => None,
        })
        .collect();
    assert_eq!(retentions, [Retention::Saved, Retention::NotSaved]);
    let bash = node(first, "Bash");
    assert_eq!(
        (bash.state.status(), result(bash)),
        (NodeStatus::Failed, "Exit 1\nno such file")
    );
    let task = node(first, "Task");
    assert_eq!(
        (task.state.status(), result(task)),
        (NodeStatus::Succeeded, "It was read.")
    );
    // What a subagent said is an inner model of the call that started it.
    let inner = first.children(&task.node_id).next().unwrap();
    assert_eq!(inner.kind, NodeKind::Model);
    assert_eq!(first.answer(&inner.node_id), "Inner words.");
    let usage = first.run().usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (300, 15));
    let told: Vec<String> = notices(first, "quarantined_record")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(told.iter().any(|words| words.contains("toolu_9")), "{told:?}");
    assert!(told.iter().any(|words| words.contains("line 16")), "{told:?}");

    let second = &states[1];
    assert!(
        second.messages()[0]
            .text
            .starts_with("And this?\n\n[image, image/png, 4 bytes")
    );
    assert_eq!(kinds(second), ["unsupported", "tool_ref"]);
    // A raw id may come again in another run; the log ends before the call does.
    assert_eq!(node(second, "Read").state.status(), NodeStatus::Interrupted);
    assert_eq!(second.run().status, RunStatus::Interrupted);
    assert!(
        notices(second, "not_shown")[0]
            .to_string()
            .contains("1 file-history-snapshot")
    );
    let ops = server
        .text(&format!("/api/runs/{}/ops", first.run().run_id))
        .await;
    assert!(!ops.contains("secret-signature"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_log_of_codex_has_its_prompts_reasoning_and_calls() {
    let line = |second: u32, kind: &str, payload: Value| json!({ "timestamp": format!("2026-02-03T04:05:{second:02}Z"), "type": kind, "payload": payload });
    let said = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let file = lines(&[
        line(
            0,
            "session_meta",
            json!({ "id": "019a", "cwd": "/w", "model_provider": "openai" }),
        ),
        line(
            1,
            "response_item",
            said(
                "user",
                "input_text",
                "<environment_context>x</environment_context>",
            ),
        ),
        line(2, "turn_context", json!({ "model": "gpt-x" })),
        line(3, "response_item", said("user", "input_text", "Run the tests")),
        line(
            3,
            "event_msg",
            json!({ "type": "user_message", "message": "Run the tests" }),
        ),
        line(
            4,
            "response_item",
            json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Plan" }], "encrypted_content": "secret" }),
        ),
        line(
            5,
            "response_item",
            json!({ "type": "reasoning", "summary": [], "encrypted_content": "secret" }),
        ),
        line(
            6,
            "response_item",
            json!({ "type": "function_call", "name": "shell", "call_id": "call_1", "arguments": "{\"command\":[\"ls\"]}" }),
        ),
        line(
            7,
            "response_item",
            json!({ "type": "function_call_output", "call_id": "call_1", "output": "{\"output\":\"no\\n\",\"metadata\":{\"exit_code\":2}}" }),
        ),
        line(
            8,
            "event_msg",
            json!({ "type": "token_count", "info": { "last_token_usage": { "input_tokens": 7, "output_tokens": 3 } } }),
        ),
        line(
            9,
            "response_item",
            json!({ "type": "custom_tool_call", "name": "apply_patch", "call_id": "call_2", "input": "*** Begin" }),
        ),
        line(
            10,
            "response_item",
            json!({ "type": "custom_tool_call_output", "call_id": "call_2", "output": "Exit code: 0\nOutput:\nok" }),
        ),
        line(11, "response_item", said("assistant", "output_text", "Done.")),
        line(20, "response_item", said("user", "input_text", "Go on")),
        line(21, "response_item", said("assistant", "output_text", "I beg")),
        line(
            22,
            "event_msg",
            json!({ "type": "turn_aborted", "reason": "interrupted" }),
        ),
    ]);
    let server = TestServer::start().await;
    let (_, states) = states(&server, &file, "codex").await;
    assert_eq!(states.len(), 2);
    let first = &states[0];
    assert_eq!(first.messages().len(), 1);
    assert_eq!(
        kinds(first),
        ["reasoning", "reasoning", "tool_ref", "tool_ref", "text"]
    );
    let shell = node(first, "shell");
    let exit = shell.state.end().unwrap().exit_code;
    assert_eq!(
        (shell.state.status(), result(shell), exit),
        (NodeStatus::Failed, "no\n", Some(2))
    );
    assert_eq!(node(first, "apply_patch").state.status(), NodeStatus::Succeeded);
    assert_eq!(
        (
            first.attempts()[0].model.as_str(),
            first.run().usage.as_ref().unwrap().output_tokens
        ),
        ("gpt-x", 3)
    );
    assert_eq!(
        (states[1].run().status, text(&states[1]).as_str()),
        (RunStatus::Cancelled, "I beg")
    );
    let ops = server
        .text(&format!("/api/runs/{}/ops", first.run().run_id))
        .await;
    assert!(!ops.contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_the_ai_sdk_keep_their_parts_in_order() {
    let file = json!([
        { "id": "1", "role": "user", "parts": [{ "type": "text", "text": "Weather?" }, { "type": "file", "mediaType": "image/png", "url": "data:," }] },
        { "id": "2", "role": "assistant", "parts": [
            { "type": "step-start" },
            { "type": "reasoning", "text": "Ask." },
            { "type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": { "city": "Rome" }, "output": { "sun": true } },
            { "type": "dynamic-tool", "toolName": "other", "toolCallId": "c2", "state": "output-error", "input": {}, "errorText": "No." },
            { "type": "step-start" },
            { "type": "text", "text": "Sun." },
            { "type": "source-url", "url": "https://example.org/a", "title": "A" },
            { "type": "data-chart", "data": [1] },
        ] },
        { "id": "3", "role": "user", "content": "And?" },
        { "id": "4", "role": "assistant", "content": "Rain.", "toolInvocations": [{ "toolCallId": "c3", "toolName": "old", "args": {}, "state": "call" }] },
    ]);
    let server = TestServer::start().await;
    let pretty = serde_json::to_string_pretty(&file).unwrap();
    let (_, states) = states(&server, &pretty, "ai_sdk").await;
    let first = &states[0];
    assert_eq!(
        first.messages()[0].text,
        "Weather?\n\n[file, image/png: not shown]"
    );
    assert_eq!(
        kinds(first),
        ["reasoning", "tool_ref", "tool_ref", "text", "text", "unsupported"]
    );
    let failed = node(first, "other").state.end().unwrap();
    assert_eq!(
        (failed.status, failed.error.as_ref().unwrap().message.as_str()),
        (NodeStatus::Failed, "No.")
    );
    assert!(result(node(first, "weather")).contains("\"sun\": true"));
    let rounds: Vec<u32> = first.blocks().iter().map(|block| block.round).collect();
    assert_eq!(rounds, [1, 1, 1, 2, 2, 2]);
    assert_eq!(notices(&states[1], "times_unknown").len(), 1);
    assert_eq!(node(&states[1], "old").state.status(), NodeStatus::Interrupted);
    assert_eq!(states[1].run().status, RunStatus::Interrupted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_node_is_read_from_its_snapshot_else_its_blocks_else_its_reply() {
    let server = TestServer::start().await;
    let other = TestServer::start().await;
    let seen = other.finish("Show me what Runloom does", "anthropic").await;
    let (metadata,): (Value,) = sqlx::query_as("select metadata from nodes where metadata::text <> '{}'")
        .fetch_one(other.execution.store().pool())
        .await
        .unwrap();
    let model = seen.attempts()[0].node_id.to_string();
    let mut nodes: Vec<Value> = seen
        .nodes()
        .iter()
        .filter(|node| node.kind == NodeKind::Function)
        .map(|node| json!({ "node_id": node.node_id, "parent_id": model, "kind": "function", "name": node.name, "status": "succeeded", "result": result(node) }))
        .collect();
    nodes.push(json!({ "node_id": model, "kind": "model", "name": "chat", "status": "completed", "metadata": metadata }));
    nodes.push(json!({
        "node_id": "llm-2", "parent_id": nodes[0]["node_id"], "kind": "llm", "name": "inner", "status": "done", "started_at": 1_700_000_000,
        "metadata": { "blocks": [
            { "type": "thinking", "index": 0, "thinking": "Hm." },
            { "type": "thinking", "index": 1 },
            { "type": "text", "index": 3, "text": "After." },
            { "type": "tool", "index": 2, "tool_call_id": "call_a", "name": "read", "ref_node_id": "fn-1" },
            { "type": "tool", "index": 2, "tool_call_id": "call_b", "name": "gone", "ref_node_id": "fn-9" },
            { "type": "hologram", "index": 4, "data": 1 },
        ] },
    }));
    nodes.push(json!({ "node_id": "fn-1", "parent_id": "llm-2", "kind": "tool", "name": "read", "status": "error", "error": "No such file." }));
    nodes.push(json!({ "node_id": "llm-3", "parent_id": "fn-1", "kind": "model", "name": "plain", "reply": "The reply." }));
    nodes.push(json!({ "node_id": "fn-3", "parent_id": "llm-3", "kind": "function", "name": "second", "started_at": "2026-01-01T00:00:02Z", "result": "2" }));
    nodes.push(json!({ "node_id": "fn-2", "parent_id": "llm-3", "kind": "teapot", "name": "first", "started_at": "2026-01-01T00:00:01Z", "result": "1" }));
    nodes.push(json!({ "kind": "model" }));
    let mut file = vec![
        json!({ "type": "runloom_legacy", "session": { "title": "Old" }, "run": { "id": "old-1", "prompt": "Show me" } }),
    ];
    file.extend(nodes);
    let (_, states) = states(&server, &lines(&file), "legacy").await;
    let state = &states[0];
    assert_eq!(state.messages()[0].text, "Show me");

    // The snapshot: the same order, and the calls find their nodes.
    let answer = state.attempts_of(&seen.attempts()[0].node_id).next().unwrap();
    let of = |state: &RunState| -> Vec<(String, String)> {
        let blocks = state.blocks_of(&seen.attempts()[0].attempt_id);
        blocks
            .map(|block| {
                (
                    block.body.kind().to_owned(),
                    block
                        .body
                        .content()
                        .map_or(String::new(), |content| content.text.clone()),
                )
            })
            .collect()
    };
    assert_eq!(answer.reason, AttemptReason::Initial);
    assert_eq!(of(state), of(&seen));

    // The blocks: one attempt, in the order of their index; references as far as they lead.
    let inner = state.nodes().iter().find(|node| node.name == "inner").unwrap();
    let attempt = state.attempts_of(&inner.node_id).next().unwrap();
    assert_eq!(attempt.reason, AttemptReason::Legacy);
    let blocks: Vec<_> = state.blocks_of(&attempt.attempt_id).collect();
    let kinds: Vec<&str> = blocks.iter().map(|block| block.body.kind()).collect();
    assert_eq!(
        kinds,
        [
            "reasoning",
            "reasoning",
            "tool_ref",
            "tool_ref",
            "text",
            "unsupported"
        ]
    );
    let BlockBody::ToolRef(known) = &blocks[2].body else {
        panic!("a call")
    };
    assert_eq!(known.ref_node_id.as_ref(), Some(&node(state, "read").node_id));
    let BlockBody::ToolRef(gone) = &blocks[3].body else {
        panic!("a call")
    };
    assert_eq!((gone.tool_call_id.as_str(), &gone.ref_node_id), ("call_b", &None));
    assert_eq!(node(state, "read").state.status(), NodeStatus::Failed);

    // Neither: the calls in the order of their start, then the reply, marked.
    let plain = state.nodes().iter().find(|node| node.name == "plain").unwrap();
    let attempt = state.attempts_of(&plain.node_id).next().unwrap();
    let names: Vec<String> = state
        .blocks_of(&attempt.attempt_id)
        .map(|block| match &block.body {
            BlockBody::ToolRef(reference) => reference.tool_name.clone(),
            body => body.content().unwrap().text.clone(),
        })
        .collect();
    assert_eq!(names, ["first", "second", "The reply."]);
    assert_eq!(attempt.extra["reconstructed"], true);
    assert_eq!(notices(state, "reconstructed").len(), 1);
    let told: Vec<String> = notices(state, "quarantined_record")
        .iter()
        .map(ToString::to_string)
        .collect();
    for words in ["the index 2 came before", "teapot", "it has no id"] {
        assert!(told.iter().any(|told| told.contains(words)), "{words}: {told:?}");
    }
    // The page says it as well.
    let page = server
        .text(&format!("/s/{}?node={}", state.run().session_id, inner.node_id))
        .await;
    assert!(
        page.contains("unresolved") && page.contains("This content was not saved"),
        "{page}"
    );
}
