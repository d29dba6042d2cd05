//! Answers that are no stream, in the words of each wire format.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::scenario::{ErrorBody, HttpErrorStep};
use super::wire::WireFormat;

/// An HTTP error that is still to be written in a wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) message: String,
    body: ErrorBody,
    retry_after: Option<u32>,
}

impl Failure {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            body: ErrorBody::Json,
            retry_after: None,
        }
    }

    /// A request that a strict provider refuses.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(super) fn of_step(step: &HttpErrorStep) -> Self {
        let message = step
            .message
            .clone()
            .unwrap_or_else(|| usual_message(step.status).to_owned());
        Self {
            status: step.status,
            message,
            body: step.body,
            retry_after: step.retry_after,
        }
    }

    /// The answer, as a provider of that format gives it.
    pub(super) fn into_response(self, format: WireFormat, request_id: &str) -> Response {
        // The status was checked to be one; 529 is none that has a name.
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (content_type, body) = match self.body {
            ErrorBody::Json => ("application/json", self.json(format, request_id).to_string()),
            ErrorBody::Html => ("text/html; charset=utf-8", self.html()),
        };
        let mut response = (status, [(header::CONTENT_TYPE, content_type)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn json(&self, format: WireFormat, request_id: &str) -> Value {
        match format {
            WireFormat::Anthropic => json!({
                "type": "error",
                "error": {"type": anthropic_type(self.status), "message": self.message},
                "request_id": request_id,
            }),
            WireFormat::OpenaiChat | WireFormat::OpenaiResponses => {
                let (kind, code) = openai_type(self.status);
                json!({"error": {"message": self.message, "type": kind, "param": null, "code": code}})
            }
        }
    }

    fn html(&self) -> String {
        let status = self.status;
        format!(
            "<html>\r\n<head><title>{status} {message}</title></head>\r\n<body>\r\n\
             <center><h1>{status} {message}</h1></center>\r\n<hr><center>simulator</center>\r\n</body>\r\n</html>\r\n",
            message = self.message
        )
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}

fn openai_type(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500..=599 => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

fn usual_message(status: u16) -> &'static str {
    match status {
        401 => "The API key is not valid.",
        402 => "The credit balance is too low.",
        403 => "The API key may not use this model.",
        404 => "The model does not exist.",
        413 => "The request is too large.",
        429 => "Too many requests. Try again later.",
        500 => "Internal server error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "The request cannot be served.",
    }
}
