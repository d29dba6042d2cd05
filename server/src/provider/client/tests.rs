use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::clock::ManualClock;

const KEY: &str = "sk-very-secret-key";

fn client() -> ProviderClient {
    ProviderClient::new(Arc::new(ManualClock::at(0))).expect("a client")
}

fn request(url: String) -> WireRequest {
    WireRequest {
        url,
        headers: std::collections::BTreeMap::from([("content-type", "application/json".to_owned())]),
        auth: Some(("authorization", Secret::new(format!("Bearer {KEY}")))),
        body: json!({"model":"m"}),
    }
}

/// Reads one request to the end of its body and gives its head.
async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = socket.read(&mut part).await.expect("reads");
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body == "{\"model\":\"m\"}"
        {
            return head.to_ascii_lowercase();
        }
        assert!(count > 0, "the request is whole: {text}");
    }
}

/// A server that answers one request with fixed bytes and closes. Gives the address and the request's head.
async fn answering(answer: Vec<u8>) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!(
        "http://{}/v1/chat/completions",
        listener.local_addr().expect("an address")
    );
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("accepts");
        let head = read_request(&mut socket).await;
        socket.write_all(&answer).await.expect("writes");
        socket.shutdown().await.expect("closes");
        head
    });
    (url, server)
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// What the client makes of an answer: the body, or the error, which is also found when it comes with the first bytes.
async fn result_of(answer: Vec<u8>) -> Result<Vec<u8>, ProviderError> {
    let (url, server) = answering(answer).await;
    let mut stream = match client().open(&request(url), &CancellationToken::new()).await {
        Ok(stream) => stream,
        Err(error) => return Err(error),
    };
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        body.extend_from_slice(&chunk?);
    }
    server.await.expect("the server ends");
    Ok(body)
}

#[tokio::test]
async fn a_stream_comes_as_it_is_and_the_request_asks_for_no_compression() {
    let body = "\u{feff}\n: hi\n\ndata: {}\n\n";
    let (url, server) = answering(answer("200 OK", "content-type: text/event-stream\r\n", body)).await;
    let mut stream = client()
        .open(&request(url), &CancellationToken::new())
        .await
        .expect("opens");
    let mut received = Vec::new();
    while let Some(chunk) = stream.next().await {
        received.extend_from_slice(&chunk.expect("a chunk"));
    }
    assert_eq!(received, body.as_bytes());
    let head = server.await.expect("the server ends");
    assert!(
        head.contains("accept-encoding: identity") && head.contains(KEY),
        "{head}"
    );
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_an_error_by_status_or_by_its_first_bytes() {
    let html = "<!doctype html><title>Sign in</title>";
    let json_error = r#"{"error":{"message":"no such model","type":"not_found_error"}}"#;
    let completion = r#"{"choices":[{"message":{"content":"Hi"}}]}"#;
    let cases = [
        (
            answer("200 OK", "content-type: text/html\r\n", html),
            ProviderErrorClass::Protocol,
            "Sign in",
        ),
        (
            answer("200 OK", "content-type: text/event-stream\r\n", html),
            ProviderErrorClass::Protocol,
            "HTML",
        ),
        (
            answer("200 OK", "content-type: application/json\r\n", json_error),
            ProviderErrorClass::NotFound,
            "no such model",
        ),
        (
            answer("200 OK", "content-type: text/event-stream\r\n", json_error),
            ProviderErrorClass::NotFound,
            "no such model",
        ),
        (
            answer("200 OK", "content-type: application/json\r\n", completion),
            ProviderErrorClass::Protocol,
            "one JSON document",
        ),
        (
            answer("200 OK", "", completion),
            ProviderErrorClass::Protocol,
            "one JSON document",
        ),
        (
            answer("404 Not Found", "content-type: text/event-stream\r\n", json_error),
            ProviderErrorClass::NotFound,
            "no such model",
        ),
        (
            answer("401 Unauthorized", "", r#"{"error":{"message":"bad key"}}"#),
            ProviderErrorClass::Authentication,
            "bad key",
        ),
        (
            answer("500 Internal Server Error", "", "boom"),
            ProviderErrorClass::Server,
            "boom",
        ),
        (
            answer("502 Bad Gateway", "content-type: text/html\r\n", html),
            ProviderErrorClass::Server,
            "Sign in",
        ),
        (
            answer("302 Found", "location: https://else.where/login?token=x\r\n", ""),
            ProviderErrorClass::InvalidRequest,
            "https://else.where/login;",
        ),
    ];
    for (answer, class, words) in cases {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let error = result_of(answer).await.expect_err("an error");
        assert_eq!(error.class, class, "{shown}\n{error}");
        assert!(error.message.contains(words), "{shown}\n{error}");
        assert!(error.status.is_some());
    }
}

#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    for (header, wait) in [
        ("retry-after: 7\r\n", Some(7_000)),
        ("retry-after: 0.5\r\n", Some(500)),
        ("retry-after-ms: 30\r\nretry-after: 7\r\n", Some(30)),
        ("retry-after: Thu, 01 Jan 1970 00:00:09 GMT\r\n", Some(9_000)),
        ("", None),
    ] {
        let error = result_of(answer(
            "429 Too Many Requests",
            header,
            r#"{"error":{"message":"slow"}}"#,
        ))
        .await;
        let error = error.expect_err("an error");
        assert_eq!(
            (error.class, error.retry_after_ms, error.status),
            (ProviderErrorClass::RateLimited, wait, Some(429))
        );
    }
}

#[tokio::test]
async fn a_large_error_answer_is_read_in_part_only() {
    let error = result_of(answer("400 Bad Request", "", &"x".repeat(1024 * 1024)))
        .await
        .expect_err("an error");
    assert!(error.message.len() < 10_000, "{}", error.message.len());
}

#[tokio::test]
async fn the_key_is_in_no_error() {
    let echo = format!(r#"{{"error":{{"message":"wrong key {KEY} given"}}}}"#);
    let error = result_of(answer("401 Unauthorized", "", &echo))
        .await
        .expect_err("an error");
    assert!(
        error.message.contains("[key]") && !format!("{error:?}").contains(KEY),
        "{error:?}"
    );
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    for url in [
        format!("http://user:{KEY}@{address}/?key={KEY}"),
        format!("not an address {KEY}"),
    ] {
        let error = client()
            .open(&request(url), &CancellationToken::new())
            .await
            .expect_err("an error");
        assert!(!format!("{error:?} {error}").contains(KEY), "{error:?}");
    }
}

#[tokio::test]
async fn an_address_that_nobody_serves_is_a_connect_error() {
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/", closed.local_addr().expect("an address"));
    drop(closed);
    let error = client()
        .open(&request(url), &CancellationToken::new())
        .await
        .expect_err("an error");
    assert_eq!(
        (error.class, error.status),
        (ProviderErrorClass::Connect, None),
        "{error}"
    );
}

#[tokio::test]
async fn a_connection_that_is_cut_in_the_stream_is_broken_and_keeps_what_came() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\ndata: 1\n\n"
        .to_vec();
    let (url, server) = answering(cut).await;
    let mut stream = client()
        .open(&request(url), &CancellationToken::new())
        .await
        .expect("opens");
    assert_eq!(
        stream.next().await.expect("a chunk").expect("whole"),
        "data: 1\n\n"
    );
    let error = stream.next().await.expect("an error").expect_err("cut");
    assert_eq!(error.class, ProviderErrorClass::Broken, "{error}");
    assert!(stream.next().await.is_none());
    server.await.expect("the server ends");
}

#[tokio::test]
async fn a_cancel_before_the_answer_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("accepts");
        read_request(&mut socket).await;
        token.cancel();
        // Reading ends only when the other side has closed.
        socket.read(&mut [0; 16]).await
    });
    let error = client()
        .open(&request(url), &cancel)
        .await
        .expect_err("cancelled");
    assert!(error.message.contains("cancelled"), "{error}");
    assert!(matches!(server.await.expect("the server ends"), Ok(0) | Err(_)));
}

#[test]
fn the_source_of_cryptography_may_be_installed_twice() {
    install_crypto_provider();
    install_crypto_provider();
}

#[test]
fn an_address_is_shown_without_user_query_and_fragment() {
    assert_eq!(address_for_display("https://u:p@h/v1?key=k#f"), "https://h/v1");
    assert_eq!(address_for_display("/relative?key=k"), "/relative");
}
