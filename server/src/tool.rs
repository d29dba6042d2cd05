//! Tools: the trait, the registry and the built-in ones. Nothing here knows axum, sqlx or a provider.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

mod arguments;
pub mod ask_model;
mod blocking;
pub mod edit_file;
pub mod fetch_url;
pub mod inner;
pub mod list_dir;
pub mod mcp;
pub mod offer;
pub mod read_file;
pub mod registry;
pub mod run_code;
pub mod search_files;
pub mod shell;
mod sniff;
pub mod source;
pub mod sub_calls;
#[cfg(test)]
mod test_support;
mod words;
pub mod workspace;
pub mod write_file;

pub use arguments::parse_arguments;
pub use inner::{InnerCall, InnerModels, InnerRequest};
pub use offer::CalledBy;
pub use registry::ToolRegistry;
pub use run_code::{CodeLimits, RUN_CODE};
pub use source::ToolSource;
pub use sub_calls::{SubCallError, SubCallRequest, SubCallResult, SubCalls};
pub use workspace::Workspace;

/// How a tool may be run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// It may run at the same time as other safe calls of its round.
    ParallelSafe,
    /// It drains what runs and goes alone.
    Exclusive,
}

/// How much of a call the journal and the page show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// No trace.
    Hidden,
    /// Arguments and output, no descendants.
    Io,
    /// Of its descendants only model nodes.
    Model,
    /// Everything.
    Full,
}

/// Whether calls of a tool may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Each may.
    Allow,
    /// A person is asked for each.
    Ask,
    /// None may.
    Deny,
}

/// What is fixed about a tool.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    /// The name by which a model calls it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments; an object schema.
    pub parameters: Value,
    /// Whether it may run beside others.
    pub concurrency: Concurrency,
    /// Whether it changes anything outside the run.
    pub mutating: bool,
    /// How much of it is shown.
    pub exposure: Exposure,
}

/// Receives what a tool reports while it runs. Implemented by the dispatcher; never blocks for long.
pub trait ToolProgress: Send + Sync {
    /// Appends text to the node's `log` channel.
    fn log(&self, text: &str);
    /// Says how far it is.
    fn progress(&self, done: u64, total: Option<u64>, note: Option<&str>);
}

/// What a call gets beside its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// Ends when the call is cancelled; a tool returns soon after.
    pub cancel: CancellationToken,
    /// Where it reports to.
    pub progress: Arc<dyn ToolProgress>,
    /// Models that it may ask; they run below its own node.
    pub models: InnerModels,
    /// Tools that it may call; they run below its own node.
    pub calls: SubCalls,
}

/// What a call gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The whole result, as shown in the node's `result` channel. UTF-8; NUL bytes are kept.
    pub text: String,
    /// Its type, such as `text/plain` or `application/json`.
    pub media_type: String,
    /// The exit code of a command, where there was one.
    pub exit_code: Option<i32>,
}

/// Why a call failed. The message is shown to people and told to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// A stable code in snake case, such as `invalid_arguments`, `outside_workspace`, `not_found`, `too_large`.
    pub code: &'static str,
    /// In plain words: what was found, what is possible instead.
    pub message: String,
}

impl ToolError {
    /// An error with its stable code and its words.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The call was cancelled before it was done.
    pub fn cancelled() -> Self {
        Self::new("cancelled", "The call was cancelled before it was done.")
    }
}

/// A boxed future, so that tools can be kept in one registry.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// One tool.
pub trait Tool: Send + Sync {
    /// What is fixed about it.
    fn info(&self) -> &ToolInfo;

    /// Checks the arguments against the schema, without running anything.
    fn check(&self, arguments: &Value) -> Result<(), ToolError>;

    /// How long a call may take, where that is not what the configuration says for all tools.
    fn own_limit(&self) -> Option<Duration> {
        None
    }

    /// Whether its calls may run, where the configuration does not say.
    fn approval(&self) -> Approval {
        Approval::Allow
    }

    /// What a person is asked before a call runs, in plain words. The arguments passed [`Tool::check`].
    fn asks(&self, arguments: &Value) -> String {
        format!(
            "Call `{}` with {}",
            self.info().name,
            words::beginning(&arguments.to_string())
        )
    }

    /// Whether a call that broke off may be made again with the same arguments, to go on where it stood: it does nothing
    /// but ask models.
    fn can_go_on(&self) -> bool {
        false
    }

    /// Runs one call. The arguments passed [`Tool::check`].
    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a>;
}
