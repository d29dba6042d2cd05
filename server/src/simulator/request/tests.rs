use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::*;
use crate::simulator::wire::signature;

fn anthropic_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", "2023-06-01".parse().unwrap());
    headers
}

fn anthropic(messages: Value) -> Result<Incoming, Failure> {
    let body = json!({"model": "demo", "max_tokens": 100, "stream": true, "messages": messages});
    read(
        WireFormat::Anthropic,
        &anthropic_headers(),
        body.to_string().as_bytes(),
    )
}

fn chat(messages: Value) -> Result<Incoming, Failure> {
    let body = json!({"model": "demo", "stream": true, "messages": messages});
    read(
        WireFormat::OpenaiChat,
        &HeaderMap::new(),
        body.to_string().as_bytes(),
    )
}

fn refused(result: Result<Incoming, Failure>, word: &str) {
    let failure = result.unwrap_err();
    assert_eq!(failure.status, 400, "{}", failure.message);
    assert!(
        failure.message.contains(word),
        "`{}` does not say `{word}`",
        failure.message
    );
}

fn chat_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "list_dir", "arguments": arguments}})
}

#[test]
fn the_round_counts_answered_calls_since_the_last_plain_user_message() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "list_dir", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let incoming = anthropic(json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": [call("a")]},
        {"role": "user", "content": [result("a")]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": [{"type": "text", "text": "unanswered"}, {"type": "text", "text": "second"}]},
        {"role": "assistant", "content": [call("b"), call("c")]},
        {"role": "user", "content": [result("c"), result("b")]},
        {"role": "assistant", "content": [call("b")]},
        {"role": "user", "content": [result("b")]},
    ]))
    .unwrap();
    assert_eq!((incoming.prompt.as_str(), incoming.round), ("second", 2));

    let incoming = chat(json!([
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}"), chat_call("b", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
        {"role": "tool", "tool_call_id": "b", "content": "y"},
    ]))
    .unwrap();
    assert_eq!((incoming.prompt.as_str(), incoming.round), ("go", 1));
}

#[test]
fn a_call_without_its_result_is_refused() {
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]});
    refused(
        anthropic(json!([{"role": "user", "content": "go"}, call])),
        "without `tool_result`",
    );
    refused(
        anthropic(json!([{"role": "user", "content": "go"}, call, {"role": "user", "content": "on"}])),
        "without `tool_result`",
    );
    let call = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}")]});
    refused(
        chat(json!([{"role": "user", "content": "go"}, call])),
        "did not have response messages: a",
    );
    refused(
        chat(json!([{"role": "user", "content": "go"}, call, {"role": "user", "content": "on"}])),
        "did not have response messages: a",
    );
}

#[test]
fn a_result_without_its_call_is_refused() {
    let result =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "z", "content": "x"}]});
    refused(
        anthropic(json!([{"role": "user", "content": "go"}, result])),
        "unexpected `tool_use_id`",
    );
    let result = json!({"role": "tool", "tool_call_id": "z", "content": "x"});
    refused(
        chat(json!([{"role": "user", "content": "go"}, result])),
        "preceding message with 'tool_calls'",
    );
    let call = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}")]});
    refused(
        chat(json!([{"role": "user", "content": "go"}, call, result])),
        "'z' not found",
    );
}

#[test]
fn results_come_before_other_content() {
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]});
    let text = json!({"type": "text", "text": "so"});
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "x"});
    let go = json!({"role": "user", "content": "go"});
    refused(
        anthropic(json!([go, call, {"role": "user", "content": [text, result]}])),
        "before other content",
    );
    assert!(anthropic(json!([go, call, {"role": "user", "content": [result, text]}])).is_ok());
}

#[test]
fn arguments_that_are_no_json_object_are_refused() {
    let messages = |arguments: &str| {
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [chat_call("a", arguments)]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ])
    };
    assert!(chat(messages("{\"path\":\".\"}")).is_ok());
    for arguments in ["", "{\"path\":", "null", "[]"] {
        refused(chat(messages(arguments)), "expected a string with a JSON object");
    }
}

#[test]
fn a_thinking_block_comes_back_unchanged_with_its_signature_or_not_at_all() {
    let messages = |thinking: &str, signature: &str| {
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": thinking, "signature": signature},
                {"type": "text", "text": "done"},
            ]},
            {"role": "user", "content": "more"},
        ])
    };
    assert!(anthropic(messages("hm", &signature("hm"))).is_ok());
    refused(
        anthropic(messages("hm!", &signature("hm"))),
        "Invalid `signature`",
    );
    refused(anthropic(messages("hm", "")), "Invalid `signature`");
}

#[test]
fn a_request_that_lacks_something_is_refused_with_its_name() {
    let bare = |body: Value| {
        read(
            WireFormat::OpenaiChat,
            &HeaderMap::new(),
            body.to_string().as_bytes(),
        )
    };
    let go = json!([{"role": "user", "content": "go"}]);
    refused(bare(json!({"stream": true, "messages": go})), "model");
    refused(bare(json!({"model": "demo", "stream": true})), "messages");
    refused(bare(json!({"model": "demo", "messages": go})), "stream");
    refused(
        read(WireFormat::OpenaiChat, &HeaderMap::new(), b"{"),
        "not valid JSON",
    );
    let body = json!({"model": "demo", "stream": true, "messages": go}).to_string();
    refused(
        read(WireFormat::Anthropic, &anthropic_headers(), body.as_bytes()),
        "max_tokens",
    );
    refused(
        read(WireFormat::Anthropic, &HeaderMap::new(), body.as_bytes()),
        "anthropic-version",
    );
}

#[test]
fn a_reply_without_content_in_the_history_is_refused() {
    let go = json!({"role": "user", "content": "go"});
    refused(
        chat(json!([go, {"role": "assistant", "content": ""}, go])),
        "needs content or tool_calls",
    );
    refused(
        anthropic(json!([go, {"role": "assistant", "content": []}, go])),
        "non-empty content",
    );
    refused(
        anthropic(json!([go, {"role": "assistant", "content": ""}, go])),
        "non-empty",
    );
    refused(
        anthropic(json!([go, {"role": "assistant", "content": "half"}])),
        "prefill",
    );
}

#[test]
fn tool_names_are_checked() {
    let body = |names: [&str; 2]| {
        let tools: Vec<Value> = names
            .iter()
            .map(|name| json!({"type": "function", "function": {"name": name}}))
            .collect();
        let go = json!([{"role": "user", "content": "go"}]);
        json!({"model": "demo", "stream": true, "messages": go, "tools": tools}).to_string()
    };
    let chat = |names| read(WireFormat::OpenaiChat, &HeaderMap::new(), body(names).as_bytes());
    assert!(chat(["a", "b"]).is_ok());
    refused(chat(["a", "a"]), "must be unique");
    refused(chat(["a", "b c"]), "should match");
}

#[test]
fn every_key_is_taken_except_one() {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "Bearer bad-key".parse().unwrap());
    let body =
        json!({"model": "demo", "stream": true, "messages": [{"role": "user", "content": "go"}]}).to_string();
    assert_eq!(
        read(WireFormat::OpenaiChat, &headers, body.as_bytes())
            .unwrap_err()
            .status,
        401
    );
    headers.insert("authorization", "Bearer any-key".parse().unwrap());
    assert!(read(WireFormat::OpenaiChat, &headers, body.as_bytes()).is_ok());
    headers.insert("x-api-key", "bad-key".parse().unwrap());
    assert_eq!(
        read(WireFormat::Anthropic, &headers, body.as_bytes())
            .unwrap_err()
            .status,
        401
    );
}

fn responses(input: Value) -> Result<Incoming, Failure> {
    let body = json!({"model": "demo", "stream": true, "input": input});
    read(
        WireFormat::OpenaiResponses,
        &HeaderMap::new(),
        body.to_string().as_bytes(),
    )
}

#[test]
fn a_conversation_of_items_is_read_like_one_of_messages_and_what_is_not_whole_is_refused() {
    let user = || json!({"role": "user", "content": "second"});
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let reasoning = |summary: &str, signed: &str| {
        json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": summary}],
            "encrypted_content": signature(signed)})
    };
    let incoming = responses(json!([
        {"role": "user", "content": "first"},
        call("a"),
        output("a"),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        user(),
        reasoning("hm", "hm"),
        call("b"),
        call("c"),
        output("c"),
        output("b"),
        call("d"),
        output("d"),
    ]))
    .unwrap();
    assert_eq!((incoming.prompt.as_str(), incoming.round), ("second", 2));
    refused(responses(json!([user(), call("a")])), "No tool output found");
    refused(
        responses(json!([user(), call("a"), call("b"), output("a"), user()])),
        "No tool output found for function call b",
    );
    refused(responses(json!([user(), output("a")])), "No tool call found");
    refused(
        responses(json!([user(), call("a"), output("a"), call("a"), output("a")])),
        "Duplicate",
    );
    refused(
        responses(json!([user(), reasoning("hm", "other"), call("a"), output("a")])),
        "verified",
    );
    refused(
        responses(json!([reasoning("hm", "hm"), user()])),
        "following item",
    );
    refused(responses(json!([])), "at least one");
}
