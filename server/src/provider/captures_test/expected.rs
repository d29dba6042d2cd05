//! What a capture is expected to give, in the words of the tests.

use serde_json::Value;

use super::{Capture, Shown, arguments_or_text, shown};
use crate::provider::{BlockStart, ProviderKind, RoundContent};

/// The ids of the calls whose results are expected. Where the format gives a result an id of its own, or none, it
/// answers the call before it; and an `mcp_call` holds its result itself.
pub(super) fn expected_results(capture: &Capture, round: &RoundContent) -> Vec<Option<String>> {
    let calls = round.blocks.iter().filter_map(|block| match &block.kind {
        BlockStart::ServerTool { id, .. } => Some(id.clone()),
        _ => None,
    });
    let mut calls = calls.collect::<Vec<_>>().into_iter();
    let mut last = None;
    let mut expected = Vec::new();
    for block in capture.expected["blocks"].as_array().expect("a list") {
        let is_own = capture.kind == ProviderKind::Anthropic;
        match (block["kind"].as_str(), block["wire"].as_str()) {
            (Some("server_tool"), wire) => {
                last = calls.next();
                if matches!(wire, Some("mcp_call" | "mcp_list_tools")) {
                    expected.push(last.clone());
                }
            }
            (Some("server_result"), _) if is_own => expected.push(block["id"].as_str().map(str::to_owned)),
            (Some("server_result"), _) => expected.push(last.clone()),
            _ => {}
        }
    }
    expected
}

/// What the expectation of a block leaves open is taken from the block itself, after a look at it: the id of a call
/// that has none on the wire, and the name and arguments of a call that the provider runs itself.
fn with_what_is_open(expected: &Value, wanted: Shown, shown: Option<&Shown>) -> Shown {
    let Some(shown) = shown.filter(|shown| shown.0 == wanted.0) else {
        return wanted;
    };
    let (kind, mut name, mut id, mut content, ended) = wanted;
    if id.is_empty() && shown.2.starts_with("call_") {
        id.clone_from(&shown.2);
    }
    if kind == "server_tool" && expected["name"].is_null() && !shown.1.is_empty() {
        name.clone_from(&shown.1);
    }
    if kind == "server_tool" && expected["arguments"].is_null() {
        let arguments: Value = serde_json::from_str(&shown.3).expect("arguments in JSON");
        if arguments.is_object() && arguments["code"] == expected["code"] {
            content.clone_from(&shown.3);
        }
    }
    (kind, name, id, content, ended)
}

pub(super) fn expected_blocks(capture: &Capture, round: &RoundContent) -> Vec<Shown> {
    let found = shown(round);
    let merged = &capture.expected["blocks_merged"];
    let blocks = if merged.is_null() {
        &capture.expected["blocks"]
    } else {
        merged
    };
    let text = |block: &Value, key: &str| block[key].as_str().unwrap_or_default().to_owned();
    let failed = !capture.expected["error"].is_null();
    let blocks = blocks.as_array().expect("a list");
    let last = blocks.len() - usize::from(!blocks.is_empty());
    blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| !matches!(block["kind"].as_str(), Some("server_result" | "other")))
        .map(|(number, block)| {
            let is_call = block.get("arguments").is_some();
            let kind = if block["refusal"] == true {
                "refusal".to_owned()
            } else {
                text(block, "kind")
            };
            let content = if is_call {
                text(block, "arguments")
            } else {
                text(block, "text")
            };
            let limited = capture.expected["stop"] == "length";
            let cut = failed && number == last
                || is_call
                    && !content.is_empty()
                    && content != "null"
                    && serde_json::from_str::<Value>(&content).is_err()
                || is_call && content.is_empty() && limited && number == last;
            let name = text(block, "name");
            let content = arguments_or_text(&content, is_call);
            (block, (kind, name, text(block, "id"), content, !cut))
        })
        .enumerate()
        .map(|(place, (block, wanted))| with_what_is_open(block, wanted, found.get(place)))
        .collect()
}

/// Whether a hidden value is what the provider wants back. In Responses the start of an item has another one than its
/// end, and that of the end counts.
pub(super) fn goes_back(capture: &Capture, value: &str) -> bool {
    let text = String::from_utf8_lossy(&capture.bytes);
    capture.kind != ProviderKind::OpenaiResponses
        || text
            .lines()
            .any(|line| line.contains("\"response.output_item.done\"") && line.contains(value))
}
