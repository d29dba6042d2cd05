//! Cutting a snapshot into frames of bounded size, and putting it together again.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{HeldOp, LeftOut, Snapshot};
use crate::id::{BlockId, MessageId, NodeId};
use crate::model::{Approval, Attempt, Block, Message, Node, Notice, Run, StreamState};
use crate::state::Channel;

/// One part of a snapshot. Things come in the order of the snapshot's lists; text that does not fit goes on in
/// `continues` of this part or a later one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotPart {
    /// People's messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// Nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Requests for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// Notices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Ops that were not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Value>,
    /// Updates that wait for their node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldOp>,
    /// Blocks that the snapshot does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What the live streams are doing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamState>,
    /// Text of things that came before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continues: Vec<Continuation>,
}

/// More text of a thing that came before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Continuation {
    /// Whose text.
    pub target: Target,
    /// UTF-8 bytes of it so far.
    pub offset: u64,
    /// What is appended.
    pub text: String,
}

/// Whose text goes on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A block's content.
    Block(BlockId),
    /// A channel of a node.
    Output(NodeId, Channel),
    /// A message's text.
    Message(MessageId),
}

/// What the fields of a small thing weigh, roughly: enough to keep frames near their limit.
const THING: usize = 256;

/// What an id weighs.
const ID: usize = 32;

/// What a value weighs: its length as JSON.
fn weight(value: &Value) -> usize {
    value.to_string().len()
}

struct Splitter {
    limit: usize,
    used: usize,
    parts: Vec<SnapshotPart>,
}

impl Splitter {
    /// Makes sure that the last part has room for at least one character.
    fn make_room(&mut self) {
        if self.parts.is_empty() || self.used + 4 > self.limit {
            self.parts.push(SnapshotPart::default());
            self.used = 0;
        }
    }

    /// Begins another part when `bytes` more do not fit into one that holds something.
    fn reserve(&mut self, bytes: usize) {
        if self.used > 0 && self.used.saturating_add(bytes) > self.limit {
            self.parts.push(SnapshotPart::default());
            self.used = 0;
        }
        self.used += bytes;
    }

    /// Adds something of about `bytes` bytes.
    fn put(&mut self, bytes: usize, put: impl FnOnce(&mut SnapshotPart)) {
        self.reserve(bytes);
        if let Some(part) = self.parts.last_mut() {
            put(part);
        }
    }

    /// Leaves in `text` as much as fits beside its thing, for which room is reserved, and gives the rest.
    fn start(&mut self, text: &mut String) -> String {
        let room = self.limit.saturating_sub(self.used);
        let rest = text.split_off(text.floor_char_boundary(room));
        self.used += text.len();
        rest
    }

    /// Adds a thing for which room is reserved.
    fn place(&mut self, put: impl FnOnce(&mut SnapshotPart)) {
        if let Some(part) = self.parts.last_mut() {
            put(part);
        }
    }

    /// Adds what did not fit beside its thing.
    fn rest(&mut self, target: &Target, mut offset: u64, mut rest: String) {
        while !rest.is_empty() {
            self.make_room();
            let tail = rest.split_off(rest.floor_char_boundary(self.limit - self.used));
            let text = std::mem::replace(&mut rest, tail);
            let bytes = text.len();
            let continuation = Continuation {
                target: target.clone(),
                offset,
                text,
            };
            self.put(bytes, |part| part.continues.push(continuation));
            offset += bytes as u64;
        }
    }
}

/// Cuts a snapshot into parts of about `limit` bytes of text each (at least 1 KiB). An empty run gives one empty part.
pub fn split(snapshot: Snapshot, limit: usize) -> Vec<SnapshotPart> {
    let mut splitter = Splitter {
        limit: limit.max(1024),
        used: 0,
        parts: vec![SnapshotPart::default()],
    };
    for mut message in snapshot.messages {
        splitter.reserve(THING);
        let rest = splitter.start(&mut message.text);
        let (target, offset) = (
            Target::Message(message.message_id.clone()),
            message.text.len() as u64,
        );
        splitter.place(|part| part.messages.push(message));
        splitter.rest(&target, offset, rest);
    }
    for mut node in snapshot.nodes {
        let mut rests = Vec::new();
        splitter.reserve(THING + node.title.len() + node.after.len() * ID);
        for (channel, output) in &mut node.outputs {
            let rest = splitter.start(&mut output.text);
            rests.push((
                Target::Output(node.node_id.clone(), *channel),
                output.text.len() as u64,
                rest,
            ));
        }
        splitter.place(|part| part.nodes.push(node));
        for (target, offset, rest) in rests {
            splitter.rest(&target, offset, rest);
        }
    }
    for attempt in snapshot.attempts {
        splitter.put(THING, |part| part.attempts.push(attempt));
    }
    for mut block in snapshot.blocks {
        let target = Target::Block(block.block_id.clone());
        let mut continued = (0, String::new());
        splitter.reserve(THING);
        if let Some(content) = block.body.content_mut() {
            let rest = splitter.start(&mut content.text);
            continued = (content.text.len() as u64, rest);
        }
        splitter.place(|part| part.blocks.push(block));
        splitter.rest(&target, continued.0, continued.1);
    }
    for approval in snapshot.approvals {
        splitter.put(THING + approval.what.len(), |part| part.approvals.push(approval));
    }
    for notice in snapshot.notices {
        splitter.put(THING + weight(&notice.detail), |part| part.notices.push(notice));
    }
    for unknown in snapshot.unknown {
        splitter.put(weight(&unknown), |part| part.unknown.push(unknown));
    }
    for held in snapshot.held {
        splitter.put(THING + held.held.text_bytes(), |part| part.held.push(held));
    }
    for left_out in snapshot.left_out {
        splitter.put(THING, |part| part.left_out.push(left_out));
    }
    for stream in snapshot.streams {
        splitter.put(THING, |part| part.streams.push(stream));
    }
    splitter.parts
}

/// Parts that do not make a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// A part came out of order, or one is missing.
    #[error("part {found} came where part {expected} was expected")]
    Order {
        /// The part that should come.
        expected: u32,
        /// The part that came.
        found: u32,
    },
    /// Text for a thing that did not come, or at another place of it.
    #[error("a continuation does not fit what came before")]
    Continuation,
}

/// Puts a snapshot together from its parts.
#[derive(Debug)]
pub struct Assembler {
    snapshot: Snapshot,
    next: u32,
    blocks: HashMap<BlockId, usize>,
    nodes: HashMap<NodeId, usize>,
    messages: HashMap<MessageId, usize>,
}

impl Assembler {
    /// Begins with the run, as it is at the snapshot's `seq`.
    pub fn new(run: Run) -> Self {
        Self {
            snapshot: Snapshot::empty(run),
            next: 0,
            blocks: HashMap::new(),
            nodes: HashMap::new(),
            messages: HashMap::new(),
        }
    }

    /// Adds the part of this number, counted from 0.
    pub fn add(&mut self, number: u32, part: SnapshotPart) -> Result<(), AssemblyError> {
        if number != self.next {
            return Err(AssemblyError::Order {
                expected: self.next,
                found: number,
            });
        }
        self.next += 1;
        let snapshot = &mut self.snapshot;
        for message in part.messages {
            self.messages
                .insert(message.message_id.clone(), snapshot.messages.len());
            snapshot.messages.push(message);
        }
        for node in part.nodes {
            self.nodes.insert(node.node_id.clone(), snapshot.nodes.len());
            snapshot.nodes.push(node);
        }
        for block in part.blocks {
            self.blocks.insert(block.block_id.clone(), snapshot.blocks.len());
            snapshot.blocks.push(block);
        }
        snapshot.attempts.extend(part.attempts);
        snapshot.approvals.extend(part.approvals);
        snapshot.notices.extend(part.notices);
        snapshot.unknown.extend(part.unknown);
        snapshot.held.extend(part.held);
        snapshot.left_out.extend(part.left_out);
        snapshot.streams.extend(part.streams);
        for continuation in part.continues {
            match self.text_of(&continuation.target) {
                Some(text) if text.len() as u64 == continuation.offset => text.push_str(&continuation.text),
                _ => return Err(AssemblyError::Continuation),
            }
        }
        Ok(())
    }

    fn text_of(&mut self, target: &Target) -> Option<&mut String> {
        let snapshot = &mut self.snapshot;
        match target {
            Target::Block(block) => {
                let block = snapshot.blocks.get_mut(*self.blocks.get(block)?)?;
                Some(&mut block.body.content_mut()?.text)
            }
            Target::Output(node, channel) => {
                let node = snapshot.nodes.get_mut(*self.nodes.get(node)?)?;
                Some(&mut node.outputs.get_mut(channel)?.text)
            }
            Target::Message(message) => {
                Some(&mut snapshot.messages.get_mut(*self.messages.get(message)?)?.text)
            }
        }
    }

    /// The snapshot, when all of its `parts` came.
    pub fn finish(self, parts: u32) -> Result<Snapshot, AssemblyError> {
        if self.next == parts {
            Ok(self.snapshot)
        } else {
            Err(AssemblyError::Order {
                expected: self.next,
                found: parts,
            })
        }
    }
}
