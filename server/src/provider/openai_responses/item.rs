//! One output item on its way: its blocks on the display side, and the item itself for the replay record.

use serde_json::{Map, Value};

use super::block::Block;
use super::server_item;
use crate::provider::history::is_cut;
use crate::provider::{BlockStart, Position, ProviderEvent};

/// What an item is on the display side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Text and refusals, one block for each content part.
    Message,
    /// One block of reasoning, where there is any to read.
    Reasoning,
    /// A call for us.
    Call,
    /// A call that the provider runs itself.
    ServerTool,
    /// The result of such a call.
    ServerResult,
    /// Not known.
    Other,
}

/// Where the text of a reasoning item comes from. The first that has some counts: it is not shown twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The summary that was asked for.
    Summary,
    /// The reasoning itself, from open models.
    Text,
}

/// An output item.
#[derive(Debug)]
pub(super) struct Item {
    /// Its `output_index`.
    pub(super) index: i64,
    /// What it is.
    pub(super) role: Role,
    /// The item as it came last; what its end says takes the place of what its start said.
    value: Map<String, Value>,
    /// The block of reasoning or of a call.
    pub(super) block: Block,
    /// The content parts of a message by their index.
    pub(super) parts: Vec<(i64, BlockStart, Block)>,
    /// Where reasoning comes from, and the part that came last.
    source: Option<(Source, i64)>,
    /// Whether its end came.
    pub(super) done: bool,
}

type Events = Vec<ProviderEvent>;

impl Item {
    pub(super) fn new(index: i64, value: Map<String, Value>) -> Self {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        let role = match kind {
            "message" => Role::Message,
            "reasoning" => Role::Reasoning,
            "function_call" | "custom_tool_call" => Role::Call,
            kind if kind.ends_with("_call_output") || kind == "tool_search_output" => Role::ServerResult,
            kind if server_item::is_known(kind) => Role::ServerTool,
            _ => Role::Other,
        };
        Self {
            index,
            role,
            value,
            block: Block::default(),
            parts: Vec::new(),
            source: None,
            done: false,
        }
    }

    pub(super) fn text_field(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn value(&self) -> &Map<String, Value> {
        &self.value
    }

    /// The end of the item brings it whole.
    pub(super) fn replace(&mut self, value: Map<String, Value>) {
        self.value = value;
    }

    /// Whether the item shows a refusal.
    pub(super) fn refuses(&self) -> bool {
        self.parts.iter().any(|(_, kind, _)| *kind == BlockStart::Refusal)
    }

    /// Shows a call as soon as its name is known.
    pub(super) fn show_call(&mut self, positions: &mut Position, out: &mut Events) {
        if self.block.position.is_some() {
            return;
        }
        let (id_key, name) = match self.role {
            Role::Call => ("call_id", self.text_field("name").to_owned()),
            Role::ServerTool => ("id", server_item::name(&self.value)),
            Role::Message | Role::Reasoning | Role::ServerResult | Role::Other => return,
        };
        if name.is_empty() {
            return;
        }
        let mut id = self.text_field(id_key).to_owned();
        if id.is_empty() {
            id = format!("call_{positions}");
        }
        let kind = match self.role {
            Role::Call => BlockStart::ToolCall { id, name },
            _ => BlockStart::ServerTool { id, name },
        };
        let position = self.block.begin(kind, positions, out);
        if !self.block.content.is_empty() {
            let json = self.block.content.clone();
            out.push(ProviderEvent::ArgumentsDelta { position, json });
        }
    }

    /// The id under which the call is shown.
    pub(super) fn call_id(&self, key: &str) -> String {
        match (self.text_field(key), self.block.position) {
            ("", Some(position)) => format!("call_{position}"),
            (id, _) => id.to_owned(),
        }
    }

    /// More text of a content part.
    pub(super) fn show_text(
        &mut self,
        part: i64,
        kind: BlockStart,
        text: &str,
        positions: &mut Position,
        out: &mut Events,
    ) {
        if !text.is_empty() {
            self.part(part, &kind).show(kind, text, positions, out);
        }
    }

    /// The whole text of a content part.
    pub(super) fn settle_text(
        &mut self,
        part: i64,
        kind: BlockStart,
        whole: &str,
        positions: &mut Position,
        out: &mut Events,
    ) {
        if whole.is_empty() && !self.parts.iter().any(|(index, _, _)| *index == part) {
            return;
        }
        let block = self.part(part, &kind);
        if let Some(rest) = block.rest(whole, out) {
            block.show(kind, &rest, positions, out);
        }
        block.end(out);
    }

    fn part(&mut self, part: i64, kind: &BlockStart) -> &mut Block {
        let is_known = self
            .parts
            .iter()
            .any(|(index, held, _)| *index == part && held == kind);
        if !is_known {
            self.parts.push((part, kind.clone(), Block::default()));
        }
        let found = self
            .parts
            .iter()
            .rposition(|(index, held, _)| *index == part && held == kind);
        &mut self.parts[found.unwrap_or_default()].2
    }

    /// More reasoning. Parts of a summary are paragraphs of one block.
    pub(super) fn show_reasoning(
        &mut self,
        source: Source,
        part: i64,
        text: &str,
        positions: &mut Position,
        out: &mut Events,
    ) {
        if text.is_empty() || self.source.is_some_and(|(held, _)| held != source) {
            return;
        }
        if self.source.is_some_and(|(_, last)| last != part) {
            self.block.show(BlockStart::Reasoning, "\n\n", positions, out);
        }
        self.source = Some((source, part));
        self.block.show(BlockStart::Reasoning, text, positions, out);
    }

    /// The whole arguments of a call.
    pub(super) fn settle_arguments(&mut self, whole: &str, out: &mut Events) {
        if let Some(rest) = self.block.rest(whole, out) {
            self.block.show_arguments(&rest, out);
        }
    }

    /// The item is over: what its blocks miss is shown, and they end. A call whose arguments stop before their end was
    /// cut and stays open, as does one whose whole arguments contradict what was shown: neither may be run.
    pub(super) fn finish(&mut self, limited: bool, positions: &mut Position, out: &mut Events) {
        match self.role {
            Role::Message => self.finish_message(positions, out),
            Role::Reasoning => self.finish_reasoning(positions, out),
            Role::Call => {
                self.show_call(positions, out);
                let key = if self.text_field("type") == "custom_tool_call" {
                    "input"
                } else {
                    "arguments"
                };
                let whole = match self.value.get(key) {
                    Some(Value::String(text)) => text.clone(),
                    Some(object @ Value::Object(_)) => object.to_string(),
                    _ => String::new(),
                };
                self.settle_arguments(&whole, out);
                let limited = limited || self.text_field("status") == "incomplete";
                let cut = match self.block.content.trim() {
                    "" => limited,
                    content => is_cut(content),
                };
                if !cut && !self.block.contradicted {
                    self.block.end(out);
                }
            }
            Role::ServerTool => {
                self.show_call(positions, out);
                if let Some(whole) = server_item::arguments(&self.value) {
                    self.settle_arguments(&whole, out);
                }
                self.block.end(out);
            }
            Role::ServerResult | Role::Other => {}
        }
    }

    fn finish_message(&mut self, positions: &mut Position, out: &mut Events) {
        let content = self.value.get("content").and_then(Value::as_array).cloned();
        // Some servers count the parts from another number than the list does: the place among them counts then.
        let mut indexes: Vec<i64> = self.parts.iter().map(|(index, _, _)| *index).collect();
        indexes.dedup();
        for (place, part) in content.into_iter().flatten().enumerate() {
            let index = indexes.get(place).copied().unwrap_or(place as i64);
            let (kind, key) = match part.get("type").and_then(Value::as_str) {
                Some("output_text" | "text") => (BlockStart::Text, "text"),
                Some("refusal") => (BlockStart::Refusal, "refusal"),
                _ => continue,
            };
            let whole = part.get(key).and_then(Value::as_str).unwrap_or_default();
            self.settle_text(index, kind, whole, positions, out);
        }
        for (_, _, block) in &mut self.parts {
            block.end(out);
        }
    }

    fn finish_reasoning(&mut self, positions: &mut Position, out: &mut Events) {
        let texts = |key: &str| -> Vec<String> {
            let parts = self.value.get(key).and_then(Value::as_array);
            let texts = parts.into_iter().flatten();
            texts
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let (summary, content) = (texts("summary"), texts("content"));
        let whole = match self.source {
            Some((Source::Summary, _)) => summary,
            Some((Source::Text, _)) => content,
            None if summary.is_empty() => content,
            None => summary,
        };
        if let Some(rest) = self.block.rest(&whole.join("\n\n"), out) {
            self.block.show(BlockStart::Reasoning, &rest, positions, out);
        }
        self.block.end(out);
    }
}
