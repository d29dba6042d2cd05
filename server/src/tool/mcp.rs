//! Tools of MCP servers (Model Context Protocol), by the official SDK `rmcp`.
//!
//! Each configured server has a task of its own ([`connection`]): it starts the server's process or connects to its
//! address, learns its tools, and begins again, after a while that grows, when the connection ends. What a server does
//! wrong is a state with a reason, never more.

mod child;
mod connection;
mod content;
mod handler;
mod remote;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::connection::Shared;
use super::source::{SourceFuture, ToolSource};
use super::{Tool, ToolRegistry};
use crate::provider::Secret;

/// A configured server.
#[derive(Debug, Clone)]
pub struct McpServerConfig {
    /// Its name; its tools are called `ID__NAME`.
    pub id: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// How long it may take until its tools are known.
    pub start: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// A process of ours: its standard input and output carry the messages.
    Stdio {
        /// The program and its arguments; at least one.
        command: Vec<String>,
        /// What stands in its environment beside a few harmless names.
        environment: BTreeMap<String, Secret>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Shown as a bearer token.
        token: Option<Secret>,
    },
}

/// The state of a server.
#[derive(Clone)]
pub enum McpState {
    /// It is started, or connected to, for the first time.
    Starting,
    /// Its tools can be called.
    Ready(Vec<Arc<dyn Tool>>),
    /// It cannot be reached now. It is tried again.
    Down(String),
}

impl fmt::Debug for McpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("Starting"),
            Self::Ready(tools) => write!(f, "Ready({} tools)", tools.len()),
            Self::Down(reason) => write!(f, "Down({reason:?})"),
        }
    }
}

/// A server, with the task that keeps it going. It ends with this value.
pub struct McpServer {
    id: String,
    state: watch::Receiver<McpState>,
    _stop: DropGuard,
}

impl McpServer {
    /// Starts a server. Its tools are known later.
    pub fn start(config: McpServerConfig) -> Arc<Self> {
        let (changes, state) = watch::channel(McpState::Starting);
        let stop = CancellationToken::new();
        let id = config.id.clone();
        let shared = Shared::new(config, changes, stop.clone());
        tokio::spawn(shared.keep_going());
        Arc::new(Self {
            id,
            state,
            _stop: stop.drop_guard(),
        })
    }

    /// Its state, as it changes.
    pub fn state(&self) -> watch::Receiver<McpState> {
        self.state.clone()
    }
}

impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.id
    }

    fn settled(&self) -> SourceFuture<'_> {
        let mut state = self.state.clone();
        Box::pin(async move {
            // Where its task is gone, it stays as it is.
            let _ = state.wait_for(|state| !matches!(state, McpState::Starting)).await;
        })
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        match &*self.state.borrow() {
            McpState::Ready(tools) => tools.clone(),
            McpState::Starting | McpState::Down(_) => Vec::new(),
        }
    }

    fn problem(&self) -> Option<String> {
        match &*self.state.borrow() {
            McpState::Ready(_) | McpState::Starting => None,
            McpState::Down(reason) => Some(reason.clone()),
        }
    }
}

/// Starts the configured servers, and adds their tools to the registry.
pub fn attach(registry: &mut ToolRegistry, servers: &[McpServerConfig]) {
    for config in servers {
        registry.attach(McpServer::start(config.clone()));
    }
}
