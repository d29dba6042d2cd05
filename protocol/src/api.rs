//! Bodies of the HTTP calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{RunId, SessionId};
use crate::model::{Attempt, Block, ErrorInfo, Node, Timestamp, Usage};
use crate::state::{ApprovalAnswer, Retention, RunStatus};

/// What a session is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A conversation.
    #[default]
    Chat,
    /// A run in phases and waves.
    Mission,
}

impl SessionKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Mission => "mission",
        }
    }
}

/// Body of `POST /api/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// A few words; the start of the first prompt when empty. At most 200 characters.
    #[serde(default)]
    pub title: Option<String>,
    /// What it is.
    #[serde(default)]
    pub kind: SessionKind,
    /// What holds for all of its runs.
    #[serde(default, skip_serializing_if = "SessionSettings::is_default")]
    pub settings: SessionSettings,
}

/// What holds for all runs of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SessionSettings {
    /// Whether reasoning is kept. Where the provider's configuration says `not_saved`, that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Retention>,
}

impl SessionSettings {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Answer to `POST /api/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCreated {
    /// The new session.
    pub session_id: SessionId,
}

/// Body of `POST /api/sessions/{session}/runs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// What the person asks; not blank, at most 1 MiB.
    pub prompt: String,
    /// The provider's id; the first of the role `chat` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's id; the first of the provider when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What becomes of the run when the server that executes it goes away; the configured policy when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_interruption: Option<InterruptionPolicy>,
    /// How models call the tools; the configured mode when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_mode: Option<ToolMode>,
}

/// How models call the tools of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// Each by itself.
    Native,
    /// From programs only, by `run_code`.
    Code,
    /// Both ways.
    #[default]
    Both,
}

impl ToolMode {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Code => "code",
            Self::Both => "both",
        }
    }
}

/// Body of `POST /api/nodes/{node}/approval`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AnswerApproval {
    /// The answer.
    pub answer: ApprovalAnswer,
    /// What the person says to it; the model is told the words of a refusal. At most 4,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// What becomes of a run whose owner goes away in the middle of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InterruptionPolicy {
    /// It stays interrupted until a person resumes it.
    #[default]
    Leave,
    /// It is resumed at once, at most three times.
    Resume,
}

impl InterruptionPolicy {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Resume => "resume",
        }
    }
}

/// Answer to `POST /api/sessions/{session}/runs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunCreated {
    /// The new run, or the one that the same `Idempotency-Key` made before.
    pub run_id: RunId,
}

/// Answer to `GET /api/runs/{run}/digest`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDigest {
    /// The run.
    pub run_id: RunId,
    /// The last op that the digest covers.
    pub seq: u64,
    /// The digest of the whole run as it is then.
    pub digest: String,
}

/// A session, as the list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionSummary {
    /// Its id.
    pub session_id: SessionId,
    /// A few words.
    pub title: String,
    /// What it is.
    pub kind: SessionKind,
    /// When it was created.
    pub created_at: Timestamp,
    /// When anything last happened in it.
    pub updated_at: Timestamp,
    /// What holds for all of its runs.
    #[serde(default, skip_serializing_if = "SessionSettings::is_default")]
    pub settings: SessionSettings,
    /// Its runs, in order.
    pub runs: Vec<RunSummary>,
}

impl SessionSummary {
    /// The run whose state the session shows: one that goes on, else the last one.
    pub fn current_run(&self) -> Option<&RunSummary> {
        self.runs
            .iter()
            .find(|run| !run.status.is_final())
            .or(self.runs.last())
    }
}

/// A run, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// Its id.
    pub run_id: RunId,
    /// Its state.
    pub status: RunStatus,
    /// The start of its prompt: at most 200 characters, on one line.
    pub prompt: String,
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The last op.
    pub last_seq: u64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Answer to `GET /api/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// Newest first.
    pub sessions: Vec<SessionSummary>,
    /// Give this as `before` to get the next page; none on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Answer to `GET /api/nodes/{node}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// Its run.
    pub run_id: RunId,
    /// The last op of the run that this holds.
    pub seq: u64,
    /// The node.
    pub node: Node,
    /// Its attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Their blocks, in order.
    pub blocks: Vec<Block>,
}

/// One transcript of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptSummary {
    /// Its path below the run's transcripts, such as `chat/call_….ndjson`.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The most bytes of a text of `POST /api/highlight`.
pub const HIGHLIGHT_BYTES: usize = 64 * 1024;

/// Body of `POST /api/highlight`: a text and what to tell apart in it, the words of a language or the matches of a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HighlightText {
    /// The text, at most 64 KiB.
    pub text: String,
    /// The name of a language, or the ending of its files' names. One that is not known has no words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// A regular expression that is matched against single lines, as the tool `search_files` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Whether `a` and `A` differ in the pattern; they do when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_sensitive: Option<bool>,
}

/// Answer to `POST /api/highlight`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Highlighted {
    /// Of each class its places in the text, in order: where one starts, how long it is, and so on, in UTF-16 code units.
    pub places: BTreeMap<PlaceClass, Vec<u32>>,
}

/// What a place in a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlaceClass {
    /// A comment.
    Comment,
    /// A line that a change takes out.
    Deleted,
    /// The name of something: a function, a type, a key.
    Function,
    /// A line that a change brings in.
    Inserted,
    /// A word of the language.
    Keyword,
    /// What a pattern matches.
    Match,
    /// A number or another constant.
    Number,
    /// A text within.
    String,
}

impl PlaceClass {
    /// All classes.
    pub const ALL: &[Self] = &[
        Self::Comment,
        Self::Deleted,
        Self::Function,
        Self::Inserted,
        Self::Keyword,
        Self::Match,
        Self::Number,
        Self::String,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::Deleted => "deleted",
            Self::Function => "function",
            Self::Inserted => "inserted",
            Self::Keyword => "keyword",
            Self::Match => "match",
            Self::Number => "number",
            Self::String => "string",
        }
    }
}

/// An error, as RFC 9457 shapes it (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Always `about:blank`: the code says what it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A stable code in snake case.
    pub code: String,
    /// In plain words: what was found, and what is possible instead.
    pub detail: String,
}

/// Answer to `POST /api/import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportAnswer {
    /// What the file was: `runloom`, `legacy`, `claude_code`, `codex` or `ai_sdk`.
    pub format: String,
    /// The session of its first run.
    pub session_id: SessionId,
    /// Its runs, in order.
    pub runs: Vec<ImportedRun>,
}

/// What became of one run of an imported file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedRun {
    /// The run.
    pub run_id: RunId,
    /// What became of it.
    pub outcome: Outcome,
    /// Its last op here.
    pub seq: u64,
    /// Its digest here.
    pub digest: String,
    /// Records that could not be taken as they came; each is told in the run.
    pub quarantined: usize,
}

/// What became of an imported run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is here now.
    Imported,
    /// It was here already, and is the same.
    Known,
    /// A server on this database executed it: its own record stays.
    Native,
    /// The file ends before the record does: what it holds is here, and a whole file replaces it.
    Cut,
}

/// Answer to `GET /api/runs/{run}/marks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunMarks {
    /// The run.
    pub run_id: RunId,
    /// Its last op.
    pub last: u64,
    /// What stands out in it, in the order of its ops.
    pub marks: Vec<Mark>,
}

/// Something that stands out in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The op.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What it is.
    pub kind: MarkKind,
    /// A few words.
    pub words: String,
}

/// What stands out in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// An attempt begins.
    Attempt,
    /// A call is announced.
    Tool,
    /// An attempt stalls.
    Stall,
    /// A notice.
    Notice,
}
