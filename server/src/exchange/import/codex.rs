//! Session logs of Codex (rollouts): one JSON object a line, of which `response_item` lines are what the model was given
//! and gave. Older ones hold those items alone. `docs/importing.md` names where the format is described.

use std::collections::BTreeMap;

use protocol::model::{ErrorInfo, Timestamp, Usage};
use protocol::state::{Channel, MessageRole, NodeStatus, RunStatus};
use serde_json::Value;

use super::claude_code::failure;
use super::draft::Draft;
use super::drafts::Drafts;
use super::value::{time, words};

/// The word for it.
pub(super) const FORMAT: &str = "codex";

/// What a client tells the model in a person's name.
const CONTEXT: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
];

/// Whether the first line is one of such a log.
pub(super) fn is_line(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    match value.get("type").and_then(Value::as_str) {
        Some("session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted") => has("payload"),
        Some(_) => false,
        None => has("id") && has("timestamp") && (has("instructions") || has("git")),
    }
}

/// Reads such a log.
pub(super) struct Reader {
    drafts: Drafts,
    at: Timestamp,
    /// A result came since the model wrote last.
    is_answered: bool,
    model: String,
    provider: String,
    /// The prompt as it came last: an event tells it a second time.
    prompt: String,
    end: Option<(RunStatus, Option<ErrorInfo>)>,
    passed: BTreeMap<String, u64>,
}

impl Reader {
    pub(super) fn new(first: &Value, key: &str) -> Self {
        let meta = first.get("payload").unwrap_or(first);
        let id = meta.get("id").and_then(Value::as_str).unwrap_or(key);
        let provider = meta
            .get("model_provider")
            .and_then(Value::as_str)
            .unwrap_or("openai");
        Self {
            drafts: Drafts::new(FORMAT, id),
            at: first.get("timestamp").and_then(time).unwrap_or(0),
            is_answered: false,
            model: String::new(),
            provider: provider.to_owned(),
            prompt: String::new(),
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
        if let Some(at) = value.get("timestamp").and_then(time) {
            self.at = at;
        }
        let Some(payload) = value.get("payload") else {
            // The first line, and states, of older logs.
            if value.get("type").is_some() {
                self.item(record, value);
            }
            return;
        };
        match value.get("type").and_then(Value::as_str) {
            Some("response_item") => self.item(record, payload),
            Some("event_msg") => self.event(payload),
            Some("turn_context") => {
                if let Some(model) = payload.get("model").and_then(Value::as_str) {
                    model.clone_into(&mut self.model);
                }
            }
            Some("compacted") => {
                let at = self.at;
                let words = "The conversation before this was summed up for the model.";
                self.drafts.current(at).notice("context_compacted", words, at);
            }
            Some("session_meta") => {}
            Some(kind) => *self.passed.entry(kind.to_owned()).or_default() += 1,
            None => self.bad(record, "it has no type"),
        }
    }

    /// The model that answers.
    fn answer(&mut self) -> (usize, &mut Draft) {
        let at = self.at;
        let is_next = std::mem::take(&mut self.is_answered);
        let (provider, name) = (self.provider.clone(), self.model.clone());
        let draft = self.drafts.current(at);
        let model = draft.answer(at);
        draft.named(model, &provider, &name);
        if is_next {
            draft.round(model);
        }
        (model, draft)
    }

    fn item(&mut self, record: &str, item: &Value) {
        let at = self.at;
        let text = |name: &str| {
            item.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match text("type").as_str() {
            "message" => self.message(item),
            "reasoning" => {
                let said = parts(item.get("summary")).or_else(|| parts(item.get("content")));
                let (model, draft) = self.answer();
                draft.reasoning(model, said.as_deref(), at);
            }
            "function_call" => {
                let (model, draft) = self.answer();
                draft.call(model, &text("call_id"), &text("name"), &text("arguments"), at);
            }
            "custom_tool_call" => {
                let (model, draft) = self.answer();
                draft.call(model, &text("call_id"), &text("name"), &text("input"), at);
            }
            "local_shell_call" | "web_search_call" => {
                let name = text("type").trim_end_matches("_call").to_owned();
                let id = Some(text("call_id"))
                    .filter(|id| !id.is_empty())
                    .unwrap_or_else(|| text("id"));
                let arguments = item.get("action").map(words).unwrap_or_default();
                let is_done = name == "web_search" && text("status") == "completed";
                let (model, draft) = self.answer();
                let place = draft.call(model, &id, &name, &arguments, at);
                if is_done {
                    draft.ended(place, NodeStatus::Succeeded, None, None, at);
                }
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.result(
                    record,
                    &text("call_id"),
                    item.get("output").unwrap_or(&Value::Null),
                );
            }
            "ghost_snapshot" | "compaction" | "compaction_summary" => {
                *self.passed.entry(text("type")).or_default() += 1;
            }
            kind => {
                let bytes = item.to_string().len();
                let (model, draft) = self.answer();
                draft.unsupported(model, kind, bytes, at);
            }
        }
    }

    fn message(&mut self, item: &Value) {
        let at = self.at;
        let Some(text) = parts(item.get("content")) else {
            return;
        };
        match item.get("role").and_then(Value::as_str) {
            Some("assistant") => {
                let (model, draft) = self.answer();
                draft.text(model, &text, at);
            }
            Some("user") if !CONTEXT.iter().any(|begin| text.trim_start().starts_with(begin)) => {
                self.prompt(&text);
            }
            role => {
                let kind = format!("context ({})", role.unwrap_or("unknown"));
                *self.passed.entry(kind).or_default() += 1;
            }
        }
    }

    fn prompt(&mut self, text: &str) {
        let at = self.at;
        if self.drafts.runs.last().is_none_or(Draft::has_answer) {
            self.close();
            self.is_answered = false;
            self.drafts.begin(at);
        }
        text.clone_into(&mut self.prompt);
        self.drafts.current(at).message(MessageRole::User, text, at);
    }

    fn result(&mut self, record: &str, id: &str, output: &Value) {
        let at = self.at;
        self.is_answered = true;
        let draft = self.drafts.current(at);
        let Some(place) = draft.call_of(id).filter(|place| !draft.is_ended(*place)) else {
            self.bad(
                record,
                &format!("it is the result of the call {id:?}, which is not open in this file"),
            );
            return;
        };
        let (text, exit, success) = told(output);
        draft.output(place, Channel::Result, &text, "text/plain; charset=utf-8");
        let is_failed = exit.is_some_and(|exit| exit != 0) || success == Some(false);
        let (status, error) = match is_failed {
            true => (NodeStatus::Failed, Some(failure(&text))),
            false => (NodeStatus::Succeeded, None),
        };
        draft.ended(place, status, error, exit, at);
    }

    fn event(&mut self, event: &Value) {
        let at = self.at;
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "user_message" => {
                let said = text("message").to_owned();
                let is_context = CONTEXT.iter().any(|begin| said.trim_start().starts_with(begin));
                if said.trim() != self.prompt.trim() && !said.trim().is_empty() && !is_context {
                    self.prompt(&said);
                }
            }
            "token_count" => {
                let count = |name: &str| {
                    let path = format!("/info/last_token_usage/{name}");
                    event.pointer(&path).and_then(Value::as_u64)
                };
                if let (Some(input), Some(output)) = (count("input_tokens"), count("output_tokens")) {
                    self.drafts.current(at).usage(&Usage {
                        input_tokens: input,
                        output_tokens: output,
                        cache_read_tokens: count("cached_input_tokens"),
                        reasoning_tokens: count("reasoning_output_tokens"),
                        ..Usage::default()
                    });
                }
            }
            "turn_aborted" => self.end = Some((RunStatus::Cancelled, None)),
            "error" | "stream_error" | "warning" => {
                let words = text("message").to_owned();
                if text("type") == "error" {
                    self.end = Some((
                        RunStatus::Failed,
                        Some(ErrorInfo::new("provider_error", words.clone())),
                    ));
                }
                self.drafts.current(at).notice(text("type"), &words, at);
            }
            // The items tell the same.
            _ => {}
        }
    }

    fn close(&mut self) {
        let end = self.end.take();
        self.drafts.close(end);
    }

    pub(super) fn finish(mut self) -> Drafts {
        self.drafts.not_shown(&self.passed, self.at);
        self.close();
        self.drafts.title(None);
        self.drafts
    }
}

/// The text of parts, where there is any.
fn parts(parts: Option<&Value>) -> Option<String> {
    let text = match parts? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let words = parts
                .iter()
                .filter_map(|part| match part.get("text").and_then(Value::as_str) {
                    Some(text) => Some(text.to_owned()),
                    None => {
                        let kind = part.get("type").and_then(Value::as_str)?;
                        Some(format!(
                            "[{kind}, {} bytes as text: not shown]",
                            part.to_string().len()
                        ))
                    }
                });
            words.collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    };
    (!text.trim().is_empty()).then_some(text)
}

/// What a call gave back: its text, and whether it went well, as far as it is told.
fn told(output: &Value) -> (String, Option<i32>, Option<bool>) {
    let inner = match output {
        Value::String(text) => serde_json::from_str::<Value>(text).ok(),
        other => Some(other.clone()),
    };
    if let Some(Value::Object(fields)) = &inner {
        let exit = inner
            .as_ref()
            .and_then(|inner| inner.pointer("/metadata/exit_code"))
            .and_then(Value::as_i64);
        let text = fields.get("output").or(fields.get("content"));
        if let Some(text) = text {
            let success = fields.get("success").and_then(Value::as_bool);
            return (
                words(text),
                exit.and_then(|exit| i32::try_from(exit).ok()),
                success,
            );
        }
    }
    if let Value::Array(_) = output {
        return (parts(Some(output)).unwrap_or_default(), None, None);
    }
    let text = words(output);
    let exit = text
        .lines()
        .take(4)
        .find_map(|line| {
            line.strip_prefix("Exit code: ")
                .or(line.strip_prefix("Process exited with code "))
        })
        .and_then(|code| code.trim().parse().ok());
    (text, exit, None)
}
