//! What a model wrote and called, from the best that a legacy node has.

use std::collections::{HashMap, HashSet};

use protocol::Extra;
use protocol::digest::sha256;
use protocol::id::{AttemptId, BlockId, NodeId, OccurrenceId};
use protocol::model::{
    Attempt, AttemptEnd, AttemptState, Block, BlockBody, BlockEnd, BlockState, Content, ToolRef,
};
use protocol::state::{AttemptReason, AttemptStatus, BlockStatus, NodeStatus, Retention};
use serde_json::{Value, json};

use super::{Legacy, Reader, text, uuid};

/// Adds the content of a model node.
pub(super) fn read(reader: &mut Reader, legacy: &Legacy, nodes: &[Legacy], known: &HashMap<String, NodeId>) {
    let value = &legacy.value;
    if let Some(snapshot) = value.pointer("/metadata/stream/snapshot")
        && from_snapshot(reader, legacy, snapshot)
    {
        return;
    }
    let mut told = Told::new(reader, legacy);
    match value.pointer("/metadata/blocks").and_then(Value::as_array) {
        Some(blocks) => told.blocks(blocks, nodes, known),
        None => told.rebuilt(nodes),
    }
}

/// The attempts and blocks of a durable snapshot; `false` where it holds none that can be read.
fn from_snapshot(reader: &mut Reader, legacy: &Legacy, snapshot: &Value) -> bool {
    let list = |name: &str| {
        snapshot
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut attempts: HashSet<AttemptId> = HashSet::new();
    for (place, value) in list("attempts").into_iter().enumerate() {
        let record = format!("node {:?}, attempt {}", legacy.id, place + 1);
        match serde_json::from_value::<Attempt>(value) {
            Ok(attempt) if attempt.node_id != legacy.node_id => reader.bad(&record, "it is of another node"),
            Ok(attempt) => {
                if attempts.insert(attempt.attempt_id.clone()) {
                    reader.snapshot.attempts.push(attempt);
                }
            }
            Err(error) => reader.bad(&record, error.to_string()),
        }
    }
    if attempts.is_empty() {
        reader.bad(
            &format!("node {:?}", legacy.id),
            "its snapshot holds no attempt that can be read",
        );
        return false;
    }
    let mut places: HashSet<(AttemptId, u32)> = HashSet::new();
    for (place, value) in list("blocks").into_iter().enumerate() {
        let record = format!("node {:?}, block {}", legacy.id, place + 1);
        match serde_json::from_value::<Block>(value) {
            Ok(block) if !attempts.contains(&block.attempt_id) => {
                reader.bad(&record, "its attempt is not there");
            }
            Ok(mut block) => {
                // Of two with the same index the second one comes behind all.
                while !places.insert((block.attempt_id.clone(), block.block_index)) {
                    let of_attempt = places.iter().filter(|(attempt, _)| *attempt == block.attempt_id);
                    let last = of_attempt.map(|(_, index)| *index).max().unwrap_or(0);
                    reader.bad(
                        &record,
                        format!(
                            "the index {} came before: it stands at the end",
                            block.block_index
                        ),
                    );
                    block.block_index = last.saturating_add(1);
                }
                block.node_id = legacy.node_id.clone();
                reader.snapshot.blocks.push(block);
            }
            Err(error) => reader.bad(&record, error.to_string()),
        }
    }
    true
}

/// One attempt that is made of what there is.
struct Told<'a> {
    reader: &'a mut Reader,
    legacy: &'a Legacy,
    attempt: AttemptId,
    index: u32,
    calls: u32,
}

impl<'a> Told<'a> {
    fn new(reader: &'a mut Reader, legacy: &'a Legacy) -> Self {
        let attempt = AttemptId::from_uuid(uuid(&["attempt", legacy.node_id.as_str()]));
        let node = reader
            .snapshot
            .nodes
            .iter()
            .find(|node| node.node_id == legacy.node_id);
        let (started_at, end) = node.map_or((0, None), |node| (node.announced_at, node.state.end().cloned()));
        let status = match end.as_ref().map(|end| end.status) {
            Some(NodeStatus::Succeeded) => AttemptStatus::Completed,
            Some(NodeStatus::Failed | NodeStatus::TimedOut) => AttemptStatus::Failed,
            Some(NodeStatus::Cancelled) => AttemptStatus::Cancelled,
            _ => AttemptStatus::Interrupted,
        };
        reader.snapshot.attempts.push(Attempt {
            attempt_id: attempt.clone(),
            node_id: legacy.node_id.clone(),
            attempt_index: 0,
            reason: AttemptReason::Legacy,
            state: AttemptState::Ended(AttemptEnd {
                status,
                finished_at: end.as_ref().map_or(started_at, |end| end.finished_at),
                stop_reason: None,
                usage: None,
                error: end.and_then(|end| end.error),
            }),
            provider: text(&legacy.value, "provider").unwrap_or_default().to_owned(),
            model: text(&legacy.value, "model").unwrap_or_default().to_owned(),
            continues_attempt_id: None,
            kept: None,
            started_at,
            extra: Extra::new(),
        });
        Self {
            reader,
            legacy,
            attempt,
            index: 0,
            calls: 0,
        }
    }

    fn blocks(&mut self, blocks: &[Value], nodes: &[Legacy], known: &HashMap<String, NodeId>) {
        let index = |block: &Value| {
            let mut names = ["block_index", "index", "ordinal"].iter();
            names.find_map(|name| block.get(name).and_then(Value::as_u64))
        };
        let mut ordered: Vec<(u64, &Value)> = Vec::with_capacity(blocks.len());
        let mut seen = HashSet::new();
        for (place, block) in blocks.iter().enumerate() {
            let index = index(block);
            if let Some(index) = index
                && !seen.insert(index)
            {
                let record = format!("node {:?}, block {}", self.legacy.id, place + 1);
                let words = format!("the index {index} came before: it stands behind that one");
                self.reader.bad(&record, words);
            }
            ordered.push((index.unwrap_or(place as u64), block));
        }
        ordered.sort_by_key(|(index, _)| *index);
        for (_, block) in ordered {
            self.block(block, nodes, known);
        }
    }

    fn block(&mut self, block: &Value, nodes: &[Legacy], known: &HashMap<String, NodeId>) {
        let content = |own: &str| [own, "content", "text"].iter().find_map(|name| text(block, name));
        let kind = text(block, "type").or(text(block, "kind")).unwrap_or("untyped");
        match kind {
            "text" => self.push(BlockBody::Text(plain(content("text").unwrap_or_default()))),
            "thinking" | "reasoning" => {
                let said = content("thinking").filter(|said| !said.is_empty());
                let retention = if said.is_some() {
                    Retention::Saved
                } else {
                    Retention::NotSaved
                };
                let content = plain(said.unwrap_or_default());
                self.push(BlockBody::Reasoning { content, retention });
            }
            "tool" | "tool_ref" | "tool_use" => {
                let call = text(block, "tool_call_id")
                    .or(text(block, "id"))
                    .unwrap_or_default();
                let named = text(block, "ref_node_id").or(text(block, "node_id"));
                let node = match named {
                    Some(named) => known.get(named).cloned(),
                    None => nodes
                        .iter()
                        .find(|node| !call.is_empty() && text(&node.value, "tool_call_id") == Some(call))
                        .map(|node| node.node_id.clone()),
                };
                let name = text(block, "tool_name").or(text(block, "name")).unwrap_or("tool");
                self.call(call, name, node);
            }
            _ => {
                let raw_kind = kind.chars().take(100).collect();
                let bytes = block.to_string().len() as u64;
                self.push(BlockBody::Unsupported { raw_kind, bytes });
            }
        }
    }

    /// The plain reply, after the calls in the order of their start.
    fn rebuilt(&mut self, nodes: &[Legacy]) {
        let id = self.legacy.id.as_str();
        let mut children: Vec<&Legacy> = nodes
            .iter()
            .filter(|node| text(&node.value, "parent_id") == Some(id))
            .collect();
        children.sort_by_key(|node| node.started_at);
        for child in children {
            let call = text(&child.value, "tool_call_id").unwrap_or_default();
            let name = text(&child.value, "name").unwrap_or(child.kind.as_str());
            self.call(call, name, Some(child.node_id.clone()));
        }
        let value = &self.legacy.value;
        let reply = ["reply", "text", "output"]
            .iter()
            .find_map(|name| text(value, name));
        let reply = reply.or(text(value, "result")).unwrap_or_default();
        if !reply.is_empty() {
            self.push(BlockBody::Text(plain(reply)));
        }
        let at = self.legacy.started_at.unwrap_or(0);
        let words = format!(
            "The record of {} holds no order: its calls stand in the order of their start, and its reply after them.",
            text(value, "name").unwrap_or(id)
        );
        self.reader
            .notice("reconstructed", json!({ "message": words }), at);
        if let Some(attempt) = self.reader.snapshot.attempts.last_mut() {
            attempt.extra.insert("reconstructed".to_owned(), true.into());
        }
    }

    fn call(&mut self, call: &str, name: &str, node: Option<NodeId>) {
        let occurrence = OccurrenceId::tool_call(&self.legacy.node_id, &self.attempt, 0, self.calls);
        self.calls += 1;
        let nodes = self.reader.snapshot.nodes.iter_mut();
        if let Some(node) = nodes
            .into_iter()
            .find(|known| Some(&known.node_id) == node.as_ref())
        {
            node.occurrence_id.get_or_insert_with(|| occurrence.clone());
        }
        self.push(BlockBody::ToolRef(ToolRef {
            tool_call_id: call.to_owned(),
            occurrence_id: occurrence,
            ref_node_id: node,
            tool_name: name.to_owned(),
            group_id: None,
        }));
    }

    fn push(&mut self, body: BlockBody) {
        let index = self.index;
        self.index += 1;
        let at = self.legacy.started_at.unwrap_or(0);
        let (bytes, hash) = match &body {
            BlockBody::Unsupported { bytes, .. } => (*bytes, Some(sha256(b""))),
            _ if body.is_pointer() => (0, None),
            _ => {
                let text = body.content().map_or("", |content| &content.text);
                (text.len() as u64, Some(sha256(text.as_bytes())))
            }
        };
        self.reader.snapshot.blocks.push(Block {
            block_id: BlockId::at(&self.attempt, index),
            attempt_id: self.attempt.clone(),
            node_id: self.legacy.node_id.clone(),
            block_index: index,
            round: 0,
            body,
            state: BlockState::Ended(BlockEnd {
                status: BlockStatus::Complete,
                finished_at: at,
                bytes,
                sha256: hash,
            }),
            started_at: at,
            extra: Extra::new(),
        });
    }
}

fn plain(text: &str) -> Content {
    Content {
        text: text.to_owned(),
        content_ref: None,
    }
}
