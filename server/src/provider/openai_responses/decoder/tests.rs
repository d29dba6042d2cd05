use super::*;
use crate::provider::{RoundContent, StopReason};

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

fn added(index: i64, item: Value) -> Value {
    json!({"type":"response.output_item.added","output_index":index,"item":item})
}

fn done(index: i64, item: Value) -> Value {
    json!({"type":"response.output_item.done","output_index":index,"item":item})
}

fn piece(kind: &str, index: i64, more: Value) -> Value {
    let mut value = json!({"type":format!("response.{kind}"),"output_index":index});
    for (key, inner) in more.as_object().expect("an object") {
        value[key] = inner.clone();
    }
    value
}

fn completed(output: Value) -> Value {
    json!({"type":"response.completed","response":{"id":"r","status":"completed","output":output,
        "usage":{"input_tokens":3,"output_tokens":2}}})
}

fn message(text: &str) -> Value {
    json!({"type":"message","id":"msg","role":"assistant","content":[{"type":"output_text","text":text}]})
}

fn call(call_id: &str, arguments: &str) -> Value {
    json!({"type":"function_call","id":"fc","call_id":call_id,"name":"t","arguments":arguments})
}

/// The blocks as (kind, content, whether it ended).
fn shown(round: &RoundContent) -> Vec<(&'static str, &str, bool)> {
    let kind = |kind: &BlockStart| match kind {
        BlockStart::Text => "text",
        BlockStart::Reasoning => "reasoning",
        BlockStart::Refusal => "refusal",
        BlockStart::ToolCall { .. } => "call",
        BlockStart::ServerTool { .. } => "server",
        BlockStart::Unsupported { .. } => "unsupported",
    };
    let blocks = round.blocks.iter();
    blocks
        .map(|block| (kind(&block.kind), block.content.as_str(), block.ended))
        .collect()
}

#[test]
fn content_parts_and_messages_are_blocks_of_their_own() {
    let (round, _, _) = run(&[
        added(0, json!({"type":"message","phase":"commentary","content":[]})),
        piece(
            "output_text.delta",
            0,
            json!({"content_index":0,"delta":"","item_id":"a"}),
        ),
        piece(
            "output_text.delta",
            0,
            json!({"content_index":0,"delta":"One","item_id":"b"}),
        ),
        piece("output_text.done", 0, json!({"content_index":0,"text":"One"})),
        piece("refusal.delta", 0, json!({"content_index":1,"delta":"No"})),
        piece("refusal.done", 0, json!({"content_index":1,"refusal":"No."})),
        added(1, json!({"type":"message","phase":"final_answer","content":[]})),
        piece("output_text.delta", 1, json!({"content_index":0,"delta":"Two"})),
        completed(json!([])),
    ]);
    assert_eq!(
        shown(&round),
        [
            ("text", "One", true),
            ("refusal", "No.", true),
            ("text", "Two", true)
        ]
    );
    assert_eq!(round.stop, Some(("completed".to_owned(), StopReason::Refusal)));
}

#[test]
fn what_an_end_brings_beyond_the_deltas_is_shown_and_what_contradicts_them_is_told() {
    let (round, events, _) = run(&[
        added(0, json!({"type":"message","content":[]})),
        piece("output_text.delta", 0, json!({"content_index":0,"delta":"He"})),
        done(0, message("Hello")),
        added(1, json!({"type":"message","content":[]})),
        piece("output_text.delta", 1, json!({"content_index":0,"delta":"Bye"})),
        piece("output_text.done", 1, json!({"content_index":0,"text":"Stay"})),
        done(1, message("Stay")),
        completed(json!([])),
    ]);
    assert_eq!(shown(&round), [("text", "Hello", true), ("text", "Bye", true)]);
    let told: Vec<&ProviderEvent> = events
        .iter()
        .filter(|event| matches!(event, ProviderEvent::Contradiction { .. }))
        .collect();
    let expected = ProviderEvent::Contradiction {
        position: 1,
        text: "Stay".to_owned(),
    };
    assert_eq!(told, [&expected], "once");
}

#[test]
fn parts_of_a_summary_are_paragraphs_of_one_block_and_hidden_reasoning_is_none() {
    let summary = |part: i64, delta: &str| {
        piece(
            "reasoning_summary_text.delta",
            0,
            json!({"summary_index":part,"delta":delta}),
        )
    };
    let (round, events, decoder) = run(&[
        added(
            0,
            json!({"type":"reasoning","summary":[],"encrypted_content":"HIDDEN-START"}),
        ),
        summary(0, "One"),
        summary(1, ""),
        summary(1, "Two"),
        piece(
            "reasoning_text.delta",
            0,
            json!({"content_index":0,"delta":"raw"}),
        ),
        done(
            0,
            json!({"type":"reasoning","encrypted_content":"HIDDEN-END",
            "summary":[{"type":"summary_text","text":"One"},{"type":"summary_text","text":"Two"}]}),
        ),
        done(
            1,
            json!({"type":"reasoning","summary":[],"encrypted_content":"HIDDEN-TOO"}),
        ),
        done(
            2,
            json!({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"open"}]}),
        ),
        done(3, message("Hi")),
        completed(json!([])),
    ]);
    assert_eq!(
        shown(&round),
        [
            ("reasoning", "One\n\nTwo", true),
            ("reasoning", "open", true),
            ("text", "Hi", true)
        ]
    );
    assert!(!format!("{events:?}").contains("HIDDEN"));
    assert!(!format!("{events:?}").contains("Contradiction"));
    let record = decoder.replay().expect("a record").message.to_string();
    assert!(
        record.contains("HIDDEN-END") && record.contains("HIDDEN-TOO"),
        "{record}"
    );
    assert!(
        !record.contains("HIDDEN-START"),
        "the end of an item counts: {record}"
    );
}

#[test]
fn a_call_is_shown_by_its_name_under_its_call_id_and_its_arguments_may_come_at_its_end_only() {
    let (round, events, decoder) = run(&[
        added(0, call("call_1", "")),
        piece("function_call_arguments.delta", 0, json!({"delta":"{\"a\":"})),
        piece("function_call_arguments.delta", 0, json!({"delta":"1}"})),
        piece(
            "function_call_arguments.done",
            0,
            json!({"arguments":"{\"a\":1}"}),
        ),
        done(0, call("call_1", "{\"a\":1}")),
        done(1, call("call_2", "{\"b\":2}")),
        added(2, call("", "")),
        done(2, call("", "")),
        completed(json!([])),
    ]);
    let calls: Vec<(String, String)> = round
        .calls()
        .into_iter()
        .map(|call| (call.id, call.arguments))
        .collect();
    let pair = |id: &str, arguments: &str| (id.to_owned(), arguments.to_owned());
    assert_eq!(
        calls,
        [
            pair("call_1", "{\"a\":1}"),
            pair("call_2", "{\"b\":2}"),
            pair("call_2", "{}")
        ]
    );
    assert!(round.calls().iter().all(|call| call.parsed.is_ok()));
    assert_eq!(round.stop, Some(("completed".to_owned(), StopReason::ToolUse)));
    assert!(matches!(events.first(), Some(ProviderEvent::BlockStart { .. })));
    let record = decoder.replay().expect("a record").message;
    assert_eq!(record["output"][2]["arguments"], "{}");
    assert_eq!(
        record["output"][2]["call_id"], "call_2",
        "the id under which it was shown"
    );
}

#[test]
fn a_call_that_was_cut_or_contradicts_itself_is_not_run() {
    let incomplete = json!({"type":"response.incomplete","response":{"status":"incomplete",
        "incomplete_details":{"reason":"max_output_tokens"},"output":[]}});
    let (round, _, decoder) = run(&[
        added(0, call("call_1", "")),
        piece("function_call_arguments.delta", 0, json!({"delta":"{\"a\":"})),
        incomplete.clone(),
    ]);
    assert_eq!(shown(&round), [("call", "{\"a\":", false)]);
    assert_eq!(
        round.stop,
        Some(("max_output_tokens".to_owned(), StopReason::Length))
    );
    assert_eq!(round.end, Some(StreamEnd::Complete));
    assert_eq!(
        decoder.replay().expect("a record").message["output"][0]["arguments"],
        "{}"
    );

    let (round, _, _) = run(&[added(0, call("call_1", "")), incomplete]);
    assert_eq!(shown(&round), [("call", "", false)]);

    let (round, _, _) = run(&[
        added(0, call("call_1", "")),
        piece("function_call_arguments.delta", 0, json!({"delta":"{\"a\":1}"})),
        done(0, call("call_1", "{\"a\":2}")),
        completed(json!([])),
    ]);
    assert!(round.calls()[0].parsed.is_err());
}

#[test]
fn the_whole_response_gives_what_no_event_brought() {
    let (round, _, _) = run(&[
        done(0, message("One")),
        completed(json!([message("One"), call("call_1", "{}"), {"type":"novel"}])),
    ]);
    assert_eq!(
        shown(&round),
        [
            ("text", "One", true),
            ("call", "{}", true),
            ("unsupported", "", true)
        ]
    );
    assert_eq!(round.usage.and_then(|usage| usage.input_tokens), Some(3));
}

#[test]
fn results_of_the_providers_own_tools_find_their_calls() {
    let (round, _, _) = run(&[
        done(
            0,
            json!({"type":"shell_call","id":"sh_1","call_id":"c1","action":{"commands":["ls"]}}),
        ),
        done(
            1,
            json!({"type":"shell_call","id":"sh_2","call_id":"c2","action":{"commands":["no"]}}),
        ),
        done(
            2,
            json!({"type":"shell_call_output","call_id":"c1","output":[
            {"stdout":"a\n","stderr":"","outcome":{"type":"exit","exit_code":0},"novel":"HIDDEN"}]}),
        ),
        done(
            3,
            json!({"type":"shell_call_output","call_id":"c2","output":[
            {"stdout":"","stderr":"bad","outcome":{"type":"exit","exit_code":2}}]}),
        ),
        added(
            4,
            json!({"type":"mcp_call","id":"mcp_1","name":"short","arguments":""}),
        ),
        piece("mcp_call_arguments.delta", 4, json!({"delta":"{}"})),
        done(
            4,
            json!({"type":"mcp_call","id":"mcp_1","name":"short","arguments":"{}","output":"made","error":null}),
        ),
        done(
            5,
            json!({"type":"code_interpreter_call","id":"ci","code":"1+1","outputs":[{"type":"logs","logs":"2"}]}),
        ),
        completed(json!([])),
    ]);
    assert_eq!(
        shown(&round),
        [
            ("server", "{\"commands\":[\"ls\"]}", true),
            ("server", "{\"commands\":[\"no\"]}", true),
            ("server", "{}", true),
            ("server", "{\"code\":\"1+1\"}", true)
        ]
    );
    let results: Vec<(Option<Position>, &str, &str, bool)> = round
        .results
        .iter()
        .map(|result| {
            let (id, text) = (result.tool_call_id.as_str(), result.text.as_str());
            (result.position, id, text, result.is_error)
        })
        .collect();
    assert_eq!(
        results,
        [
            (Some(0), "sh_1", "a\n", false),
            (Some(1), "sh_2", "bad\nexit code 2", true),
            (Some(2), "mcp_1", "made", false),
            (Some(3), "ci", "2", false)
        ]
    );
    assert!(round.calls().is_empty(), "nothing of it is for us");
}

#[test]
fn reasoning_that_cannot_be_read_again_stays_out_of_the_record_and_unties_what_followed() {
    let (_, _, decoder) = run(&[
        done(
            0,
            json!({"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"s"}]}),
        ),
        done(1, call("call_1", "{}")),
        completed(json!([])),
    ]);
    assert_eq!(
        decoder.replay().expect("a record").message,
        json!({"output":[{"type":"function_call","call_id":"call_1","name":"t","arguments":"{}"}]})
    );
    let (_, _, decoder) = run(&[
        done(0, message("Hi")),
        done(
            1,
            json!({"type":"reasoning","summary":[],"encrypted_content":"e"}),
        ),
        json!({"type":"response.incomplete","response":{"status":"incomplete",
            "incomplete_details":{"reason":"max_output_tokens"}}}),
    ]);
    assert_eq!(
        decoder.replay().expect("a record").message,
        json!({"output":[message("Hi")]}),
        "reasoning that nothing came of is refused"
    );
}

#[test]
fn an_error_is_told_once_and_what_came_stays() {
    let failed =
        |error: Value| json!({"type":"response.failed","response":{"status":"failed","error":error}});
    let rate = json!({"code":"rate_limit_exceeded","message":"Slow down"});
    for (events, class) in [
        (
            vec![
                json!({"type":"error","code":"rate_limit_exceeded","message":"Slow down","param":null}),
                failed(rate.clone()),
            ],
            ProviderErrorClass::RateLimited,
        ),
        (
            vec![json!({"type":"error","error":{"type":"insufficient_quota","message":"Pay"}})],
            ProviderErrorClass::Billing,
        ),
        (vec![failed(rate)], ProviderErrorClass::RateLimited),
        (vec![failed(Value::Null)], ProviderErrorClass::Server),
        (vec![], ProviderErrorClass::Broken),
    ] {
        let before = piece("output_text.delta", 0, json!({"content_index":0,"delta":"Hi"}));
        let (round, out, decoder) = run(&[vec![before], events].concat());
        assert_eq!(shown(&round), [("text", "Hi", false)]);
        let errors: Vec<&ProviderEvent> = out
            .iter()
            .filter(|event| matches!(event, ProviderEvent::Error(_)))
            .collect();
        assert_eq!(errors.len(), 1);
        assert_eq!(round.error.map(|error| error.class), Some(class));
        assert_eq!(round.end, Some(StreamEnd::Interrupted));
        assert_eq!(decoder.replay(), None);
    }
}

#[test]
fn the_mark_of_other_formats_is_no_end() {
    let mut decoder = Decoder::new("main", "model");
    decoder.push(&event(&done(0, message("Hi")).to_string()));
    assert!(decoder.push(&event("[DONE]")).is_empty());
    assert!(!decoder.is_ended());
    assert!(
        decoder
            .finish()
            .contains(&ProviderEvent::End(StreamEnd::Interrupted))
    );
    assert!(
        decoder.push(&event("{\"type\":\"error\"}")).is_empty(),
        "nothing follows the end"
    );
}

#[test]
fn the_id_of_the_response_is_the_last_one_before_its_first_item() {
    let start =
        |kind: &str, id: &str| json!({"type":format!("response.{kind}"),"response":{"id":id,"model":"m"}});
    let (round, events, _) = run(&[
        start("created", "a"),
        start("in_progress", "a"),
        start("in_progress", "b"),
        done(0, message("Hi")),
        start("in_progress", "c"),
        completed(json!([])),
    ]);
    assert_eq!(round.response_id.as_deref(), Some("b"));
    assert_eq!(round.model.as_deref(), Some("m"));
    let starts = events
        .iter()
        .filter(|event| matches!(event, ProviderEvent::Started { .. }));
    assert_eq!(starts.count(), 2);
}
