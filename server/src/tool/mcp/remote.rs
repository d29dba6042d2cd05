//! A tool of a server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value;

use super::connection::Trouble;
use super::content;
use super::handler::Handler;
use crate::tool::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo};

/// How long the message that a call is cancelled may take.
const CANCELLING: Duration = Duration::from_secs(1);

/// The longest name that providers take.
const LONGEST_NAME: usize = 64;

/// The longest description that is handed on.
const LONGEST_DESCRIPTION: usize = 8 * 1024;

/// A call on its way. When nobody waits for it any more, it is cancelled at the server.
struct Asked {
    request: Option<RequestHandle<RoleClient>>,
    trouble: Trouble,
}

impl Asked {
    /// Waits for the answer. Without one, the call is still on its way.
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let answer = match &mut self.request {
            Some(request) => (&mut request.rx).await,
            None => return Err(ServiceError::TransportClosed),
        };
        self.request = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        // Perhaps because the server does not answer at all.
        self.trouble.suspect();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(
                CANCELLING,
                request.cancel(Some("cancelled".to_owned())),
            ));
        }
    }
}

/// A tool of a server, with the connection that it was learnt from.
pub(super) struct RemoteTool {
    info: ToolInfo,
    server: String,
    name: String,
    peer: Peer<RoleClient>,
    handler: Handler,
    trouble: Trouble,
}

impl RemoteTool {
    /// A tool as the server describes it; none where its name cannot be used.
    pub(super) fn new(
        server: &str,
        tool: rmcp::model::Tool,
        peer: Peer<RoleClient>,
        handler: Handler,
        trouble: Trouble,
    ) -> Option<Self> {
        let name = tool.name.into_owned();
        let shown = format!("{server}__{name}");
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        if name.is_empty() || shown.len() > LONGEST_NAME || !shown.chars().all(is_plain) {
            tracing::warn!(
                mcp.server = server,
                "a tool is left out: models cannot call it by its name"
            );
            return None;
        }
        let mut description = tool.description.unwrap_or_default().into_owned();
        description.truncate(description.floor_char_boundary(LONGEST_DESCRIPTION));
        let mut parameters = Value::Object((*tool.input_schema).clone());
        if let Some(schema) = parameters.as_object_mut() {
            schema.remove("$schema");
            schema.entry("type").or_insert_with(|| "object".into());
            schema
                .entry("properties")
                .or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        let only_reads = tool.annotations.and_then(|hints| hints.read_only_hint) == Some(true);
        let info = ToolInfo {
            name: shown,
            description,
            parameters,
            concurrency: match only_reads {
                true => Concurrency::ParallelSafe,
                false => Concurrency::Exclusive,
            },
            mutating: !only_reads,
            exposure: Exposure::Full,
        };
        Some(Self {
            info,
            server: server.to_owned(),
            name,
            peer,
            handler,
            trouble,
        })
    }

    async fn run(
        &self,
        arguments: Value,
        context: &ToolContext,
    ) -> Result<crate::tool::ToolOutput, ToolError> {
        let mut params = CallToolRequestParams::new(self.name.clone());
        if let Value::Object(arguments) = arguments {
            params = params.with_arguments(arguments);
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        // Who is cancelled while a server takes nothing in any more waits for it no longer.
        let sent = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::cancelled()),
            sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()) => sent,
        };
        let sent = sent.map_err(|error| self.failed(&error))?;
        let progress = Arc::clone(&context.progress);
        let _hears = self.handler.hears(sent.progress_token.clone(), progress);
        let mut asked = Asked {
            request: Some(sent),
            trouble: self.trouble.clone(),
        };
        let answer = tokio::select! {
            biased;
            answer = asked.answer() => answer,
            () = context.cancel.cancelled() => return Err(ToolError::cancelled()),
        };
        match answer {
            Ok(ServerResult::CallToolResult(result)) => content::output(result),
            Ok(_) => Err(ToolError::new(
                "mcp_answer",
                format!(
                    "The MCP server `{}` answered something that is no result of a tool.",
                    self.server
                ),
            )),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// A call that the server did not answer as it should.
    fn failed(&self, error: &ServiceError) -> ToolError {
        let server = &self.server;
        match error {
            ServiceError::McpError(error) => {
                let words = format!("The MCP server `{server}` refused the call: {}", error.message);
                ToolError::new("mcp_refused", words)
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                self.trouble.broken();
                let words = format!(
                    "The connection to the MCP server `{server}` broke before the call had ended. It may have had an effect."
                );
                ToolError::new("mcp_disconnected", words)
            }
            error => {
                let words = format!("The MCP server `{server}` did not answer as it should: {error}");
                ToolError::new("mcp_answer", words)
            }
        }
    }
}

impl Tool for RemoteTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    /// The server itself looks at the arguments; here only what is plainly missing is refused.
    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let required = self.info.parameters.get("required").and_then(Value::as_array);
        let missing = required.into_iter().flatten().filter_map(Value::as_str);
        let mut missing = missing.filter(|name| arguments.get(name).is_none());
        match missing.next() {
            None => Ok(()),
            Some(name) => Err(ToolError::new(
                "invalid_arguments",
                format!("The arguments do not fit: missing field `{name}`."),
            )),
        }
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(self.run(arguments, context))
    }
}
