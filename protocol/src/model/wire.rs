//! The flat forms of things, with the field names of the ops, and their conversions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AttemptEnd, AttemptState, BlockBody, BlockEnd, BlockState, Content, ContentRef, ErrorInfo, Kept, NodeEnd,
    NodeState, Output, Progress, Timestamp, ToolRef, Usage,
};
use crate::Extra;
use crate::id::{AttemptId, BlockId, GroupId, NodeId, OccurrenceId};
use crate::state::{
    AttemptReason, AttemptStatus, BlockStatus, Channel, Executor, NodeKind, NodeStatus, Retention,
};

/// A thing whose fields do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{thing}: {problem}")]
pub struct Inconsistent {
    thing: String,
    problem: &'static str,
}

impl Inconsistent {
    fn new(thing: impl ToString, problem: &'static str) -> Self {
        Self {
            thing: thing.to_string(),
            problem,
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Node {
    node_id: NodeId,
    #[serde(default)]
    parent_id: Option<NodeId>,
    #[serde(default)]
    after: Vec<NodeId>,
    kind: NodeKind,
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    ordinal: u32,
    executor: Executor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurrence_id: Option<OccurrenceId>,
    status: NodeStatus,
    announced_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default)]
    outputs: BTreeMap<Channel, Output>,
    #[serde(flatten)]
    extra: Extra,
}

impl TryFrom<Node> for super::Node {
    type Error = Inconsistent;

    fn try_from(node: Node) -> Result<Self, Inconsistent> {
        if !node.status.is_final() && node.outputs.values().any(|output| output.content_ref.is_some()) {
            let problem = "an output is left out while the node is open";
            return Err(Inconsistent::new(node.node_id, problem));
        }
        let state = match (node.status, node.finished_at) {
            (NodeStatus::Pending, None) => NodeState::Pending,
            (NodeStatus::AwaitingApproval, None) => NodeState::AwaitingApproval,
            (NodeStatus::Running, None) => NodeState::Running,
            (status, Some(finished_at)) if status.is_final() => NodeState::Ended(NodeEnd {
                status,
                finished_at,
                error: node.error,
                exit_code: node.exit_code,
            }),
            (_, Some(_)) => {
                return Err(Inconsistent::new(
                    node.node_id,
                    "it has an end time but no final status",
                ));
            }
            (_, None) => {
                return Err(Inconsistent::new(
                    node.node_id,
                    "it has a final status but no finished_at",
                ));
            }
        };
        Ok(Self {
            node_id: node.node_id,
            parent_id: node.parent_id,
            after: node.after,
            kind: node.kind,
            name: node.name,
            title: node.title,
            ordinal: node.ordinal,
            executor: node.executor,
            occurrence_id: node.occurrence_id,
            state,
            announced_at: node.announced_at,
            started_at: node.started_at,
            progress: node.progress,
            outputs: node.outputs,
            extra: node.extra,
        })
    }
}

impl From<super::Node> for Node {
    fn from(node: super::Node) -> Self {
        let status = node.state.status();
        let (finished_at, error, exit_code) = match node.state {
            NodeState::Ended(end) => (Some(end.finished_at), end.error, end.exit_code),
            NodeState::Pending | NodeState::AwaitingApproval | NodeState::Running => (None, None, None),
        };
        Self {
            node_id: node.node_id,
            parent_id: node.parent_id,
            after: node.after,
            kind: node.kind,
            name: node.name,
            title: node.title,
            ordinal: node.ordinal,
            executor: node.executor,
            occurrence_id: node.occurrence_id,
            status,
            announced_at: node.announced_at,
            started_at: node.started_at,
            finished_at,
            progress: node.progress,
            error,
            exit_code,
            outputs: node.outputs,
            extra: node.extra,
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Attempt {
    attempt_id: AttemptId,
    node_id: NodeId,
    attempt_index: u32,
    reason: AttemptReason,
    status: AttemptStatus,
    provider: String,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continues_attempt_id: Option<AttemptId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Kept>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
    started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(flatten)]
    extra: Extra,
}

impl TryFrom<Attempt> for super::Attempt {
    type Error = Inconsistent;

    fn try_from(attempt: Attempt) -> Result<Self, Inconsistent> {
        let state = match (attempt.status, attempt.finished_at) {
            (AttemptStatus::Running, None) => AttemptState::Running,
            (AttemptStatus::Running, Some(_)) => {
                return Err(Inconsistent::new(
                    attempt.attempt_id,
                    "it has an end time but is running",
                ));
            }
            (_, None) => {
                return Err(Inconsistent::new(
                    attempt.attempt_id,
                    "it has a final status but no finished_at",
                ));
            }
            (status, Some(finished_at)) => AttemptState::Ended(AttemptEnd {
                status,
                finished_at,
                stop_reason: attempt.stop_reason,
                usage: attempt.usage,
                error: attempt.error,
            }),
        };
        Ok(Self {
            attempt_id: attempt.attempt_id,
            node_id: attempt.node_id,
            attempt_index: attempt.attempt_index,
            reason: attempt.reason,
            state,
            provider: attempt.provider,
            model: attempt.model,
            continues_attempt_id: attempt.continues_attempt_id,
            kept: attempt.kept,
            started_at: attempt.started_at,
            extra: attempt.extra,
        })
    }
}

impl From<super::Attempt> for Attempt {
    fn from(attempt: super::Attempt) -> Self {
        let status = attempt.state.status();
        let (finished_at, stop_reason, usage, error) = match attempt.state {
            AttemptState::Running => (None, None, None, None),
            AttemptState::Ended(end) => (Some(end.finished_at), end.stop_reason, end.usage, end.error),
        };
        Self {
            attempt_id: attempt.attempt_id,
            node_id: attempt.node_id,
            attempt_index: attempt.attempt_index,
            reason: attempt.reason,
            status,
            provider: attempt.provider,
            model: attempt.model,
            continues_attempt_id: attempt.continues_attempt_id,
            kept: attempt.kept,
            stop_reason,
            usage,
            error,
            started_at: attempt.started_at,
            finished_at,
            extra: attempt.extra,
        }
    }
}

/// The fields that belong to one kind of block or another.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BodyFields {
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [
        "text", "reasoning", "tool_ref", "parallel_group", "refusal", "unsupported"
    ])))]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retention: Option<Retention>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurrence_id: Option<OccurrenceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ref_node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group_id: Option<GroupId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Vec<BlockId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_ref: Option<ContentRef>,
}

impl BodyFields {
    /// Writes a body, with its text; an empty one only where `with_empty` says so.
    pub(crate) fn of(body: BlockBody, with_empty: bool) -> Self {
        let kind = body.kind().to_owned();
        let put = |fields: &mut Self, content: Content| {
            fields.content = (with_empty || !content.text.is_empty()).then_some(content.text);
            fields.content_ref = content.content_ref;
        };
        let mut fields = Self {
            kind,
            ..Self::default()
        };
        match body {
            BlockBody::Text(content) | BlockBody::Refusal(content) => put(&mut fields, content),
            BlockBody::Reasoning { content, retention } => {
                fields.retention = Some(retention);
                put(&mut fields, content);
            }
            BlockBody::ToolRef(reference) => {
                fields.tool_call_id = Some(reference.tool_call_id);
                fields.occurrence_id = Some(reference.occurrence_id);
                fields.ref_node_id = reference.ref_node_id;
                fields.tool_name = Some(reference.tool_name);
                fields.group_id = reference.group_id;
            }
            BlockBody::ParallelGroup { group_id, members } => {
                fields.group_id = Some(group_id);
                fields.members = Some(members);
            }
            BlockBody::Unsupported { raw_kind, bytes } => {
                fields.raw_kind = Some(raw_kind);
                fields.bytes = Some(bytes);
            }
        }
        fields
    }

    /// Reads a body. A kind that is not known becomes [`BlockBody::Unsupported`]; its fields are in `extra`.
    pub(crate) fn body(self, of: &BlockId, extra: &Extra) -> Result<BlockBody, Inconsistent> {
        let content = Content {
            text: self.content.unwrap_or_default(),
            content_ref: self.content_ref,
        };
        Ok(match self.kind.as_str() {
            "text" => BlockBody::Text(content),
            "refusal" => BlockBody::Refusal(content),
            "reasoning" => BlockBody::Reasoning {
                content,
                retention: self.retention.unwrap_or(Retention::Saved),
            },
            "tool_ref" => BlockBody::ToolRef(ToolRef {
                tool_call_id: self.tool_call_id.unwrap_or_default(),
                occurrence_id: self
                    .occurrence_id
                    .ok_or_else(|| Inconsistent::new(of, "a tool_ref without occurrence_id"))?,
                ref_node_id: self.ref_node_id,
                tool_name: self.tool_name.unwrap_or_default(),
                group_id: self.group_id,
            }),
            "parallel_group" => BlockBody::ParallelGroup {
                group_id: self
                    .group_id
                    .ok_or_else(|| Inconsistent::new(of, "a parallel_group without group_id"))?,
                members: self.members.unwrap_or_default(),
            },
            "unsupported" => BlockBody::Unsupported {
                raw_kind: self.raw_kind.unwrap_or_default(),
                bytes: self.bytes.unwrap_or_default(),
            },
            unknown => BlockBody::Unsupported {
                raw_kind: unknown.to_owned(),
                bytes: self.bytes.unwrap_or_else(|| {
                    let text = extra.get("content").and_then(Value::as_str);
                    text.map_or(0, |text| text.len() as u64)
                }),
            },
        })
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Block {
    block_id: BlockId,
    attempt_id: AttemptId,
    node_id: NodeId,
    block_index: u32,
    #[serde(default)]
    round: u32,
    status: BlockStatus,
    started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "BodyFields"))]
    body: Value,
}

/// The fields of [`BodyFields`] that a block of this kind has; what else stands beside them is kept as unknown.
pub(crate) fn own_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "text" | "refusal" => &["kind", "bytes", "content", "content_ref"],
        "reasoning" => &["kind", "bytes", "content", "content_ref", "retention"],
        "tool_ref" => &[
            "kind",
            "bytes",
            "tool_call_id",
            "occurrence_id",
            "ref_node_id",
            "tool_name",
            "group_id",
        ],
        "parallel_group" => &["kind", "bytes", "group_id", "members"],
        _ => &["kind", "bytes", "raw_kind"],
    }
}

/// Parts the fields of a block's kind from those that are not known.
pub(crate) fn split_body(mut fields: Extra) -> Result<(BodyFields, Extra), serde_json::Error> {
    let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
    let mut own = Extra::new();
    for name in own_fields(kind) {
        if let Some(value) = fields.shift_remove(*name) {
            own.insert((*name).to_owned(), value);
        }
    }
    Ok((serde_json::from_value(Value::Object(own))?, fields))
}

/// Puts the fields of a block's kind and the unknown ones together; where both have one, its own counts.
pub(crate) fn with_extra(fields: BodyFields, extra: Extra) -> Extra {
    // A struct of options and strings always becomes an object.
    let Ok(Value::Object(mut body)) = serde_json::to_value(fields) else {
        return extra;
    };
    for (name, value) in extra {
        body.entry(name).or_insert(value);
    }
    body
}

impl TryFrom<Block> for super::Block {
    type Error = String;

    fn try_from(block: Block) -> Result<Self, String> {
        let Value::Object(fields) = block.body else {
            return Err(Inconsistent::new(block.block_id, "its fields are not an object").to_string());
        };
        let stated_bytes = fields.get("bytes").and_then(Value::as_u64);
        let (fields, extra) = split_body(fields).map_err(|error| format!("{}: {error}", block.block_id))?;
        let body = fields
            .body(&block.block_id, &extra)
            .map_err(|error| error.to_string())?;
        if block.status == BlockStatus::Streaming
            && body
                .content()
                .is_some_and(|content| content.content_ref.is_some())
        {
            let problem = "its content is left out while it is streaming";
            return Err(Inconsistent::new(block.block_id, problem).to_string());
        }
        let state = match (block.status, block.finished_at) {
            (BlockStatus::Streaming, None) => BlockState::Streaming,
            (BlockStatus::Streaming, Some(_)) => {
                return Err(
                    Inconsistent::new(block.block_id, "it has an end time but is streaming").to_string(),
                );
            }
            (_, None) => {
                return Err(
                    Inconsistent::new(block.block_id, "it has a final status but no finished_at").to_string(),
                );
            }
            (status, Some(finished_at)) => BlockState::Ended(BlockEnd {
                status,
                finished_at,
                bytes: stated_bytes
                    .or(body.content().map(|content| content.text.len() as u64))
                    .unwrap_or_default(),
                sha256: block.sha256,
            }),
        };
        Ok(Self {
            block_id: block.block_id,
            attempt_id: block.attempt_id,
            node_id: block.node_id,
            block_index: block.block_index,
            round: block.round,
            body,
            state,
            started_at: block.started_at,
            extra,
        })
    }
}

impl From<super::Block> for Block {
    fn from(block: super::Block) -> Self {
        let status = block.state.status();
        let (finished_at, bytes, sha256) = match block.state {
            BlockState::Streaming => (None, None, None),
            BlockState::Ended(end) => (Some(end.finished_at), Some(end.bytes), end.sha256),
        };
        let mut fields = BodyFields::of(block.body, true);
        if fields.bytes.is_none() && (sha256.is_some() || fields.content.is_some()) {
            fields.bytes = bytes;
        }
        let body = Value::Object(with_extra(fields, block.extra));
        Self {
            block_id: block.block_id,
            attempt_id: block.attempt_id,
            node_id: block.node_id,
            block_index: block.block_index,
            round: block.round,
            status,
            started_at: block.started_at,
            finished_at,
            sha256,
            body,
        }
    }
}
