//! What is read, and that nothing inside is reached, directly or over a redirect.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::tool::test_support::{call, quiet_context};

/// In these tests one address stands for the public web; others of this machine are private as ever.
fn only_first(address: IpAddr) -> bool {
    address == IpAddr::from([127, 0, 0, 1])
}

/// A server on this machine; gives its port.
async fn serve() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = |to: String| get(move || async move { Redirect::temporary(&to) });
    let long = "x".repeat(LARGEST_PAGE + 10);
    let router = Router::new()
        .route("/", get(|| async { Html("<h1>Hé</h1>") }))
        .route("/long", get(move || async move { long }))
        .route("/away", to("/".to_owned()))
        .route("/loop", to("/loop".to_owned()))
        .route("/inside", to(format!("http://127.0.0.2:{port}/")))
        .route("/name", to(format!("http://localhost:{port}/")))
        .route("/file", to("file:///etc/passwd".to_owned()))
        .route("/lost", get(|| async { (StatusCode::FOUND, "") }))
        .route(
            "/gone",
            get(|| async { (StatusCode::NOT_FOUND, "  no such\n page ") }),
        )
        .route(
            "/image",
            get(|| async { ([(CONTENT_TYPE, "image/png")], vec![0_u8, 1, 2]) }),
        )
        .route("/never", get(std::future::pending::<()>));
    tokio::spawn(axum::serve(listener, router).into_future());
    port
}

async fn fetch(url: &str) -> Result<Value, ToolError> {
    let tool = FetchUrl::reaching(only_first).unwrap();
    let output = call(&tool, json!({ "url": url })).await?;
    assert_eq!(output.media_type, "application/json");
    Ok(serde_json::from_str(&output.text).unwrap())
}

#[tokio::test]
async fn a_page_is_read_with_its_status_and_type_also_over_a_redirect() {
    let port = serve().await;
    for path in ["/", "/away"] {
        let page = fetch(&format!("http://127.0.0.1:{port}{path}")).await.unwrap();
        assert_eq!(page["url"], format!("http://127.0.0.1:{port}/"));
        assert_eq!(page["status"], 200);
        assert_eq!(page["content_type"], "text/html; charset=utf-8");
        assert_eq!(page["text"], "<h1>Hé</h1>");
    }
}

#[tokio::test]
async fn a_long_page_is_cut_and_says_so() {
    let port = serve().await;
    let page = fetch(&format!("http://127.0.0.1:{port}/long")).await.unwrap();
    let text = page["text"].as_str().unwrap();
    assert!(text.ends_with("x\n[Cut after 1.0 MiB.]\n"));
    assert!(text.len() < LARGEST_PAGE + 100);
}

#[tokio::test]
async fn nothing_inside_is_reached_by_address_by_name_or_by_redirect() {
    let port = serve().await;
    for url in [
        format!("http://127.0.0.2:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        format!("http://0x7f000002:{port}/"),
        format!("http://2130706434:{port}/"),
        format!("http://127.0.0.1:{port}/inside"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://10.0.0.1/".to_owned(),
    ] {
        assert_eq!(fetch(&url).await.unwrap_err().code, "private_address", "{url}");
    }
    // A name is looked at once it is resolved, also behind a redirect.
    let tool = FetchUrl::new().unwrap();
    let url = format!("http://localhost:{port}/");
    let error = call(&tool, json!({ "url": url })).await.unwrap_err();
    assert_eq!(error.code, "private_address", "{error}");
    let tool = FetchUrl::reaching(|address| address == IpAddr::from([127, 0, 0, 3])).unwrap();
    let url = format!("http://127.0.0.3:{port}/name");
    let error = call(&tool, json!({ "url": url })).await.unwrap_err();
    assert_eq!(error.code, "private_address", "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let port = serve().await;
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for (url, code) in [
        ("".to_owned(), "invalid_url"),
        ("example.org/page".to_owned(), "invalid_url"),
        ("file:///etc/passwd".to_owned(), "invalid_url"),
        ("ftp://example.org/".to_owned(), "invalid_url"),
        ("http://me:secret@127.0.0.1/".to_owned(), "invalid_url"),
        (
            format!("http://127.0.0.1/{}", "x".repeat(LONGEST_URL)),
            "invalid_url",
        ),
        (format!("http://127.0.0.1:{port}/file"), "invalid_url"),
        (format!("http://127.0.0.1:{port}/loop"), "too_many_redirects"),
        (format!("http://127.0.0.1:{port}/lost"), "invalid_redirect"),
        (format!("http://127.0.0.1:{port}/gone"), "http_error"),
        (format!("http://127.0.0.1:{port}/image"), "not_text"),
        (format!("http://127.0.0.1:{closed}/"), "unreachable"),
        ("http://name.invalid/".to_owned(), "unreachable"),
    ] {
        let error = fetch(&url).await.unwrap_err();
        assert_eq!(error.code, code, "{url}: {error}");
    }
    let gone = fetch(&format!("http://127.0.0.1:{port}/gone")).await.unwrap_err();
    assert!(
        gone.message.ends_with("answers 404 Not Found: no such page"),
        "{gone}"
    );
}

#[tokio::test]
async fn a_cancelled_call_returns_while_the_page_does_not_come() {
    let port = serve().await;
    let tool = FetchUrl::reaching(only_first).unwrap();
    let context = quiet_context();
    let url = format!("http://127.0.0.1:{port}/never");
    let fetching = tool.call(json!({ "url": url }), &context);
    let (fetched, ()) = tokio::join!(fetching, async { context.cancel.cancel() });
    assert_eq!(fetched, Err(ToolError::cancelled()));
}
