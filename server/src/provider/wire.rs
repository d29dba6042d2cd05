//! What every wire format offers: a request builder and a decoder of its events.

use super::surrogates::Joining;
use super::{
    Endpoint, ModelRequest, ProviderError, ProviderErrorClass, ProviderEvent, ProviderKind, Replay, SseEvent,
    WireRequest, anthropic, openai_chat,
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

/// What an endpoint's quirks ask of a decoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecoderOptions {
    /// Chat: text between `<think>` and `</think>` is reasoning. Off by default, since answers may speak of the tag.
    pub split_think_tags: bool,
}

/// Makes the HTTP request of a turn.
pub fn build_request(endpoint: &Endpoint, request: &ModelRequest) -> Result<WireRequest, ProviderError> {
    match endpoint.kind {
        ProviderKind::Anthropic => Ok(anthropic::build_request(endpoint, request)),
        ProviderKind::OpenaiChat => Ok(openai_chat::build_request(endpoint, request)),
        ProviderKind::OpenaiResponses | ProviderKind::Gemini => Err(unsupported(endpoint)),
    }
}

/// Makes the decoder for the answer to a request for `model`.
pub fn stream_decoder(
    endpoint: &Endpoint,
    model: &str,
    options: DecoderOptions,
) -> Result<Box<dyn StreamDecoder>, ProviderError> {
    match endpoint.kind {
        ProviderKind::Anthropic => {
            let decoder = anthropic::Decoder::new(&endpoint.provider_id, model);
            Ok(Box::new(Joining::new(decoder)))
        }
        ProviderKind::OpenaiChat => {
            let decoder = openai_chat::Decoder::new(&endpoint.provider_id, model, options);
            Ok(Box::new(Joining::new(decoder)))
        }
        ProviderKind::OpenaiResponses | ProviderKind::Gemini => Err(unsupported(endpoint)),
    }
}

fn unsupported(endpoint: &Endpoint) -> ProviderError {
    let format = match endpoint.kind {
        ProviderKind::Anthropic => "anthropic",
        ProviderKind::OpenaiChat => "openai_chat",
        ProviderKind::OpenaiResponses => "openai_responses",
        ProviderKind::Gemini => "gemini",
    };
    ProviderError::new(
        ProviderErrorClass::InvalidRequest,
        format!(
            "provider `{}` has kind `{format}`, which is not supported yet; use `anthropic` or `openai_chat`",
            endpoint.provider_id
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_an_adapter_is_refused_with_a_clear_error() {
        for kind in [ProviderKind::OpenaiResponses, ProviderKind::Gemini] {
            let endpoint = Endpoint {
                provider_id: "main".to_owned(),
                kind,
                base_url: "http://x".to_owned(),
                api_key: None,
            };
            let request = ModelRequest {
                model: "m".to_owned(),
                system: None,
                messages: Vec::new(),
                tools: Vec::new(),
                max_tokens: None,
            };
            let error = build_request(&endpoint, &request).expect_err("no adapter");
            assert_eq!(error.class, ProviderErrorClass::InvalidRequest);
            assert!(error.message.contains("main"), "{error}");
            assert!(stream_decoder(&endpoint, "m", DecoderOptions::default()).is_err());
        }
    }
}
