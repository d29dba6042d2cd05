//! Legacy records: nodes of an older form, each with `metadata.stream.snapshot`, `metadata.blocks`, or neither.
//! `docs/importing.md` describes them.
//!
//! A model's content is read from the best that there is: the snapshot; else one attempt of reason `legacy` from the
//! blocks; else the plain reply after the node's children in the order of their start, marked as reconstructed.

mod content;

use std::collections::{BTreeMap, HashMap, HashSet};

use protocol::Extra;
use protocol::digest::sha256;
use protocol::fold::RunState;
use protocol::id::{MessageId, NodeId, RunId, SessionId};
use protocol::model::{ErrorInfo, Message, Node, NodeEnd, NodeState, Notice, Output, Timestamp};
use protocol::snapshot::Snapshot;
use protocol::state::{Channel, Executor, MessageRole, MessageState, NodeKind, NodeStatus, RunStatus};
use serde_json::{Value, json};

use super::draft::begun;
use super::value::{time, uuid, words};
use crate::store::imports::{RunHead, SessionHead};

/// The word for it.
pub(super) const FORMAT: &str = "legacy";

/// The word in the field `type` of the first line.
pub(super) const BEGIN: &str = "runloom_legacy";

/// A legacy run that is read.
pub(super) struct Reader {
    session: SessionHead,
    snapshot: Snapshot,
    prompt: String,
    status: Option<RunStatus>,
    nodes: Vec<Legacy>,
    ids: HashSet<String>,
    bad: Vec<(String, String)>,
}

/// A node as it came.
struct Legacy {
    id: String,
    node_id: NodeId,
    value: Value,
    kind: NodeKind,
    started_at: Option<Timestamp>,
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

impl Reader {
    /// `head` is the first line, or the whole document; `key` follows from the file.
    pub(super) fn new(head: &Value, key: &str) -> Self {
        let none = Value::Null;
        let (session, run) = (
            head.get("session").unwrap_or(&none),
            head.get("run").unwrap_or(&none),
        );
        let run_key = text(run, "id").unwrap_or(key);
        let session_key = text(session, "id").unwrap_or(run_key);
        let run_id: RunId = run_key
            .parse()
            .unwrap_or_else(|_| RunId::from_uuid(uuid(&[FORMAT, "run", run_key])));
        let session_id: SessionId = session_key
            .parse()
            .unwrap_or_else(|_| SessionId::from_uuid(uuid(&[FORMAT, "session", session_key])));
        let created_at = run.get("created_at").and_then(time).unwrap_or(0);
        let prompt = text(run, "prompt").unwrap_or_default().to_owned();
        let title = text(session, "title").unwrap_or(&prompt);
        Self {
            session: SessionHead {
                session_id: session_id.clone(),
                title: title.chars().take(120).collect(),
                kind: protocol::api::SessionKind::Chat,
                settings: protocol::api::SessionSettings::default(),
                created_at,
            },
            snapshot: begun(run_id, session_id),
            prompt,
            status: text(run, "status")
                .and_then(RunStatus::from_word)
                .filter(|status| status.is_final()),
            nodes: Vec::new(),
            ids: HashSet::new(),
            bad: Vec::new(),
        }
    }

    /// A record that cannot be taken.
    pub(super) fn bad(&mut self, record: &str, reason: impl Into<String>) {
        self.bad.push((record.to_owned(), reason.into()));
    }

    /// A node, or the object that holds one in its field `node`.
    pub(super) fn node(&mut self, record: &str, value: &Value) {
        let value = value.get("node").unwrap_or(value);
        let Some(id) = text(value, "node_id")
            .or(text(value, "id"))
            .filter(|id| !id.is_empty())
        else {
            return self.bad(record, "it is no node: it has no id");
        };
        if !self.ids.insert(id.to_owned()) {
            return self.bad(record, format!("the node {id:?} came before"));
        }
        let word = text(value, "kind").unwrap_or("function");
        let kind = match word {
            "model" | "llm" | "chat" => NodeKind::Model,
            "function" | "tool" => NodeKind::Function,
            "code" => NodeKind::Code,
            "phase" => NodeKind::Phase,
            "root" | "run" => NodeKind::Root,
            unknown => {
                self.bad(
                    record,
                    format!("the node {id:?} has the unknown kind {unknown:?}: shown as a function"),
                );
                NodeKind::Function
            }
        };
        let node_id = id.parse().ok().or_else(|| self.derived(id, kind));
        let Some(node_id) = node_id else {
            return self.bad(record, format!("the node {id:?} cannot be named"));
        };
        let started_at = ["started_at", "created_at"]
            .iter()
            .find_map(|name| value.get(name).and_then(time));
        self.nodes.push(Legacy {
            id: id.to_owned(),
            node_id,
            value: value.clone(),
            kind,
            started_at,
        });
    }

    /// The id of a node whose own is none of ours.
    fn derived(&self, id: &str, kind: NodeKind) -> Option<NodeId> {
        let prefix = match kind {
            NodeKind::Model => "call_",
            NodeKind::Phase => "phase_",
            NodeKind::Root => "root_",
            NodeKind::Function | NodeKind::Code => "exec_",
        };
        let run = self.snapshot.run.run_id.as_str();
        format!("{prefix}{}", uuid(&[FORMAT, "node", run, id]).simple())
            .parse()
            .ok()
    }

    /// All that was read, as one run.
    pub(super) fn finish(mut self) -> (SessionHead, RunHead, RunState) {
        let begin = self.nodes.iter().filter_map(|node| node.started_at).min();
        let begin = begin.unwrap_or(self.session.created_at);
        let known: HashMap<String, NodeId> = self
            .nodes
            .iter()
            .map(|node| (node.id.clone(), node.node_id.clone()))
            .collect();
        let nodes = std::mem::take(&mut self.nodes);
        let root = match nodes.iter().find(|node| node.kind == NodeKind::Root) {
            Some(root) => root.node_id.clone(),
            None => {
                let root = NodeId::root(&self.snapshot.run.run_id);
                self.snapshot.nodes.push(plain_node(root.clone(), begin));
                root
            }
        };
        self.message(begin);
        let mut ordinals: HashMap<NodeId, u32> = HashMap::new();
        for legacy in &nodes {
            let parent = text(&legacy.value, "parent_id");
            let parent_id = match parent {
                _ if legacy.node_id == root => None,
                None => Some(root.clone()),
                Some(parent) => Some(known.get(parent).cloned().unwrap_or_else(|| {
                    let words = format!("its parent {parent:?} is not in the file: it stands below the root");
                    self.bad.push((format!("node {:?}", legacy.id), words));
                    root.clone()
                })),
            };
            let count = parent_id.as_ref().map(|parent| {
                let count = ordinals.entry(parent.clone()).or_default();
                *count += 1;
                *count - 1
            });
            let node = self.made(legacy, parent_id, count.unwrap_or(0), begin);
            self.snapshot.nodes.push(node);
        }
        for legacy in nodes.iter().filter(|node| node.kind == NodeKind::Model) {
            content::read(&mut self, legacy, &nodes, &known);
        }
        self.close(begin);
        for (record, reason) in std::mem::take(&mut self.bad) {
            let detail =
                json!({ "message": format!("{record}: {reason}."), "record": record, "reason": reason });
            self.notice("quarantined_record", detail, begin);
        }
        let attempt = self.snapshot.attempts.first();
        let head = RunHead {
            run_id: self.snapshot.run.run_id.clone(),
            ordinal: 0,
            prompt: self.prompt.split_whitespace().collect::<Vec<_>>().join(" "),
            provider: attempt
                .map(|attempt| attempt.provider.clone())
                .unwrap_or_default(),
            model: attempt.map(|attempt| attempt.model.clone()).unwrap_or_default(),
            created_at: begin,
        };
        (self.session, head, RunState::from_snapshot(self.snapshot))
    }

    fn message(&mut self, at: Timestamp) {
        if self.prompt.is_empty() {
            return;
        }
        let run = self.snapshot.run.run_id.to_string();
        let end = self.prompt.floor_char_boundary(protocol::MAX_PROMPT);
        self.snapshot.messages.push(Message {
            message_id: MessageId::from_uuid(uuid(&["message", &run, "0"])),
            role: MessageRole::User,
            text: self.prompt[..end].to_owned(),
            state: MessageState::Delivered,
            at,
            extra: Extra::new(),
        });
    }

    fn notice(&mut self, code: &str, detail: Value, at: Timestamp) {
        let seq = self.snapshot.notices.len() as u64 + 1;
        self.snapshot.notices.push(Notice {
            seq,
            at,
            node_id: None,
            code: code.to_owned(),
            detail,
            extra: Extra::new(),
        });
    }

    fn made(&mut self, legacy: &Legacy, parent_id: Option<NodeId>, count: u32, begin: Timestamp) -> Node {
        let value = &legacy.value;
        let started_at = legacy.started_at;
        let announced_at = started_at.unwrap_or(begin);
        let mut outputs = BTreeMap::new();
        for channel in Channel::ALL {
            let said = value
                .get(channel.as_str())
                .map(words)
                .filter(|text| !text.is_empty());
            if let Some(text) = said {
                let output = Output {
                    bytes: text.len() as u64,
                    sha256: Some(sha256(text.as_bytes())),
                    media_type: Some("text/plain; charset=utf-8".to_owned()),
                    text,
                    content_ref: None,
                };
                outputs.insert(*channel, output);
            }
        }
        let error = value.get("error").filter(|error| !error.is_null()).map(|error| {
            let code = text(error, "code").unwrap_or("failed");
            let message = text(error, "message").map_or_else(|| words(error), str::to_owned);
            ErrorInfo::new(code, message)
        });
        let finished_at = value.get("finished_at").and_then(time).unwrap_or(announced_at);
        let mut extra = Extra::new();
        if legacy.id != legacy.node_id.as_str() {
            extra.insert("legacy_id".to_owned(), legacy.id.clone().into());
        }
        let ordinal = value
            .get("ordinal")
            .and_then(Value::as_u64)
            .and_then(|ordinal| u32::try_from(ordinal).ok());
        let name = text(value, "name")
            .or(text(value, "tool_name"))
            .unwrap_or(legacy.kind.as_str());
        Node {
            node_id: legacy.node_id.clone(),
            parent_id,
            after: Vec::new(),
            kind: legacy.kind,
            name: name.to_owned(),
            title: text(value, "title").unwrap_or_default().to_owned(),
            ordinal: ordinal.unwrap_or(count),
            executor: Executor::Runloom,
            occurrence_id: None,
            state: NodeState::Ended(NodeEnd {
                status: status(value, error.is_some()),
                finished_at: finished_at.max(announced_at),
                error,
                exit_code: value
                    .get("exit_code")
                    .and_then(Value::as_i64)
                    .and_then(|code| i32::try_from(code).ok()),
            }),
            announced_at,
            started_at,
            progress: None,
            outputs,
            extra,
        }
    }

    /// The run ends as it is said, else as its nodes did.
    fn close(&mut self, begin: Timestamp) {
        let ended = |node: &Node| node.state.end().map_or(begin, |end| end.finished_at);
        let last = self.snapshot.nodes.iter().map(ended).max().unwrap_or(begin);
        let answer = self
            .snapshot
            .nodes
            .iter()
            .find(|node| node.kind == NodeKind::Model);
        let status = self
            .status
            .unwrap_or(match answer.map(|node| node.state.status()) {
                Some(NodeStatus::Succeeded) => RunStatus::Succeeded,
                Some(NodeStatus::Failed | NodeStatus::TimedOut) => RunStatus::Failed,
                Some(NodeStatus::Cancelled) => RunStatus::Cancelled,
                _ => RunStatus::Interrupted,
            });
        self.snapshot.run.status = status;
        let of_root = match status {
            RunStatus::Succeeded => NodeStatus::Succeeded,
            RunStatus::Failed => NodeStatus::Failed,
            RunStatus::Cancelled => NodeStatus::Cancelled,
            _ => NodeStatus::Interrupted,
        };
        for node in self
            .snapshot
            .nodes
            .iter_mut()
            .filter(|node| node.state.end().is_none())
        {
            node.state = NodeState::Ended(NodeEnd {
                status: of_root,
                finished_at: last,
                error: None,
                exit_code: None,
            });
        }
    }
}

fn plain_node(node_id: NodeId, at: Timestamp) -> Node {
    Node {
        node_id,
        parent_id: None,
        after: Vec::new(),
        kind: NodeKind::Root,
        name: "root".to_owned(),
        title: String::new(),
        ordinal: 0,
        executor: Executor::Runloom,
        occurrence_id: None,
        state: NodeState::Running,
        announced_at: at,
        started_at: Some(at),
        progress: None,
        outputs: BTreeMap::new(),
        extra: Extra::new(),
    }
}

/// How a node ended. What a record leaves running was not seen to end.
fn status(value: &Value, has_error: bool) -> NodeStatus {
    match text(value, "status") {
        Some("completed" | "complete" | "success" | "done" | "ok") => NodeStatus::Succeeded,
        Some("error" | "failure") => NodeStatus::Failed,
        Some("canceled" | "aborted") => NodeStatus::Cancelled,
        Some(word) => NodeStatus::from_word(word)
            .filter(|status| status.is_final())
            .unwrap_or(NodeStatus::Interrupted),
        None if has_error => NodeStatus::Failed,
        None if value.get("result").is_some() || value.get("reply").is_some() => NodeStatus::Succeeded,
        None => NodeStatus::Interrupted,
    }
}
