//! The full record of a model node as text: with reasoning, arguments and what came back.

use protocol::fold::RunState;
use protocol::id::NodeId;
use protocol::model::{Block, BlockBody, Content};
use protocol::state::{BlockStatus, Channel};

use super::words;

/// So many levels of inner model calls are written out.
const LEVELS: usize = 64;

/// The record of a model node, as Markdown.
pub fn of(state: &RunState, node: &NodeId) -> String {
    let mut text = String::new();
    write(state, node, 0, &mut text);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn write(state: &RunState, node: &NodeId, level: usize, text: &mut String) {
    let attempts: Vec<_> = state.attempts_of(node).collect();
    for attempt in &attempts {
        if attempts.len() > 1 {
            let number = attempt.attempt_index + 1;
            let status = words::attempt_state(attempt.state.status()).word();
            let (provider, model) = (&attempt.provider, &attempt.model);
            text.push_str(&format!(
                "--- attempt {number}: {provider}/{model}, {status} ---\n\n"
            ));
        }
        for gap in state.left_out_of(&attempt.attempt_id) {
            text.push_str(&format!(
                "[blocks {} to {} are not in the page]\n\n",
                u64::from(gap.from) + 1,
                gap.to
            ));
        }
        for block in state.blocks_of(&attempt.attempt_id) {
            write_block(state, block, level, text);
        }
    }
}

fn write_block(state: &RunState, block: &Block, level: usize, text: &mut String) {
    match &block.body {
        BlockBody::Text(content) | BlockBody::Refusal(content) => write_content(content, text),
        BlockBody::Reasoning { content, .. } => {
            text.push_str("[reasoning]\n");
            write_content(content, text);
        }
        BlockBody::ToolRef(reference) => {
            text.push_str(&format!("[{}]", reference.tool_name));
            match reference
                .ref_node_id
                .as_ref()
                .filter(|node| state.node(node).is_some())
            {
                Some(node) => write_call(state, node, level, text),
                None => text.push_str(" unresolved"),
            }
        }
        BlockBody::ParallelGroup { .. } => return,
        BlockBody::Unsupported { raw_kind, bytes } => {
            text.push_str(&format!("[unsupported block of kind {raw_kind}, {bytes} bytes]"));
        }
    }
    if block.state.status() == BlockStatus::Cut {
        text.push_str("\n[cut here]");
    }
    text.push_str("\n\n");
}

/// A text, with a word where only its beginning is in the page.
fn write_content(content: &Content, text: &mut String) {
    text.push_str(&content.text);
    if let Some(whole) = &content.content_ref {
        text.push_str(&format!("\n[{} of {} bytes]", content.text.len(), whole.bytes));
    }
}

/// What a call was given and gave back, and what it called.
fn write_call(state: &RunState, id: &NodeId, level: usize, text: &mut String) {
    let Some(node) = state.node(id) else { return };
    text.push_str(&format!(" {}\n", words::node_state(node.state.status()).word()));
    let parts = [
        (Channel::Arguments, "arguments"),
        (Channel::Log, "log"),
        (Channel::Result, "return value"),
    ];
    for (channel, title) in parts {
        if let Some(output) = node.outputs.get(&channel) {
            text.push_str(&format!("{title}: {}\n", output.text));
            if let Some(whole) = &output.content_ref {
                text.push_str(&format!("({} of {} bytes)\n", output.text.len(), whole.bytes));
            }
        }
    }
    if let Some(error) = node.state.end().and_then(|end| end.error.as_ref()) {
        text.push_str(&format!("error: {} ({})\n", error.message, error.code));
    }
    if level < LEVELS {
        for child in state.children(id) {
            text.push_str(&format!("[within {}: {}]", node.name, child.name));
            write_call(state, &child.node_id, level + 1, text);
            write(state, &child.node_id, level + 1, text);
        }
    }
}
