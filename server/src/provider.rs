//! Providers: one adapter for each wire format, over reqwest and our own SSE decoder.
//!
//! Three layers, never one: bytes → SSE events (and comments) → provider events → blocks. The adapters are pure
//! state machines without I/O, so that a recorded stream replays at any chunking and gives the same events. What a
//! provider sends for itself only (signatures, encrypted reasoning) is kept in a [`Replay`] for the next request to
//! the same endpoint; a display event has no field that could hold it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod anthropic;
pub mod client;
pub mod error;
pub mod gemini;
mod history;
pub mod openai_chat;
pub mod openai_responses;
pub mod round;
mod server_result;
pub mod sse;
mod surrogates;
pub mod wire;

#[cfg(test)]
mod captures_test;

pub use client::{ByteStream, ProviderClient, install_crypto_provider};
pub use round::{RoundBlock, RoundCall, RoundContent, RoundResult};
pub use sse::{SseDecoder, SseEvent, SseItem, SseTail};
pub use wire::{DecoderOptions, StreamDecoder, build_request, stream_decoder};

/// What a model is told after its own text that broke off, when another attempt goes on from there.
pub const GO_ON: &str = "Your answer above was cut off by a technical failure. Go on exactly where it stops. Do not \
    start again, do not repeat what stands there, and do not speak of the interruption. Calls whose results you have \
    seen are done.";

/// The wire format that an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic Messages, `POST {base_url}/v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions, `POST {base_url}/chat/completions`.
    OpenaiChat,
    /// OpenAI Responses, `POST {base_url}/responses`.
    OpenaiResponses,
    /// Gemini, `POST {base_url}/models/{model}:streamGenerateContent?alt=sse`.
    Gemini,
}

/// Where a model is served: everything that an adapter needs to make a request.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's id in the configuration, as shown to people.
    pub provider_id: String,
    /// Which wire format it speaks.
    pub kind: ProviderKind,
    /// Anthropic: what stands before `/v1/messages`. OpenAI kinds: before `/chat/completions` or `/responses`. Gemini:
    /// before `/models`.
    pub base_url: String,
    /// Sent as the format's auth header. Never logged, shown or written down.
    pub api_key: Option<Secret>,
}

/// A value that must never be printed: its `Debug` form is a fixed word.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value that must not be printed.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// One request of a turn, in no provider's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The model's id as the provider knows it.
    pub model: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The conversation, oldest first; it ends with a user message or with tool results.
    pub messages: Vec<ModelMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDefinition>,
    /// The most tokens that the reply may have.
    pub max_tokens: Option<u32>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ModelMessage {
    /// What a person said.
    User {
        /// Plain text or Markdown.
        text: String,
    },
    /// What the model said in one provider round, in the order of its parts.
    Assistant {
        /// The displayable parts.
        parts: Vec<AssistantPart>,
        /// The same round as the provider sent it, for a request to the same endpoint and model only.
        replay: Option<Replay>,
    },
    /// The results of all tool calls of the round before, in call order.
    ToolResults {
        /// One for each call.
        results: Vec<ToolResult>,
    },
}

/// A displayable part of an assistant message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum AssistantPart {
    /// Text, as shown.
    Text {
        /// Markdown.
        text: String,
    },
    /// A call that the model made.
    ToolCall {
        /// The provider's id of the call, or one that the adapter made.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as the model wrote them; `{}` when it wrote none.
        arguments: String,
    },
}

/// What a tool gave back for one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call that this answers.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// What the model is told.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name by which the model calls it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments; an object schema.
    pub parameters: Value,
}

/// One assistant round as its provider sent it, opaque to everyone else. It goes into `provider_state` and into
/// the next request to the same endpoint and model, and nowhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The endpoint that sent it.
    pub provider_id: String,
    /// The model that made it.
    pub model: String,
    /// The verbatim assistant message in the wire format of the endpoint.
    pub message: Value,
}

/// Position of a block within one provider round: given by the adapter, in the provider's order.
pub type Position = u32;

/// What an adapter makes of a provider's stream. Positions are counted from 0 within one round.
#[derive(Debug, Clone, PartialEq)]
pub enum ProviderEvent {
    /// The provider began its answer.
    Started {
        /// The provider's id of the response.
        response_id: Option<String>,
        /// The model that really answers.
        model: Option<String>,
    },
    /// A block begins: text and reasoning at their first non-empty content, a call as soon as its name is known.
    BlockStart {
        /// The block's position.
        position: Position,
        /// What it is.
        kind: BlockStart,
    },
    /// More text of a text, reasoning or refusal block. Never empty.
    Delta {
        /// The block's position.
        position: Position,
        /// What is appended.
        text: String,
    },
    /// More of a call's arguments, as the model writes them. Never empty.
    ArgumentsDelta {
        /// The call's position.
        position: Position,
        /// A piece of JSON text.
        json: String,
    },
    /// A block is whole.
    BlockEnd {
        /// The block's position.
        position: Position,
    },
    /// The result of a call that the provider ran itself.
    ServerToolResult {
        /// The position of the call; none when it was made in an earlier round.
        position: Option<Position>,
        /// The provider's id of the call.
        tool_call_id: String,
        /// What can be shown of it, opaque values left out.
        text: String,
        /// Whether the provider says that it failed.
        is_error: bool,
    },
    /// The final text of a block contradicts what was streamed; what was shown stays and a notice says so.
    Contradiction {
        /// The block's position.
        position: Position,
        /// What the provider says the text is.
        text: String,
    },
    /// Tokens so far; each one replaces the one before.
    Usage(Usage),
    /// Why the model stopped.
    Stop {
        /// The provider's word.
        raw: String,
        /// What it means.
        reason: StopReason,
    },
    /// The stream reports an error; the attempt fails with what came.
    Error(ProviderError),
    /// The stream is over; nothing follows.
    End(StreamEnd),
}

/// What kind of block begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockStart {
    /// Markdown.
    Text,
    /// Displayable reasoning.
    Reasoning,
    /// The model declines.
    Refusal,
    /// A call for us to run.
    ToolCall {
        /// The provider's id, or one made by the adapter when it sent none.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A call that the provider runs itself.
    ServerTool {
        /// The provider's id, or one made by the adapter when it sent none.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A kind that is not known: shown as such.
    Unsupported {
        /// The provider's word for it.
        raw_kind: String,
        /// Its size on the wire in bytes.
        bytes: u64,
    },
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The format's end marker came.
    Complete,
    /// The connection closed without it.
    Interrupted,
}

/// Why a model stopped, in one vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The output limit cut it.
    Length,
    /// The context is full.
    ContextWindow,
    /// A stop sequence came.
    StopSequence,
    /// It declined.
    Refusal,
    /// A filter stopped it.
    ContentFilter,
    /// The provider paused its own tool loop: the same turn goes on with another request.
    PauseTurn,
    /// A word that is not known.
    Other,
}

impl StopReason {
    /// The protocol's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::Length => "length",
            Self::ContextWindow => "context_window",
            Self::StopSequence => "stop_sequence",
            Self::Refusal => "refusal",
            Self::ContentFilter => "content_filter",
            Self::PauseTurn => "pause_turn",
            Self::Other => "other",
        }
    }
}

/// Tokens and cost as the provider counts them; a field it did not send stays empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input_tokens: Option<u64>,
    /// All output tokens.
    pub output_tokens: Option<u64>,
    /// Input tokens that came from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Input tokens that were written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Cost in the provider's currency, where it says one.
    pub cost: Option<f64>,
}

/// Why a request or a stream failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of failure it is.
    pub class: ProviderErrorClass,
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// In plain words, with the provider's own message; never a key or a header.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after_ms: Option<u64>,
}

/// Kinds of failure, told apart because each is handled in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderErrorClass {
    /// The address could not be reached, or the connection broke before an answer.
    Connect,
    /// The connection broke in the stream, or it ended without its end marker.
    Broken,
    /// 401 or 403: the key is missing, wrong or may not do this.
    Authentication,
    /// 402, or a spend limit that waiting does not lift.
    Billing,
    /// 404 or a model that is not known.
    NotFound,
    /// 400, 413 or 422: the request cannot be served as it is.
    InvalidRequest,
    /// The conversation is longer than the model takes.
    ContextLength,
    /// 429: wait, then ask again.
    RateLimited,
    /// 529 and the like: wait, then ask again.
    Overloaded,
    /// 5xx or an error event of that kind.
    Server,
    /// What came is not the format that it should be, such as an HTML page.
    Protocol,
    /// No bytes, or no content, for longer than the limit.
    Stalled,
}

impl ProviderErrorClass {
    /// Whether asking the same provider again can help.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Connect
            | Self::Broken
            | Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::Stalled
            | Self::Protocol => true,
            Self::Authentication
            | Self::Billing
            | Self::NotFound
            | Self::InvalidRequest
            | Self::ContextLength => false,
        }
    }

    /// The stable code of this failure in the record.
    pub fn code(self) -> &'static str {
        match self {
            Self::Connect => "provider_unreachable",
            Self::Broken => "provider_stream_broken",
            Self::Authentication => "provider_authentication",
            Self::Billing => "provider_billing",
            Self::NotFound => "provider_model_not_found",
            Self::InvalidRequest => "provider_invalid_request",
            Self::ContextLength => "provider_context_length",
            Self::RateLimited => "provider_rate_limited",
            Self::Overloaded => "provider_overloaded",
            Self::Server => "provider_server_error",
            Self::Protocol => "provider_protocol",
            Self::Stalled => "provider_stalled",
        }
    }
}

impl ProviderError {
    /// An error that no HTTP answer came with.
    pub fn new(class: ProviderErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            message: message.into(),
            retry_after_ms: None,
        }
    }
}

/// An HTTP request that an adapter made; the client adds nothing but transport headers.
#[derive(Debug, Clone)]
pub struct WireRequest {
    /// The whole address.
    pub url: String,
    /// Headers without the key.
    pub headers: BTreeMap<&'static str, String>,
    /// The header that carries the key.
    pub auth: Option<(&'static str, Secret)>,
    /// The JSON body.
    pub body: Value,
}
