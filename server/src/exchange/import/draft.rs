//! A run in the making: what another format tells, as things of the protocol. Its ids follow from the file's own, so that
//! the same file makes the same run.

use std::collections::{BTreeMap, HashMap};

use protocol::Extra;
use protocol::digest::sha256;
use protocol::fold::RunState;
use protocol::id::{AttemptId, BlockId, MessageId, NodeId, OccurrenceId, RunId, SessionId};
use protocol::model::{
    Attempt, AttemptEnd, AttemptState, Block, BlockBody, BlockEnd, BlockState, Content, ErrorInfo, Message,
    Node, NodeEnd, NodeState, Notice, Output, Run, Timestamp, ToolRef, Usage,
};
use protocol::snapshot::Snapshot;
use protocol::state::{
    AttemptReason, AttemptStatus, BlockStatus, Channel, Executor, MessageRole, MessageState, NodeKind,
    NodeStatus, Retention, RunStatus,
};
use serde_json::{Value, json};

use super::value::uuid;
use crate::store::imports::RunHead;

/// A run of which nothing is told yet.
pub(super) fn begun(run_id: RunId, session_id: SessionId) -> Snapshot {
    Snapshot::empty(Run {
        run_id,
        session_id,
        status: RunStatus::Running,
        generation: 1,
        last_seq: 0,
        error: None,
        usage: None,
        extra: Extra::new(),
    })
}

/// The words of a prompt in a list.
fn start(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(200)
        .collect()
}

/// A model node that is told.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) node: NodeId,
    attempt: AttemptId,
    blocks: u32,
    calls: u32,
    round: u32,
}

/// A run that is told.
pub(super) struct Draft {
    snapshot: Snapshot,
    ordinal: usize,
    pub(super) prompt: String,
    pub(super) model_name: String,
    pub(super) provider: String,
    root: NodeId,
    last: Timestamp,
    models: Vec<Model>,
    /// The last call of each raw id.
    calls: HashMap<String, usize>,
    children: HashMap<NodeId, u32>,
}

impl Draft {
    pub(super) fn new(run_id: RunId, session_id: SessionId, ordinal: usize, at: Timestamp) -> Self {
        let root = NodeId::root(&run_id);
        let mut draft = Self {
            snapshot: begun(run_id, session_id),
            ordinal,
            prompt: String::new(),
            model_name: String::new(),
            provider: String::new(),
            root: root.clone(),
            last: at,
            models: Vec::new(),
            calls: HashMap::new(),
            children: HashMap::new(),
        };
        draft.node(root, None, NodeKind::Root, "root", None, at);
        draft
    }

    /// The run as a list shows it.
    pub(super) fn head(&self) -> RunHead {
        let snapshot = &self.snapshot;
        RunHead {
            run_id: snapshot.run.run_id.clone(),
            ordinal: u32::try_from(self.ordinal).unwrap_or(u32::MAX),
            prompt: self.prompt.clone(),
            provider: self.provider.clone(),
            model: self.model_name.clone(),
            created_at: snapshot.nodes.first().map_or(0, |root| root.announced_at),
        }
    }

    /// The whole state.
    pub(super) fn into_state(self) -> RunState {
        RunState::from_snapshot(self.snapshot)
    }

    fn seen(&mut self, at: Timestamp) -> Timestamp {
        self.last = self.last.max(at);
        at
    }

    /// What a person said.
    pub(super) fn message(&mut self, role: MessageRole, text: &str, at: Timestamp) {
        let at = self.seen(at);
        if self.prompt.is_empty() && role == MessageRole::User {
            self.prompt = start(text);
        }
        let (run, count) = (self.snapshot.run.run_id.to_string(), self.snapshot.messages.len());
        // A text that is longer than a message may be is not dropped.
        let cut = text.floor_char_boundary(protocol::MAX_PROMPT);
        self.snapshot.messages.push(Message {
            message_id: MessageId::from_uuid(uuid(&["message", &run, &count.to_string()])),
            role,
            text: text[..cut].to_owned(),
            state: MessageState::Delivered,
            at,
            extra: Extra::new(),
        });
        if cut < text.len() {
            let lost = text.len() - cut;
            self.notice(
                "quarantined_record",
                &format!("{lost} bytes at the end of a message are not shown."),
                at,
            );
        }
    }

    /// Something that everybody should know.
    pub(super) fn notice(&mut self, code: &str, message: &str, at: Timestamp) {
        let at = self.seen(at);
        let seq = self.snapshot.notices.len() as u64 + 1;
        self.snapshot.notices.push(Notice {
            seq,
            at,
            node_id: None,
            code: code.to_owned(),
            detail: json!({ "message": message }),
            extra: Extra::new(),
        });
    }

    fn node(
        &mut self,
        node_id: NodeId,
        parent_id: Option<NodeId>,
        kind: NodeKind,
        name: &str,
        occurrence_id: Option<OccurrenceId>,
        at: Timestamp,
    ) -> usize {
        let ordinal = match &parent_id {
            Some(parent) => {
                let count = self.children.entry(parent.clone()).or_default();
                *count += 1;
                *count - 1
            }
            None => 0,
        };
        self.snapshot.nodes.push(Node {
            node_id,
            parent_id,
            after: Vec::new(),
            kind,
            name: name.to_owned(),
            title: String::new(),
            ordinal,
            executor: Executor::Runloom,
            occurrence_id,
            state: NodeState::Running,
            announced_at: at,
            started_at: Some(at),
            progress: None,
            outputs: BTreeMap::new(),
            extra: Extra::new(),
        });
        self.snapshot.nodes.len() - 1
    }

    /// The model that answers the prompt, by its place among [`Draft::models`].
    pub(super) fn answer(&mut self, at: Timestamp) -> usize {
        if self.models.is_empty() {
            let root = self.root.clone();
            return self.model_below(root, "chat", at);
        }
        0
    }

    /// A model below a node.
    pub(super) fn model_below(&mut self, parent: NodeId, name: &str, at: Timestamp) -> usize {
        let at = self.seen(at);
        let ordinal = self.children.get(&parent).copied().unwrap_or(0);
        let occurrence = OccurrenceId::inner_model_call(&parent, ordinal);
        let node = NodeId::model(&parent, &occurrence);
        self.node(
            node.clone(),
            Some(parent),
            NodeKind::Model,
            name,
            Some(occurrence),
            at,
        );
        let attempt = AttemptId::from_uuid(uuid(&["attempt", node.as_str()]));
        self.snapshot.attempts.push(Attempt {
            attempt_id: attempt.clone(),
            node_id: node.clone(),
            attempt_index: 0,
            reason: AttemptReason::Legacy,
            state: AttemptState::Running,
            provider: self.provider.clone(),
            model: self.model_name.clone(),
            continues_attempt_id: None,
            kept: None,
            started_at: at,
            extra: Extra::new(),
        });
        self.models.push(Model {
            node,
            attempt,
            blocks: 0,
            calls: 0,
            round: 0,
        });
        self.models.len() - 1
    }

    /// The node of a model.
    pub(super) fn model_node(&self, model: usize) -> Option<NodeId> {
        self.models.get(model).map(|model| model.node.clone())
    }

    /// The next request of a model.
    pub(super) fn round(&mut self, model: usize) {
        if let Some(model) = self.models.get_mut(model) {
            model.round += 1;
            model.calls = 0;
        }
    }

    /// Names the model that answers, as soon as it is known.
    pub(super) fn named(&mut self, model: usize, provider: &str, name: &str) {
        if self.provider.is_empty() {
            provider.clone_into(&mut self.provider);
        }
        if self.model_name.is_empty() {
            name.clone_into(&mut self.model_name);
        }
        let attempt = self.models.get(model).map(|model| model.attempt.clone());
        for attempt in self
            .snapshot
            .attempts
            .iter_mut()
            .filter(|known| Some(&known.attempt_id) == attempt.as_ref())
        {
            if attempt.model.is_empty() {
                name.clone_into(&mut attempt.model);
                provider.clone_into(&mut attempt.provider);
            }
        }
    }

    fn block(&mut self, model: usize, body: BlockBody, status: BlockStatus, at: Timestamp) {
        let at = self.seen(at);
        let Some(model) = self.models.get_mut(model) else {
            return;
        };
        let index = model.blocks;
        model.blocks += 1;
        let (bytes, sha) = match &body {
            BlockBody::Unsupported { bytes, .. } => (*bytes, Some(sha256(b""))),
            _ if body.is_pointer() => (0, None),
            _ => {
                let text = body.content().map_or("", |content| &content.text);
                (text.len() as u64, Some(sha256(text.as_bytes())))
            }
        };
        self.snapshot.blocks.push(Block {
            block_id: BlockId::at(&model.attempt, index),
            attempt_id: model.attempt.clone(),
            node_id: model.node.clone(),
            block_index: index,
            round: model.round,
            body,
            state: BlockState::Ended(BlockEnd {
                status,
                finished_at: at,
                bytes,
                sha256: sha,
            }),
            started_at: at,
            extra: Extra::new(),
        });
    }

    /// What a model wrote. An empty text is nothing.
    pub(super) fn text(&mut self, model: usize, text: &str, at: Timestamp) {
        if !text.is_empty() {
            self.block(model, BlockBody::Text(content(text)), BlockStatus::Complete, at);
        }
    }

    /// What a model thought; none where only its place is kept.
    pub(super) fn reasoning(&mut self, model: usize, text: Option<&str>, at: Timestamp) {
        let (text, retention) = match text {
            Some(text) => (text, Retention::Saved),
            None => ("", Retention::NotSaved),
        };
        let body = BlockBody::Reasoning {
            content: content(text),
            retention,
        };
        self.block(model, body, BlockStatus::Complete, at);
    }

    /// Something of a kind that is not known.
    pub(super) fn unsupported(&mut self, model: usize, kind: &str, bytes: usize, at: Timestamp) {
        let raw_kind = kind.chars().take(100).collect();
        let bytes = bytes as u64;
        self.block(
            model,
            BlockBody::Unsupported { raw_kind, bytes },
            BlockStatus::Complete,
            at,
        );
    }

    /// A call of a model. Gives its node's place, by which it is ended.
    pub(super) fn call(
        &mut self,
        model: usize,
        call_id: &str,
        name: &str,
        arguments: &str,
        at: Timestamp,
    ) -> usize {
        let Some((parent, occurrence)) = self.occurrence(model) else {
            return usize::MAX;
        };
        let node_id = NodeId::function(&parent, &occurrence);
        let place = self.node(
            node_id.clone(),
            Some(parent),
            NodeKind::Function,
            name,
            Some(occurrence.clone()),
            at,
        );
        self.output(place, Channel::Arguments, arguments, "application/json");
        self.reference(model, call_id, name, occurrence, Some(node_id), at);
        self.calls.insert(call_id.to_owned(), place);
        place
    }

    fn occurrence(&mut self, model: usize) -> Option<(NodeId, OccurrenceId)> {
        let model = self.models.get_mut(model)?;
        let occurrence = OccurrenceId::tool_call(&model.node, &model.attempt, model.round, model.calls);
        model.calls += 1;
        Some((model.node.clone(), occurrence))
    }

    fn reference(
        &mut self,
        model: usize,
        call_id: &str,
        name: &str,
        occurrence_id: OccurrenceId,
        ref_node_id: Option<NodeId>,
        at: Timestamp,
    ) {
        let body = BlockBody::ToolRef(ToolRef {
            tool_call_id: call_id.to_owned(),
            occurrence_id,
            ref_node_id,
            tool_name: name.to_owned(),
            group_id: None,
        });
        self.block(model, body, BlockStatus::Complete, at);
    }

    /// The node of the last call with this raw id.
    pub(super) fn call_of(&self, call_id: &str) -> Option<usize> {
        self.calls.get(call_id).copied()
    }

    /// Appends to what a call wrote.
    pub(super) fn output(&mut self, place: usize, channel: Channel, text: &str, media_type: &str) {
        let Some(node) = self.snapshot.nodes.get_mut(place).filter(|_| !text.is_empty()) else {
            return;
        };
        let output = node.outputs.entry(channel).or_insert_with(Output::default);
        output.text.push_str(text);
        output.bytes = output.text.len() as u64;
        output.media_type = Some(media_type.to_owned());
    }

    /// Ends a call.
    pub(super) fn ended(
        &mut self,
        place: usize,
        status: NodeStatus,
        error: Option<ErrorInfo>,
        exit_code: Option<i32>,
        at: Timestamp,
    ) {
        let at = self.seen(at);
        if let Some(node) = self.snapshot.nodes.get_mut(place) {
            end(node, status, error, exit_code, at);
        }
    }

    /// Whether a model has said or done something.
    pub(super) fn has_answer(&self) -> bool {
        !self.snapshot.blocks.is_empty()
    }

    /// How a run ended of which that is not told: well, where its model said something and no call is open.
    pub(super) fn likely_end(&self) -> RunStatus {
        let mut calls = self
            .snapshot
            .nodes
            .iter()
            .filter(|node| node.kind == NodeKind::Function);
        if self.has_answer() && calls.all(|node| node.state.end().is_some()) {
            RunStatus::Succeeded
        } else {
            RunStatus::Interrupted
        }
    }

    /// The call that started a subagent: the open one whose arguments hold its prompt, else the last open one.
    pub(super) fn caller(&self, prompt: Option<&str>) -> Option<NodeId> {
        let open = || {
            let nodes = self.snapshot.nodes.iter().rev();
            nodes.filter(|node| matches!(node.name.as_str(), "Task" | "Agent") && node.state.end().is_none())
        };
        let asks = |node: &&Node| {
            let arguments = node
                .outputs
                .get(&Channel::Arguments)
                .map_or("", |output| &output.text);
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            prompt.is_some_and(|prompt| arguments.get("prompt").and_then(Value::as_str) == Some(prompt))
        };
        open()
            .find(asks)
            .or_else(|| open().next())
            .map(|node| node.node_id.clone())
    }

    /// Whether a call has ended.
    pub(super) fn is_ended(&self, place: usize) -> bool {
        self.snapshot
            .nodes
            .get(place)
            .is_none_or(|node| node.state.end().is_some())
    }

    /// What a model took, and why it stopped.
    pub(super) fn usage(&mut self, usage: &Usage) {
        self.snapshot
            .run
            .usage
            .get_or_insert_with(Usage::default)
            .add(usage);
    }

    /// Ends everything that is open. Calls of which no end is told are interrupted.
    pub(super) fn close(&mut self, status: RunStatus, error: Option<ErrorInfo>) {
        let at = self.last;
        let (model, attempt) = match status {
            RunStatus::Succeeded => (NodeStatus::Succeeded, AttemptStatus::Completed),
            RunStatus::Cancelled => (NodeStatus::Cancelled, AttemptStatus::Cancelled),
            RunStatus::Failed => (NodeStatus::Failed, AttemptStatus::Failed),
            _ => (NodeStatus::Interrupted, AttemptStatus::Interrupted),
        };
        for node in self
            .snapshot
            .nodes
            .iter_mut()
            .filter(|node| node.state.end().is_none())
        {
            match node.kind {
                NodeKind::Function | NodeKind::Code => end(node, NodeStatus::Interrupted, None, None, at),
                _ => end(node, model, None, None, at),
            }
        }
        for known in &mut self.snapshot.attempts {
            if known.state == AttemptState::Running {
                known.state = AttemptState::Ended(AttemptEnd {
                    status: attempt,
                    finished_at: at,
                    stop_reason: None,
                    usage: None,
                    error: error.clone(),
                });
            }
        }
        self.snapshot.run.status = status;
        self.snapshot.run.error = error;
    }
}

fn content(text: &str) -> Content {
    Content {
        text: text.to_owned(),
        content_ref: None,
    }
}

fn end(node: &mut Node, status: NodeStatus, error: Option<ErrorInfo>, exit_code: Option<i32>, at: Timestamp) {
    for output in node.outputs.values_mut() {
        output.sha256 = Some(sha256(output.text.as_bytes()));
    }
    node.state = NodeState::Ended(NodeEnd {
        status,
        finished_at: at.max(node.announced_at),
        error,
        exit_code,
    });
}
