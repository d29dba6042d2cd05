//! Reading requests, with errors that say what was found and what is expected.

use std::str::FromStr;

use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::error::ApiError;

/// A JSON body.
pub(super) struct ApiJson<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        // A form of another site cannot send this type without asking first.
        let is_json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split(';').next())
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("application/json"));
        if !is_json {
            return Err(ApiError::NotJson);
        }
        let bytes = Bytes::from_request(request, state).await.map_err(body_error)?;
        // serde would read the fields of a list by their order.
        let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        if begins.is_some_and(|byte| *byte == b'[') {
            return Err(ApiError::Invalid(
                "The body is a list; a JSON object is expected.".to_owned(),
            ));
        }
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            if matches!(error.inner().classify(), Category::Syntax | Category::Eof) {
                return ApiError::Malformed(format!("The body is not JSON: {}.", error.inner()));
            }
            match path.as_str() {
                "." => ApiError::Invalid(format!("The body does not fit: {}.", error.inner())),
                _ => ApiError::Invalid(format!("The body does not fit at {path}: {}.", error.inner())),
            }
        })?;
        reader
            .end()
            .map_err(|error| ApiError::Malformed(format!("The body goes on after its JSON: {error}.")))?;
        Ok(Self(value))
    }
}

/// What a body that could not be read means.
pub(super) fn body_error(rejection: BytesRejection) -> ApiError {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        ApiError::TooLong
    } else {
        ApiError::Invalid("The body could not be read to its end.".to_owned())
    }
}

/// An id in the path.
pub(super) struct Id<T>(pub(super) T);

impl<T, S> FromRequestParts<S> for Id<T>
where
    T: FromStr,
    T::Err: std::fmt::Display,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| ApiError::Invalid(format!("The address cannot be read: {error}.")))?;
        text.parse()
            .map(Self)
            .map_err(|error: T::Err| ApiError::Invalid(format!("{error}.")))
    }
}

/// Parameters behind the `?`.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        axum::extract::Query::<T>::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|error| ApiError::Invalid(format!("{}.", error.body_text())))
    }
}
