//! The port through which the page gets its data on the server. The server implements it and puts [`Data`] into
//! context; `app` never names the server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use protocol::api::{Mark, Problem, SessionList, SessionSummary};
use protocol::id::{AttemptId, RunId, SessionId};
use protocol::search::SearchAnswer;
use protocol::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

/// An answer that is on its way.
pub type PortFuture<T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>;

/// Reading, as the signed-in person may.
pub trait DataPort: Send + Sync + 'static {
    /// The list of sessions, newest first, with the setup that the page around it shows.
    fn sessions(&self, query: SessionQuery) -> PortFuture<SessionsPage>;

    /// One session with the states of its runs, in order. An unknown one is a problem of status 404.
    /// What the address leads to is in it too.
    fn session(&self, session: SessionId, lead: Lead) -> PortFuture<SessionPage>;
}

/// The newest blocks of a run that a page begins with, about.
pub const WINDOW: u32 = 200;

/// Of a run that is not the last of its session a page begins with fewer, and with none of those that are folded.
const WINDOW_OF_EARLIER: u32 = 50;

/// Of a long session so many runs are open at first; older ones are folded to a line.
pub const OPEN_RUNS: usize = 10;

/// How many of its newest blocks a page begins with, for the run at a place of a session of `count` runs.
pub fn window_of(place: usize, count: usize) -> u32 {
    match count.saturating_sub(place) {
        0 | 1 => WINDOW,
        after if after <= OPEN_RUNS => WINDOW_OF_EARLIER,
        _ => 0,
    }
}

/// A place in an attempt that a link leads to: the blocks before an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Earlier {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The index.
    pub before: u32,
}

impl Earlier {
    /// The address of a place on the page of its session.
    pub fn href(&self) -> String {
        format!("?attempt={}&before={}", self.attempt_id, self.before)
    }

    /// The place in the fields of an address; none where they name none.
    pub fn from_words(attempt: Option<&str>, before: Option<&str>) -> Option<Self> {
        Some(Self {
            attempt_id: attempt?.parse().ok()?,
            before: before?.parse().ok()?,
        })
    }
}

/// What an address leads to within a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lead {
    /// The blocks before a place.
    pub earlier: Option<Earlier>,
    /// A block or a node, by its id.
    pub thing: Option<String>,
    /// What is searched for.
    pub search: Option<String>,
    /// A run, and the op after which it is shown.
    pub moment: Option<(RunId, u64)>,
}

/// A run that is shown as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The run.
    pub run_id: RunId,
    /// The op after which it is shown.
    pub seq: u64,
    /// Its last op.
    pub last: u64,
    /// What stands out in it.
    pub marks: Vec<Mark>,
}

/// The most hits that a page lists.
pub const FOUND: u32 = 200;

/// What was found for the words in an address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The words.
    pub query: String,
    /// The hits.
    pub answer: SearchAnswer,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl Found {
    /// What became of a search.
    pub fn of(query: &str, answer: Result<SearchAnswer, Problem>) -> Self {
        let query = query.to_owned();
        match answer {
            Ok(answer) => Self {
                query,
                answer,
                problem: None,
            },
            Err(problem) => Self {
                query,
                answer: SearchAnswer::default(),
                problem: Some(problem),
            },
        }
    }
}

/// The port in context.
#[derive(Clone)]
pub struct Data(pub Arc<dyn DataPort>);

/// Sets the HTTP status of the page that is being rendered. The server may put it into context.
#[derive(Clone)]
pub struct PageStatus(pub Arc<dyn Fn(u16) + Send + Sync>);

/// Which sessions are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionQuery {
    /// Words to be found in titles, prompts and what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Only sessions in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunFilter>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl SessionQuery {
    /// Whether it asks for everything from the top: then new sessions belong at the top of its answer.
    pub fn is_plain(&self) -> bool {
        self == &Self::default()
    }
}

/// A state that the list can be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ssr", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunFilter {
    /// A run is queued, running or waiting.
    Live,
    /// A run waits for a person.
    NeedsYou,
    /// The last run failed.
    Failed,
}

impl RunFilter {
    /// Every filter, in the order in which they are offered.
    pub const ALL: [Self; 3] = [Self::Live, Self::NeedsYou, Self::Failed];

    /// The word in addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NeedsYou => "needs_you",
            Self::Failed => "failed",
        }
    }

    /// The filter of a word in an address.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.as_str() == word)
    }

    /// What people read.
    pub fn label(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::NeedsYou => "Needs you",
            Self::Failed => "Failed",
        }
    }
}

/// What the page of the sessions shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionsPage {
    /// The sessions.
    pub list: SessionList,
    /// What can be started.
    pub setup: Setup,
}

/// What the page of a session shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionPage {
    /// The session with its runs' summaries.
    pub summary: SessionSummary,
    /// A window of each run, in the order of the summaries.
    pub snapshots: Vec<Snapshot>,
    /// The place that the address leads to, with the blocks before it in its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Earlier>,
    /// What was found for the words in the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// The run that is shown as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// What can be started.
    pub setup: Setup,
}

/// What can be started on this server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ssr", derive(schemars::JsonSchema))]
pub struct Setup {
    /// Whether only the built-in demo provider is set up.
    pub demo: bool,
    /// Prompts to try; empty unless `demo`.
    pub samples: Vec<Sample>,
    /// The models that can serve a chat, the default one first.
    pub models: Vec<ModelChoice>,
    /// The name of the folder that tools see.
    pub workspace_name: String,
    /// The server's clock when this was made: milliseconds since the Unix epoch, UTC.
    pub server_now: i64,
}

/// A prompt to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ssr", derive(schemars::JsonSchema))]
pub struct Sample {
    /// A few words.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// What is sent.
    pub prompt: String,
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ssr", derive(schemars::JsonSchema))]
pub struct ModelChoice {
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// Its class: `thinking` or `action`.
    pub class: String,
}
