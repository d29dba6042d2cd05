//! Errors: one enum, one table of statuses, one form on the wire (RFC 9457).

use std::any::Any;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use protocol::api::Problem;

use crate::exchange::import::ImportError;
use crate::run::{ReopenError, SubmitError};
use crate::store::StoreError;
use crate::store::sessions::InvalidPlace;
use crate::stream::TranscriptError;

/// Why a call was not served.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no such call.
    #[error("There is no such call. /api/openapi.json lists them.")]
    NoSuchCall,
    /// The call is not made by this method.
    #[error("This call is not made by this method.")]
    MethodNotAllowed,
    /// A socket's address was asked for in another way.
    #[error("This address is a WebSocket's: {0}.")]
    NotASocket(String),
    /// Too many wrong tokens at once.
    #[error("Too many wrong tokens: try again in a second.")]
    TooManyTokens,
    /// What was asked for does not exist.
    #[error("There is no {what} {id}.")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// Its id, as it was given.
        id: String,
    },
    /// The body or a parameter is not what the call takes.
    #[error("{0}")]
    Invalid(String),
    /// The body is no JSON at all.
    #[error("{0}")]
    Malformed(String),
    /// The content type of the body is not JSON.
    #[error("The body has to be JSON, with content-type application/json.")]
    NotJson,
    /// The body is too long.
    #[error("The body is too long: at most {} bytes are taken.", super::MAX_BODY)]
    TooLong,
    /// A text is longer than the call takes.
    #[error("The text is too long: at most {most} bytes are taken.")]
    LongText {
        /// What is taken.
        most: usize,
    },
    /// A run could not be created.
    #[error("{0}")]
    Submit(SubmitError),
    /// A run does not go on.
    #[error("{0}")]
    Reopen(ReopenError),
    /// A transcript that still grows is beside the server that executes the run.
    #[error("Another server executes this run, and its transcripts are there until it is over.")]
    TranscriptElsewhere,
    /// A run is too large for one page.
    #[error("The run has more than {} MiB of text, too much for one page: export it as JSON or Markdown.", most / 1024 / 1024)]
    LargePage {
        /// Bytes that a page may have.
        most: u64,
    },
    /// A file was not imported.
    #[error("{0}")]
    Import(ImportError),
    /// A call that the provider runs cannot be stopped alone.
    #[error("The provider runs this call: only the whole run can be stopped.")]
    ProvidersCall,
    /// The call does not wait for an answer.
    #[error("This call does not wait for an answer any more.")]
    NotAsked,
    /// The range lies outside of the content.
    #[error("The range lies outside of the content, which has {bytes} bytes.")]
    Range {
        /// Length of the content.
        bytes: u64,
    },
    /// The request does not come from this server's own page.
    #[error("{0}")]
    Forbidden(String),
    /// The token is missing or wrong.
    #[error("Sign in, or send the token: Authorization: Bearer …")]
    Unauthorized,
    /// The file is with another server.
    #[error("{0}")]
    Transcript(TranscriptError),
    /// A search took too long.
    #[error("The search took too long. Search for something longer, or try again.")]
    SlowSearch,
    /// Something broke on this side.
    #[error("Something broke on the server. Its log says what.")]
    Internal(String),
}

impl ApiError {
    /// Something does not exist.
    pub(super) fn not_found(what: &'static str, id: impl ToString) -> Self {
        Self::NotFound {
            what,
            id: id.to_string().chars().take(140).collect(),
        }
    }

    fn table(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoSuchCall => (StatusCode::NOT_FOUND, "no_such_call"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::NotASocket(_) => (StatusCode::UPGRADE_REQUIRED, "not_a_socket"),
            Self::TooManyTokens => (StatusCode::TOO_MANY_REQUESTS, "too_many_tokens"),
            Self::NotFound { .. } | Self::Submit(SubmitError::NoSession(_)) => {
                (StatusCode::NOT_FOUND, "not_found")
            }
            Self::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request"),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "malformed_json"),
            Self::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json"),
            Self::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_long"),
            Self::LongText { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "text_too_long"),
            Self::Submit(SubmitError::EmptyPrompt) => (StatusCode::UNPROCESSABLE_ENTITY, "empty_prompt"),
            Self::Submit(SubmitError::LongPrompt { .. }) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "prompt_too_long")
            }
            Self::Submit(SubmitError::KeyReused) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused")
            }
            Self::Submit(SubmitError::Target(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_model"),
            Self::Reopen(ReopenError::NoSuchRun(_) | ReopenError::NoSuchNode(_)) => {
                (StatusCode::NOT_FOUND, "not_found")
            }
            Self::Reopen(ReopenError::NothingToResume) => (StatusCode::CONFLICT, "nothing_to_resume"),
            Self::Reopen(ReopenError::NotAnAnswer) => (StatusCode::CONFLICT, "not_an_answer"),
            Self::Reopen(ReopenError::NotLast) => (StatusCode::CONFLICT, "not_the_last_run"),
            Self::Reopen(ReopenError::NotOver) => (StatusCode::CONFLICT, "run_not_over"),
            Self::TranscriptElsewhere => (StatusCode::CONFLICT, "transcript_elsewhere"),
            Self::LargePage { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "run_too_large"),
            Self::Reopen(ReopenError::Imported) => (StatusCode::CONFLICT, "imported_run"),
            Self::Import(ImportError::Unknown(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "not_a_record"),
            Self::Import(ImportError::Version(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_version"),
            Self::Import(ImportError::TooLong) => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_long"),
            Self::Import(ImportError::Busy(_)) => (StatusCode::CONFLICT, "import_goes_on"),
            Self::Import(ImportError::Differs(_) | ImportError::Taken { .. }) => {
                (StatusCode::CONFLICT, "record_differs")
            }
            Self::Import(ImportError::Read(_)) => (StatusCode::BAD_REQUEST, "body_cut_off"),
            Self::ProvidersCall => (StatusCode::CONFLICT, "providers_call"),
            Self::NotAsked => (StatusCode::CONFLICT, "not_asked"),
            Self::Range { .. } => (StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "sign_in_needed"),
            Self::Transcript(TranscriptError::NotFound(_) | TranscriptError::Path(_)) => {
                (StatusCode::NOT_FOUND, "not_found")
            }
            Self::SlowSearch => (StatusCode::SERVICE_UNAVAILABLE, "search_took_too_long"),
            Self::Transcript(_) => (StatusCode::INTERNAL_SERVER_ERROR, "transcript_unreadable"),
            Self::Submit(SubmitError::Store(_))
            | Self::Reopen(ReopenError::Store(_))
            | Self::Import(ImportError::Store(_))
            | Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }

    /// The error as it is sent.
    pub(super) fn problem(&self) -> Problem {
        let (status, code) = self.table();
        let detail = match self {
            // What the database says is not for the asker.
            Self::Submit(SubmitError::Store(_))
            | Self::Reopen(ReopenError::Store(_))
            | Self::Import(ImportError::Store(_)) => Self::Internal(String::new()).to_string(),
            _ => self.to_string(),
        };
        Problem {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        Self::Submit(error)
    }
}

impl From<ReopenError> for ApiError {
    fn from(error: ReopenError) -> Self {
        Self::Reopen(error)
    }
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        Self::Import(error)
    }
}

impl From<InvalidPlace> for ApiError {
    fn from(error: InvalidPlace) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<TranscriptError> for ApiError {
    fn from(error: TranscriptError) -> Self {
        Self::Transcript(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match &self {
            Self::Internal(error) => tracing::error!(%error, "a call failed"),
            Self::Import(ImportError::Store(error)) => {
                tracing::error!(%error, "a record could not be imported");
            }
            Self::Submit(SubmitError::Store(error)) => tracing::error!(%error, "a run could not be created"),
            _ => {}
        }
        let more = match &self {
            Self::Range { bytes } => HeaderValue::from_str(&format!("bytes */{bytes}"))
                .ok()
                .map(|range| (header::CONTENT_RANGE, range)),
            Self::NotASocket(_) => Some((header::UPGRADE, HeaderValue::from_static("websocket"))),
            Self::TooManyTokens => Some((header::RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => None,
        };
        let mut response = respond(&self.problem());
        if let Some((name, value)) = more {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A problem as a response.
fn respond(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let content_type = HeaderValue::from_static("application/problem+json");
    (
        status,
        [
            (header::CONTENT_TYPE, content_type),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ],
        body,
    )
        .into_response()
}

/// A handler panicked: the caller hears of it, the log says where.
pub(super) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no words");
    ApiError::Internal(format!("a handler panicked: {words}")).into_response()
}
