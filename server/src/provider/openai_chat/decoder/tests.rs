use super::*;
use crate::provider::{RoundCall, RoundContent, StopReason};

fn run_with(options: DecoderOptions, events: &[Value], done: bool) -> (Events, Decoder) {
    let mut decoder = Decoder::new("main", "model", options);
    let mut out = Vec::new();
    for event in events {
        out.extend(decoder.push(&SseEvent {
            event: None,
            data: event.to_string(),
            bytes: 1,
        }));
    }
    if done {
        out.extend(decoder.push(&SseEvent {
            event: None,
            data: " [DONE] ".to_owned(),
            bytes: 1,
        }));
    }
    out.extend(decoder.finish());
    (out, decoder)
}

fn run(events: &[Value]) -> (RoundContent, Decoder) {
    let (events, decoder) = run_with(DecoderOptions::default(), events, true);
    let mut round = RoundContent::default();
    events.iter().for_each(|event| round.apply(event));
    (round, decoder)
}

fn chunk(delta: Value) -> Value {
    json!({"id":"c","model":"m","choices":[{"index":0,"delta":delta,"finish_reason":null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id":"c","choices":[{"index":0,"delta":{},"finish_reason":reason}]})
}

fn entry(index: Option<i64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut entry = json!({"function":{"arguments":arguments}});
    if let Some(index) = index {
        entry["index"] = json!(index);
    }
    if let Some(id) = id {
        entry["id"] = json!(id);
    }
    if let Some(name) = name {
        entry["function"]["name"] = json!(name);
    }
    chunk(json!({"tool_calls":[entry]}))
}

/// The calls of a stream of entries that ends well, as (id, name, arguments).
fn calls(entries: &[Value]) -> Vec<(String, String, String)> {
    let (round, _) = run(&[entries, &[finish("tool_calls")]].concat());
    assert!(round.blocks.iter().all(|block| block.ended), "{round:?}");
    round
        .calls()
        .into_iter()
        .map(
            |RoundCall {
                 id, name, arguments, ..
             }| (id, name, arguments),
        )
        .collect()
}

fn triple(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[test]
fn calls_are_put_together_whatever_indexes_and_ids_a_server_sends() {
    let usual = [
        entry(Some(0), Some("a"), Some("x"), ""),
        entry(Some(0), None, None, "{\"n\":"),
        entry(Some(1), Some("b"), Some("y"), "{"),
        entry(Some(0), None, None, "1}"),
        entry(Some(1), None, None, "}"),
    ];
    assert_eq!(
        calls(&usual),
        [triple("a", "x", "{\"n\":1}"), triple("b", "y", "{}")]
    );
    let all_index_zero = [
        entry(Some(0), Some("a"), Some("x"), "{\"n\":1}"),
        entry(Some(0), Some("b"), Some("x"), "{\"n\":2}"),
    ];
    assert_eq!(
        calls(&all_index_zero),
        [triple("a", "x", "{\"n\":1}"), triple("b", "x", "{\"n\":2}")]
    );
    let all_index_zero_in_pieces = [
        entry(Some(0), Some("a"), Some("x"), ""),
        entry(Some(0), None, None, "{\"n\":1}"),
        entry(Some(0), Some("b"), Some("x"), ""),
        entry(Some(0), None, None, "{\"n\":2}"),
    ];
    assert_eq!(
        calls(&all_index_zero_in_pieces),
        [triple("a", "x", "{\"n\":1}"), triple("b", "x", "{\"n\":2}")]
    );
    let no_index = [
        entry(None, Some("a"), Some("x"), "{\"n\":"),
        entry(None, Some("a"), None, "1}"),
        entry(None, Some("b"), Some("y"), "{}"),
    ];
    assert_eq!(
        calls(&no_index),
        [triple("a", "x", "{\"n\":1}"), triple("b", "y", "{}")]
    );
    let no_ids = [
        entry(None, None, Some("x"), "{\"n\":1}"),
        entry(None, None, Some("x"), "{\"n\":2}"),
    ];
    assert_eq!(
        calls(&no_ids),
        [
            triple("call_0", "x", "{\"n\":1}"),
            triple("call_1", "x", "{\"n\":2}")
        ]
    );
    let repeated = [
        entry(Some(0), Some("a"), Some("x"), "{\"n\""),
        entry(Some(0), Some("a"), Some("x"), ":1}"),
        entry(Some(0), Some(""), Some("x"), ""),
    ];
    assert_eq!(calls(&repeated), [triple("a", "x", "{\"n\":1}")]);
    let same_id = [
        entry(Some(0), Some("a"), Some("x"), "{\"n\":1}"),
        entry(Some(0), Some("a"), Some("x"), "{\"n\":2}"),
    ];
    assert_eq!(
        calls(&same_id),
        [triple("a", "x", "{\"n\":1}"), triple("a", "x", "{\"n\":2}")]
    );
    let far_index = [entry(Some(7), Some("a"), Some("x"), "null")];
    assert_eq!(calls(&far_index), [triple("a", "x", "{}")]);
    let late_name = [
        entry(Some(0), Some("a"), None, "{\"n\":"),
        entry(Some(0), None, Some("x"), "1}"),
    ];
    assert_eq!(calls(&late_name), [triple("a", "x", "{\"n\":1}")]);
    let object = [chunk(
        json!({"tool_calls":[{"function":{"name":"x","arguments":{"n":1}}}]}),
    )];
    assert_eq!(calls(&object), [triple("call_0", "x", "{\"n\":1}")]);
    let older = [
        chunk(json!({"function_call":{"name":"x","arguments":"{\"n\""}})),
        chunk(json!({"function_call":{"arguments":":1}"}})),
    ];
    assert_eq!(calls(&older), [triple("call_0", "x", "{\"n\":1}")]);
}

#[test]
fn text_after_a_call_is_a_new_block_and_the_order_within_a_chunk_is_fixed() {
    let (round, _) = run(&[
        chunk(
            json!({"content":"a","reasoning":"r","tool_calls":[{"index":0,"id":"t","function":{"name":"x","arguments":"{}"}}]}),
        ),
        chunk(json!({"content":""})),
        chunk(json!({"content":"b"})),
        chunk(json!({"refusal":"no"})),
        finish("stop"),
    ]);
    let kinds: Vec<&BlockStart> = round.blocks.iter().map(|block| &block.kind).collect();
    assert!(
        matches!(
            kinds[..],
            [
                BlockStart::Reasoning,
                BlockStart::Text,
                BlockStart::ToolCall { .. },
                BlockStart::Text,
                BlockStart::Refusal
            ]
        ),
        "{kinds:?}"
    );
    assert!(round.blocks.iter().all(|block| block.ended));
    assert_eq!(round.blocks[3].content, "b");
}

#[test]
fn reasoning_is_found_under_every_name_and_taken_once() {
    for delta in [
        json!({"reasoning_content":"r"}),
        json!({"reasoning":"r"}),
        json!({"reasoning":"r","reasoning_content":"r"}),
        json!({"reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r","signature":"HIDDEN"}]}),
        json!({"reasoning_details":[{"type":"reasoning.summary","summary":"r"},{"type":"reasoning.encrypted","data":"HIDDEN"}]}),
        json!({"reasoning_text":"r","reasoning_opaque":"HIDDEN"}),
        json!({"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]}]}),
    ] {
        let (round, decoder) = run(&[
            chunk(delta.clone()),
            chunk(json!({"content":"t"})),
            finish("stop"),
        ]);
        let contents: Vec<&str> = round.blocks.iter().map(|block| block.content.as_str()).collect();
        assert_eq!(contents, ["r", "t"], "{delta}");
        assert!(!format!("{round:?}").contains("HIDDEN"));
        let replay = decoder.replay().expect("a replay").message.to_string();
        assert_eq!(
            replay.contains("HIDDEN"),
            delta.to_string().contains("HIDDEN"),
            "{replay}"
        );
    }
}

#[test]
fn pieces_of_reasoning_details_and_content_parts_are_joined_for_the_next_request() {
    let (_, decoder) = run(&[
        chunk(json!({"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"}]})),
        chunk(json!({"reasoning_details":[{"type":"reasoning.text","index":0,"text":"b"}]})),
        chunk(json!({"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"S"}]})),
        chunk(json!({"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"D"}]})),
        chunk(json!({"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]})),
        chunk(json!({"content":[{"type":"thinking","thinking":[{"type":"text","text":"y"}]}]})),
        chunk(json!({"content":"end"})),
        chunk(
            json!({"tool_calls":[{"index":0,"id":"t","function":{"name":"n","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}]}),
        ),
        finish("tool_calls"),
    ]);
    assert_eq!(
        decoder.replay().expect("a replay").message,
        json!({"role":"assistant",
            "content":[{"type":"thinking","thinking":[{"type":"text","text":"xy"}]},{"type":"text","text":"end"}],
            "tool_calls":[{"id":"t","type":"function","function":{"name":"n","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}],
            "reasoning_details":[{"type":"reasoning.text","index":0,"text":"ab","signature":"S"},{"type":"reasoning.encrypted","index":1,"data":"D"}]})
    );
}

#[test]
fn a_call_whose_arguments_stop_early_has_no_end_whatever_the_reason_says() {
    for (reason, arguments, ended) in [
        ("tool_calls", "{\"a\":", false),
        ("length", "{\"a\":", false),
        ("length", "", false),
        ("length", "{\"a\":1}", true),
        ("tool_calls", "", true),
        ("stop", "{\"a\":1}", true),
        ("tool_calls", "{\"a\":}", true),
    ] {
        let (round, decoder) = run(&[entry(Some(0), Some("t"), Some("x"), arguments), finish(reason)]);
        assert_eq!(round.blocks[0].ended, ended, "{reason} {arguments}");
        assert_eq!(round.end, Some(StreamEnd::Complete));
        let sent =
            decoder.replay().expect("a replay").message["tool_calls"][0]["function"]["arguments"].clone();
        assert_eq!(sent, if arguments == "{\"a\":1}" { arguments } else { "{}" });
    }
}

#[test]
fn usage_is_the_latest_and_may_come_without_choices() {
    let (round, _) = run(&[
        json!({"choices":[],"prompt_filter_results":[]}),
        json!({"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}),
        finish("stop"),
        json!({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_cache_hit_tokens":2,"cost":{"total_cost":0.5}}}),
    ]);
    let usage = round.usage.expect("usage");
    assert_eq!(
        (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cost
        ),
        (Some(5), Some(6), Some(2), Some(0.5))
    );
}

#[test]
fn any_top_level_error_fails_the_stream_and_keeps_what_came() {
    let error = json!({"error":{"message":"upstream failed","code":502},"choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"error"}],"usage":{"prompt_tokens":1,"completion_tokens":2}});
    let (round, decoder) = run(&[
        chunk(json!({"content":"Half"})),
        error,
        chunk(json!({"content":"late"})),
    ]);
    assert_eq!(
        (round.blocks[0].content.as_str(), round.blocks[0].ended),
        ("Half!", false)
    );
    let error = round.error.expect("an error");
    assert_eq!(
        (error.class, error.status, error.message.as_str()),
        (ProviderErrorClass::Server, Some(502), "upstream failed")
    );
    assert_eq!(round.end, Some(StreamEnd::Interrupted));
    assert_eq!(decoder.replay(), None);
    let (first, _) = run(&[json!({"error":"quota","code":"insufficient_quota"})]);
    assert_eq!(
        first.error.map(|error| error.class),
        Some(ProviderErrorClass::Billing)
    );
    let (silent, _) = run(&[chunk(json!({"content":"x"})), finish("error")]);
    assert_eq!(silent.end, Some(StreamEnd::Interrupted));
}

#[test]
fn the_end_is_complete_with_the_mark_or_after_a_finish_reason_and_else_interrupted() {
    let text = chunk(json!({"content":"x"}));
    for (events, done, end) in [
        (vec![text.clone(), finish("stop")], false, StreamEnd::Complete),
        (vec![text.clone()], true, StreamEnd::Complete),
        (vec![text], false, StreamEnd::Interrupted),
        (vec![], false, StreamEnd::Interrupted),
    ] {
        let (out, _) = run_with(DecoderOptions::default(), &events, done);
        assert_eq!(out.last(), Some(&ProviderEvent::End(end)), "{events:?}");
        assert_eq!(
            out.iter().any(|event| matches!(event, ProviderEvent::Error(_))),
            end == StreamEnd::Interrupted
        );
    }
}

#[test]
fn only_the_first_choice_is_read_and_a_whole_message_beside_a_delta_is_ignored() {
    let (round, _) = run(&[
        json!({"choices":[{"index":1,"delta":{"content":"B"}},{"index":0,"delta":{"content":"A"},"message":{"content":"AAA"}}]}),
        json!({"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}),
        finish("stop"),
    ]);
    assert_eq!(round.blocks[0].content, "A");
    assert_eq!(round.stop, Some(("stop".to_owned(), StopReason::EndTurn)));
    let (whole, _) =
        run(&[json!({"choices":[{"index":0,"message":{"content":"All"},"finish_reason":"stop"}]})]);
    assert_eq!(whole.blocks[0].content, "All");
}

#[test]
fn think_tags_are_text_unless_the_endpoint_is_set_to_split_them() {
    let events = [
        chunk(json!({"content":"<thi"})),
        chunk(json!({"content":"nk>why</think>"})),
        chunk(json!({"content":"so <"})),
        finish("stop"),
    ];
    let contents = |options| {
        let (events, _) = run_with(options, &events, true);
        let mut round = RoundContent::default();
        events.iter().for_each(|event| round.apply(event));
        round
            .blocks
            .into_iter()
            .map(|block| block.content)
            .collect::<Vec<_>>()
    };
    assert_eq!(contents(DecoderOptions::default()), ["<think>why</think>so <"]);
    assert_eq!(
        contents(DecoderOptions {
            split_think_tags: true
        }),
        ["why", "so <"]
    );
}
