//! The configuration: defaults ← TOML file ← `RUNLOOM_…` environment variables ← flags of the command line.
//!
//! [`Config::from_inputs`] is a pure function of the file's text, the environment and the flags, so that every rule
//! can be tested without a process environment; [`Config::load`] collects these inputs. A wrong setting is never
//! guessed around: the first one stops the start with a [`ConfigError`] that says where it stands, which key it is,
//! what was found and what is expected. `docs/configuration.md` lists every key.

mod check;
mod error;
mod keys;
mod known_models;
mod recovery;
mod settings;
mod source;
mod stall;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use protocol::api::ToolMode;
use protocol::state::Retention;

use crate::provider::{Endpoint, ProviderKind, Secret};
use crate::tool::mcp::McpServerConfig;
use crate::tool::{Approval, CodeLimits, Tool};

pub use error::ConfigError;
pub use recovery::{Recovery, RetryPolicy};
pub use settings::LogFormat;
pub use source::{ConfigFile, Flags, Inputs};
pub use stall::{ClockLimits, ModelClass, StallConfig, StallLimits};

/// Everything that can be set, checked and resolved.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where and on what the server runs.
    pub server: ServerConfig,
    /// What is logged, and how.
    pub log: LogConfig,
    /// The endpoints that serve models, in the order of the configuration. Empty in demo mode.
    pub providers: Vec<ProviderConfig>,
    /// Which models serve which role.
    pub roles: Roles,
    /// Limits on one run.
    pub limits: Limits,
    /// What follows when a stream fails, or the owner of a run goes away.
    pub recovery: Recovery,
    /// Tools that reach further than the workspace.
    pub tools: ToolsConfig,
    /// MCP servers whose tools models may call.
    pub mcp_servers: Vec<McpServerConfig>,
    /// No provider is configured: the built-in simulator serves as `demo`.
    pub demo: bool,
    /// What a person should know about this configuration although it is not wrong; to be logged at start.
    pub notices: Vec<String>,
}

/// Where and on what the server runs.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address that it listens on. Not a loopback address only together with [`ServerConfig::token`].
    pub listen: SocketAddr,
    /// Absolute path of the folder of the transcripts and the embedded database.
    pub data_dir: PathBuf,
    /// The PostgreSQL server to use, as a `postgres://` address that may hold a password; none: the embedded one.
    pub database_url: Option<Secret>,
    /// Absolute path of the folder that tools see; none: the sample workspace in the data folder.
    pub workspace: Option<PathBuf>,
    /// The token that a person or an API client must show; comes from `RUNLOOM_TOKEN` only.
    pub token: Option<Secret>,
    /// How long running work may go on after the request to stop, in seconds.
    pub grace_seconds: u64,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// Directives as `tracing_subscriber::EnvFilter` reads them, such as `info,server=debug`.
    pub filter: String,
    /// The form of a line.
    pub format: LogFormat,
}

/// An endpoint that serves models.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// Its name in the configuration and on screen; unique, without `/`.
    pub id: String,
    /// The wire format that it speaks.
    pub kind: ProviderKind,
    /// What stands before the format's own path, without a slash at its end.
    pub base_url: String,
    /// The key, read from the variable that `api_key_env` names; none for an endpoint that wants none.
    pub api_key: Option<Secret>,
    /// What it serves; at least one.
    pub models: Vec<ModelConfig>,
    /// Overrides of the stall limits for all its models.
    pub stall: StallConfig,
    /// Whether its reasoning is kept, or shown live only.
    pub reasoning: Retention,
}

/// A model of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The id that goes into the request.
    pub id: String,
    /// Whether it thinks long or acts fast: decides the stall limits.
    pub class: ModelClass,
    /// The longest conversation that it takes, in tokens.
    pub context: u64,
    /// The longest reply to ask for, in tokens; none: the adapter's own default.
    pub max_tokens: Option<u32>,
    /// What it costs; none: the cost of its calls is unknown.
    pub price: Option<Price>,
    /// Overrides of the stall limits for this model.
    pub stall: StallConfig,
}

/// What a model costs, in the currency of the operator's choice per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input tokens that came from no cache.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens read from a cache; none: as `input`.
    pub cache_read: Option<f64>,
    /// Input tokens written to a cache; none: as `input`.
    pub cache_write: Option<f64>,
}

/// Which models serve which role: the first of a list serves, the rest are for rotation. Both lists are empty in
/// demo mode and hold at least one model otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// The model that a person talks to.
    pub chat: Vec<ModelRef>,
    /// Inner model calls of the tool `ask_model`.
    pub inner: Vec<ModelRef>,
}

/// A model of a provider that exists in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// [`ProviderConfig::id`].
    pub provider_id: String,
    /// [`ModelConfig::id`].
    pub model: String,
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider_id, self.model)
    }
}

/// Which of the tools that reach further than the workspace there are, and what holds for each tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolsConfig {
    /// How models call tools, where a run does not say.
    pub mode: ToolMode,
    /// `run_code`, which runs programs that call the others.
    pub run_code: bool,
    /// `fetch_url`, which reads pages of the public web.
    pub fetch_url: bool,
    /// `shell`, which runs commands with all rights of the server's user.
    pub shell: bool,
    /// Whether calls may run, by the tool's name, where it is not as the tool says.
    pub approval: BTreeMap<String, Approval>,
}

impl ToolsConfig {
    /// Whether calls of a tool may run.
    pub fn approval_of(&self, tool: &dyn Tool) -> Approval {
        let configured = self.approval.get(&tool.info().name).copied();
        configured.unwrap_or_else(|| tool.approval())
    }
}

/// Limits on one run; each ends it with its own reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Requests to the provider that one model node may make.
    pub rounds_per_node: u32,
    /// Attempts that one model node may open, over all providers.
    pub attempts_per_node: u32,
    /// How many levels of models there may be: the answer is the first, a model that it asks is on the second.
    pub depth: u32,
    /// Tool calls of one round that run at the same time.
    pub parallel_calls: u32,
    /// How long a run may take, in seconds; waiting for a person does not count.
    pub run_seconds: u64,
    /// How long one call of a tool may take, in seconds, not counting the models that it asks.
    pub tool_seconds: u64,
    /// How long one node may wait for rate limits in all, in seconds; 0: not at all.
    pub rate_limit_seconds: u64,
    /// Input and output tokens of all model calls of a run together.
    pub total_tokens: u64,
    /// Cost of all model calls of a run together, in the currency of [`Price`]; none: no limit.
    pub cost: Option<f64>,
    /// Limits on one program of `run_code`.
    pub code: CodeLimits,
}

impl Config {
    /// Reads the process environment and the file, and checks both.
    ///
    /// # Errors
    /// The first setting that is wrong, or a file that cannot be read.
    pub fn load(flags: &Flags) -> Result<Self, ConfigError> {
        Self::from_inputs(&Inputs::collect(flags)?)
    }

    /// The same from given inputs, without touching the process or the disk.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub fn from_inputs(inputs: &Inputs) -> Result<Self, ConfigError> {
        check::config(inputs, source::settings(inputs)?)
    }

    /// The provider with this id.
    pub fn provider(&self, id: &str) -> Option<&ProviderConfig> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The provider and the model that a role names.
    pub fn model(&self, reference: &ModelRef) -> Option<(&ProviderConfig, &ModelConfig)> {
        let provider = self.provider(&reference.provider_id)?;
        Some((provider, provider.model(&reference.model)?))
    }
}

impl ProviderConfig {
    /// The model with this id.
    pub fn model(&self, id: &str) -> Option<&ModelConfig> {
        self.models.iter().find(|model| model.id == id)
    }

    /// The stall limits that hold for a model of this provider: its own, else the provider's, else those of its class.
    pub fn stall_limits(&self, model: &ModelConfig) -> StallLimits {
        model.stall.or(&self.stall).limits(model.class)
    }

    /// What an adapter needs to ask this provider.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            provider_id: self.id.clone(),
            kind: self.kind,
            base_url: self.base_url.clone(),
            api_key: self.api_key.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
