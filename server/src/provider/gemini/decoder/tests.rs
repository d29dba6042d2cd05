use serde_json::json;

use super::*;
use crate::provider::RoundContent;

fn event(data: &str) -> SseEvent {
    SseEvent {
        event: None,
        data: data.to_owned(),
        bytes: 1,
    }
}

fn run(events: &[Value]) -> (RoundContent, Events, Decoder) {
    let mut decoder = Decoder::new("main", "model");
    let mut out = Vec::new();
    for value in events {
        out.extend(decoder.push(&event(&value.to_string())));
    }
    out.extend(decoder.finish());
    let mut round = RoundContent::default();
    out.iter().for_each(|event| round.apply(event));
    (round, out, decoder)
}

fn parts(parts: Value) -> Value {
    json!({"candidates":[{"content":{"role":"model","parts":parts}}],"modelVersion":"m","responseId":"r"})
}

fn finish(reason: &str) -> Value {
    json!({"candidates":[{"content":{"role":"model"},"finishReason":reason}]})
}

/// The blocks as (kind, content, whether it ended).
fn shown(round: &RoundContent) -> Vec<(&'static str, &str, bool)> {
    let kind = |kind: &BlockStart| match kind {
        BlockStart::Text => "text",
        BlockStart::Reasoning => "reasoning",
        BlockStart::ToolCall { .. } => "call",
        BlockStart::ServerTool { .. } => "server",
        BlockStart::Refusal | BlockStart::Unsupported { .. } => "other",
    };
    let blocks = round.blocks.iter();
    blocks
        .map(|block| (kind(&block.kind), block.content.as_str(), block.ended))
        .collect()
}

#[test]
fn neighbours_of_one_kind_are_one_block_and_thoughts_are_reasoning() {
    let (round, _, _) = run(&[
        parts(json!([{"text":"Hm","thought":true}])),
        parts(json!([{"text":"","thought":false},{"text":", so","thought":true},{"text":"Hel"}])),
        parts(json!([{"text":""},{"text":"lo"}])),
        finish("STOP"),
    ]);
    assert_eq!(
        shown(&round),
        [("reasoning", "Hm, so", true), ("text", "Hello", true)]
    );
    assert_eq!(round.response_id.as_deref(), Some("r"));
    assert_eq!(round.stop, Some(("STOP".to_owned(), StopReason::EndTurn)));
}

#[test]
fn only_the_end_of_the_stream_ends_the_answer_and_only_after_a_finish_reason() {
    let code = json!([{"executableCode":{"language":"PYTHON","code":"1"}}]);
    let (round, _, _) = run(&[
        parts(code.clone()),
        finish("STOP"),
        parts(json!([{"text":"More"}])),
        finish("STOP"),
    ]);
    assert_eq!(round.blocks[1].content, "More");
    assert_eq!(round.end, Some(StreamEnd::Complete));

    let (round, _, _) = run(&[parts(code.clone()), finish("STOP"), parts(json!([{"text":"Mo"}]))]);
    assert_eq!(round.end, Some(StreamEnd::Interrupted), "what followed was cut");
    let signed = parts(json!([{"text":"","thoughtSignature":"s"}]));
    let (round, _, _) = run(&[parts(json!([{"text":"Hi"}])), finish("STOP"), signed]);
    assert_eq!(round.end, Some(StreamEnd::Complete), "a signature is no content");

    let mut decoder = Decoder::new("main", "model");
    decoder.push(&event(&finish("STOP").to_string()));
    assert!(decoder.has_stopped());
    let mut decoder = Decoder::new("main", "model");
    decoder.push(&event(&parts(code).to_string()));
    decoder.push(&event(&finish("STOP").to_string()));
    assert!(!decoder.has_stopped(), "code was run, so more may follow");

    let (round, _, decoder) = run(&[parts(json!([{"text":"Hi"}]))]);
    assert_eq!(
        round.error.map(|error| error.class),
        Some(ProviderErrorClass::Broken)
    );
    assert_eq!(round.end, Some(StreamEnd::Interrupted));
    assert_eq!(decoder.replay(), None);
}

#[test]
fn a_call_is_whole_at_once_and_gets_an_id_where_it_has_none() {
    let (round, _, _) = run(&[
        parts(json!([{"functionCall":{"name":"a","args":{"n":1}}},{"functionCall":{"name":"b","id":"x"}}])),
        finish("STOP"),
    ]);
    let calls: Vec<(String, String)> = round
        .calls()
        .into_iter()
        .map(|call| (call.id, call.arguments))
        .collect();
    let pair = |id: &str, arguments: &str| (id.to_owned(), arguments.to_owned());
    assert_eq!(calls, [pair("call_0", "{\"n\":1}"), pair("x", "{}")]);
    assert_eq!(round.stop, Some(("STOP".to_owned(), StopReason::ToolUse)));
}

#[test]
fn arguments_in_pieces_are_one_call_whose_end_may_be_missing() {
    let begin =
        || parts(json!([{"functionCall":{"name":"a","willContinue":true},"thoughtSignature":"HIDDEN"}]));
    let piece = |text: &str, more: bool| {
        parts(json!([{"functionCall":{"willContinue":true,
            "partialArgs":[{"jsonPath":"$.city","stringValue":text,"willContinue":more}]}}]))
    };
    let whole = [begin(), piece("Bos", true), piece("ton", false)];
    let (round, _, decoder) = run(&[
        whole.as_slice(),
        &[parts(json!([{"functionCall":{}}])), finish("STOP")],
    ]
    .concat());
    assert_eq!(shown(&round), [("call", "{\"city\":\"Boston\"}", true)]);
    assert_eq!(
        decoder.replay().expect("a record").message,
        json!({"role":"model","parts":[
            {"functionCall":{"name":"a","args":{"city":"Boston"}},"thoughtSignature":"HIDDEN"}]})
    );
    let (round, _, _) = run(&[whole.as_slice(), &[finish("STOP")]].concat());
    assert_eq!(shown(&round), [("call", "{\"city\":\"Boston\"}", true)]);
    let (round, _, _) = run(&[whole.as_slice(), &[begin(), finish("MAX_TOKENS")]].concat());
    assert_eq!(
        shown(&round),
        [("call", "{\"city\":\"Boston\"}", true), ("call", "", false)],
        "the limit cut the second"
    );
    assert!(round.calls()[1].parsed.is_err());
}

#[test]
fn signatures_stay_with_their_parts_and_are_shown_nowhere() {
    let (_, events, decoder) = run(&[
        parts(json!([{"text":"a","thought":true}])),
        parts(json!([{"text":"b"}])),
        parts(json!([{"text":"c"}])),
        parts(json!([{"text":"d","thoughtSignature":"HIDDEN-1"}])),
        parts(json!([{"functionCall":{"name":"t","args":{}},"thoughtSignature":"HIDDEN-2"}])),
        parts(json!([{"text":""}])),
        parts(json!([{"text":"","thoughtSignature":"HIDDEN-3"}])),
        parts(json!([{"thoughtSignature":"HIDDEN-4"}])),
        finish("STOP"),
    ]);
    assert!(!format!("{events:?}").contains("HIDDEN"));
    assert_eq!(
        decoder.replay().expect("a record").message["parts"],
        json!([
            {"text":"a","thought":true},
            {"text":"bc"},
            {"text":"d","thoughtSignature":"HIDDEN-1"},
            {"functionCall":{"name":"t","args":{}},"thoughtSignature":"HIDDEN-2"},
            {"text":"","thoughtSignature":"HIDDEN-3"},
            {"thoughtSignature":"HIDDEN-4"},
        ])
    );
}

#[test]
fn code_that_the_provider_runs_has_its_result_and_what_is_not_known_says_so() {
    let (round, _, _) = run(&[
        parts(json!([{"executableCode":{"language":"PYTHON","code":"1+1"}}])),
        parts(json!([{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"no"}}])),
        parts(json!([{"inlineData":{"mimeType":"image/png","data":"AAAA"}}])),
        finish("STOP"),
    ]);
    assert_eq!(
        shown(&round),
        [
            ("server", "{\"language\":\"PYTHON\",\"code\":\"1+1\"}", true),
            ("other", "", true)
        ]
    );
    assert_eq!(round.results[0].position, Some(0));
    assert_eq!(
        (round.results[0].text.as_str(), round.results[0].is_error),
        ("no", true)
    );
    assert!(round.calls().is_empty());
}

#[test]
fn a_prompt_that_is_refused_and_a_filter_are_normal_ends() {
    let (round, _, _) = run(&[json!({"promptFeedback":{"blockReason":"OTHER"},"responseId":"r"})]);
    assert_eq!(round.stop, Some(("OTHER".to_owned(), StopReason::ContentFilter)));
    assert_eq!(round.end, Some(StreamEnd::Complete));
    for (raw, reason) in [
        ("SAFETY", StopReason::ContentFilter),
        ("MAX_TOKENS", StopReason::Length),
        ("MALFORMED_FUNCTION_CALL", StopReason::Other),
    ] {
        let (round, _, _) = run(&[parts(json!([{"text":"Hi"}])), finish(raw)]);
        assert_eq!(round.stop, Some((raw.to_owned(), reason)));
        assert_eq!(round.end, Some(StreamEnd::Complete));
    }
}

#[test]
fn an_error_in_the_stream_fails_it_and_says_how_long_to_wait() {
    let (round, _, _) = run(&[
        parts(json!([{"text":"Hi"}])),
        json!({"error":{"code":429,"message":"Quota; check your billing","status":"RESOURCE_EXHAUSTED","details":[
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2.5s"}]}}),
    ]);
    assert_eq!(shown(&round), [("text", "Hi", false)]);
    let error = round.error.expect("an error");
    assert_eq!(error.class, ProviderErrorClass::RateLimited);
    assert_eq!(error.retry_after_ms, Some(2_500));
}

#[test]
fn usage_counts_thoughts_and_what_tools_put_into_the_prompt() {
    let usage = |candidates: u64| {
        json!({"candidates":[],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,
            "toolUsePromptTokenCount":5,"candidatesTokenCount":candidates,"thoughtsTokenCount":3}})
    };
    let (round, events, _) = run(&[usage(1), usage(2), usage(2), finish("STOP")]);
    let expected = Usage {
        input_tokens: Some(15),
        output_tokens: Some(5),
        cache_read_tokens: Some(4),
        cache_write_tokens: None,
        reasoning_tokens: Some(3),
        cost: None,
    };
    assert_eq!(round.usage, Some(expected));
    let told = events
        .iter()
        .filter(|event| matches!(event, ProviderEvent::Usage(_)));
    assert_eq!(told.count(), 2, "only when it changes");
}
