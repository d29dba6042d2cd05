//! The page's own files (script, wasm, style), carried inside the binary.
//!
//! A file is sent in the best encoding that the client takes and that was made at build time. Names carry no hash,
//! so every answer is `no-cache` with a strong entity tag: a client asks each time and gets 304 while nothing changed.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

#[cfg(test)]
mod tests;
#[cfg(debug_assertions)]
mod watch;

mod table {
    use super::EmbeddedFile;

    include!(concat!(env!("OUT_DIR"), "/site.rs"));
}

/// One file as the build script wrote it down.
struct EmbeddedFile {
    path: &'static str,
    etag: &'static str,
    bytes: &'static [u8],
    br: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// One of the page's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// The content as it is.
    pub bytes: Bytes,
    /// The media type, with its charset where it is text.
    pub content_type: String,
    /// Tells versions of the content apart: hexadecimal, without quotes.
    pub etag: String,
    /// The content compressed with brotli, where the build made it.
    pub br: Option<Bytes>,
    /// The content compressed with gzip, where the build made it.
    pub gzip: Option<Bytes>,
}

/// The file that is served at `path`, such as `/pkg/runloom.js`.
///
/// A development build that `cargo leptos watch` started takes it from the watched folder instead of the binary.
pub fn asset(path: &str) -> Option<Asset> {
    #[cfg(debug_assertions)]
    if let Some(folder) = watch::Folder::from_env() {
        return folder.asset(path);
    }
    let file = table::FILES.iter().find(|file| file.path == path)?;
    Some(Asset {
        bytes: Bytes::from_static(file.bytes),
        content_type: content_type(path),
        etag: file.etag.to_owned(),
        br: file.br.map(Bytes::from_static),
        gzip: file.gzip.map(Bytes::from_static),
    })
}

/// Handler for `GET` and `HEAD` of `/pkg/{*path}`: the file at the request's path, or 404.
pub async fn serve(uri: Uri, headers: HeaderMap) -> Response {
    match asset(uri.path()) {
        Some(asset) => respond(&asset, &headers),
        None => (
            StatusCode::NOT_FOUND,
            [(CACHE_CONTROL, "no-cache")],
            "There is no such file.\n",
        )
            .into_response(),
    }
}

/// The answer for one file: in the encoding that suits best, or 304 where the client has it.
fn respond(asset: &Asset, headers: &HeaderMap) -> Response {
    let (encoding, bytes) = negotiate(asset, headers);
    // A strong tag belongs to one sequence of bytes, so each encoding has its own.
    let etag = match encoding {
        Some(encoding) => format!("\"{}-{encoding}\"", asset.etag),
        None => format!("\"{}\"", asset.etag),
    };
    let answer = Response::builder()
        .header(CACHE_CONTROL, "no-cache")
        .header(VARY, "accept-encoding")
        .header(ETAG, &etag);
    let answer = if is_known(headers, &etag) {
        answer.status(StatusCode::NOT_MODIFIED).body(Body::empty())
    } else {
        let answer = match encoding {
            Some(encoding) => answer.header(CONTENT_ENCODING, encoding),
            None => answer,
        };
        answer
            .header(CONTENT_TYPE, &asset.content_type)
            .body(Body::from(bytes))
    };
    answer.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The encoding that the client likes best among those that exist; of equals, the smaller one. Without any: the plain content.
fn negotiate(asset: &Asset, headers: &HeaderMap) -> (Option<&'static str>, Bytes) {
    let offers = [("br", asset.br.as_ref()), ("gzip", asset.gzip.as_ref())];
    let mut best: (f32, Option<&'static str>, &Bytes) = (0.0, None, &asset.bytes);
    for (name, bytes) in offers {
        let weight = weight(headers, name);
        if let Some(bytes) = bytes
            && weight > best.0
        {
            best = (weight, Some(name), bytes);
        }
    }
    (best.1, best.2.clone())
}

/// The weight from 0 to 1 that `Accept-Encoding` gives to `name`; 0 where it is not taken. RFC 9110, section 12.5.3.
fn weight(headers: &HeaderMap, name: &str) -> f32 {
    let mut wildcard = 0.0;
    for item in list(headers, &ACCEPT_ENCODING) {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let weight = parts
            .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .map_or(1.0, |value| value.trim().parse().unwrap_or(0.0));
        if coding.eq_ignore_ascii_case(name) {
            return weight;
        }
        if coding == "*" {
            wildcard = weight;
        }
    }
    wildcard
}

/// Whether `If-None-Match` names `etag`. The comparison is the weak one, as RFC 9110, section 13.1.2, asks.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    list(headers, &IF_NONE_MATCH).any(|known| known == "*" || known.trim_start_matches("W/") == etag)
}

/// The trimmed items of a header that holds a list, which may be spread over several lines.
fn list<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

/// The media type by the ending of the name.
fn content_type(path: &str) -> String {
    let media_type = mime_guess::from_path(path).first_or_octet_stream();
    if media_type.type_() == mime_guess::mime::TEXT {
        format!("{media_type}; charset=utf-8")
    } else {
        media_type.to_string()
    }
}
