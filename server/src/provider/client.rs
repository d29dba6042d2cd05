//! The HTTP client for providers: one connection pool, one request at a time, the answer as bytes.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

use super::{ProviderError, ProviderErrorClass, Secret, WireRequest, error};
use crate::clock::SharedClock;

#[cfg(test)]
mod tests;

/// The most bytes of an answer that is not a stream that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer that is not a stream may take after its status.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes ring the process's source of cryptography. May be called any number of times.
pub fn install_crypto_provider() {
    // An error means that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Sends requests to providers. Cheap to clone.
#[derive(Clone)]
pub struct ProviderClient {
    http: reqwest::Client,
    clock: SharedClock,
}

/// The body of an answer, as bytes. Dropping it closes the connection.
pub struct ByteStream {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    status: u16,
    /// Whether the first byte that is no space still has to be looked at.
    unchecked: bool,
    secret: Option<Secret>,
    ended: bool,
}

impl ProviderClient {
    /// A client without redirects (they would carry keys elsewhere), without a limit on the whole (streams are
    /// long), and without compression (it holds back tokens).
    pub fn new(clock: SharedClock) -> Result<Self, ProviderError> {
        install_crypto_provider();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(Duration::from_secs(30))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(20))
            .user_agent(concat!("runloom/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                transport_error(
                    ProviderErrorClass::Connect,
                    "the HTTP client cannot start",
                    error,
                    None,
                )
            })?;
        Ok(Self { http, clock })
    }

    /// Sends the request and gives the answer's body once its status is good. `cancel` closes the connection at
    /// once; the error then says so.
    pub async fn open(
        &self,
        request: &WireRequest,
        cancel: &CancellationToken,
    ) -> Result<ByteStream, ProviderError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ProviderError::new(ProviderErrorClass::Connect, "the request was cancelled")),
            opened = self.send(request) => opened,
        }
    }

    async fn send(&self, request: &WireRequest) -> Result<ByteStream, ProviderError> {
        let secret = request.auth.as_ref().map(|(_, secret)| secret.clone());
        let body = serde_json::to_vec(&request.body).map_err(|error| {
            ProviderError::new(
                ProviderErrorClass::InvalidRequest,
                format!("the request cannot be written: {error}"),
            )
        })?;
        let sent = self
            .http
            .post(&request.url)
            .headers(header_map(request)?)
            .body(body)
            .send()
            .await;
        let response = sent.map_err(|error| {
            let words = if error.is_builder() {
                "the provider's address is not valid"
            } else if error.is_connect() || error.is_timeout() {
                "the provider cannot be reached"
            } else {
                "the connection broke before an answer"
            };
            let class = if error.is_builder() {
                ProviderErrorClass::InvalidRequest
            } else {
                ProviderErrorClass::Connect
            };
            transport_error(class, words, error, secret.as_ref())
        })?;
        self.check(response, secret).await
    }

    async fn check(
        &self,
        response: reqwest::Response,
        secret: Option<Secret>,
    ) -> Result<ByteStream, ProviderError> {
        let status = response.status();
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let wait = error::retry_after_ms(text("retry-after-ms"), text("retry-after"), self.clock.now_ms());
        let content_type = text("content-type").unwrap_or_default().to_ascii_lowercase();
        let target = text("location").map(str::to_owned);
        let mut stream = ByteStream {
            chunks: response.bytes_stream().boxed(),
            status: status.as_u16(),
            unchecked: true,
            secret,
            ended: false,
        };
        if status.is_success() && !content_type.contains("json") && !content_type.contains("html") {
            return Ok(stream);
        }
        if status.is_redirection() {
            let to = target
                .map(|target| format!(" to {}", address_for_display(&target)))
                .unwrap_or_default();
            let message = format!(
                "HTTP {}: the provider redirects{to}; set that as the base address",
                status.as_u16()
            );
            let error = ProviderError::new(ProviderErrorClass::InvalidRequest, message);
            return Err(ProviderError {
                status: Some(status.as_u16()),
                ..error
            });
        }
        let body = stream.read_whole(Vec::new()).await;
        let error = if status.is_success() {
            error::from_unexpected_body(status.as_u16(), &body)
        } else {
            error::from_http(status.as_u16(), &body, wait)
        };
        Err(without_secret(error, stream.secret.as_ref()))
    }
}

impl ByteStream {
    /// The next chunk; none at the clean end. An error ends the stream. A first byte that no event stream begins
    /// with (`<`, `{`, `[`) makes the answer an error, whatever its content type says.
    pub async fn next(&mut self) -> Option<Result<Bytes, ProviderError>> {
        if self.ended {
            return None;
        }
        match self.chunks.next().await {
            None => {
                self.ended = true;
                None
            }
            Some(Err(error)) => {
                self.ended = true;
                let words = "the connection broke while the answer came";
                Some(Err(transport_error(
                    ProviderErrorClass::Broken,
                    words,
                    error,
                    self.secret.as_ref(),
                )))
            }
            Some(Ok(chunk)) => {
                if self.unchecked
                    && let Some(first) = first_byte(&chunk)
                {
                    self.unchecked = false;
                    if matches!(first, b'<' | b'{' | b'[') {
                        let body = self.read_whole(chunk.to_vec()).await;
                        let error = error::from_unexpected_body(self.status, &body);
                        return Some(Err(without_secret(error, self.secret.as_ref())));
                    }
                }
                Some(Ok(chunk))
            }
        }
    }

    /// Reads on to the end, or to the limit on size or time, and ends the stream.
    async fn read_whole(&mut self, mut body: Vec<u8>) -> String {
        self.ended = true;
        let chunks = &mut self.chunks;
        let reading = async {
            while let Some(Ok(chunk)) = chunks.next().await {
                body.extend_from_slice(&chunk);
                if body.len() >= MAX_ERROR_BYTES {
                    break;
                }
            }
        };
        // What came until then is used.
        let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
        body.truncate(MAX_ERROR_BYTES);
        String::from_utf8_lossy(&body).into_owned()
    }

    /// The same as a boxed stream.
    pub fn into_stream(self) -> BoxStream<'static, Result<Bytes, ProviderError>> {
        futures::stream::unfold(self, |mut bytes| async move {
            bytes.next().await.map(|item| (item, bytes))
        })
        .boxed()
    }
}

fn first_byte(chunk: &[u8]) -> Option<u8> {
    let chunk = chunk.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(chunk);
    chunk.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn header_map(request: &WireRequest) -> Result<HeaderMap, ProviderError> {
    let invalid = |name: &str| {
        ProviderError::new(
            ProviderErrorClass::InvalidRequest,
            format!("the value of the header `{name}` is not valid"),
        )
    };
    let mut headers = HeaderMap::new();
    headers.insert(
        reqwest::header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    for (name, value) in &request.headers {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).map_err(|_| invalid(name))?,
        );
    }
    if let Some((name, secret)) = &request.auth {
        let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| invalid(name))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

/// An error of the transport with its causes, without the address and without the key.
fn transport_error(
    class: ProviderErrorClass,
    words: &str,
    error: reqwest::Error,
    secret: Option<&Secret>,
) -> ProviderError {
    let error = error.without_url();
    // What lies deepest is what happened; the layers above it only say where.
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(inner) = deepest.source() {
        deepest = inner;
    }
    without_secret(ProviderError::new(class, format!("{words}: {deepest}")), secret)
}

/// Providers may repeat a key in their message; it is cut out.
pub(crate) fn without_secret(mut error: ProviderError, secret: Option<&Secret>) -> ProviderError {
    if let Some(clean) = secret.and_then(|secret| text_without_secret(&error.message, secret)) {
        error.message = clean;
    }
    error
}

/// The text with `[key]` in place of the key; none when the key is not in it. A secret that is too short to be a key
/// is left, since it could be part of any word.
pub(crate) fn text_without_secret(text: &str, secret: &Secret) -> Option<String> {
    let value = secret.expose();
    let key = value.strip_prefix("Bearer ").unwrap_or(value);
    (key.len() >= 6 && text.contains(key)).then(|| text.replace(value, "[key]").replace(key, "[key]"))
}

/// An address without what may be secret in it: user, password, query and fragment.
pub fn address_for_display(address: &str) -> String {
    match reqwest::Url::parse(address) {
        Ok(mut url) => {
            // These fail only for addresses that cannot have a user.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.to_string()
        }
        Err(_) => address.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

impl std::fmt::Debug for ProviderClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderClient").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteStream")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
