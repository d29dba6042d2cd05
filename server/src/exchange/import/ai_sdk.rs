//! Messages of the AI SDK's interface (`UIMessage[]`), as an array or as the field `messages` of an object.
//! `docs/importing.md` names where the format is described.

use protocol::model::{ErrorInfo, Timestamp};
use protocol::state::{Channel, MessageRole, NodeStatus, RunStatus};
use serde_json::Value;

use super::draft::Draft;
use super::drafts::Drafts;
use super::value::{time, words};

/// The word for it.
pub(super) const FORMAT: &str = "ai_sdk";

/// The messages of a document, where it holds some.
pub(super) fn messages(document: &Value) -> Option<&Vec<Value>> {
    let messages = document
        .as_array()
        .or_else(|| document.get("messages")?.as_array())?;
    let is_message = |message: &Value| {
        message.get("role").is_some() && (message.get("parts").is_some() || message.get("content").is_some())
    };
    (!messages.is_empty() && messages.iter().any(is_message)).then_some(messages)
}

/// Reads the messages. Where they tell no time it is `now`.
pub(super) fn read(messages: &[Value], key: &str, now: Timestamp) -> Drafts {
    let mut reader = Reader {
        drafts: Drafts::new(FORMAT, key),
        at: now,
        is_timed: false,
        is_stopped: false,
    };
    for (place, message) in messages.iter().enumerate() {
        reader.message(&format!("message {}", place + 1), message);
    }
    reader.close();
    if !reader.is_timed && !reader.drafts.runs.is_empty() {
        let at = reader.at;
        let words = "The messages tell no times: all of them stand at the time of the import.";
        reader.drafts.current(at).notice("times_unknown", words, at);
    }
    reader.drafts.title(None);
    reader.drafts
}

struct Reader {
    drafts: Drafts,
    at: Timestamp,
    is_timed: bool,
    /// Something of the run was still being written.
    is_stopped: bool,
}

impl Reader {
    fn message(&mut self, record: &str, message: &Value) {
        let told = message
            .get("createdAt")
            .or(message.pointer("/metadata/createdAt"));
        if let Some(at) = told.and_then(time) {
            self.at = at;
            self.is_timed = true;
        }
        let parts = match message.get("parts").and_then(Value::as_array) {
            Some(parts) => parts.clone(),
            None => older(message),
        };
        match message.get("role").and_then(Value::as_str) {
            Some("user") => self.said(MessageRole::User, &parts),
            Some("system") => self.said(MessageRole::System, &parts),
            Some("assistant") => {
                let at = self.at;
                self.drafts.current(at).answer(at);
                for part in &parts {
                    self.part(record, part);
                }
            }
            role => {
                let at = self.at;
                let words = format!("{record}: its role is {role:?}.");
                self.drafts.current(at).notice("quarantined_record", &words, at);
            }
        }
    }

    fn said(&mut self, role: MessageRole, parts: &[Value]) {
        let at = self.at;
        let text: Vec<String> = parts
            .iter()
            .map(|part| match part.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => {
                    let kind = part.get("type").and_then(Value::as_str).unwrap_or("part");
                    let media = part
                        .get("mediaType")
                        .and_then(Value::as_str)
                        .unwrap_or("unknown type");
                    format!("[{kind}, {media}: not shown]")
                }
            })
            .collect();
        if role == MessageRole::User && self.drafts.runs.last().is_none_or(Draft::has_answer) {
            self.close();
            self.drafts.begin(at);
        }
        self.drafts.current(at).message(role, &text.join("\n\n"), at);
    }

    fn part(&mut self, record: &str, part: &Value) {
        let at = self.at;
        let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_open = text("state") == "streaming";
        let draft = self.drafts.current(at);
        let model = draft.answer(at);
        match text("type") {
            "text" => draft.text(model, text("text"), at),
            // An older version has its own name for it.
            "reasoning" => {
                let said = Some(text("text"))
                    .filter(|said| !said.is_empty())
                    .unwrap_or(text("reasoning"));
                draft.reasoning(model, Some(said).filter(|said| !said.is_empty()), at);
            }
            "step-start" => draft.round(model),
            "source-url" | "source" => {
                let source = part.get("source").unwrap_or(part);
                let of = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
                let title = Some(of("title"))
                    .filter(|title| !title.is_empty())
                    .unwrap_or(of("url"));
                draft.text(model, &format!("Source: {title} <{}>", of("url")), at);
            }
            "dynamic-tool" => self.call(text("toolName"), part),
            "tool-invocation" => match part.get("toolInvocation") {
                Some(call) => {
                    let name = call.get("toolName").and_then(Value::as_str).unwrap_or_default();
                    self.call(name, call);
                }
                None => {
                    let words = format!("{record}: a call without its data.");
                    draft.notice("quarantined_record", &words, at);
                }
            },
            kind => match kind.strip_prefix("tool-") {
                Some(name) => self.call(name, part),
                None => draft.unsupported(model, kind, part.to_string().len(), at),
            },
        }
        self.is_stopped |= is_open;
    }

    fn call(&mut self, name: &str, call: &Value) {
        let at = self.at;
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
        let input = ["input", "args", "rawInput"]
            .iter()
            .find_map(|name| call.get(name));
        let output = ["output", "result"].iter().find_map(|name| call.get(name));
        let draft = self.drafts.current(at);
        let model = draft.answer(at);
        let arguments = input.map(words).unwrap_or_default();
        let place = draft.call(model, text("toolCallId"), name, &arguments, at);
        draft.output(
            place,
            Channel::Result,
            &output.map(words).unwrap_or_default(),
            "application/json",
        );
        let status = match text("state") {
            "output-available" | "result" => NodeStatus::Succeeded,
            "output-error" => NodeStatus::Failed,
            "output-denied" => NodeStatus::Denied,
            "input-streaming" | "partial-call" => NodeStatus::NotRun,
            _ => NodeStatus::Interrupted,
        };
        self.is_stopped |= matches!(status, NodeStatus::NotRun | NodeStatus::Interrupted);
        let error = (status == NodeStatus::Failed).then(|| ErrorInfo::new("tool_failed", text("errorText")));
        draft.ended(place, status, error, None, at);
    }

    fn close(&mut self) {
        let is_stopped = std::mem::take(&mut self.is_stopped);
        if let Some(draft) = self.drafts.runs.last_mut() {
            let likely = draft.likely_end();
            draft.close(
                if is_stopped {
                    RunStatus::Interrupted
                } else {
                    likely
                },
                None,
            );
        }
    }
}

/// The parts of a message of an older version.
fn older(message: &Value) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    if let Some(text) = message.get("reasoning").and_then(Value::as_str) {
        parts.push(serde_json::json!({ "type": "reasoning", "text": text }));
    }
    for call in message
        .get("toolInvocations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        parts.push(serde_json::json!({ "type": "tool-invocation", "toolInvocation": call }));
    }
    match message.get("content") {
        Some(Value::String(text)) => parts.push(serde_json::json!({ "type": "text", "text": text })),
        Some(Value::Array(content)) => parts.extend(content.iter().cloned()),
        _ => {}
    }
    parts
}
