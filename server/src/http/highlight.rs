//! `POST /api/highlight`: what is what in a text that the page shows.

use std::sync::Arc;

use axum::Json;
use protocol::api::{HIGHLIGHT_BYTES, HighlightText, Highlighted};

use super::error::ApiError;
use super::extract::ApiJson;
use crate::highlight;

/// The most bytes of a pattern.
const PATTERN_BYTES: usize = 4 * 1024;

/// The places of a text. The same request is answered from memory.
pub(super) async fn highlight(
    ApiJson(request): ApiJson<HighlightText>,
) -> Result<Json<Arc<Highlighted>>, ApiError> {
    if request.text.len() > HIGHLIGHT_BYTES {
        return Err(ApiError::LongText {
            most: HIGHLIGHT_BYTES,
        });
    }
    if request.language.is_none() == request.pattern.is_none() {
        return Err(ApiError::Invalid(
            "The body has to have either a language or a pattern.".to_owned(),
        ));
    }
    if request
        .pattern
        .as_ref()
        .is_some_and(|pattern| pattern.len() > PATTERN_BYTES)
    {
        return Err(ApiError::Invalid(format!(
            "The pattern is too long: at most {PATTERN_BYTES} bytes are taken."
        )));
    }
    match highlight::places(request).await {
        Ok(places) => Ok(Json(places)),
        Err(highlight::Failure::Pattern(error)) => Err(ApiError::Invalid(format!(
            "The pattern is no regular expression that can be searched for: {error}"
        ))),
        Err(highlight::Failure::Broken(error)) => Err(ApiError::Internal(error)),
    }
}
