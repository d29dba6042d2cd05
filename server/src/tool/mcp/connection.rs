//! The task of one server: connects, learns its tools, and begins again when the connection ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{ClientRequest, PingRequest};
use rmcp::service::{Peer, RoleClient, RunningService, serve_client_with_ct};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::child::ServerProcess;
use super::handler::Handler;
use super::remote::RemoteTool;
use super::{McpServerConfig, McpState, McpTransport};
use crate::tool::Tool;

/// The waits before a server is tried again; the last one repeats. One that was well for a while begins anew.
const WAITS: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// So long well, and the next failure is the first.
const WELL: Duration = Duration::from_secs(60);

/// How long a server may take to answer whether it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// The most tools of one server.
const MOST_TOOLS: usize = 500;

/// Says that something is wrong with a connection.
#[derive(Clone, Default)]
pub(super) struct Trouble {
    is_broken: Arc<AtomicBool>,
    news: Arc<Notify>,
}

impl Trouble {
    /// The connection is gone.
    pub(super) fn broken(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
        self.news.notify_one();
    }

    /// It may be that the server does not answer any more.
    pub(super) fn suspect(&self) {
        self.news.notify_one();
    }
}

/// What the task of a server knows.
pub(super) struct Shared {
    config: McpServerConfig,
    changes: watch::Sender<McpState>,
    stop: CancellationToken,
}

impl Shared {
    pub(super) fn new(
        config: McpServerConfig,
        changes: watch::Sender<McpState>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            config,
            changes,
            stop,
        }
    }

    /// Keeps the server going until it is stopped.
    pub(super) async fn keep_going(self) {
        let stop = self.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.connect_again_and_again() => {}
        }
    }

    async fn connect_again_and_again(&self) {
        let mut failures = 0;
        loop {
            let began = tokio::time::Instant::now();
            let reason = self.connect_once().await;
            tracing::warn!(mcp.server = %self.config.id, reason, "an MCP server is not there");
            self.changes.send_replace(McpState::Down(reason));
            if began.elapsed() > WELL {
                failures = 0;
            }
            let wait = WAITS.get(failures).or(WAITS.last()).copied().unwrap_or(60);
            failures += 1;
            tokio::time::sleep(Duration::from_secs(wait)).await;
        }
    }

    /// Connects and stays connected; gives the reason why it ended.
    async fn connect_once(&self) -> String {
        let handler = Handler::default();
        match &self.config.transport {
            McpTransport::Stdio { command, environment } => {
                match ServerProcess::start(&self.config.id, command, environment) {
                    Ok((process, output, input)) => {
                        let service =
                            serve_client_with_ct(handler.clone(), (output, input), self.stop.child_token());
                        let reason = self.serve(service, &handler).await;
                        let how = process.end().await;
                        match reason {
                            Ended::Closed => how,
                            Ended::Because(reason) => format!("{reason}; {how}"),
                        }
                    }
                    Err(error) => format!("its process cannot be started: {error}"),
                }
            }
            McpTransport::Http { url, token } => {
                let client = match http_client() {
                    Ok(client) => client,
                    Err(error) => return format!("the HTTP client cannot start: {error}"),
                };
                let mut settings = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                if let Some(token) = token {
                    settings = settings.auth_header(token.expose());
                }
                let transport = StreamableHttpClientTransport::with_client(client, settings);
                let service = serve_client_with_ct(handler.clone(), transport, self.stop.child_token());
                match self.serve(service, &handler).await {
                    Ended::Closed => "the connection was closed".to_owned(),
                    Ended::Because(reason) => reason,
                }
            }
        }
    }

    /// Learns the tools and waits for the end of the connection.
    async fn serve<E: std::fmt::Display>(
        &self,
        connecting: impl Future<Output = Result<RunningService<RoleClient, Handler>, E>>,
        handler: &Handler,
    ) -> Ended {
        let limit = self.config.start;
        let in_time =
            |what: &str| Ended::Because(format!("{what} took longer than {} s", limit.as_secs_f64()));
        let service = match tokio::time::timeout(limit, connecting).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Ended::Because(format!("it cannot be connected to: {error}")),
            Err(_) => return in_time("its first answer"),
        };
        let peer = service.peer().clone();
        let closed = service.waiting();
        tokio::pin!(closed);
        let trouble = Trouble::default();
        loop {
            let listed = tokio::time::timeout(limit, self.learn(&peer, handler, &trouble)).await;
            match listed {
                Ok(Ok(tools)) => {
                    tracing::info!(mcp.server = %self.config.id, tools = tools.len(), "an MCP server is ready");
                    self.changes.send_replace(McpState::Ready(tools));
                }
                Ok(Err(reason)) => return Ended::Because(reason),
                Err(_) => return in_time("the list of its tools"),
            }
            loop {
                tokio::select! {
                    _ = &mut closed => return Ended::Closed,
                    () = handler.changed() => break,
                    () = trouble.news.notified() => {
                        if trouble.is_broken.load(Ordering::SeqCst) {
                            return Ended::Because("the connection broke".to_owned());
                        }
                        if let Err(reason) = answers(&peer).await {
                            return Ended::Because(reason);
                        }
                    }
                }
            }
        }
    }

    async fn learn(
        &self,
        peer: &Peer<RoleClient>,
        handler: &Handler,
        trouble: &Trouble,
    ) -> Result<Vec<Arc<dyn Tool>>, String> {
        let listed = peer.list_all_tools().await;
        let listed = listed.map_err(|error| format!("it does not list its tools: {error}"))?;
        if listed.len() > MOST_TOOLS {
            tracing::warn!(mcp.server = %self.config.id, "only the first {MOST_TOOLS} of its tools are taken");
        }
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in listed.into_iter().take(MOST_TOOLS) {
            let (peer, handler) = (peer.clone(), handler.clone());
            let tool = RemoteTool::new(&self.config.id, tool, peer, handler, trouble.clone());
            if let Some(tool) = tool
                && !tools.iter().any(|known| known.info().name == tool.info().name)
            {
                tools.push(Arc::new(tool));
            }
        }
        Ok(tools)
    }
}

/// Why a connection ended.
enum Ended {
    /// The server closed it.
    Closed,
    /// In words.
    Because(String),
}

/// Whether a server answers at all.
async fn answers(peer: &Peer<RoleClient>) -> Result<(), String> {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    match tokio::time::timeout(SIGN_OF_LIFE, peer.send_request(ping)).await {
        // Also one that does not know the question is there.
        Ok(Ok(_) | Err(rmcp::service::ServiceError::McpError(_))) => Ok(()),
        Ok(Err(error)) => Err(format!("it does not answer: {error}")),
        Err(_) => Err(format!("it did not answer within {} s", SIGN_OF_LIFE.as_secs())),
    }
}

/// Follows no redirect, so that a token goes nowhere else.
fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .redirect(reqwest::redirect::Policy::none())
        .build()
}
