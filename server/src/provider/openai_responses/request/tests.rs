use super::*;
use crate::provider::{ProviderKind, Replay, ToolDefinition, ToolResult};

fn endpoint() -> Endpoint {
    Endpoint {
        provider_id: "main".to_owned(),
        kind: ProviderKind::OpenaiResponses,
        base_url: "https://host/v1/".to_owned(),
        api_key: Some(Secret::new("sk-secret")),
    }
}

fn request(model: &str, messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        system: None,
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

fn call(id: &str, arguments: &str) -> AssistantPart {
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: "t".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn results(ids: &[&str]) -> ModelMessage {
    let result = |id: &&str| ToolResult {
        tool_call_id: (*id).to_owned(),
        tool_name: "t".to_owned(),
        content: format!("of {id}"),
        is_error: false,
    };
    ModelMessage::ToolResults {
        results: ids.iter().map(result).collect(),
    }
}

fn input_of(messages: Vec<ModelMessage>) -> Value {
    build_request(&endpoint(), &request("m", messages)).body["input"].clone()
}

#[test]
fn the_request_stores_nothing_and_has_its_instructions_and_tools_and_the_key_apart() {
    let mut request = request("m", vec![user("Hi")]);
    request.system = Some("Be brief.".to_owned());
    request.max_tokens = Some(7);
    request.tools.push(ToolDefinition {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type":"object"}),
    });
    let wire = build_request(&endpoint(), &request);
    assert_eq!(wire.url, "https://host/v1/responses");
    assert_eq!(
        wire.body,
        json!({"model":"m","instructions":"Be brief.","input":[{"role":"user","content":"Hi"}],"stream":true,
            "store":false,"max_output_tokens":7,"tools":[
                {"type":"function","name":"t","description":"d","parameters":{"type":"object"},"strict":false}]})
    );
    assert!(!format!("{wire:?}").contains("sk-secret"));
    assert_eq!(
        wire.auth.map(|(_, key)| key.expose().to_owned()).as_deref(),
        Some("Bearer sk-secret")
    );
}

#[test]
fn reasoning_is_asked_of_models_that_reason_only() {
    for (model, asked) in [
        ("gpt-5.5", true),
        ("openai/o3-mini", true),
        ("gpt-5-chat-latest", false),
        ("gpt-4.1", false),
        ("some-model", false),
    ] {
        let body = build_request(&endpoint(), &request(model, vec![user("Hi")])).body;
        assert_eq!(body.get("reasoning").is_some(), asked, "{model}");
        assert_eq!(body.get("include").is_some(), asked, "{model}");
    }
}

#[test]
fn a_record_goes_back_in_its_order_with_results_after_it_and_ids_are_unique() {
    let output = json!([
        {"type":"reasoning","encrypted_content":"e"},
        {"type":"function_call","id":"fc","call_id":"call_0","name":"t","arguments":"{}"},
        {"type":"custom_tool_call","call_id":"call_1","name":"free","input":"x"},
    ]);
    let replayed = || ModelMessage::Assistant {
        parts: vec![call("call_0", "{}"), call("call_1", "x")],
        replay: Some(Replay {
            provider_id: "main".to_owned(),
            model: "m".to_owned(),
            message: json!({ "output": output }),
        }),
    };
    let input = input_of(vec![
        user("Hi"),
        replayed(),
        results(&["call_1", "call_0"]),
        replayed(),
        results(&["call_0"]),
    ]);
    assert_eq!(
        input,
        json!([
            {"role":"user","content":"Hi"},
            {"type":"reasoning","encrypted_content":"e"},
            {"type":"function_call","id":"fc","call_id":"call_0","name":"t","arguments":"{}"},
            {"type":"custom_tool_call","call_id":"call_1","name":"free","input":"x"},
            {"type":"custom_tool_call_output","call_id":"call_1","output":"of call_1"},
            {"type":"function_call_output","call_id":"call_0","output":"of call_0"},
            {"type":"reasoning","encrypted_content":"e"},
            {"type":"function_call","id":"fc","call_id":"call_0_2","name":"t","arguments":"{}"},
            {"type":"custom_tool_call","call_id":"call_1_2","name":"free","input":"x"},
            {"type":"function_call_output","call_id":"call_0_2","output":"of call_0"},
            {"type":"custom_tool_call_output","call_id":"call_1_2","output":NO_RESULT},
        ])
    );
}

#[test]
fn a_round_of_another_model_goes_back_as_text_and_calls() {
    let parts = vec![
        AssistantPart::Text {
            text: "So".to_owned(),
        },
        AssistantPart::Text { text: String::new() },
        call("a", "{\"n\":1}"),
        call("b", "{\"n\""),
    ];
    let replay = Some(Replay {
        provider_id: "other".to_owned(),
        model: "m".to_owned(),
        message: json!({"output":[{"type":"reasoning","encrypted_content":"HIDDEN"}]}),
    });
    let input = input_of(vec![
        user("Hi"),
        ModelMessage::Assistant { parts, replay },
        results(&["a", "b", "stray"]),
        user("Go on"),
    ]);
    assert_eq!(
        input,
        json!([
            {"role":"user","content":"Hi"},
            {"role":"assistant","content":"So"},
            {"type":"function_call","call_id":"a","name":"t","arguments":"{\"n\":1}"},
            {"type":"function_call","call_id":"b","name":"t","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"of a"},
            {"type":"function_call_output","call_id":"b","output":"of b"},
            {"role":"user","content":"Result of the tool `t`:\nof stray"},
            {"role":"user","content":"Go on"},
        ])
    );
}
