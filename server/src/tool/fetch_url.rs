//! `fetch_url`: reads a page of the public web.
//!
//! Only public addresses are asked: each host's addresses are looked at after they were resolved, by the resolver that
//! the connection itself uses, so that no second answer of the name service can lead elsewhere; and so at each redirect.

mod address;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{StatusCode, Url};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{decode, schema_of};
use super::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput, words};
use crate::provider::install_crypto_provider;

/// The most bytes of a page that are read.
const LARGEST_PAGE: usize = 1024 * 1024;

/// The longest address.
const LONGEST_URL: usize = 4 * 1024;

/// Redirects that are followed.
const MOST_REDIRECTS: usize = 5;

/// How long everything may take.
const TIME: Duration = Duration::from_secs(30);

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The characters of an error page that are told.
const TOLD_OF_ERROR: usize = 300;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The address of the page, with `https://` or `http://`.
    url: String,
}

/// Whether an address may be asked.
type MayReach = fn(IpAddr) -> bool;

/// The tool `fetch_url`.
pub struct FetchUrl {
    info: ToolInfo,
    http: reqwest::Client,
    may_reach: MayReach,
}

impl FetchUrl {
    /// The tool, for public addresses.
    ///
    /// # Errors
    /// When the HTTP client cannot start.
    pub fn new() -> Result<Self, reqwest::Error> {
        Self::reaching(address::is_public)
    }

    fn reaching(may_reach: MayReach) -> Result<Self, reqwest::Error> {
        install_crypto_provider();
        let http = reqwest::Client::builder()
            // A proxy would resolve names by itself.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(Resolver { may_reach }))
            .connect_timeout(CONNECT_TIME)
            .pool_max_idle_per_host(0)
            .user_agent(concat!("runloom/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let info = ToolInfo {
            name: "fetch_url".to_owned(),
            description: format!(
                "Reads a page of the public web by its address: text, HTML as it is, or JSON, at most {}. Follows \
                 redirects. Addresses of private networks are not reached.",
                words::size(LARGEST_PAGE as u64)
            ),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::ParallelSafe,
            mutating: false,
            exposure: Exposure::Full,
        };
        Ok(Self {
            info,
            http,
            may_reach,
        })
    }

    /// Reads a page, over its redirects.
    async fn fetch(&self, url: &str) -> Result<ToolOutput, ToolError> {
        let mut url = read_url(url)?;
        for _ in 0..=MOST_REDIRECTS {
            self.check(&url)?;
            let response = self.http.get(url.clone()).send().await;
            let response = response.map_err(|error| unreachable(&url, &error))?;
            let status = response.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return page(&url, response).await;
            }
            url = redirect(&url, response.headers())?;
        }
        Err(ToolError::new(
            "too_many_redirects",
            format!("The page redirects more than {MOST_REDIRECTS} times; the last address was {url}."),
        ))
    }

    /// A host that is written as an address is not resolved, so it is looked at here.
    fn check(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ToolError::new(
                "invalid_url",
                format!("`{}:` is not read: only `http:` and `https:` are.", url.scheme()),
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ToolError::new(
                "invalid_url",
                "An address with a name and a password is not read.",
            ));
        }
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let Ok(address) = bare.parse::<IpAddr>() else {
            return Ok(());
        };
        if (self.may_reach)(address) {
            return Ok(());
        }
        Err(private(&address.to_string()))
    }
}

impl Tool for FetchUrl {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        read_url(&arguments.url).map(drop)
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: Arguments = decode(&arguments)?;
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => Err(ToolError::cancelled()),
                fetched = tokio::time::timeout(TIME, self.fetch(&arguments.url)) => fetched.unwrap_or_else(|_| {
                    Err(ToolError::new(
                        "timed_out",
                        format!("The page did not come within {} s.", TIME.as_secs()),
                    ))
                }),
            }
        })
    }
}

/// Resolves names to those of their addresses that may be asked.
struct Resolver {
    may_reach: MayReach,
}

/// A name has no address that may be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0} has no public address")]
struct NotPublic(String);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let may_reach = self.may_reach;
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            // One that is not public is reason enough: a name that has both is made to lead inside.
            if found.is_empty() || !found.iter().all(|address| may_reach(address.ip())) {
                return Err(NotPublic(host.to_owned()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn read_url(text: &str) -> Result<Url, ToolError> {
    let invalid = |words: String| ToolError::new("invalid_url", words);
    if text.len() > LONGEST_URL {
        return Err(invalid(format!(
            "The address has {} bytes; at most {LONGEST_URL} are taken.",
            text.len()
        )));
    }
    let shown: String = text.chars().take(100).collect();
    Url::parse(text.trim()).map_err(|error| {
        invalid(format!(
            "`{shown}` is not an address ({error}): give it whole, such as `https://example.org/page`."
        ))
    })
}

fn redirect(from: &Url, headers: &HeaderMap) -> Result<Url, ToolError> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let next = location.and_then(|location| from.join(location).ok());
    next.filter(|next| next.as_str().len() <= LONGEST_URL)
        .ok_or_else(|| {
            ToolError::new(
                "invalid_redirect",
                format!("{from} redirects without saying where to."),
            )
        })
}

fn private(host: &str) -> ToolError {
    ToolError::new(
        "private_address",
        format!(
            "`{host}` is not on the public web: addresses of this machine and of private networks are not reached."
        ),
    )
}

fn unreachable(url: &Url, error: &reqwest::Error) -> ToolError {
    let mut source = std::error::Error::source(error);
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(NotPublic(host)) = cause.downcast_ref::<NotPublic>() {
            return private(host);
        }
        last = cause.to_string();
        source = cause.source();
    }
    ToolError::new("unreachable", format!("{url} cannot be reached: {last}."))
}

/// The page as the view of the web shows it: address, status, type and text.
async fn page(url: &Url, response: reqwest::Response) -> Result<ToolOutput, ToolError> {
    let status = response.status();
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or("text/plain")
        .to_owned();
    let media_type = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if status.is_success() && !is_text(&media_type) {
        return Err(ToolError::new(
            "not_text",
            format!("{url} is {media_type}; only text can be read."),
        ));
    }
    let mut bytes = Vec::new();
    let mut is_whole = true;
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| unreachable(url, &error))?;
        let room = LARGEST_PAGE - bytes.len();
        bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            is_whole = false;
            break;
        }
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !status.is_success() {
        let told: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told: String = told.chars().take(TOLD_OF_ERROR).collect();
        return Err(ToolError::new(
            "http_error",
            format!("{url} answers {status}: {told}"),
        ));
    }
    if !is_whole {
        text.push_str(&format!("\n[Cut after {}.]\n", words::size(LARGEST_PAGE as u64)));
    }
    let page = json!({
        "url": url.as_str(),
        "status": status.as_u16(),
        "content_type": content_type,
        "text": text,
    });
    Ok(ToolOutput {
        text: page.to_string(),
        media_type: "application/json".to_owned(),
        exit_code: None,
    })
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml"]
            .iter()
            .any(|kind| media_type.ends_with(kind))
}

#[cfg(test)]
mod tests;
