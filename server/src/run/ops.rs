//! The few ways to write ops: every op of an execution is made here, with its offsets and hashes.

use std::collections::BTreeMap;

use protocol::digest::{Sha256Stream, sha256};
use protocol::id::{AttemptId, BlockId, NodeId, OccurrenceId};
use protocol::model::{BlockBody, ErrorInfo, Node, Usage};
use protocol::op::{
    AttemptFinished, BlockDelta, BlockFinished, BlockStarted, NodeFinished, NodeOutput, NodeStarted,
    NodeUpdated, Notice, Op, OutputSummary, RunUpdated,
};
use protocol::state::{AttemptStatus, BlockStatus, Channel, Executor, NodeKind, NodeStatus, RunStatus};
use protocol::{Extra, MAX_OP_TEXT};

use super::recorder::RunWriter;

/// Of a long text so many bytes are handed over before it is waited for them.
const LONG: usize = 1024 * 1024;

/// Names and titles are columns of text, which cannot hold NUL: it is written as its symbol.
pub(super) fn plain(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

/// Where the transcript of a model node's stream lies, below its run.
pub(super) fn stream_path(node_id: &NodeId) -> String {
    format!("chat/{node_id}")
}

/// A text block that grows.
#[derive(Debug)]
pub(super) struct OpenBlock {
    block_id: BlockId,
    bytes: u64,
    /// None for a text that is not kept: its end says nothing of it.
    hash: Option<Sha256Stream>,
}

impl OpenBlock {
    /// Starts a block.
    pub(super) async fn start(writer: &RunWriter, place: BlockPlace<'_>, body: BlockBody) -> Self {
        let block_id = place.block_id();
        let hash = (!body.is_unsaved()).then(Sha256Stream::default);
        writer.write(place.started(body)).await;
        Self {
            block_id,
            bytes: 0,
            hash,
        }
    }

    /// Appends text.
    pub(super) async fn append(&mut self, writer: &RunWriter, delta: String) {
        let offset = self.bytes;
        self.bytes += delta.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(delta.as_bytes());
        }
        let block_id = self.block_id.clone();
        writer
            .write(Op::BlockDelta(BlockDelta {
                block_id,
                offset,
                delta,
                extra: Extra::new(),
            }))
            .await;
    }

    /// Closes it.
    pub(super) async fn finish(self, writer: &RunWriter, status: BlockStatus) {
        let Self {
            block_id,
            bytes,
            hash,
        } = self;
        let (bytes, sha256) = match hash {
            Some(hash) => (bytes, hash.finish()),
            None => (0, sha256(b"")),
        };
        writer
            .write(Op::BlockFinished(BlockFinished {
                block_id,
                status,
                bytes,
                sha256,
                extra: Extra::new(),
            }))
            .await;
    }
}

/// Where a block stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockPlace<'a> {
    pub(super) node_id: &'a NodeId,
    pub(super) attempt_id: &'a AttemptId,
    pub(super) block_index: u32,
    pub(super) round: u32,
}

impl BlockPlace<'_> {
    pub(super) fn block_id(&self) -> BlockId {
        BlockId::at(self.attempt_id, self.block_index)
    }

    pub(super) fn started(&self, body: BlockBody) -> Op {
        Op::BlockStarted(BlockStarted {
            node_id: self.node_id.clone(),
            attempt_id: self.attempt_id.clone(),
            block_id: self.block_id(),
            block_index: self.block_index,
            round: self.round,
            body,
            extra: Extra::new(),
        })
    }
}

/// The texts of a node that grows.
#[derive(Debug)]
pub(super) struct OpenNode {
    node_id: NodeId,
    channels: BTreeMap<Channel, (u64, Sha256Stream, String)>,
}

impl OpenNode {
    /// A node that was announced.
    pub(super) fn new(node_id: NodeId) -> Self {
        Self {
            node_id,
            channels: BTreeMap::new(),
        }
    }

    /// A node that an earlier owner left.
    pub(super) fn of(node: &Node) -> Self {
        let channels = node.outputs.iter().map(|(channel, output)| {
            let mut hash = Sha256Stream::default();
            hash.update(output.text.as_bytes());
            let media_type = default_media_type(*channel).to_owned();
            (*channel, (output.text.len() as u64, hash, media_type))
        });
        Self {
            node_id: node.node_id.clone(),
            channels: channels.collect(),
        }
    }

    pub(super) fn id(&self) -> &NodeId {
        &self.node_id
    }

    /// Appends text to a channel.
    pub(super) async fn append(&mut self, writer: &RunWriter, channel: Channel, text: String) {
        if text.is_empty() {
            return;
        }
        let (bytes, hash, _) = self
            .channels
            .entry(channel)
            .or_insert_with(|| (0, Sha256Stream::default(), default_media_type(channel).to_owned()));
        let offset = *bytes;
        *bytes += text.len() as u64;
        hash.update(text.as_bytes());
        let node_id = self.node_id.clone();
        writer
            .write(Op::NodeOutput(NodeOutput {
                node_id,
                channel,
                offset,
                text,
                extra: Extra::new(),
            }))
            .await;
    }

    /// Appends a text of any length. It waits until what it handed over is saved before it hands over much more, so that
    /// other runs go on meanwhile.
    pub(super) async fn append_long(&mut self, writer: &RunWriter, channel: Channel, text: &str) {
        let mut rest = text;
        let mut waiting = 0;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_OP_TEXT));
            rest = after;
            waiting += piece.len();
            self.append(writer, channel, piece.to_owned()).await;
            if waiting >= LONG && !rest.is_empty() {
                waiting = 0;
                if writer.flush().await.is_err() {
                    // The run may not be written any more, and its owner is told so.
                    return;
                }
            }
        }
    }

    /// Says what a channel holds, also when it is empty.
    pub(super) fn media_type(&mut self, channel: Channel, media_type: &str) {
        self.channels
            .entry(channel)
            .or_insert_with(|| (0, Sha256Stream::default(), String::new()))
            .2 = media_type.to_owned();
    }

    /// Changes its state to running.
    pub(super) async fn run(&self, writer: &RunWriter) {
        writer.write(node_running(&self.node_id)).await;
    }

    /// Closes it.
    pub(super) async fn finish(
        self,
        writer: &RunWriter,
        at: i64,
        status: NodeStatus,
        error: Option<ErrorInfo>,
        exit_code: Option<i32>,
    ) {
        let outputs = self
            .channels
            .into_iter()
            .map(|(channel, (bytes, hash, media_type))| {
                (
                    channel,
                    OutputSummary {
                        bytes,
                        sha256: hash.finish(),
                        media_type,
                    },
                )
            })
            .collect();
        writer
            .write(Op::NodeFinished(NodeFinished {
                node_id: self.node_id,
                status,
                finished_at: at,
                outputs,
                error,
                exit_code,
                extra: Extra::new(),
            }))
            .await;
    }
}

/// What a channel holds where its tool does not say.
pub(super) fn default_media_type(channel: Channel) -> &'static str {
    match channel {
        Channel::Arguments => "application/json",
        Channel::Log | Channel::Result => "text/plain",
    }
}

/// Announces a node.
#[derive(Debug)]
pub(super) struct Announcement<'a> {
    pub(super) node_id: NodeId,
    pub(super) parent_id: Option<&'a NodeId>,
    pub(super) kind: NodeKind,
    pub(super) name: &'a str,
    pub(super) title: &'a str,
    pub(super) ordinal: u32,
    pub(super) executor: Executor,
    pub(super) occurrence_id: Option<OccurrenceId>,
}

impl Announcement<'_> {
    pub(super) fn op(self) -> Op {
        Op::NodeStarted(NodeStarted {
            node_id: self.node_id,
            parent_id: self.parent_id.cloned(),
            after: Vec::new(),
            kind: self.kind,
            name: plain(self.name),
            title: plain(self.title),
            ordinal: self.ordinal,
            executor: self.executor,
            occurrence_id: self.occurrence_id,
            extra: Extra::new(),
        })
    }
}

/// A node begins to run.
pub(super) fn node_running(node_id: &NodeId) -> Op {
    Op::NodeUpdated(NodeUpdated {
        node_id: node_id.clone(),
        status: Some(NodeStatus::Running),
        title: None,
        progress: None,
        started_at: None,
        extra: Extra::new(),
    })
}

/// An attempt ends.
pub(super) fn attempt_finished(
    node_id: &NodeId,
    attempt_id: &AttemptId,
    status: AttemptStatus,
    stop_reason: Option<String>,
    usage: Option<Usage>,
    error: Option<ErrorInfo>,
) -> Op {
    Op::AttemptFinished(AttemptFinished {
        node_id: node_id.clone(),
        attempt_id: attempt_id.clone(),
        status,
        stop_reason,
        usage,
        error,
        extra: Extra::new(),
    })
}

/// The run changes its state.
pub(super) fn run_updated(status: RunStatus, error: Option<ErrorInfo>, usage: Option<Usage>) -> Op {
    Op::RunUpdated(RunUpdated {
        status,
        error,
        usage,
        extra: Extra::new(),
    })
}

/// Something that everybody should know.
pub(super) fn notice(node_id: Option<&NodeId>, code: &str, detail: impl Into<serde_json::Value>) -> Op {
    Op::Notice(Notice {
        node_id: node_id.cloned(),
        code: code.to_owned(),
        detail: detail.into(),
        extra: Extra::new(),
    })
}

/// A block whose kind is not known: it is whole at once.
pub(super) async fn unsupported(writer: &RunWriter, place: BlockPlace<'_>, raw_kind: &str, bytes: u64) {
    writer
        .write(place.started(BlockBody::Unsupported {
            raw_kind: raw_kind.to_owned(),
            bytes,
        }))
        .await;
    writer
        .write(Op::BlockFinished(BlockFinished {
            block_id: place.block_id(),
            status: BlockStatus::Complete,
            bytes,
            sha256: sha256(b""),
            extra: Extra::new(),
        }))
        .await;
}
