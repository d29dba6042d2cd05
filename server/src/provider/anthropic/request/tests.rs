use super::*;
use crate::provider::{ProviderKind, Replay, Secret, ToolDefinition};

fn endpoint() -> Endpoint {
    Endpoint {
        provider_id: "main".to_owned(),
        kind: ProviderKind::Anthropic,
        base_url: "https://host/base/".to_owned(),
        api_key: Some(Secret::new("sk-secret")),
    }
}

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: Some("Be brief.".to_owned()),
        messages,
        tools: Vec::new(),
        max_tokens: None,
    }
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::User {
        text: text.to_owned(),
    }
}

fn call(id: &str) -> AssistantPart {
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: "tool".to_owned(),
        arguments: "{\"a\":1}".to_owned(),
    }
}

fn result(id: &str, is_error: bool) -> ToolResult {
    ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "tool".to_owned(),
        content: format!("of {id}"),
        is_error,
    }
}

fn sent(messages: Vec<ModelMessage>) -> Value {
    build_request(&endpoint(), &request(messages)).body["messages"].clone()
}

#[test]
fn the_request_has_its_address_version_limit_and_tools_and_the_key_apart() {
    let mut request = request(vec![user("Hi")]);
    request.tools.push(ToolDefinition {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type":"object"}),
    });
    let wire = build_request(&endpoint(), &request);
    assert_eq!(wire.url, "https://host/base/v1/messages");
    assert_eq!(wire.headers["anthropic-version"], "2023-06-01");
    assert_eq!(
        wire.body,
        json!({"model":"m","max_tokens":8192,"stream":true,"system":"Be brief.",
            "tools":[{"name":"t","description":"d","input_schema":{"type":"object"}}],
            "messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]})
    );
    assert!(!format!("{wire:?}").contains("sk-secret"));
    assert_eq!(
        wire.auth.map(|(name, key)| (name, key.expose().to_owned())),
        Some(("x-api-key", "sk-secret".to_owned()))
    );
}

#[test]
fn the_results_of_a_batch_are_one_message_with_later_text_after_them() {
    let messages = sent(vec![
        user("Go"),
        ModelMessage::Assistant {
            parts: vec![
                AssistantPart::Text {
                    text: "Both.".to_owned(),
                },
                call("a"),
                call("b"),
                AssistantPart::Text { text: " ".to_owned() },
            ],
            replay: None,
        },
        ModelMessage::ToolResults {
            results: vec![result("b", true), result("a", false)],
        },
        user("And?"),
    ]);
    assert_eq!(
        messages[1]["content"],
        json!([{"type":"text","text":"Both."},
            {"type":"tool_use","id":"a","name":"tool","input":{"a":1}},
            {"type":"tool_use","id":"b","name":"tool","input":{"a":1}}])
    );
    assert_eq!(
        messages[2],
        json!({"role":"user","content":[
            {"type":"tool_result","tool_use_id":"b","content":"of b","is_error":true},
            {"type":"tool_result","tool_use_id":"a","content":"of a"},
            {"type":"text","text":"And?"}]})
    );
    assert_eq!(messages.as_array().map(Vec::len), Some(3));
}

#[test]
fn every_call_gets_a_result_and_ids_that_repeat_stay_apart() {
    let assistant = || ModelMessage::Assistant {
        parts: vec![call("functions.x:0")],
        replay: None,
    };
    let messages = sent(vec![
        user("Go"),
        assistant(),
        ModelMessage::ToolResults {
            results: vec![result("functions.x:0", false)],
        },
        assistant(),
        user("Stop"),
    ]);
    assert_eq!(messages[1]["content"][0]["id"], "functions_x_0");
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "functions_x_0");
    let id = &messages[3]["content"][0]["id"];
    assert_ne!(id, "functions_x_0");
    assert_eq!(&messages[4]["content"][0]["tool_use_id"], id);
    assert_eq!(messages[4]["content"][1]["text"], "Stop");
}

#[test]
fn a_replay_goes_to_its_own_endpoint_and_model_only_and_a_paused_turn_is_continued() {
    let content = json!([{"type":"thinking","thinking":"t","signature":"SIGNED"},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]);
    let assistant = |provider: &str, model: &str| ModelMessage::Assistant {
        parts: vec![AssistantPart::Text {
            text: "shown".to_owned(),
        }],
        replay: Some(Replay {
            provider_id: provider.to_owned(),
            model: model.to_owned(),
            message: json!({"role":"assistant","content":content}),
        }),
    };
    assert_eq!(
        sent(vec![user("Go"), assistant("main", "m")])[1],
        json!({"role":"assistant","content":content})
    );
    for (provider, model) in [("other", "m"), ("main", "other")] {
        let messages = sent(vec![user("Go"), assistant(provider, model)]);
        assert_eq!(messages[1]["content"], json!([{"type":"text","text":"shown"}]));
    }
    let continued = sent(vec![
        user("Go"),
        assistant("main", "m"),
        assistant("main", "m"),
        user("Next"),
    ]);
    assert_eq!(continued[1]["content"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_prefilled_turn_ends_without_spaces_and_an_empty_one_is_left_out() {
    let text = |text: &str| ModelMessage::Assistant {
        parts: vec![AssistantPart::Text {
            text: text.to_owned(),
        }],
        replay: None,
    };
    assert_eq!(
        sent(vec![user("Go"), text("Once \n")])[1]["content"][0]["text"],
        "Once"
    );
    assert_eq!(
        sent(vec![user("Go"), text("  "), user("on")])
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}
