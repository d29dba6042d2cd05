use super::*;
use crate::provider::{ProviderKind, Replay, ToolDefinition, ToolResult};

fn endpoint(base_url: &str) -> Endpoint {
    Endpoint {
        provider_id: "main".to_owned(),
        kind: ProviderKind::OpenaiChat,
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new("sk-secret")),
    }
}

fn request(model: &str, messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        system: None,
        messages,
        tools: Vec::new(),
        max_tokens: Some(7),
    }
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::User {
        text: text.to_owned(),
    }
}

fn assistant(parts: Vec<AssistantPart>, replay: Option<Value>) -> ModelMessage {
    let replay = replay.map(|message| Replay {
        provider_id: "main".to_owned(),
        model: "deepseek-chat".to_owned(),
        message,
    });
    ModelMessage::Assistant { parts, replay }
}

fn call(id: &str, arguments: &str) -> AssistantPart {
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: "tool".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn results(ids: &[&str]) -> ModelMessage {
    let result = |id: &&str| ToolResult {
        tool_call_id: (*id).to_owned(),
        tool_name: "tool".to_owned(),
        content: format!("of {id}"),
        is_error: false,
    };
    ModelMessage::ToolResults {
        results: ids.iter().map(result).collect(),
    }
}

#[test]
fn the_request_has_its_address_usage_option_and_tools_and_the_key_apart() {
    let mut request = request("m", vec![user("Hi")]);
    request.system = Some("Be brief.".to_owned());
    request.tools.push(ToolDefinition {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type":"object"}),
    });
    let wire = build_request(&endpoint("https://host/v1/"), &request);
    assert_eq!(wire.url, "https://host/v1/chat/completions");
    assert_eq!(
        wire.body,
        json!({"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],
            "stream":true,"stream_options":{"include_usage":true},"max_tokens":7,
            "tools":[{"type":"function","function":{"name":"t","description":"d","parameters":{"type":"object"}}}]})
    );
    assert!(!format!("{wire:?}").contains("sk-secret"));
    assert_eq!(
        wire.auth.map(|(_, key)| key.expose().to_owned()).as_deref(),
        Some("Bearer sk-secret")
    );
    let wire = build_request(&endpoint("https://api.openai.com/v1"), &request);
    assert_eq!(
        (&wire.body["max_completion_tokens"], wire.body.get("max_tokens")),
        (&json!(7), None)
    );
}

#[test]
fn calls_and_results_are_paired_in_order_and_none_is_left_without_a_result() {
    let body = build_request(
        &endpoint("https://host/v1"),
        &request(
            "m",
            vec![
                user("Go"),
                assistant(
                    vec![
                        AssistantPart::Text {
                            text: "Both.".to_owned(),
                        },
                        call("0", "{\"a\":1}"),
                        call("1", "{\"a\":"),
                    ],
                    None,
                ),
                results(&["0", "1"]),
                assistant(vec![call("0", "")], None),
                user("Stop"),
                assistant(vec![AssistantPart::Text { text: String::new() }], None),
            ],
        ),
    )
    .body;
    assert_eq!(
        body["messages"],
        json!([
            {"role":"user","content":"Go"},
            {"role":"assistant","content":"Both.","tool_calls":[
                {"id":"0","type":"function","function":{"name":"tool","arguments":"{\"a\":1}"}},
                {"id":"1","type":"function","function":{"name":"tool","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"0","content":"of 0"},
            {"role":"tool","tool_call_id":"1","content":"of 1"},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"0_2","type":"function","function":{"name":"tool","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"0_2","content":NO_RESULT},
            {"role":"user","content":"Stop"}])
    );
}

#[test]
fn mistral_gets_ids_of_nine_letters_and_digits() {
    let messages = vec![
        user("Go"),
        assistant(vec![call("toolu_01ABC", "{}")], None),
        results(&["toolu_01ABC"]),
    ];
    let body = build_request(&endpoint("https://api.mistral.ai/v1"), &request("m", messages)).body;
    let id = body["messages"][1]["tool_calls"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert!(
        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{id}"
    );
    assert_eq!(body["messages"][2]["tool_call_id"], id.as_str());
}

#[test]
fn reasoning_goes_back_within_a_tool_loop_where_it_is_asked_for() {
    let record = json!({"role":"assistant","content":null,"reasoning_content":"hm","reasoning_details":[{"data":"D"}],
        "tool_calls":[{"id":"a","type":"function","function":{"name":"tool","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}]});
    let round = || assistant(vec![call("a", "{}")], Some(record.clone()));
    let in_loop = vec![user("Go"), round(), results(&["a"])];
    let body = build_request(
        &endpoint("https://api.deepseek.com"),
        &request("deepseek-chat", in_loop.clone()),
    )
    .body;
    assert_eq!(body["messages"][1], record);
    let mut later = in_loop;
    later.push(user("Next"));
    let body = build_request(
        &endpoint("https://api.deepseek.com"),
        &request("deepseek-chat", later.clone()),
    )
    .body;
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
    assert_eq!(
        body["messages"][1]["reasoning_details"],
        record["reasoning_details"]
    );
    let body = build_request(
        &endpoint("https://api.deepseek.com"),
        &request("deepseek-other", later),
    )
    .body;
    assert_eq!(body["messages"][1].get("reasoning_details"), None);
}
