//! Who may use this server.
//!
//! On loopback without a token: whoever reaches it, from this server's own page or from a program. With a token
//! (which every other address needs): who shows it, by a cookie that the sign-in form gives, or as `Bearer`.
//! In both cases a page of another site can neither read nor change anything.

use std::time::Duration;

use axum::extract::{Form, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use super::AppState;
use super::error::ApiError;
use crate::provider::Secret;

/// The name of the cookie.
const COOKIE: &str = "runloom_session";

/// The address of the sign-in form.
const SIGN_IN: &str = "/sign-in";

/// How long the answer to a wrong token takes.
const WRONG_TOKEN_DELAY: Duration = Duration::from_secs(1);

/// So many wrong tokens are answered at once.
const WRONG_TOKENS: usize = 8;

/// Who may use this server.
#[derive(Debug)]
pub struct Access {
    token: Option<Secret>,
    /// Places for those who showed a wrong token and wait for their answer.
    wrong: Semaphore,
}

impl Access {
    /// With a token everybody has to show it.
    pub fn new(token: Option<Secret>) -> Self {
        Self {
            token,
            wrong: Semaphore::new(WRONG_TOKENS),
        }
    }

    /// A wrong token was shown: the answer takes its time, so that guessing does. Of many at once most are turned away.
    async fn slow_down(&self) -> Result<(), ApiError> {
        let _place = self.wrong.try_acquire().map_err(|_| ApiError::TooManyTokens)?;
        tracing::warn!("a wrong token was shown");
        tokio::time::sleep(WRONG_TOKEN_DELAY).await;
        Ok(())
    }

    /// What the cookie holds: it proves that the token was shown, without being the token.
    fn cookie(token: &Secret) -> String {
        protocol::digest::sha256(format!("runloom cookie\u{1f}{}", token.expose()).as_bytes())
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let bearer = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, bearer)| bearer);
        if let Some(bearer) = bearer {
            return equal(bearer.trim(), token.expose());
        }
        let expected = Self::cookie(token);
        cookies(headers).any(|(name, value)| name == COOKIE && equal(value, &expected))
    }

    /// Without a token the address that was asked for has to be this machine's own: a name of another site that
    /// points to this machine is not.
    fn is_own_address(&self, headers: &HeaderMap) -> bool {
        if self.token.is_some() {
            return true;
        }
        let Some(host) = headers.get(header::HOST).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || name
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

/// Compares without telling by its time where two texts differ.
fn equal(left: &str, right: &str) -> bool {
    left.as_bytes().ct_eq(right.as_bytes()).into()
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(header::COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Whether a browser says that the request comes from this server's own page; programs say nothing.
fn is_own_origin(headers: &HeaderMap) -> bool {
    if headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "cross-site")
    {
        return false;
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .map(|(_, host)| host);
    origin.is_some() && origin == host
}

/// Guards every page, call and socket.
pub(super) async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_changing = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is_socket = headers.contains_key(header::UPGRADE);
    if !state.access.is_own_address(headers) {
        let words = "Without a token this server answers only under the address of this machine itself.";
        return ApiError::Forbidden(words.to_owned()).into_response();
    }
    if (is_changing || is_socket) && !is_own_origin(headers) {
        return ApiError::Forbidden("The request comes from the page of another site.".to_owned())
            .into_response();
    }
    let path = request.uri().path();
    if path == SIGN_IN {
        return sign_in(&state, request).await;
    }
    // The style sheet is no secret, and the sign-in form needs it.
    if state.access.admits(headers) || path == "/pkg/runloom.css" {
        return next.run(request).await;
    }
    if headers.contains_key(header::AUTHORIZATION)
        && let Err(error) = state.access.slow_down().await
    {
        return error.into_response();
    }
    if path.starts_with("/api/") || is_changing {
        let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
        return (challenge, ApiError::Unauthorized).into_response();
    }
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    if asked == "/" {
        return Redirect::to(SIGN_IN).into_response();
    }
    let next = utf8_percent_encode(asked, NON_ALPHANUMERIC);
    Redirect::to(&format!("{SIGN_IN}?next={next}")).into_response()
}

/// Where to go after signing in: an address of this server's own page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    next: String,
}

impl Wanted {
    fn address(&self) -> &str {
        let is_own = self.next.starts_with('/')
            && !self.next.starts_with("//")
            && !self
                .next
                .contains(|character: char| character == '\\' || character.is_control());
        if is_own && !self.next.starts_with(SIGN_IN) {
            &self.next
        } else {
            "/"
        }
    }
}

/// Fields of the sign-in form.
#[derive(Debug, Deserialize)]
struct SignIn {
    token: String,
    #[serde(flatten)]
    wanted: Wanted,
}

async fn sign_in(state: &AppState, request: Request) -> Response {
    let Some(token) = &state.access.token else {
        return Redirect::to("/").into_response();
    };
    if request.method() != Method::POST {
        let wanted = Query::<Wanted>::try_from_uri(request.uri()).unwrap_or_default().0;
        return form(StatusCode::OK, "", &wanted);
    }
    use axum::extract::FromRequest as _;
    let Ok(Form(SignIn { token: shown, wanted })) = Form::from_request(request, &()).await else {
        let problem = "The form could not be read.";
        return form(StatusCode::UNPROCESSABLE_ENTITY, problem, &Wanted::default());
    };
    if !equal(shown.trim(), token.expose()) {
        if let Err(error) = state.access.slow_down().await {
            return form(StatusCode::TOO_MANY_REQUESTS, &error.to_string(), &wanted);
        }
        return form(
            StatusCode::UNAUTHORIZED,
            "This is not the token that the server was started with.",
            &wanted,
        );
    }
    let cookie = format!(
        "{COOKIE}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000",
        Access::cookie(token)
    );
    ([(header::SET_COOKIE, cookie)], Redirect::to(wanted.address())).into_response()
}

fn form(status: StatusCode, problem: &str, wanted: &Wanted) -> Response {
    let next = wanted
        .address()
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let note = match problem {
        "" => String::new(),
        problem => format!("<p class=\"field__note field__note--bad\" role=\"alert\">{problem}</p>"),
    };
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Sign in · Runloom</title>\
         <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/pkg/runloom.css\"></head>\
         <body><main class=\"page page--narrow\"><h1 class=\"page__h\">Sign in to Runloom</h1>\
         <form method=\"post\" action=\"{SIGN_IN}\" class=\"signin\">\
         <input type=\"hidden\" name=\"next\" value=\"{next}\"><label for=\"token\">Token</label>\
         <span class=\"field\"><input id=\"token\" name=\"token\" type=\"password\" required autofocus \
         autocomplete=\"current-password\"></span>{note}\
         <button type=\"submit\" class=\"btn btn--primary\">Sign in</button></form>\
         <p class=\"field__note\">The token is the value of RUNLOOM_TOKEN with which the server was started.</p>\
         </main></body></html>"
    );
    let policy =
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'";
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, html).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    header::HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    fn guarded() -> Access {
        Access::new(Some(Secret::new("a token of some length")))
    }

    #[test]
    fn the_token_admits_as_bearer_and_as_cookie_and_nothing_else_does() {
        let access = guarded();
        let cookie = format!(
            "x=y; {COOKIE}={}",
            Access::cookie(&Secret::new("a token of some length"))
        );
        assert!(access.admits(&headers(&[("authorization", "Bearer a token of some length")])));
        assert!(access.admits(&headers(&[("authorization", "bearer a token of some length")])));
        assert!(access.admits(&headers(&[("cookie", &cookie)])));
        assert!(!access.admits(&headers(&[])));
        assert!(!access.admits(&headers(&[("authorization", "Bearer another")])));
        assert!(!access.admits(&headers(&[("cookie", "runloom_session=a token of some length")])));
    }

    #[test]
    fn after_signing_in_only_pages_of_this_server_are_gone_to() {
        for (next, address) in [
            ("/s/ses_1?node=call_1", "/s/ses_1?node=call_1"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nb", "/"),
            ("/sign-in", "/"),
        ] {
            let wanted = Wanted {
                next: next.to_owned(),
            };
            assert_eq!(wanted.address(), address, "{next}");
        }
    }

    #[test]
    fn the_cookie_does_not_hold_the_token() {
        assert!(!Access::cookie(&Secret::new("a token of some length")).contains("token"));
    }

    #[test]
    fn another_sites_page_is_no_own_origin() {
        assert!(is_own_origin(&headers(&[("host", "127.0.0.1:3000")])));
        assert!(is_own_origin(&headers(&[
            ("host", "127.0.0.1:3000"),
            ("origin", "http://127.0.0.1:3000")
        ])));
        assert!(!is_own_origin(&headers(&[
            ("host", "127.0.0.1:3000"),
            ("origin", "http://evil.example")
        ])));
        assert!(!is_own_origin(&headers(&[
            ("host", "127.0.0.1:3000"),
            ("origin", "null")
        ])));
        assert!(!is_own_origin(&headers(&[
            ("host", "127.0.0.1:3000"),
            ("sec-fetch-site", "cross-site")
        ])));
    }

    #[test]
    fn without_a_token_only_this_machines_own_names_are_answered() {
        let access = Access::new(None);
        for own in [
            "localhost:3000",
            "127.0.0.1:3000",
            "[::1]:3000",
            "LOCALHOST",
            "127.0.0.1",
        ] {
            assert!(access.is_own_address(&headers(&[("host", own)])), "{own}");
        }
        for other in ["evil.example:3000", "127.0.0.1.evil.example", "10.0.0.1:3000", ""] {
            assert!(!access.is_own_address(&headers(&[("host", other)])), "{other}");
        }
        assert!(guarded().is_own_address(&headers(&[("host", "runloom.example")])));
    }
}
