//! The proof that two records are equal: SHA-256 over canonical JSON (RFC 8785) of what a run shows.
//!
//! It covers messages, nodes, attempts and blocks in order, with the hashes of their content; not times, `seq`,
//! `generation` or usage. A reader that has not loaded a content uses the length and hash that closed it. Content
//! that is not saved counts as empty.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fold::RunState;
use crate::id::NodeId;
use crate::model::{Block, BlockBody, Content, Node, Output};
use crate::state::Retention;

/// SHA-256 of a content, in lower-case hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

/// A hash that is computed while its content comes.
#[derive(Debug, Clone, Default)]
pub struct Sha256Stream(Sha256);

impl Sha256Stream {
    /// Adds more content.
    pub fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    /// The hash of all that came, in lower-case hexadecimal.
    pub fn finish(self) -> String {
        hexadecimal(&self.0.finalize())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The digest of a run, in lower-case hexadecimal.
pub fn digest(state: &RunState) -> String {
    sha256(&canonical(state))
}

/// What the digest is computed over, as canonical JSON.
pub fn canonical(state: &RunState) -> Vec<u8> {
    let messages: Vec<Value> = state
        .messages()
        .iter()
        .map(|message| json!({ "role": message.role, "sha256": sha256(message.text.as_bytes()) }))
        .collect();
    let nodes: Vec<Value> = in_tree_order(state)
        .into_iter()
        .map(|node| node_value(state, node))
        .collect();
    let record = json!({ "messages": messages, "nodes": nodes });
    // Strings, whole numbers, arrays and objects: nothing that canonical JSON refuses.
    serde_json_canonicalizer::to_vec(&record).unwrap_or_default()
}

/// Nodes from the roots down, children in order. Nodes whose parent is not known stand among the roots.
fn in_tree_order(state: &RunState) -> Vec<&Node> {
    let mut ordered = Vec::with_capacity(state.nodes().len());
    let mut seen = std::collections::HashSet::<&NodeId>::new();
    let is_top = |node: &&Node| {
        node.parent_id
            .as_ref()
            .is_none_or(|parent| state.node(parent).is_none())
    };
    let mut pending: Vec<&Node> = state.nodes().iter().filter(is_top).collect();
    pending.reverse();
    while let Some(node) = pending.pop() {
        if seen.insert(&node.node_id) {
            ordered.push(node);
            pending.extend(state.children(&node.node_id).rev());
        }
    }
    // Those of a chain of parents that bites its own tail are below no root.
    ordered.extend(state.nodes().iter().filter(|node| !seen.contains(&node.node_id)));
    ordered
}

fn node_value(state: &RunState, node: &Node) -> Value {
    let outputs: serde_json::Map<String, Value> = node
        .outputs
        .iter()
        .map(|(channel, output)| (channel.to_string(), Value::String(output_hash(output))))
        .collect();
    let attempts: Vec<Value> = state
        .attempts_of(&node.node_id)
        .map(|attempt| {
            let blocks: Vec<Value> = state.blocks_of(&attempt.attempt_id).map(block_value).collect();
            json!({ "reason": attempt.reason, "status": attempt.state.status(), "blocks": blocks })
        })
        .collect();
    json!({
        "parent": node.parent_id,
        "ordinal": node.ordinal,
        "kind": node.kind,
        "name": node.name,
        "status": node.state.status(),
        "outputs": outputs,
        "attempts": attempts,
    })
}

fn output_hash(output: &Output) -> String {
    match &output.content_ref {
        Some(whole) => whole.sha256.clone(),
        None => sha256(output.text.as_bytes()),
    }
}

fn block_value(block: &Block) -> Value {
    let mut value = serde_json::Map::new();
    value.insert("kind".to_owned(), block.body.kind().into());
    value.insert("status".to_owned(), block.state.status().as_str().into());
    match &block.body {
        BlockBody::Reasoning {
            retention: Retention::NotSaved,
            ..
        } => {
            value.insert("sha256".to_owned(), sha256(b"").into());
        }
        BlockBody::Text(content) | BlockBody::Refusal(content) | BlockBody::Reasoning { content, .. } => {
            value.insert("sha256".to_owned(), content_hash(content).into());
        }
        BlockBody::ToolRef(reference) => {
            value.insert("occurrence".to_owned(), reference.occurrence_id.as_str().into());
            if let Some(group) = &reference.group_id {
                value.insert("group".to_owned(), group.as_str().into());
            }
        }
        BlockBody::ParallelGroup { group_id, members } => {
            value.insert("group".to_owned(), group_id.as_str().into());
            value.insert(
                "members".to_owned(),
                members.iter().map(|block| Value::from(block.as_str())).collect(),
            );
        }
        BlockBody::Unsupported { raw_kind, bytes } => {
            value.insert("raw_kind".to_owned(), raw_kind.as_str().into());
            value.insert("bytes".to_owned(), (*bytes).into());
        }
    }
    Value::Object(value)
}

fn content_hash(content: &Content) -> String {
    match &content.content_ref {
        Some(whole) => whole.sha256.clone(),
        None => sha256(content.text.as_bytes()),
    }
}
