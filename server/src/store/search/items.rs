//! The texts of a run, in the order of the page.

use std::collections::HashSet;

use protocol::fold::RunState;
use protocol::id::{AttemptId, BlockId, MessageId, NodeId};
use protocol::model::{Block, BlockBody, BlockState, ErrorInfo, Node};
use protocol::search::SearchField;
use protocol::state::Channel;
use serde_json::Value;

use crate::store::content::PART_BYTES;

/// Where a text is.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Here.
    Given(String),
    /// The closed content of a block, of so many bytes.
    Block(BlockId, u64),
    /// What a channel holds; of one that still grows the length is not known.
    Output(NodeId, Channel, Option<u64>),
}

/// One text, and what it is of.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// What tells it from other texts of its field.
    pub(super) key: String,
    pub(super) node_id: Option<NodeId>,
    pub(super) attempt_id: Option<AttemptId>,
    pub(super) block_id: Option<BlockId>,
    pub(super) message_id: Option<MessageId>,
    pub(super) field: SearchField,
    pub(super) source: Source,
}

impl Item {
    fn new(key: impl ToString, field: SearchField, source: Source) -> Self {
        Self {
            key: key.to_string(),
            node_id: None,
            attempt_id: None,
            block_id: None,
            message_id: None,
            field,
            source,
        }
    }

    /// Whose pieces it is in.
    pub(super) fn subject(&self) -> Option<String> {
        match &self.source {
            Source::Given(_) => None,
            Source::Block(id, _) => Some(id.to_string()),
            Source::Output(id, ..) => Some(id.to_string()),
        }
    }

    /// Its name among the pieces of its subject.
    pub(super) fn channel(&self) -> &'static str {
        match &self.source {
            Source::Output(_, channel, _) => channel.as_str(),
            Source::Given(_) | Source::Block(..) => "content",
        }
    }

    /// Its length, as far as it is known.
    pub(super) fn bytes(&self) -> u64 {
        match &self.source {
            Source::Given(text) => text.len() as u64,
            Source::Block(_, bytes) => *bytes,
            Source::Output(_, _, bytes) => bytes.unwrap_or(u64::MAX / 2),
        }
    }

    /// Whether it is in several pieces.
    pub(super) fn is_long(&self) -> bool {
        !matches!(self.source, Source::Given(_)) && self.bytes() > PART_BYTES as u64
    }
}

/// All texts of a run.
pub(super) fn of(state: &RunState) -> Vec<Item> {
    let mut walk = Walk {
        state,
        seen: HashSet::new(),
        items: Vec::new(),
    };
    for message in state.messages() {
        let source = Source::Given(message.text.clone());
        walk.items.push(Item {
            message_id: Some(message.message_id.clone()),
            ..Item::new(&message.message_id, SearchField::Message, source)
        });
    }
    if let Some(root) = state.root() {
        walk.seen.insert(root.node_id.clone());
        for child in state.children(&root.node_id) {
            walk.node(child);
        }
    }
    // What no other node called, such as in a record of another form.
    for node in state.nodes() {
        walk.node(node);
    }
    for notice in state.notices() {
        if let Some(words) = words(&notice.detail) {
            walk.items.push(Item {
                node_id: notice.node_id.clone(),
                ..Item::new(notice.seq, SearchField::Notice, Source::Given(words))
            });
        }
    }
    if let Some(error) = &state.run().error {
        walk.items.push(Item::new(
            "run",
            SearchField::Error,
            Source::Given(error_words(error)),
        ));
    }
    walk.items
}

/// What a notice says, as the page shows it.
fn words(detail: &Value) -> Option<String> {
    match detail {
        Value::String(words) => Some(words.clone()),
        Value::Null => None,
        Value::Object(fields) => match fields.get("message").and_then(Value::as_str) {
            Some(words) => Some(words.to_owned()),
            None => Some(detail.to_string()),
        },
        other => Some(other.to_string()),
    }
}

fn error_words(error: &ErrorInfo) -> String {
    format!("{}\n{}", error.message, error.code)
}

struct Walk<'a> {
    state: &'a RunState,
    /// Nodes that were met: a record may point at one twice, or in a circle.
    seen: HashSet<NodeId>,
    items: Vec<Item>,
}

impl<'a> Walk<'a> {
    /// A node, with all that it called. Levels are not bounded by the stack of the thread.
    fn node(&mut self, node: &'a Node) {
        let mut pending = vec![Step::Node(node)];
        while let Some(step) = pending.pop() {
            let mut next = Vec::new();
            match step {
                Step::Node(node) => {
                    if !self.seen.insert(node.node_id.clone()) {
                        continue;
                    }
                    self.own_texts(node);
                    for attempt in self.state.attempts_of(&node.node_id) {
                        next.extend(self.state.blocks_of(&attempt.attempt_id).map(Step::Block));
                        next.push(Step::AttemptEnd(&attempt.attempt_id));
                    }
                    next.extend(self.state.children(&node.node_id).map(Step::Node));
                }
                Step::Block(block) => {
                    if let Some(node) = self.block(block) {
                        next.push(Step::Node(node));
                    }
                }
                Step::AttemptEnd(id) => self.attempt_end(id),
            }
            pending.extend(next.into_iter().rev());
        }
    }

    /// The names of a node, and what a call was given, said and gave back.
    fn own_texts(&mut self, node: &Node) {
        let row = self.state.block_of_node(&node.node_id);
        let of = |field, source| Item {
            node_id: Some(node.node_id.clone()),
            attempt_id: row.map(|row| row.attempt_id.clone()),
            block_id: row.map(|row| row.block_id.clone()),
            ..Item::new(&node.node_id, field, source)
        };
        let mut push = |field, text: String| {
            if !text.is_empty() {
                self.items.push(of(field, Source::Given(text)));
            }
        };
        push(SearchField::Name, node.name.clone());
        if node.title != node.name {
            push(SearchField::Title, node.title.clone());
        }
        let end = node.state.end();
        if let Some(error) = end.and_then(|end| end.error.as_ref()) {
            push(SearchField::Error, error_words(error));
        }
        let note = node.progress.as_ref().and_then(|progress| progress.note.clone());
        let mut channel = |field, channel| {
            let Some(output) = node.outputs.get(&channel).filter(|output| output.bytes > 0) else {
                return;
            };
            let source = if end.is_some() {
                Source::Output(node.node_id.clone(), channel, Some(output.bytes))
            } else if output.is_open_preview() {
                Source::Output(node.node_id.clone(), channel, None)
            } else {
                Source::Given(output.text.clone())
            };
            self.items.push(of(field, source));
        };
        channel(SearchField::Arguments, Channel::Arguments);
        channel(SearchField::Log, Channel::Log);
        channel(SearchField::Result, Channel::Result);
        if let (None, Some(note)) = (end, note) {
            self.items.push(of(SearchField::Progress, Source::Given(note)));
        }
    }

    /// A block's text, or the node of its call.
    fn block(&mut self, block: &'a Block) -> Option<&'a Node> {
        let field = match &block.body {
            // What is not saved is nowhere.
            _ if block.body.is_unsaved() => return None,
            BlockBody::Text(_) => SearchField::Text,
            BlockBody::Reasoning { .. } => SearchField::Reasoning,
            BlockBody::Refusal(_) => SearchField::Refusal,
            BlockBody::ToolRef(reference) => {
                let node = reference.ref_node_id.as_ref().and_then(|id| self.state.node(id));
                if node.is_none() {
                    self.items.push(Item {
                        node_id: Some(block.node_id.clone()),
                        attempt_id: Some(block.attempt_id.clone()),
                        block_id: Some(block.block_id.clone()),
                        ..Item::new(
                            &block.block_id,
                            SearchField::Name,
                            Source::Given(reference.tool_name.clone()),
                        )
                    });
                }
                return node;
            }
            BlockBody::ParallelGroup { .. } | BlockBody::Unsupported { .. } => return None,
        };
        let source = match &block.state {
            BlockState::Ended(end) => Source::Block(block.block_id.clone(), end.bytes),
            BlockState::Streaming => {
                let text = block.body.content().map(|content| content.text.clone());
                Source::Given(text.unwrap_or_default())
            }
        };
        self.items.push(Item {
            node_id: Some(block.node_id.clone()),
            attempt_id: Some(block.attempt_id.clone()),
            block_id: Some(block.block_id.clone()),
            ..Item::new(&block.block_id, field, source)
        });
        None
    }

    fn attempt_end(&mut self, id: &AttemptId) {
        let Some(attempt) = self.state.attempt(id) else {
            return;
        };
        if let Some(error) = attempt.state.end().and_then(|end| end.error.as_ref()) {
            self.items.push(Item {
                node_id: Some(attempt.node_id.clone()),
                attempt_id: Some(attempt.attempt_id.clone()),
                ..Item::new(id, SearchField::Error, Source::Given(error_words(error)))
            });
        }
    }
}

enum Step<'a> {
    Node(&'a Node),
    Block(&'a Block),
    AttemptEnd(&'a AttemptId),
}
