//! What every wire format offers: a request builder and a decoder of its events.

use serde_json::Value;

use super::surrogates::Joining;
use super::{
    Endpoint, ModelRequest, ProviderError, ProviderErrorClass, ProviderEvent, ProviderKind, Replay, SseEvent,
    WireRequest, anthropic, error, gemini, openai_chat, openai_responses,
};

/// Turns the events of one answer into provider events. A pure state machine: no I/O, no clock, so that the same
/// bytes give the same events at any chunking. After an [`ProviderEvent::End`] everything is ignored.
pub trait StreamDecoder: Send {
    /// Takes one event.
    fn push(&mut self, event: &SseEvent) -> Vec<ProviderEvent>;

    /// The bytes are over. Ends with [`ProviderEvent::End`], before which an error says so when the end marker is
    /// missing; gives nothing when the stream has ended already.
    fn finish(&mut self) -> Vec<ProviderEvent>;

    /// The stream is ended from outside: with an error that is given on, or, without one, by a cancel. Gives
    /// nothing when the stream has ended already.
    fn abort(&mut self, error: Option<ProviderError>) -> Vec<ProviderEvent>;

    /// Whether [`ProviderEvent::End`] was given.
    fn is_ended(&self) -> bool;

    /// Whether the model said why it stopped: only bookkeeping can follow, so an endpoint that then keeps the
    /// socket open need not be waited for.
    fn has_stopped(&self) -> bool;

    /// The answer as the provider sent it, for the next request. Only a complete answer has one.
    fn replay(&self) -> Option<Replay>;
}

/// The JSON that an event holds; none where it holds something else, which says nothing.
///
/// # Errors
/// What an `event: error` says that holds no JSON, or that an object does not end as one.
pub(super) fn event_value(event: &SseEvent) -> Result<Option<Value>, ProviderError> {
    let data = event.data.trim();
    match serde_json::from_str(data) {
        Ok(value) => Ok(Some(value)),
        Err(_) if event.event.as_deref() == Some("error") => Err(error::from_text(data)),
        Err(problem) if data.starts_with('{') => {
            let message = format!("an event of the stream is not valid JSON: {problem}");
            Err(ProviderError::new(ProviderErrorClass::Protocol, message))
        }
        Err(_) => Ok(None),
    }
}

/// What an endpoint's quirks ask of a decoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecoderOptions {
    /// Chat: text between `<think>` and `</think>` is reasoning. Off by default, since answers may speak of the tag.
    pub split_think_tags: bool,
}

/// Makes the HTTP request of a turn.
pub fn build_request(endpoint: &Endpoint, request: &ModelRequest) -> WireRequest {
    match endpoint.kind {
        ProviderKind::Anthropic => anthropic::build_request(endpoint, request),
        ProviderKind::OpenaiChat => openai_chat::build_request(endpoint, request),
        ProviderKind::OpenaiResponses => openai_responses::build_request(endpoint, request),
        ProviderKind::Gemini => gemini::build_request(endpoint, request),
    }
}

/// Makes the decoder for the answer to a request for `model`.
pub fn stream_decoder(endpoint: &Endpoint, model: &str, options: DecoderOptions) -> Box<dyn StreamDecoder> {
    match endpoint.kind {
        ProviderKind::Anthropic => {
            let decoder = anthropic::Decoder::new(&endpoint.provider_id, model);
            Box::new(Joining::new(decoder))
        }
        ProviderKind::OpenaiChat => {
            let decoder = openai_chat::Decoder::new(&endpoint.provider_id, model, options);
            Box::new(Joining::new(decoder))
        }
        ProviderKind::OpenaiResponses => {
            let decoder = openai_responses::Decoder::new(&endpoint.provider_id, model);
            Box::new(Joining::new(decoder))
        }
        ProviderKind::Gemini => {
            let decoder = gemini::Decoder::new(&endpoint.provider_id, model);
            Box::new(Joining::new(decoder))
        }
    }
}
