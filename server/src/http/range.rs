//! Contents by range (RFC 9110 §14): one range of bytes, which may begin or end within a character.

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use crate::store::content::{Kept, Length};

/// What is to be answered.
enum Answer {
    Whole,
    Part(Range<u64>),
    NotModified,
}

/// Decides what is answered to a request for a content of this length, which may have a tag.
fn decide(headers: &HeaderMap, length: u64, tag: Option<&str>) -> Result<Answer, ApiError> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let fits = |tags: &str, tag: &str| {
        let mut tags = tags.split(',').map(str::trim);
        tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
    };
    if let (Some(tag), Some(known)) = (tag, text(header::IF_NONE_MATCH))
        && fits(known, tag)
    {
        return Ok(Answer::NotModified);
    }
    // Of another version a part would not fit what the asker has.
    if text(header::IF_RANGE).is_some_and(|wanted| tag != Some(wanted.trim())) {
        return Ok(Answer::Whole);
    }
    match text(header::RANGE).and_then(|value| parse(value, length)) {
        None => Ok(Answer::Whole),
        Some(None) => Err(ApiError::Range { bytes: length }),
        Some(Some((first, last))) => Ok(Answer::Part(first..last + 1)),
    }
}

fn answer(
    headers: &HeaderMap,
    length: u64,
    tag: Option<&str>,
    body: impl FnOnce(Range<u64>) -> Body,
) -> Result<Response, ApiError> {
    let (status, range) = match decide(headers, length, tag)? {
        Answer::Whole => (StatusCode::OK, 0..length),
        Answer::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Answer::NotModified => (StatusCode::NOT_MODIFIED, 0..0),
    };
    let told = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1)));
    let bytes = range.end - range.start;
    let mut response = match status {
        StatusCode::NOT_MODIFIED => status.into_response(),
        _ => (status, body(range)).into_response(),
    };
    let kept = if tag.is_some() {
        "private, no-cache"
    } else {
        "no-store"
    };
    let mut put = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    put(header::CACHE_CONTROL, kept);
    put(header::ACCEPT_RANGES, "bytes");
    if let Some(tag) = tag {
        put(header::ETAG, tag);
    }
    if status != StatusCode::NOT_MODIFIED {
        put(header::CONTENT_TYPE, "text/plain; charset=utf-8");
        put(header::CONTENT_LENGTH, &bytes.to_string());
    }
    if let Some(told) = told {
        put(header::CONTENT_RANGE, &told);
    }
    Ok(response)
}

/// A content that is at hand, or the part of it that `Range` asks for.
pub(super) fn ranged(bytes: &[u8], headers: &HeaderMap) -> Result<Response, ApiError> {
    answer(headers, bytes.len() as u64, None, |range| {
        // Both lie within the content, so they fit a usize.
        let part = bytes.get(range.start as usize..range.end as usize);
        Body::from(part.unwrap_or_default().to_vec())
    })
}

/// A content of the record, or the part of it that `Range` asks for: sent as it is read, a few pieces at a time.
pub(super) fn kept_range(kept: Kept, headers: &HeaderMap) -> Result<Response, ApiError> {
    let tag = match kept.length() {
        Length::Closed {
            sha256: Some(sha256), ..
        } => Some(format!("\"{sha256}\"")),
        Length::Closed { sha256: None, .. } | Length::Open { .. } => None,
    };
    let length = kept.bytes();
    answer(headers, length, tag.as_deref(), |range| {
        Body::from_stream(kept.range(range))
    })
}

/// Reads a header `Range` (RFC 9110 §14). None: it is not one range of bytes, so it is ignored. `Some(None)`: it lies
/// outside of the content.
fn parse(value: &str, length: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = value.strip_prefix("bytes=")?.trim().split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", "") => return None,
        ("", suffix) => {
            let suffix: u64 = suffix.parse().ok()?;
            (suffix > 0 && length > 0).then(|| (length.saturating_sub(suffix), length - 1))
        }
        (first, "") => {
            let first: u64 = first.parse().ok()?;
            (first < length).then(|| (first, length - 1))
        }
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if first > last {
                return None;
            }
            (first < length).then(|| (first, last.min(length - 1)))
        }
    };
    Some(range)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_range_is_read_as_rfc_9110_says() {
        assert_eq!(parse("bytes=0-3", 10), Some(Some((0, 3))));
        assert_eq!(parse("bytes=4-", 10), Some(Some((4, 9))));
        assert_eq!(parse("bytes=-3", 10), Some(Some((7, 9))));
        assert_eq!(parse("bytes=-30", 10), Some(Some((0, 9))));
        assert_eq!(parse("bytes=5-99", 10), Some(Some((5, 9))));
        assert_eq!(parse("bytes=10-", 10), Some(None));
        assert_eq!(parse("bytes=-0", 10), Some(None));
        assert_eq!(parse("bytes=0-0", 0), Some(None));
        for ignored in [
            "bytes=3-1",
            "bytes=a-b",
            "lines=0-1",
            "bytes=0-1,3-4",
            "bytes=-",
            "",
        ] {
            assert_eq!(parse(ignored, 10), None, "{ignored}");
        }
    }
}
