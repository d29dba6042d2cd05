//! One provider round: events in, ops out.

use std::collections::BTreeMap;

use protocol::id::{AttemptId, BlockId, NodeId, OccurrenceId};
use protocol::model::{BlockBody, Content, ErrorInfo, ToolRef};
use protocol::state::{BlockStatus, Channel, Executor, NodeKind, NodeStatus, Retention};

use crate::provider::{
    AssistantPart, BlockStart, Position, ProviderError, ProviderEvent, RoundCall, RoundContent, StopReason,
    StreamEnd, Usage,
};
use crate::run::STREAM_ENDED;
use crate::run::dispatch::Call;
use crate::run::ops::{Announcement, BlockPlace, OpenBlock, OpenNode, notice, plain, unsupported};
use crate::run::recorder::RunWriter;
use crate::tool::RUN_CODE;

/// What is open in a round.
#[derive(Debug)]
enum Open {
    Block(OpenBlock),
    /// A call for us: it stays open until it has been dispatched.
    Call(OpenNode, BlockId),
    /// A call that the provider runs.
    ServerCall {
        node: OpenNode,
        failed: Option<bool>,
    },
}

/// A round that is being read.
pub(super) struct Round<'a> {
    writer: &'a RunWriter,
    node_id: &'a NodeId,
    attempt_id: &'a AttemptId,
    number: u32,
    next_index: u32,
    next_ordinal: u32,
    reasoning: Retention,
    open: BTreeMap<Position, Open>,
    content: RoundContent,
}

/// What a complete round gave.
pub(super) struct RoundEnd {
    pub(super) round: u32,
    pub(super) next_index: u32,
    pub(super) next_ordinal: u32,
    pub(super) parts: Vec<AssistantPart>,
    /// What it said to people, as far as it shows anything.
    pub(super) texts: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<StopReason>,
    pub(super) stop_word: Option<String>,
    pub(super) has_content: bool,
}

/// What is left of a round that broke.
pub(super) struct CutRound {
    pub(super) next_ordinal: u32,
    /// What it said to people.
    pub(super) texts: Vec<String>,
    pub(super) usage: Option<Usage>,
}

impl<'a> Round<'a> {
    pub(super) fn new(
        writer: &'a RunWriter,
        node_id: &'a NodeId,
        attempt_id: &'a AttemptId,
        number: u32,
        next_index: u32,
        next_ordinal: u32,
        reasoning: Retention,
    ) -> Self {
        let (open, content) = (BTreeMap::new(), RoundContent::default());
        Self {
            writer,
            node_id,
            attempt_id,
            number,
            next_index,
            next_ordinal,
            reasoning,
            open,
            content,
        }
    }

    /// The failure that the stream reported, once.
    pub(super) fn take_error(&mut self) -> Option<ProviderError> {
        self.content.error.take()
    }

    /// Whether nothing of the round was shown.
    pub(super) fn is_blank(&self) -> bool {
        self.content.blocks.is_empty()
    }

    /// Whether the end marker came.
    pub(super) fn is_complete(&self) -> bool {
        self.content.end == Some(StreamEnd::Complete)
    }

    /// Writes what an event says.
    pub(super) async fn take(&mut self, event: ProviderEvent) {
        self.content.apply(&event);
        match event {
            ProviderEvent::BlockStart { position, kind } => self.start(position, kind).await,
            ProviderEvent::Delta { position, text } => {
                if let Some(Open::Block(block)) = self.open.get_mut(&position) {
                    block.append(self.writer, text).await;
                }
            }
            ProviderEvent::ArgumentsDelta { position, json } => {
                if let Some(Open::Call(node, _) | Open::ServerCall { node, .. }) =
                    self.open.get_mut(&position)
                {
                    node.append(self.writer, Channel::Arguments, json).await;
                }
            }
            ProviderEvent::BlockEnd { position } => self.block_end(position).await,
            ProviderEvent::ServerToolResult {
                position,
                text,
                is_error,
                ..
            } => {
                if let Some(Open::ServerCall { node, failed }) =
                    position.and_then(|at| self.open.get_mut(&at))
                {
                    *failed = Some(is_error);
                    node.append_long(self.writer, Channel::Result, &text).await;
                }
            }
            ProviderEvent::Contradiction { text, .. } => {
                let detail = serde_json::json!({
                    "message": "The provider's final text differs from what it had streamed. What was shown stays.",
                    "final_bytes": text.len(),
                });
                self.writer
                    .write(notice(Some(self.node_id), "provider_contradiction", detail))
                    .await;
            }
            ProviderEvent::Started { .. }
            | ProviderEvent::Usage(_)
            | ProviderEvent::Stop { .. }
            | ProviderEvent::Error(_)
            | ProviderEvent::End(_) => {}
        }
    }

    fn place(&mut self) -> BlockPlace<'a> {
        let block_index = self.next_index;
        self.next_index += 1;
        BlockPlace {
            node_id: self.node_id,
            attempt_id: self.attempt_id,
            block_index,
            round: self.number,
        }
    }

    async fn start(&mut self, position: Position, kind: BlockStart) {
        self.close_texts().await;
        let place = self.place();
        let body = match kind {
            BlockStart::Text => BlockBody::Text(Content::default()),
            BlockStart::Refusal => BlockBody::Refusal(Content::default()),
            BlockStart::Reasoning => BlockBody::Reasoning {
                content: Content::default(),
                retention: self.reasoning,
            },
            BlockStart::ToolCall { id, name } => {
                let node = self
                    .announce(place, position, &id, &name, Executor::Runloom)
                    .await;
                self.open.insert(position, Open::Call(node, place.block_id()));
                return;
            }
            BlockStart::ServerTool { id, name } => {
                let node = self
                    .announce(place, position, &id, &name, Executor::Provider)
                    .await;
                node.run(self.writer).await;
                self.open
                    .insert(position, Open::ServerCall { node, failed: None });
                return;
            }
            BlockStart::Unsupported { raw_kind, bytes } => {
                unsupported(self.writer, place, &plain(&raw_kind), bytes).await;
                return;
            }
        };
        let block = OpenBlock::start(self.writer, place, body).await;
        self.open.insert(position, Open::Block(block));
    }

    /// Announces a call: its node first, so that the row finds it.
    async fn announce(
        &mut self,
        place: BlockPlace<'_>,
        position: Position,
        tool_call_id: &str,
        name: &str,
        executor: Executor,
    ) -> OpenNode {
        let occurrence_id = OccurrenceId::tool_call(self.node_id, self.attempt_id, self.number, position);
        let node_id = NodeId::function(self.node_id, &occurrence_id);
        let announcement = Announcement {
            node_id: node_id.clone(),
            parent_id: Some(self.node_id),
            kind: if name == RUN_CODE {
                NodeKind::Code
            } else {
                NodeKind::Function
            },
            name,
            title: name,
            ordinal: self.next_ordinal,
            executor,
            occurrence_id: Some(occurrence_id.clone()),
        };
        self.next_ordinal += 1;
        self.writer.write(announcement.op()).await;
        let reference = ToolRef {
            tool_call_id: tool_call_id.to_owned(),
            occurrence_id,
            ref_node_id: Some(node_id.clone()),
            tool_name: plain(name),
            group_id: None,
        };
        self.writer
            .write(place.started(BlockBody::ToolRef(reference)))
            .await;
        OpenNode::new(node_id)
    }

    /// A text ends where a block of another kind begins.
    async fn close_texts(&mut self) {
        let texts: Vec<Position> = self
            .open
            .iter()
            .filter(|(_, open)| matches!(open, Open::Block(_)))
            .map(|(&at, _)| at)
            .collect();
        for position in texts {
            if let Some(Open::Block(block)) = self.open.remove(&position) {
                block.finish(self.writer, BlockStatus::Complete).await;
            }
        }
    }

    async fn block_end(&mut self, position: Position) {
        match self.open.get_mut(&position) {
            Some(Open::Block(_)) => {
                if let Some(Open::Block(block)) = self.open.remove(&position) {
                    block.finish(self.writer, BlockStatus::Complete).await;
                }
            }
            // Whether a call is whole is known at the end of the round only.
            Some(Open::Call(..) | Open::ServerCall { .. }) | None => {}
        }
    }

    /// The stream ended as it should: texts are whole, calls wait to be dispatched.
    pub(super) async fn complete(mut self, at: i64) -> RoundEnd {
        self.close_texts().await;
        let parsed: BTreeMap<Position, RoundCall> = self
            .content
            .calls()
            .into_iter()
            .map(|call| (call.position, call))
            .collect();
        let mut calls = Vec::new();
        for (position, open) in std::mem::take(&mut self.open) {
            match open {
                Open::Call(mut node, block_id) => {
                    if let Some(call) = parsed.get(&position).cloned() {
                        // A call without arguments is a call with none.
                        if call.parsed.is_ok() && self.is_without_arguments(position) {
                            node.append(self.writer, Channel::Arguments, "{}".to_owned())
                                .await;
                        }
                        calls.push(Call { node, block_id, call });
                    }
                }
                Open::ServerCall { mut node, failed } => {
                    if self.is_without_arguments(position) {
                        node.append(self.writer, Channel::Arguments, "{}".to_owned())
                            .await;
                    }
                    self.finish_server_call(node, failed, at).await;
                }
                Open::Block(_) => {}
            }
        }
        let stop = self.content.stop.as_ref().map(|(_, reason)| *reason);
        RoundEnd {
            round: self.number,
            next_index: self.next_index,
            next_ordinal: self.next_ordinal,
            parts: self.content.parts(),
            texts: self.content.texts(),
            has_content: !self.content.blocks.is_empty(),
            usage: self.content.usage.take(),
            stop,
            stop_word: stop.map(|reason| reason.as_str().to_owned()),
            calls,
        }
    }

    fn is_without_arguments(&self, position: Position) -> bool {
        let mut blocks = self.content.blocks.iter().rev();
        blocks
            .find(|block| block.position == position)
            .is_some_and(|block| block.content.is_empty())
    }

    async fn finish_server_call(&self, node: OpenNode, failed: Option<bool>, at: i64) {
        let (status, error) = match failed {
            Some(true) => (
                NodeStatus::Failed,
                Some(ErrorInfo::new(
                    "provider_tool_failed",
                    "The provider says that the call failed.",
                )),
            ),
            Some(false) | None => (NodeStatus::Succeeded, None),
        };
        node.finish(self.writer, at, status, error, None).await;
    }

    /// The stream broke: texts are cut, and no call of the round is run.
    pub(super) async fn cut(mut self, at: i64) -> CutRound {
        for (_, open) in std::mem::take(&mut self.open) {
            match open {
                Open::Block(block) => block.finish(self.writer, BlockStatus::Cut).await,
                Open::Call(node, _) => {
                    let error = ErrorInfo::new(
                        STREAM_ENDED,
                        "The model's stream broke before the call could be run.",
                    );
                    node.finish(self.writer, at, NodeStatus::NotRun, Some(error), None)
                        .await;
                }
                Open::ServerCall {
                    node,
                    failed: Some(failed),
                } => {
                    self.finish_server_call(node, Some(failed), at).await;
                }
                Open::ServerCall { node, failed: None } => {
                    let error = ErrorInfo::new(
                        STREAM_ENDED,
                        "The provider's stream broke before it gave a result.",
                    );
                    node.finish(self.writer, at, NodeStatus::Interrupted, Some(error), None)
                        .await;
                }
            }
        }
        CutRound {
            next_ordinal: self.next_ordinal,
            texts: self.content.texts(),
            usage: self.content.usage.take(),
        }
    }
}
