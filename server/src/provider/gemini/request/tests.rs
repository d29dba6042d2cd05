use super::*;
use crate::provider::{ProviderKind, Replay, Secret, ToolDefinition};

fn endpoint() -> Endpoint {
    Endpoint {
        provider_id: "main".to_owned(),
        kind: ProviderKind::Gemini,
        base_url: "https://host/v1beta/".to_owned(),
        api_key: Some(Secret::new("g-secret")),
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

fn call(id: &str) -> AssistantPart {
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: format!("tool_{id}"),
        arguments: "{\"n\":1}".to_owned(),
    }
}

fn result(id: &str, is_error: bool) -> ToolResult {
    ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: format!("tool_{id}"),
        content: format!("of {id}"),
        is_error,
    }
}

fn contents_for(model: &str, messages: Vec<ModelMessage>) -> Value {
    build_request(&endpoint(), &request(model, messages)).body["contents"].clone()
}

#[test]
fn the_request_has_its_address_instruction_and_tools_and_the_key_apart() {
    let mut request = request("gemini-2.5-pro", vec![user("Hi")]);
    request.system = Some("Be brief.".to_owned());
    request.max_tokens = Some(7);
    request.tools.push(ToolDefinition {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type":"object"}),
    });
    let wire = build_request(&endpoint(), &request);
    assert_eq!(
        wire.url,
        "https://host/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        wire.body,
        json!({"systemInstruction":{"parts":[{"text":"Be brief."}]},
            "contents":[{"role":"user","parts":[{"text":"Hi"}]}],
            "tools":[{"functionDeclarations":[{"name":"t","description":"d","parametersJsonSchema":{"type":"object"}}]}],
            "generationConfig":{"maxOutputTokens":7,"thinkingConfig":{"includeThoughts":true}}})
    );
    assert!(!format!("{wire:?}").contains("g-secret"));
    let (header, key) = wire.auth.expect("a key");
    assert_eq!((header, key.expose()), ("x-goog-api-key", "g-secret"));
}

#[test]
fn thoughts_are_not_asked_of_models_that_have_none_and_a_collection_keeps_its_name() {
    let wire = build_request(&endpoint(), &request("gemini-2.0-flash", vec![user("Hi")]));
    assert!(wire.body.get("generationConfig").is_none());
    for model in ["gemini-3.8-flash", "gemini-flash-latest"] {
        let wire = build_request(&endpoint(), &request(model, vec![user("Hi")]));
        assert!(wire.body.get("generationConfig").is_some(), "{model}");
    }
    let wire = build_request(&endpoint(), &request("tunedModels/x", vec![user("Hi")]));
    assert!(
        wire.url
            .ends_with("/v1beta/tunedModels/x:streamGenerateContent?alt=sse")
    );
}

#[test]
fn a_record_goes_back_as_it_came_and_every_call_has_one_result_in_its_order() {
    let message = json!({"role":"model","parts":[
        {"text":"So"},
        {"functionCall":{"name":"tool_a","args":{}},"thoughtSignature":"s"},
        {"functionCall":{"name":"tool_b","args":{},"id":"b"}},
        {"functionCall":{"name":"tool_c","args":{}}},
    ]});
    let assistant = ModelMessage::Assistant {
        parts: vec![call("call_1"), call("b"), call("call_3")],
        replay: Some(Replay {
            provider_id: "main".to_owned(),
            model: "gemini-3.8-flash".to_owned(),
            message: message.clone(),
        }),
    };
    let results = ModelMessage::ToolResults {
        results: vec![result("b", true), result("call_1", false), result("stray", false)],
    };
    assert_eq!(
        contents_for(
            "gemini-3.8-flash",
            vec![user("Hi"), assistant, results, user("Go on")]
        ),
        json!([
            {"role":"user","parts":[{"text":"Hi"}]},
            message,
            {"role":"user","parts":[
                {"functionResponse":{"name":"tool_a","response":{"output":"of call_1"}}},
                {"functionResponse":{"id":"b","name":"tool_b","response":{"error":"of b"}}},
                {"functionResponse":{"name":"tool_c","response":{"error":NO_RESULT}}},
            ]},
            {"role":"user","parts":[{"text":"Result of the tool `tool_stray`:\nof stray"}]},
            {"role":"user","parts":[{"text":"Go on"}]},
        ])
    );
}

#[test]
fn the_first_call_of_another_models_round_says_that_it_is_not_signed_where_signatures_are_asked_for() {
    let messages = || {
        let replay = Some(Replay {
            provider_id: "other".to_owned(),
            model: "m".to_owned(),
            message: json!({"parts":[{"text":"HIDDEN"}]}),
        });
        let text = AssistantPart::Text {
            text: "So".to_owned(),
        };
        let parts = vec![text, call("a"), call("b")];
        let results = vec![result("a", false), result("b", false)];
        vec![
            user("Hi"),
            ModelMessage::Assistant { parts, replay },
            ModelMessage::ToolResults { results },
        ]
    };
    let contents = contents_for("gemini-3.8-flash", messages());
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"text":"So"},
            {"functionCall":{"name":"tool_a","args":{"n":1}},"thoughtSignature":NOT_SIGNED},
            {"functionCall":{"name":"tool_b","args":{"n":1}}},
        ])
    );
    assert_eq!(contents[2]["parts"].as_array().map(Vec::len), Some(2));
    assert!(
        !contents_for("gemini-2.5-flash", messages())
            .to_string()
            .contains(NOT_SIGNED)
    );
}
