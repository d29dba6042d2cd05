//! The adapters over recorded streams: blocks, usage, stop and hidden values as expected, at any chunking.
//!
//! The recordings are not part of this repository. They are looked for in the folder that `RUNLOOM_CAPTURES` names,
//! else beside the workspace; without them these tests say so and pass.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

mod expected;

use expected::{expected_blocks, expected_results, goes_back};

struct Capture {
    name: String,
    kind: ProviderKind,
    bytes: Vec<u8>,
    expected: Value,
}

fn captures() -> Vec<Capture> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures");
    let root = std::env::var_os("RUNLOOM_CAPTURES").map_or(beside, PathBuf::from);
    let mut found = Vec::new();
    for (folder, kind) in [
        ("anthropic", ProviderKind::Anthropic),
        ("openai_chat", ProviderKind::OpenaiChat),
        ("openai_responses", ProviderKind::OpenaiResponses),
        ("gemini", ProviderKind::Gemini),
    ] {
        let mut folders = vec![root.join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "sse") {
                    let expected = path.with_extension("expected.json");
                    found.push(Capture {
                        name: path.display().to_string(),
                        kind,
                        bytes: std::fs::read(&path).expect("a capture"),
                        expected: serde_json::from_slice(&std::fs::read(&expected).expect("its expectation"))
                            .expect("JSON"),
                    });
                }
            }
        }
    }
    if found.is_empty() {
        println!("skipped: captures not present");
    }
    found
}

fn endpoint(kind: ProviderKind) -> Endpoint {
    Endpoint {
        provider_id: "main".to_owned(),
        kind,
        base_url: "http://localhost".to_owned(),
        api_key: None,
    }
}

fn decode(kind: ProviderKind, chunks: &[&[u8]]) -> (Vec<ProviderEvent>, Box<dyn StreamDecoder>) {
    let mut sse = SseDecoder::default();
    let mut decoder = stream_decoder(&endpoint(kind), "model", DecoderOptions::default());
    let mut events = Vec::new();
    for chunk in chunks {
        for item in sse.push(chunk) {
            if let SseItem::Event(event) = item {
                events.extend(decoder.push(&event));
            }
        }
    }
    if let SseTail::Event(event) = sse.finish() {
        events.extend(decoder.push(&event));
    }
    events.extend(decoder.finish());
    (events, decoder)
}

fn round_of(events: &[ProviderEvent]) -> RoundContent {
    let mut round = RoundContent::default();
    events.iter().for_each(|event| round.apply(event));
    round
}

/// A block as (kind, name, id, content, whether it ended).
type Shown = (String, String, String, String, bool);

fn shown(round: &RoundContent) -> Vec<Shown> {
    let blocks = round.blocks.iter().map(|block| {
        let (kind, name, id) = match &block.kind {
            BlockStart::Text => ("text", "", ""),
            BlockStart::Reasoning => ("reasoning", "", ""),
            BlockStart::Refusal => ("refusal", "", ""),
            BlockStart::ToolCall { id, name } => ("tool_call", name.as_str(), id.as_str()),
            BlockStart::ServerTool { id, name } => ("server_tool", name.as_str(), id.as_str()),
            BlockStart::Unsupported { raw_kind, .. } => ("unsupported", raw_kind.as_str(), ""),
        };
        let is_call = matches!(
            block.kind,
            BlockStart::ToolCall { .. } | BlockStart::ServerTool { .. }
        );
        let content = arguments_or_text(&block.content, is_call);
        (
            kind.to_owned(),
            name.to_owned(),
            id.to_owned(),
            content,
            block.ended,
        )
    });
    blocks.collect()
}

fn arguments_or_text(content: &str, is_call: bool) -> String {
    match content {
        "" | "null" if is_call => "{}".to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn every_capture_gives_its_expected_blocks_usage_and_stop() {
    for capture in captures() {
        let (events, _) = decode(capture.kind, &[&capture.bytes]);
        let round = round_of(&events);
        assert_eq!(
            shown(&round),
            expected_blocks(&capture, &round),
            "{}",
            capture.name
        );
        let results: Vec<Option<String>> = round
            .results
            .iter()
            .map(|result| Some(result.tool_call_id.clone()))
            .collect();
        assert_eq!(results, expected_results(&capture, &round), "{}", capture.name);
        assert_eq!(
            round.stop.as_ref().map(|(raw, _)| raw.as_str()),
            capture.expected["stop"].as_str(),
            "{}",
            capture.name
        );
        let failed = !capture.expected["error"].is_null();
        assert_eq!(
            round.error.is_some(),
            failed,
            "{}: {:?}",
            capture.name,
            round.error
        );
        let end = if failed {
            StreamEnd::Interrupted
        } else {
            StreamEnd::Complete
        };
        assert_eq!(round.end, Some(end), "{}", capture.name);
        assert!(
            matches!(events.last(), Some(ProviderEvent::End(_))),
            "{}",
            capture.name
        );
        check_usage(&capture, &round);
        assert_eq!(
            round.response_id.as_deref(),
            capture.expected["response_id"].as_str(),
            "{}",
            capture.name
        );
        assert_eq!(
            round.model.as_deref(),
            capture.expected["model"].as_str(),
            "{}",
            capture.name
        );
    }
}

fn check_usage(capture: &Capture, round: &RoundContent) {
    let expected = &capture.expected["usage"];
    if expected.is_null() {
        assert_eq!(round.usage, None, "{}", capture.name);
        return;
    }
    let usage = round
        .usage
        .clone()
        .unwrap_or_else(|| panic!("{} has usage", capture.name));
    let number = |key: &str| expected.pointer(key).and_then(Value::as_u64);
    let input = match capture.kind {
        ProviderKind::Anthropic => [
            "/input_tokens",
            "/cache_read_input_tokens",
            "/cache_creation_input_tokens",
        ]
        .into_iter()
        .filter_map(number)
        .reduce(|sum, part| sum + part),
        ProviderKind::Gemini => ["/promptTokenCount", "/toolUsePromptTokenCount"]
            .into_iter()
            .filter_map(number)
            .reduce(|sum, part| sum + part),
        ProviderKind::OpenaiResponses => number("/input_tokens"),
        ProviderKind::OpenaiChat => number("/prompt_tokens"),
    };
    assert_eq!(usage.input_tokens, input, "{}", capture.name);
    assert_eq!(
        usage.output_tokens,
        number("/output_tokens")
            .or(number("/completion_tokens"))
            .or(number("/candidatesTokenCount")
                .map(|answer| answer + number("/thoughtsTokenCount").unwrap_or(0))),
        "{}",
        capture.name
    );
    let reasoning = number("/completion_tokens_details/reasoning_tokens")
        .or(number("/output_tokens_details/thinking_tokens"))
        .or(number("/output_tokens_details/reasoning_tokens"))
        .or(number("/thoughtsTokenCount"));
    assert_eq!(usage.reasoning_tokens, reasoning, "{}", capture.name);
    let cached = number("/cache_read_input_tokens")
        .or(number("/prompt_tokens_details/cached_tokens"))
        .or(number("/input_tokens_details/cached_tokens"));
    assert_eq!(usage.cache_read_tokens, cached, "{}", capture.name);
    if let Some(cost) = expected["cost"].as_f64() {
        assert_eq!(usage.cost, Some(cost), "{}", capture.name);
    }
}

#[test]
fn no_hidden_value_of_a_capture_is_in_any_event() {
    for capture in captures() {
        let (events, _) = decode(capture.kind, &[&capture.bytes]);
        let printed = format!("{events:?}");
        let listed = capture.expected["internal"].as_array().expect("a list").clone();
        let mut hidden: Vec<String> = listed
            .iter()
            .filter_map(|pair| pair[1].as_str().map(str::to_owned))
            .collect();
        assert_eq!(
            hidden.len(),
            listed.len(),
            "{}: every hidden value is text",
            capture.name
        );
        // What the expectations leave out: the opaque parts of search results.
        hidden.extend(opaque_values(&capture.bytes));
        for value in hidden {
            assert!(!printed.contains(&value), "{}: {value:.60}", capture.name);
        }
    }
}

fn opaque_values(bytes: &[u8]) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    match inner.as_str() {
                        Some(text)
                            if key.starts_with("encrypted") || key.to_lowercase().ends_with("signature") =>
                        {
                            found.push(text.to_owned());
                        }
                        _ => collect(inner, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for item in SseDecoder::default().push(bytes) {
        if let SseItem::Event(event) = item
            && let Ok(value) = serde_json::from_str(&event.data)
        {
            collect(&value, &mut found);
        }
    }
    found.retain(|text| text.len() > 8);
    found
}

#[test]
fn every_chunking_and_framing_of_a_capture_gives_equal_events() {
    for capture in captures() {
        let (whole, _) = decode(capture.kind, &[&capture.bytes]);
        for size in [1, 2, 3, 7, 64, 1000, 4096] {
            let chunks: Vec<&[u8]> = capture.bytes.chunks(size).collect();
            assert_eq!(
                decode(capture.kind, &chunks).0,
                whole,
                "{} in chunks of {size}",
                capture.name
            );
        }
        let text = String::from_utf8(capture.bytes.clone())
            .expect("text")
            .replace("\r\n", "\n");
        let variants = [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            format!("\u{feff}{text}"),
            text.replace("\ndata: ", "\ndata:"),
            text.replace(
                "\n\n",
                "\n\n: keep-alive\n\nevent: novel\ndata: {\"type\":\"novel\"}\n\n",
            ),
        ];
        for (number, variant) in variants.iter().enumerate() {
            assert_eq!(
                decode(capture.kind, &[variant.as_bytes()]).0,
                whole,
                "{} variant {number}",
                capture.name
            );
        }
    }
}

#[test]
fn a_capture_cut_anywhere_gives_a_prefix_of_its_blocks_and_no_complete_end_before_its_marker() {
    for capture in captures() {
        let (events, _) = decode(capture.kind, &[&capture.bytes]);
        let whole = round_of(&events);
        let step = (capture.bytes.len() / 120).max(1);
        for cut in (0..capture.bytes.len()).step_by(step) {
            let (events, decoder) = decode(capture.kind, &[&capture.bytes[..cut]]);
            let part = round_of(&events);
            assert!(
                part.blocks.len() <= whole.blocks.len(),
                "{} cut at {cut}",
                capture.name
            );
            for (number, (block, full)) in part.blocks.iter().zip(&whole.blocks).enumerate() {
                assert_eq!(
                    (block.position, &block.kind),
                    (full.position, &full.kind),
                    "{} cut at {cut}",
                    capture.name
                );
                assert!(
                    full.content.starts_with(&block.content),
                    "{} cut at {cut}",
                    capture.name
                );
                if block.ended || number + 1 < part.blocks.len() && !is_call(full) {
                    assert_eq!(block.content, full.content, "{} cut at {cut}", capture.name);
                }
            }
            assert!(part.end.is_some());
            assert_eq!(
                part.end == Some(StreamEnd::Interrupted),
                part.error.is_some(),
                "{} cut at {cut}",
                capture.name
            );
            assert!(
                decoder.replay().is_none() || part.end == Some(StreamEnd::Complete),
                "{} cut at {cut}",
                capture.name
            );
        }
    }
}

fn is_call(block: &RoundBlock) -> bool {
    matches!(
        block.kind,
        BlockStart::ToolCall { .. } | BlockStart::ServerTool { .. }
    )
}

#[test]
fn the_replay_of_a_capture_goes_back_to_its_endpoint_and_model_only() {
    for capture in captures() {
        let (events, decoder) = decode(capture.kind, &[&capture.bytes]);
        let round = round_of(&events);
        let Some(replay) = decoder.replay() else {
            assert!(
                round.parts().is_empty() || round.end != Some(StreamEnd::Complete),
                "{}",
                capture.name
            );
            continue;
        };
        let results = round.calls().into_iter().map(|call| ToolResult {
            tool_call_id: call.id,
            tool_name: call.name,
            content: "the-result-of-this-call".to_owned(),
            is_error: false,
        });
        let mut request = ModelRequest {
            model: "model".to_owned(),
            system: None,
            messages: vec![
                ModelMessage::User {
                    text: "Hello".to_owned(),
                },
                ModelMessage::Assistant {
                    parts: round.parts(),
                    replay: Some(replay),
                },
                ModelMessage::ToolResults {
                    results: results.collect(),
                },
            ],
            tools: Vec::new(),
            max_tokens: None,
        };
        let hidden: Vec<String> = capture.expected["internal"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|pair| pair[1].as_str().map(str::to_owned))
            .filter(|value| goes_back(&capture, value))
            .collect();
        let body = build_request(&endpoint(capture.kind), &request).body.to_string();
        for value in &hidden {
            assert!(body.contains(value), "{} sends {value:.40} back", capture.name);
        }
        assert_eq!(
            body.matches("the-result-of-this-call").count(),
            round.calls().len(),
            "{}",
            capture.name
        );
        request.model = "other".to_owned();
        let body = build_request(&endpoint(capture.kind), &request).body.to_string();
        for value in &hidden {
            assert!(
                !body.contains(value),
                "{} keeps {value:.40} from another model",
                capture.name
            );
        }
    }
}
