//! Session logs of Claude Code: one JSON object a line. `docs/importing.md` names where the format is described.
//!
//! A prompt begins a run; what follows is the answer of one model node. Subagents in the same file are inner models of
//! the call that started them.

use std::collections::{BTreeMap, HashMap, HashSet};

use protocol::model::{ErrorInfo, Timestamp, Usage};
use protocol::state::{Channel, MessageRole, NodeStatus, RunStatus};
use serde_json::Value;

use super::draft::Draft;
use super::drafts::Drafts;
use super::value::{time, words};

/// The word for it.
pub(super) const FORMAT: &str = "claude_code";

/// Whether a line may be one of such a log.
pub(super) fn is_line(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    let has = |name: &str| value.get(name).is_some();
    match kind {
        Some("user" | "assistant" | "system") => has("uuid") || has("sessionId") || has("parentUuid"),
        Some("summary") => has("leafUuid"),
        Some("file-history-snapshot") => has("messageId"),
        Some(_) => has("sessionId") && (has("uuid") || !has("payload")),
        None => false,
    }
}

/// Reads such a log.
pub(super) struct Reader {
    drafts: Drafts,
    at: Timestamp,
    /// The lines that were read, by their id.
    seen: HashSet<String>,
    /// The model whose words a line belongs to, by the id of the line.
    speakers: HashMap<String, usize>,
    /// A log of one subagent: all of it is beside, and so none of it.
    is_beside: Option<bool>,
    /// The message that a model writes.
    message: HashMap<usize, String>,
    usage: HashMap<String, Usage>,
    title: Option<String>,
    /// How the run that is told ended, where it is said.
    end: Option<(RunStatus, Option<ErrorInfo>)>,
    /// Kinds of lines that hold nothing to show.
    passed: BTreeMap<String, u64>,
}

impl Reader {
    pub(super) fn new(first: &Value, key: &str) -> Self {
        let session = first.get("sessionId").and_then(Value::as_str).unwrap_or(key);
        // A subagent has the session of whom it serves.
        let agent = first.get("agentId").and_then(Value::as_str).unwrap_or_default();
        Self {
            drafts: Drafts::new(FORMAT, &format!("{session}{agent}")),
            at: 0,
            seen: HashSet::new(),
            speakers: HashMap::new(),
            is_beside: None,
            message: HashMap::new(),
            usage: HashMap::new(),
            title: None,
            end: None,
            passed: BTreeMap::new(),
        }
    }

    /// A line that cannot be read.
    pub(super) fn bad(&mut self, record: &str, reason: &str) {
        let at = self.at;
        self.drafts
            .current(at)
            .notice("quarantined_record", &format!("{record}: {reason}."), at);
    }

    pub(super) fn line(&mut self, record: &str, value: &Value) {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if let Some(at) = value.get("timestamp").and_then(time) {
            self.at = at;
        }
        if let Some(uuid) = text("uuid")
            && !self.seen.insert(uuid.to_owned())
        {
            return;
        }
        match text("type") {
            Some("user") => self.user(record, value),
            Some("assistant") => self.assistant(record, value),
            Some("system") => self.system(value),
            Some("summary") => self.title = text("summary").map(str::to_owned).or(self.title.take()),
            Some("custom-title" | "ai-title") => {
                let title = text("customTitle").or(text("aiTitle")).or(text("title"));
                self.title = title.map(str::to_owned).or(self.title.take());
            }
            Some(kind) => *self.passed.entry(kind.to_owned()).or_default() += 1,
            None => self.bad(record, "it has no type"),
        }
    }

    /// Whether a line is a subagent's within the log of another.
    fn is_side(&mut self, value: &Value) -> bool {
        let is_side = value.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
        let all = *self.is_beside.get_or_insert(is_side);
        is_side && !all
    }

    /// The model that a line of a subagent belongs to.
    fn side_model(&mut self, value: &Value, prompt: Option<&str>) -> usize {
        let parent = value.get("parentUuid").and_then(Value::as_str);
        if let Some(known) = parent.and_then(|parent| self.speakers.get(parent)) {
            return *known;
        }
        let at = self.at;
        let draft = self.drafts.current(at);
        let caller = draft.caller(prompt).or_else(|| {
            let answer = draft.answer(at);
            draft.model_node(answer)
        });
        match caller {
            Some(caller) => draft.model_below(caller, "subagent", at),
            None => draft.answer(at),
        }
    }

    fn remember(&mut self, value: &Value, model: usize) {
        if let Some(uuid) = value.get("uuid").and_then(Value::as_str) {
            self.speakers.insert(uuid.to_owned(), model);
        }
    }

    fn user(&mut self, record: &str, value: &Value) {
        let at = self.at;
        let content = value.pointer("/message/content").cloned().unwrap_or_default();
        let is_meta = value.get("isMeta").and_then(Value::as_bool).unwrap_or(false);
        let is_side = self.is_side(value);
        let said = said(&content);
        if is_side {
            let model = self.side_model(value, said.as_deref());
            self.remember(value, model);
        }
        for part in content.as_array().into_iter().flatten() {
            if part.get("type").and_then(Value::as_str) == Some("tool_result") {
                self.result(record, part);
            }
        }
        let Some(text) = said.filter(|_| !is_side) else {
            return;
        };
        if is_meta {
            *self.passed.entry("user (meta)".to_owned()).or_default() += 1;
        } else if text.starts_with("[Request interrupted by user") {
            self.end = Some((RunStatus::Cancelled, None));
        } else if value.get("isCompactSummary").and_then(Value::as_bool) == Some(true) {
            self.drafts.current(at).message(MessageRole::System, &text, at);
        } else {
            self.prompt(&text);
        }
    }

    fn prompt(&mut self, text: &str) {
        let at = self.at;
        if self.drafts.runs.last().is_none_or(Draft::has_answer) {
            self.close();
            self.message.clear();
            self.drafts.begin(at);
        }
        self.drafts.current(at).message(MessageRole::User, text, at);
    }

    fn result(&mut self, record: &str, part: &Value) {
        let at = self.at;
        let id = part
            .get("tool_use_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let draft = self.drafts.current(at);
        let Some(place) = draft.call_of(id).filter(|place| !draft.is_ended(*place)) else {
            self.bad(
                record,
                &format!("it is the result of the call {id:?}, which is not open in this file"),
            );
            return;
        };
        let text = part.get("content").map(result_words).unwrap_or_default();
        let is_error = part.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        draft.output(place, Channel::Result, &text, "text/plain; charset=utf-8");
        let is_denied = is_error && text.starts_with("The user doesn't want to");
        let (status, error) = match (is_denied, is_error) {
            (true, _) => (NodeStatus::Denied, None),
            (false, true) => (NodeStatus::Failed, Some(failure(&text))),
            (false, false) => (NodeStatus::Succeeded, None),
        };
        draft.ended(place, status, error, None, at);
    }

    fn assistant(&mut self, record: &str, value: &Value) {
        let at = self.at;
        let model = if self.is_side(value) {
            self.side_model(value, None)
        } else {
            self.drafts.current(at).answer(at)
        };
        self.remember(value, model);
        let message = value.get("message").cloned().unwrap_or_default();
        let name = message.get("model").and_then(Value::as_str).unwrap_or_default();
        let id = message
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or(record)
            .to_owned();
        let is_error = value.get("isApiErrorMessage").and_then(Value::as_bool) == Some(true);
        let draft = self.drafts.current(at);
        if !name.starts_with('<') {
            draft.named(model, "anthropic", name);
        }
        if let Some(before) = self.message.insert(model, id.clone())
            && before != id
        {
            draft.round(model);
        }
        if let Some(usage) = message.get("usage") {
            let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
            let cached = count("cache_read_input_tokens");
            let written = count("cache_creation_input_tokens");
            let usage = Usage {
                input_tokens: count("input_tokens") + cached + written,
                output_tokens: count("output_tokens"),
                cache_read_tokens: Some(cached),
                cache_write_tokens: Some(written),
                ..Usage::default()
            };
            // Each line of a message tells what it took so far.
            self.usage.insert(id, usage);
        }
        let content = message.get("content").cloned().unwrap_or_default();
        if let Value::String(text) = &content {
            draft.text(model, text, at);
        }
        for part in content.as_array().into_iter().flatten() {
            self.part(record, model, part);
        }
        self.end = is_error.then(|| {
            let text = said(&content).unwrap_or_default();
            (
                RunStatus::Failed,
                Some(ErrorInfo::new("provider_error", first_line(&text))),
            )
        });
    }

    fn part(&mut self, record: &str, model: usize, part: &Value) {
        let at = self.at;
        let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        let draft = self.drafts.current(at);
        match text("type") {
            "text" => draft.text(model, text("text"), at),
            "thinking" => draft.reasoning(model, Some(text("thinking")).filter(|text| !text.is_empty()), at),
            "redacted_thinking" => draft.reasoning(model, None, at),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let arguments = part.get("input").map(words).unwrap_or_default();
                draft.call(model, text("id"), text("name"), &arguments, at);
            }
            kind if kind.ends_with("_tool_result") => self.result(record, part),
            kind => draft.unsupported(model, kind, part.to_string().len(), at),
        }
    }

    fn system(&mut self, value: &Value) {
        let at = self.at;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let said = text("content").unwrap_or_default();
        match (text("subtype"), text("level")) {
            (Some("compact_boundary"), _) => {
                let words = "The conversation before this was summed up for the model.";
                self.drafts.current(at).notice("context_compacted", words, at);
            }
            (Some("api_error"), _) | (_, Some("error" | "warning")) => {
                let code = text("subtype").unwrap_or("system");
                let words = value.get("error").map(words).filter(|words| !words.is_empty());
                let words = words.unwrap_or_else(|| said.to_owned());
                self.drafts.current(at).notice(code, &words, at);
            }
            (subtype, _) => {
                let kind = format!("system ({})", subtype.unwrap_or("plain"));
                *self.passed.entry(kind).or_default() += 1;
            }
        }
    }

    fn close(&mut self) {
        let end = self.end.take();
        let usage: Vec<Usage> = self.usage.drain().map(|(_, usage)| usage).collect();
        if let Some(draft) = self.drafts.runs.last_mut() {
            usage.iter().for_each(|usage| draft.usage(usage));
        }
        self.drafts.close(end);
    }

    pub(super) fn finish(mut self) -> Drafts {
        self.drafts.not_shown(&self.passed, self.at);
        self.close();
        self.drafts.title(self.title.take());
        self.drafts
    }
}

/// What a person said in a message; none where it holds results only.
fn said(content: &Value) -> Option<String> {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let words: Vec<String> = parts.iter().filter_map(part_words).collect();
            words.join("\n\n")
        }
        _ => String::new(),
    };
    (!text.trim().is_empty()).then_some(text)
}

fn part_words(part: &Value) -> Option<String> {
    match part.get("type").and_then(Value::as_str)? {
        "text" => part.get("text").and_then(Value::as_str).map(str::to_owned),
        "tool_result" => None,
        kind => Some(left_out(kind, part)),
    }
}

/// What stands for an image or a document.
fn left_out(kind: &str, part: &Value) -> String {
    let media = part
        .pointer("/source/media_type")
        .and_then(Value::as_str)
        .unwrap_or("unknown type");
    let bytes = part
        .pointer("/source/data")
        .and_then(Value::as_str)
        .map_or(0, str::len);
    format!("[{kind}, {media}, {bytes} bytes as text: not shown]")
}

fn result_words(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let words: Vec<String> = parts
                .iter()
                .map(|part| part_words(part).unwrap_or_else(|| words(part)))
                .collect();
            words.join("\n")
        }
        other => words(other),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("It failed.").chars().take(300).collect()
}

/// Why a call failed, in its own first words.
pub(super) fn failure(text: &str) -> ErrorInfo {
    ErrorInfo::new("tool_failed", first_line(text))
}
