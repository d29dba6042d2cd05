//! A run for people, as Markdown: what was asked, what was done about it and in which order, and all that calls were given
//! and gave back. Texts are read piece by piece while they are written.

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use protocol::fold::RunState;
use protocol::id::{BlockId, NodeId, RunId};
use protocol::model::{Attempt, Block, BlockBody, ErrorInfo, Node};
use protocol::state::{AttemptStatus, BlockStatus, Channel, MessageRole, NodeKind, Retention};
use serde_json::Value;

use crate::store::content::Kept;
use crate::store::{Store, StoreError};

/// Nested content is quoted so often at most.
const MOST_QUOTES: usize = 8;

/// What is written one after another.
enum Piece {
    /// These words.
    Words(String),
    /// The text of a block, behind this mark on each line.
    Block(BlockId, String),
    /// A channel of a node as code, behind this mark on each line.
    Output(NodeId, Channel, String),
}

/// The Markdown of a run as it is now; none when there is no such run.
pub async fn pieces(
    store: &Store,
    run_id: &RunId,
) -> Result<Option<impl Stream<Item = Result<Bytes, StoreError>> + Send + use<>>, StoreError> {
    let Some((session, _)) = store.heads_of(run_id).await? else {
        return Ok(None);
    };
    let Some(state) = store.load_outline(run_id).await? else {
        return Ok(None);
    };
    let mut writing = Writing {
        state: &state,
        pieces: Vec::new(),
    };
    writing.run(&session.title);
    let store = store.clone();
    let pieces = stream::iter(writing.pieces).then(move |piece| written(store.clone(), piece));
    Ok(Some(pieces.try_flatten()))
}

async fn written(
    store: Store,
    piece: Piece,
) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
    match piece {
        Piece::Words(words) => Ok(one(words)),
        Piece::Block(block, mark) => match store.content_of_block(&block).await? {
            Some(kept) => {
                let begin = one(mark.clone());
                Ok(begin
                    .chain(marked(kept, mark))
                    .chain(one("\n\n".to_owned()))
                    .boxed())
            }
            None => Ok(stream::empty().boxed()),
        },
        Piece::Output(node, channel, mark) => match store.content_of_output(&node, channel).await? {
            Some(kept) => {
                let fence = "`".repeat(longest_fence(kept.clone()).await?.max(2) + 1);
                let begin = one(format!("{mark}{fence}\n{mark}"));
                let end = one(format!("\n{mark}{fence}\n{}\n", mark.trim_end()));
                Ok(begin.chain(marked(kept, mark)).chain(end).boxed())
            }
            None => Ok(stream::empty().boxed()),
        },
    }
}

fn one(words: String) -> BoxStream<'static, Result<Bytes, StoreError>> {
    stream::once(async move { Ok(Bytes::from(words)) }).boxed()
}

/// A text with a mark at the beginning of each further line.
fn marked(kept: Kept, mark: String) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
    let end = kept.bytes();
    kept.range(0..end).map_ok(move |bytes| {
        if mark.is_empty() {
            return bytes;
        }
        let mut marked = Vec::with_capacity(bytes.len());
        for byte in bytes {
            marked.push(byte);
            if byte == b'\n' {
                marked.extend_from_slice(mark.as_bytes());
            }
        }
        marked.into()
    })
}

/// The most backticks in a row in a text: its fence has to be longer.
async fn longest_fence(kept: Kept) -> Result<usize, StoreError> {
    let end = kept.bytes();
    let (mut longest, mut row) = (0, 0);
    let mut pieces = kept.range(0..end).boxed();
    while let Some(piece) = pieces.try_next().await? {
        for byte in piece {
            row = if byte == b'`' { row + 1 } else { 0 };
            longest = longest.max(row);
        }
    }
    Ok(longest)
}

struct Writing<'a> {
    state: &'a RunState,
    pieces: Vec<Piece>,
}

impl Writing<'_> {
    fn words(&mut self, mark: &str, words: &str) {
        let mut marked = String::new();
        for line in words.lines() {
            marked.push_str(mark);
            marked.push_str(line);
            marked.push('\n');
        }
        marked.push_str(mark.trim_end());
        marked.push('\n');
        self.pieces.push(Piece::Words(marked));
    }

    fn run(&mut self, title: &str) {
        let state = self.state;
        let run = state.run();
        self.words("", &format!("# {}", plain(title)));
        let mut facts = format!(
            "- Run: `{}`\n- State: {}",
            run.run_id,
            spaced(run.status.as_str())
        );
        let start = state.root().map(|root| root.announced_at);
        if let Some(at) = start.and_then(|at| jiff::Timestamp::from_millisecond(at).ok()) {
            facts.push_str(&format!("\n- Started: {at}"));
        }
        if let Some(usage) = &run.usage {
            facts.push_str(&format!(
                "\n- Tokens: {} in, {} out",
                usage.input_tokens, usage.output_tokens
            ));
        }
        self.words("", &facts);
        for message in state.messages() {
            let heading = match message.role {
                MessageRole::User => "## Prompt",
                MessageRole::System => "## System",
            };
            self.words("", heading);
            self.words("> ", &message.text);
        }
        let top: Vec<&Node> = match state.root() {
            Some(root) => state.children(&root.node_id).collect(),
            None => state
                .nodes()
                .iter()
                .filter(|node| node.parent_id.is_none())
                .collect(),
        };
        for node in top {
            self.words("", &format!("## {}", heading(node)));
            self.node(node, 0);
        }
        if !state.notices().is_empty() {
            self.words("", "## Notices");
        }
        for notice in state.notices() {
            let words = match &notice.detail {
                Value::String(words) => words.clone(),
                detail => match detail.get("message").and_then(Value::as_str) {
                    Some(words) => words.to_owned(),
                    None => detail.to_string(),
                },
            };
            self.words("", &format!("- {}: {}", spaced(&notice.code), plain(&words)));
        }
        if let Some(error) = &run.error {
            self.error("", error);
        }
    }

    fn error(&mut self, mark: &str, error: &ErrorInfo) {
        self.words(
            mark,
            &format!("**Error** ({}): {}", plain(&error.code), plain(&error.message)),
        );
    }

    /// What a node holds: attempts of a model, what a call was given and gave back, what it called.
    fn node(&mut self, node: &Node, depth: usize) {
        let state = self.state;
        let mark = "> ".repeat(depth.min(MOST_QUOTES));
        for channel in [Channel::Arguments, Channel::Log, Channel::Result] {
            if node.outputs.get(&channel).is_some_and(|output| output.bytes > 0) {
                let name = match channel {
                    Channel::Arguments => "Arguments",
                    Channel::Log => "Log",
                    Channel::Result => "Result",
                };
                self.words(&mark, name);
                self.pieces
                    .push(Piece::Output(node.node_id.clone(), channel, mark.clone()));
            }
        }
        if let Some(error) = node.state.end().and_then(|end| end.error.as_ref()) {
            self.error(&mark, error);
        }
        let attempts: Vec<&Attempt> = state.attempts_of(&node.node_id).collect();
        for (place, attempt) in attempts.iter().enumerate() {
            let is_alone = attempts.len() == 1 && attempt.state.status() == AttemptStatus::Completed;
            if !is_alone {
                let words = format!(
                    "**Attempt {} of {}** · {} · {} / {} · {}",
                    place + 1,
                    attempts.len(),
                    spaced(attempt.reason.as_str()),
                    plain(&attempt.provider),
                    plain(&attempt.model),
                    spaced(attempt.state.status().as_str()),
                );
                self.words(&mark, &words);
            }
            for block in state.blocks_of(&attempt.attempt_id) {
                self.block(block, depth);
            }
            if let Some(error) = attempt.state.end().and_then(|end| end.error.as_ref()) {
                self.error(&mark, error);
            }
        }
        for child in state.children(&node.node_id) {
            if state.block_of_node(&child.node_id).is_none() {
                self.words(&mark, &format!("**{}**", heading(child)));
                self.node(child, depth + 1);
            }
        }
    }

    fn block(&mut self, block: &Block, depth: usize) {
        let state = self.state;
        let mark = "> ".repeat(depth.min(MOST_QUOTES));
        match &block.body {
            BlockBody::Text(_) => self
                .pieces
                .push(Piece::Block(block.block_id.clone(), mark.clone())),
            BlockBody::Refusal(_) => {
                self.words(&mark, "**Declined**");
                self.pieces
                    .push(Piece::Block(block.block_id.clone(), mark.clone()));
            }
            BlockBody::Reasoning {
                retention: Retention::NotSaved,
                ..
            } => self.words(&mark, "*Reasoning: this content was not saved.*"),
            BlockBody::Reasoning { .. } => {
                self.words(&mark, "*Reasoning*");
                self.pieces
                    .push(Piece::Block(block.block_id.clone(), format!("{mark}> ")));
            }
            BlockBody::ToolRef(reference) => {
                let node = reference.ref_node_id.as_ref().and_then(|id| state.node(id));
                match node {
                    Some(node) => {
                        self.words(&mark, &format!("**{}**", heading(node)));
                        self.node(node, depth + 1);
                    }
                    None => {
                        let (name, call) = (plain(&reference.tool_name), plain(&reference.tool_call_id));
                        self.words(&mark, &format!("**{name}** · unresolved · call `{call}`"));
                    }
                }
            }
            BlockBody::ParallelGroup { members, .. } => {
                self.words(&mark, &format!("*{} calls ran at the same time.*", members.len()));
            }
            BlockBody::Unsupported { raw_kind, bytes } => {
                let kind = plain(raw_kind);
                self.words(
                    &mark,
                    &format!("*Content of the unknown kind {kind}, {bytes} bytes, is not shown.*"),
                );
            }
        }
        if block.state.status() == BlockStatus::Cut {
            self.words(&mark, "*This content was cut off here.*");
        }
    }
}

fn heading(node: &Node) -> String {
    let name = plain(&node.name);
    let status = spaced(node.state.status().as_str());
    match node.kind {
        NodeKind::Model => format!("{name} · {status}"),
        _ if node.title.is_empty() || node.title == node.name => format!("{name} · {status}"),
        _ => format!("{name}: {} · {status}", plain(&node.title)),
    }
}

fn spaced(word: &str) -> String {
    word.replace('_', " ")
}

/// Words on one line that are no Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => plain.push(' '),
            '*' | '_' | '`' | '[' | ']' | '<' | '\\' | '#' => {
                plain.push('\\');
                plain.push(character);
            }
            _ => plain.push(character),
        }
    }
    plain
}
