//! Executing runs: one owner at a time, everything written down before it is shown.
//!
//! | module | does |
//! |---|---|
//! | [`recorder`] | gives `seq`, commits, publishes: the only writer of ops |
//! | [`hub`] | hands what was committed to everybody who watches |
//! | `worker` | claims queued runs, renews leases, sweeps up after owners that are gone |
//! | `chat` | one chat run from its prompt to its end, and when it goes on again |
//! | `reopen` | lets a run that was over go on |
//! | `turn` | the attempts of a model node, and the turn loop of each |
//! | `dispatch` | runs the calls of a round, and the models that they ask |
//! | `budget` | what a run takes, over all its model nodes |
//! | `approve` | what a person answers to a call that asks |
//! | `cancel` | what a person stops: a run, or one node of it |
//! | `approvals` | what waits for a person, and the answers |
//! | `left` | what an owner that is gone left waiting for a person |
//! | `stop` | the signals that stop a part of an execution |
//! | `context` | what a request holds of earlier runs |
//! | `wake` | hears what other servers changed, and publishes what they write |
//! | `take_over` | says that an owner is gone, and completes what it had received |
//! | [`recovery`] | closes what is open when an execution ends from outside |

pub mod hub;
pub mod recorder;
pub mod recovery;
pub mod target;

mod approvals;
mod approve;
mod budget;
mod cancel;
mod chat;
mod context;
mod dispatch;
mod left;
mod live;
mod ops;
mod reopen;
mod stop;
mod submit;
mod take_over;
mod transcripts;
mod turn;
mod wake;
mod worker;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::api::ToolMode;
use protocol::id::RunId;
use protocol::state::Retention;
use tokio_util::task::TaskTracker;

use self::approvals::Approvals;
pub use self::approve::AnswerOutcome;
use self::budget::Budget;
pub use self::cancel::CancelOutcome;
use self::hub::{Channel, Hub};
use self::left::Left;
use self::recorder::{Recorder, RunWriter};
pub use self::reopen::ReopenError;
use self::stop::{StopSignal, Stopped};
pub use self::submit::SubmitError;
use self::wake::Wake;
use self::worker::Worker;
use crate::clock::SharedClock;
use crate::config::Config;
use crate::provider::ProviderClient;
use crate::store::{Store, StoreError};
use crate::stream::{ProviderHealth, SharedJitter, TranscriptStore};
use crate::tool::ToolRegistry;

/// The code of a call whose model's stream broke before it could be run.
const STREAM_ENDED: &str = "stream_ended";

/// What an execution needs.
pub struct Services {
    /// Providers, roles and limits.
    pub config: Arc<Config>,
    /// The record.
    pub store: Store,
    /// Requests to providers.
    pub client: ProviderClient,
    /// What providers sent.
    pub transcripts: TranscriptStore,
    /// The tools that models may call.
    pub tools: ToolRegistry,
    /// The time.
    pub clock: SharedClock,
    /// How the providers are doing.
    pub health: Arc<ProviderHealth>,
    /// The random part of waits before retries.
    pub jitter: SharedJitter,
}

/// Executes the runs of this server.
pub struct Execution {
    services: Arc<Services>,
    hub: Arc<Hub>,
    worker: Arc<Worker>,
    wake: Arc<Wake>,
    tasks: TaskTracker,
}

impl Execution {
    /// Starts to execute. With `is_alone` nobody else can own a run, so runs that an earlier server left are closed
    /// at once; else when their leases end.
    pub async fn start(services: Services, is_alone: bool) -> Result<Arc<Self>, StoreError> {
        let services = Arc::new(services);
        let hub = Arc::new(Hub::default());
        let tasks = TaskTracker::new();
        let recorder = Recorder::start(
            services.store.clone(),
            Arc::clone(&hub),
            services.clock.clone(),
            &tasks,
        );
        if is_alone {
            services.store.end_all_leases().await?;
        }
        let worker = Worker::start(Arc::clone(&services), recorder, &tasks);
        let wake = Wake::start(
            services.store.clone(),
            Arc::clone(&hub),
            Arc::clone(&worker),
            &tasks,
        );
        Ok(Arc::new(Self {
            services,
            hub,
            worker,
            wake,
            tasks,
        }))
    }

    /// What is handed to those who watch.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Ops of a run that come after `known`, which a viewer has read, are published whoever writes them, for as long
    /// as somebody holds the channel. Gives the last op that is not published any more: a viewer who knows less has to
    /// read once more.
    #[must_use]
    pub fn follow(&self, channel: &Arc<Channel>, known: u64) -> u64 {
        self.wake.follow(channel, known)
    }

    /// Whether this process writes a run now.
    pub fn owns(&self, run_id: &RunId) -> bool {
        self.hub
            .existing(run_id)
            .is_some_and(|channel| channel.is_owned())
    }

    /// The record.
    pub fn store(&self) -> &Store {
        &self.services.store
    }

    /// Everything that an execution needs.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Stops to claim runs, lets those that execute go on for a grace period, then closes them as interrupted.
    pub async fn shut_down(&self) {
        let grace = std::time::Duration::from_secs(self.services.config.server.grace_seconds);
        self.worker.shut_down(grace).await;
        self.wake.close();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// What all model nodes of one execution share.
struct Scope {
    services: Arc<Services>,
    writer: RunWriter,
    /// Whether the session wants reasoning to be kept, where it says so.
    reasoning: Option<Retention>,
    budget: Budget,
    /// Numbers of the outages that the record tells of.
    told_outages: Mutex<HashSet<u64>>,
    /// How its models call tools.
    tool_mode: ToolMode,
    approvals: Arc<Approvals>,
    /// What an earlier owner left waiting for a person.
    left: Left,
}

impl Scope {
    /// Whether the record does not tell of this outage yet. From now on it does.
    fn is_news(&self, outage: u64) -> bool {
        let mut told = self.told_outages.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(outage)
    }
}
