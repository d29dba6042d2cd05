//! A session in the making: the runs that a file of another format tells.

use std::collections::BTreeMap;

use protocol::id::{RunId, SessionId};
use protocol::model::{ErrorInfo, Timestamp};
use protocol::state::RunStatus;

use super::draft::Draft;
use super::value::uuid;
use crate::store::imports::SessionHead;

/// A session whose runs are told.
pub(super) struct Drafts {
    pub(super) session: SessionHead,
    pub(super) runs: Vec<Draft>,
    format: &'static str,
    key: String,
}

impl Drafts {
    /// Nothing is told yet. `key` is what the file calls its session.
    pub(super) fn new(format: &'static str, key: &str) -> Self {
        Self {
            session: SessionHead {
                session_id: SessionId::from_uuid(uuid(&[format, "session", key])),
                title: String::new(),
                kind: protocol::api::SessionKind::Chat,
                settings: protocol::api::SessionSettings::default(),
                created_at: 0,
            },
            runs: Vec::new(),
            format,
            key: key.to_owned(),
        }
    }

    /// The word for the file's format.
    pub(super) fn format(&self) -> &'static str {
        self.format
    }

    /// Begins the next run.
    pub(super) fn begin(&mut self, at: Timestamp) -> &mut Draft {
        let ordinal = self.runs.len();
        let run_id = RunId::from_uuid(uuid(&[self.format, "run", &self.key, &ordinal.to_string()]));
        if ordinal == 0 {
            self.session.created_at = at;
        }
        self.runs
            .push(Draft::new(run_id, self.session.session_id.clone(), ordinal, at));
        let last = self.runs.len() - 1;
        &mut self.runs[last]
    }

    /// The run that is told; the first one begins where none has.
    pub(super) fn current(&mut self, at: Timestamp) -> &mut Draft {
        if self.runs.is_empty() {
            return self.begin(at);
        }
        let last = self.runs.len() - 1;
        &mut self.runs[last]
    }

    /// The session's title: what the file calls it, or its first prompt.
    pub(super) fn title(&mut self, title: Option<String>) {
        let mut prompts = self.runs.iter().map(|run| run.prompt.as_str());
        // A command of the client says little about what a session is about.
        let said = prompts
            .clone()
            .find(|prompt| !prompt.is_empty() && !prompt.starts_with('<'));
        let first = said.or(prompts.next()).unwrap_or_default();
        let title = title.filter(|title| !title.trim().is_empty());
        self.session.title = title.unwrap_or_else(|| first.chars().take(120).collect());
    }

    /// Ends the run that is told: as is said, or as it looks.
    pub(super) fn close(&mut self, end: Option<(RunStatus, Option<ErrorInfo>)>) {
        if let Some(draft) = self.runs.last_mut() {
            let (status, error) = end.unwrap_or_else(|| (draft.likely_end(), None));
            draft.close(status, error);
        }
    }

    /// Says which lines hold nothing to show, by their kinds.
    pub(super) fn not_shown(&mut self, passed: &BTreeMap<String, u64>, at: Timestamp) {
        if passed.is_empty() || self.runs.is_empty() {
            return;
        }
        let kinds: Vec<String> = passed
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let words = format!("Lines that hold nothing to show here: {}.", kinds.join(", "));
        self.current(at).notice("not_shown", &words, at);
    }
}
