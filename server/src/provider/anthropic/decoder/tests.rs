use super::*;
use crate::provider::RoundContent;

fn run(events: &[Value]) -> (Events, Decoder) {
    let mut decoder = Decoder::new("main", "model");
    let mut out = Vec::new();
    for event in events {
        out.extend(decoder.push(&SseEvent {
            event: None,
            data: event.to_string(),
            bytes: 1,
        }));
    }
    out.extend(decoder.finish());
    (out, decoder)
}

fn round(events: &[Value]) -> RoundContent {
    let mut round = RoundContent::default();
    run(events).0.iter().for_each(|event| round.apply(event));
    round
}

fn start() -> Value {
    json!({"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}})
}

fn block(index: u32, content_block: Value) -> Value {
    json!({"type":"content_block_start","index":index,"content_block":content_block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type":"content_block_delta","index":index,"delta":delta})
}

fn text(index: u32, text: &str) -> Value {
    delta(index, json!({"type":"text_delta","text":text}))
}

fn arguments(index: u32, json: &str) -> Value {
    delta(index, json!({"type":"input_json_delta","partial_json":json}))
}

fn block_stop(index: u32) -> Value {
    json!({"type":"content_block_stop","index":index})
}

fn stop(reason: &str) -> Value {
    json!({"type":"message_delta","delta":{"stop_reason":reason},"usage":{"output_tokens":9}})
}

fn message_stop() -> Value {
    json!({"type":"message_stop"})
}

fn contents(round: &RoundContent) -> Vec<(&str, bool)> {
    round
        .blocks
        .iter()
        .map(|block| (block.content.as_str(), block.ended))
        .collect()
}

#[test]
fn adjacent_text_blocks_are_one_and_a_hidden_block_between_ends_the_run() {
    let round = round(&[
        start(),
        block(0, json!({"type":"text","text":""})),
        text(0, "One "),
        block_stop(0),
        block(1, json!({"type":"text","text":"two"})),
        block_stop(1),
        block(2, json!({"type":"redacted_thinking","data":"HIDDEN"})),
        block_stop(2),
        block(3, json!({"type":"text","text":""})),
        text(3, "three"),
        block_stop(3),
        stop("end_turn"),
        message_stop(),
    ]);
    assert_eq!(contents(&round), [("One two", true), ("three", true)]);
    assert_eq!(round.usage.as_ref().and_then(|usage| usage.input_tokens), Some(7));
    assert_eq!(round.usage.and_then(|usage| usage.output_tokens), Some(9));
}

#[test]
fn thinking_is_shown_without_its_signature_and_goes_back_with_it() {
    let (events, decoder) = run(&[
        start(),
        block(0, json!({"type":"thinking","thinking":"","signature":""})),
        delta(0, json!({"type":"thinking_delta","thinking":"hm"})),
        delta(0, json!({"type":"signature_delta","signature":"SIGNED"})),
        block_stop(0),
        block(1, json!({"type":"redacted_thinking","data":"REDACTED"})),
        block_stop(1),
        block(
            2,
            json!({"type":"tool_use","id":"toolu_1","name":"read_file","input":{}}),
        ),
        arguments(2, ""),
        arguments(2, "{\"path\":"),
        arguments(2, "\"a\"}"),
        block_stop(2),
        stop("tool_use"),
        message_stop(),
    ]);
    let printed = format!("{events:?}");
    assert!(
        printed.contains("hm") && !printed.contains("SIGNED") && !printed.contains("REDACTED"),
        "{printed}"
    );
    let replay = decoder.replay().expect("a replay");
    assert_eq!(
        replay.message,
        json!({"role":"assistant","content":[
            {"type":"thinking","thinking":"hm","signature":"SIGNED"},
            {"type":"redacted_thinking","data":"REDACTED"},
            {"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"a"}}]})
    );
}

#[test]
fn thinking_that_a_gateway_repeats_with_its_signature_is_shown_and_sent_back_once() {
    let (events, decoder) = run(&[
        start(),
        block(0, json!({"type":"thinking","thinking":""})),
        delta(0, json!({"type":"thinking_delta","thinking":"plan"})),
        block_stop(0),
        block(1, json!({"type":"thinking","thinking":"plan","signature":"S"})),
        block_stop(1),
        text(2, "done"),
        stop("end_turn"),
        message_stop(),
    ]);
    let mut round = RoundContent::default();
    events.iter().for_each(|event| round.apply(event));
    assert_eq!(contents(&round), [("plan", true), ("done", true)]);
    let content = decoder.replay().expect("a replay").message["content"].clone();
    assert_eq!(
        content,
        json!([{"type":"thinking","thinking":"plan","signature":"S"},{"type":"text","text":"done"}])
    );
}

#[test]
fn a_call_cut_by_the_output_limit_has_no_end_and_is_sent_back_with_empty_arguments() {
    for (pieces, ended) in [
        (&["{\"a\":"][..], false),
        (&["{\"a\":1}"], true),
        (&[], false),
        (&["{\"a\":}"], true),
    ] {
        let mut events = vec![
            start(),
            block(0, json!({"type":"tool_use","id":"t","name":"n","input":{}})),
        ];
        events.extend(pieces.iter().map(|piece| arguments(0, piece)));
        events.extend([block_stop(0), stop("max_tokens"), message_stop()]);
        let (out, decoder) = run(&events);
        let mut round = RoundContent::default();
        out.iter().for_each(|event| round.apply(event));
        assert_eq!(round.blocks[0].ended, ended, "{pieces:?}");
        let whole = pieces == ["{\"a\":1}"];
        assert_eq!(round.calls()[0].parsed.is_ok(), whole, "{pieces:?}");
        let input = if whole { json!({"a":1}) } else { json!({}) };
        assert_eq!(
            decoder.replay().expect("a replay").message["content"][0]["input"],
            input
        );
    }
}

#[test]
fn a_call_without_arguments_or_with_whole_ones_at_its_start_is_complete() {
    let round = round(&[
        start(),
        block(0, json!({"type":"tool_use","id":"a","name":"none","input":{}})),
        block_stop(0),
        block(
            1,
            json!({"type":"tool_use","id":"","name":"whole","input":{"x":1}}),
        ),
        block_stop(1),
        stop("tool_use"),
        message_stop(),
    ]);
    let calls = round.calls();
    assert_eq!(calls[0].parsed, Ok(json!({})));
    assert_eq!(
        (calls[1].arguments.as_str(), calls[1].id.as_str()),
        ("{\"x\":1}", "call_1")
    );
    assert!(round.blocks.iter().all(|block| block.ended));
}

#[test]
fn text_on_an_open_tool_block_is_its_own_block_and_leaves_the_call_whole() {
    let round = round(&[
        start(),
        block(0, json!({"type":"tool_use","id":"a","name":"n","input":{}})),
        arguments(0, "{\"x\":"),
        text(0, "Let me "),
        arguments(0, "1}"),
        text(0, "see"),
        block_stop(0),
        stop("tool_use"),
        message_stop(),
    ]);
    assert_eq!(contents(&round), [("{\"x\":1}", true), ("Let me see", true)]);
}

#[test]
fn what_compatible_servers_leave_out_is_no_error() {
    let round = round(&[
        json!({"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"so"}}),
        json!({"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}),
        json!({"type":"message_delta","delta":{"stop_reason":null}}),
        json!({"type":"novel_event"}),
        json!({"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"n"}}),
        json!({"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}),
        json!({"type":"content_block_start","index":0,"content_block":{"type":"novel_block","data":"HIDDEN"}}),
        message_stop(),
        json!({"type":"ping","cost":1}),
    ]);
    assert_eq!(
        contents(&round),
        [("so", true), ("Hi", true), ("{}", true), ("", true)]
    );
    assert_eq!(round.end, Some(StreamEnd::Complete));
    assert!(!format!("{round:?}").contains("HIDDEN"));
}

#[test]
fn an_error_keeps_what_came_and_nothing_is_complete() {
    let overloaded = json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}});
    let part = [
        start(),
        block(0, json!({"type":"text","text":""})),
        text(0, "Half"),
        overloaded.clone(),
        message_stop(),
    ];
    let failed = round(&part);
    assert_eq!(contents(&failed), [("Half", false)]);
    let error = failed.error.expect("an error");
    assert_eq!(
        (error.class, error.message.as_str()),
        (ProviderErrorClass::Overloaded, "Overloaded")
    );
    assert_eq!(failed.end, Some(StreamEnd::Interrupted));
    let first = round(&[overloaded]);
    assert_eq!((first.blocks.len(), first.end), (0, Some(StreamEnd::Interrupted)));
    let openai_form = round(&[
        start(),
        json!({"error":{"message":"x","type":"rate_limit_exceeded"}}),
    ]);
    assert_eq!(
        openai_form.error.map(|error| error.class),
        Some(ProviderErrorClass::RateLimited)
    );
}

#[test]
fn a_stream_without_its_end_marker_is_interrupted_even_after_a_stop_reason() {
    let (events, decoder) = run(&[
        start(),
        block(0, json!({"type":"text","text":"x"})),
        block_stop(0),
        stop("end_turn"),
    ]);
    assert!(matches!(
        &events[events.len() - 3..],
        [ProviderEvent::Error(error), ProviderEvent::Stop { .. }, ProviderEvent::End(StreamEnd::Interrupted)]
            if error.class == ProviderErrorClass::Broken
    ));
    assert_eq!(decoder.replay(), None);
}

#[test]
fn another_answer_in_the_stream_fails_it_and_the_same_one_again_does_not() {
    let other = json!({"type":"message_start","message":{"id":"msg_2","content":[]}});
    let spliced = round(&[
        start(),
        text(0, "a"),
        other,
        text(0, "b"),
        stop("end_turn"),
        message_stop(),
    ]);
    assert_eq!(contents(&spliced), [("a", false)]);
    assert_eq!(spliced.end, Some(StreamEnd::Interrupted));
    let same = round(&[
        start(),
        text(0, "a"),
        start(),
        text(0, "b"),
        stop("end_turn"),
        message_stop(),
    ]);
    assert_eq!(contents(&same), [("ab", true)]);
}

#[test]
fn the_done_mark_ends_only_an_answer_that_has_stopped() {
    let mut decoder = Decoder::new("main", "model");
    let done = SseEvent {
        event: Some("data".to_owned()),
        data: "[DONE]".to_owned(),
        bytes: 1,
    };
    assert!(decoder.push(&done).is_empty());
    decoder.push(&SseEvent {
        event: None,
        data: stop("end_turn").to_string(),
        bytes: 1,
    });
    assert!(matches!(
        decoder.push(&done).last(),
        Some(ProviderEvent::End(StreamEnd::Complete))
    ));
    assert!(decoder.push(&done).is_empty() && decoder.finish().is_empty() && decoder.abort(None).is_empty());
}

#[test]
fn an_event_that_is_broken_json_fails_the_stream_with_a_clear_error() {
    let mut decoder = Decoder::new("main", "model");
    let broken = SseEvent {
        event: None,
        data: "{\"type\":".to_owned(),
        bytes: 1,
    };
    let events = decoder.push(&broken);
    assert!(
        matches!(&events[0], ProviderEvent::Error(error) if error.class == ProviderErrorClass::Protocol),
        "{events:?}"
    );
}
