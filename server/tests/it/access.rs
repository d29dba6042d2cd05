//! Who may use the server.

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use serde_json::json;

use crate::harness::{Setup, TestServer};

const TOKEN: &str = "a-token-of-the-tests-0123456789";

async fn guarded() -> TestServer {
    TestServer::start_with(Setup {
        token: Some(TOKEN),
        ..Setup::default()
    })
    .await
}

/// A request to become a WebSocket.
fn socket(server: &TestServer) -> reqwest::RequestBuilder {
    server
        .http
        .get(format!("{}/api/stream", server.base))
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_token_every_page_call_and_socket_wants_it() {
    let server = guarded().await;
    for (path, form) in [
        ("/", "/sign-in"),
        ("/s/1?node=2", "/sign-in?next=%2Fs%2F1%3Fnode%3D2"),
        ("/nonsense", "/sign-in?next=%2Fnonsense"),
        ("/pkg/runloom.js", "/sign-in?next=%2Fpkg%2Frunloom%2Ejs"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()[LOCATION]),
            (303, &form.parse().unwrap()),
            "{path}"
        );
    }
    for path in [
        "/api/sessions",
        "/api/setup",
        "/api/runs/run_1/snapshot",
        "/api/nonsense",
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status(), 401, "{path}");
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
    for path in ["/api/sessions", "/sessions", "/api/runs/run_1/cancel"] {
        assert_eq!(server.post(path, json!({})).await.status(), 401, "{path}");
    }
    assert_eq!(socket(&server).send().await.unwrap().status(), 401);
    assert_eq!(server.get("/healthz").await.status(), 200);
    assert_eq!(server.get("/readyz").await.status(), 200);
    assert_eq!(server.get("/sign-in").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_shows_the_token_as_bearer() {
    let server = guarded().await;
    let ask = async |value: String| {
        let request = server.http.get(format!("{}/api/sessions", server.base));
        request
            .header(AUTHORIZATION, value)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!(ask(format!("Bearer {TOKEN}")).await, 200);
    for wrong in [
        "Bearer another-token-0123456789",
        "Bearer ",
        &format!("Basic {TOKEN}"),
        TOKEN,
    ] {
        assert_eq!(ask(wrong.to_owned()).await, 401, "{wrong}");
    }
    let answer = socket(&server)
        .header(AUTHORIZATION, format!("Bearer {TOKEN}"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_take_their_time_and_many_at_once_are_turned_away_while_the_right_one_is_not() {
    let server = guarded().await;
    let ask = async |token: &str| {
        let request = server.http.get(format!("{}/api/sessions", server.base));
        let begun = std::time::Instant::now();
        let answer = request.bearer_auth(token).send().await.unwrap();
        (answer.status().as_u16(), begun.elapsed())
    };
    let wrong = futures::future::join_all((0..20).map(|_| ask("another-token-0123456789")));
    let (wrong, right) = futures::future::join(wrong, ask(TOKEN)).await;
    assert_eq!(right.0, 200);
    let second = std::time::Duration::from_secs(1);
    let slow = wrong
        .iter()
        .filter(|(status, took)| *status == 401 && *took >= second)
        .count();
    let away = wrong.iter().filter(|(status, _)| *status == 429).count();
    assert!(slow >= 8 && away > 0 && slow + away == wrong.len(), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_with_a_form_and_gets_a_cookie_that_is_not_the_token() {
    let server = guarded().await;
    let sign_in = async |token: &str| {
        let request = server.http.post(format!("{}/sign-in", server.base));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(format!("token={token}")).send().await.unwrap()
    };
    let wrong = sign_in("wrong").await;
    assert_eq!(wrong.status(), 401);
    assert!(wrong.headers().get(SET_COOKIE).is_none());
    let right = sign_in(TOKEN).await;
    assert_eq!(
        (right.status().as_u16(), &right.headers()[LOCATION]),
        (303, &"/".parse().unwrap())
    );
    let linked = sign_in(&format!("{TOKEN}&next=%2Fs%2F1%3Fnode%3D2")).await;
    assert_eq!(linked.headers()[LOCATION], "/s/1?node=2");
    let asked = server.text("/sign-in?next=%2Fs%2F1%3Fnode%3D2").await;
    assert!(asked.contains("name=\"next\" value=\"/s/1?node=2\""), "{asked}");
    let cookie = right.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    assert!(!cookie.contains(TOKEN));
    let pair = cookie.split(';').next().unwrap();
    let page = server
        .http
        .get(format!("{}/", server.base))
        .header(COOKIE, pair)
        .send()
        .await
        .unwrap();
    assert_eq!(page.status(), 200);
    assert!(!page.text().await.unwrap().contains(TOKEN));
    assert_eq!(
        socket(&server)
            .header(COOKIE, pair)
            .send()
            .await
            .unwrap()
            .status(),
        101
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_another_site_can_neither_change_anything_nor_listen() {
    let server = TestServer::start().await;
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://localhost",
    ] {
        for path in ["/api/sessions", "/sessions"] {
            let request = server
                .http
                .post(format!("{}{path}", server.base))
                .header(ORIGIN, origin);
            let answer = request.json(&json!({})).send().await.unwrap();
            assert_eq!(answer.status(), 403, "{origin} {path}");
        }
        assert_eq!(
            socket(&server)
                .header(ORIGIN, origin)
                .send()
                .await
                .unwrap()
                .status(),
            403,
            "{origin}"
        );
    }
    assert_eq!(
        socket(&server)
            .header(ORIGIN, &server.base)
            .send()
            .await
            .unwrap()
            .status(),
        101
    );
    let own = server
        .http
        .post(format!("{}/api/sessions", server.base))
        .header(ORIGIN, &server.base);
    assert_eq!(own.json(&json!({})).send().await.unwrap().status(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_only_the_names_of_this_machine_are_answered() {
    let server = TestServer::start().await;
    for (host, status) in [
        ("evil.example", 403),
        ("127.0.0.1.evil.example:80", 403),
        ("localhost", 200),
        ("[::1]:3000", 200),
    ] {
        let request = server
            .http
            .request(Method::GET, format!("{}/api/sessions", server.base));
        assert_eq!(
            request.header(HOST, host).send().await.unwrap().status(),
            status,
            "{host}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_says_what_a_browser_may_do_with_it() {
    let server = TestServer::start().await;
    for path in ["/", "/api/sessions", "/api/nonsense", "/healthz"] {
        let answer = server.get(path).await;
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{path}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe-inline"), "{path}: {policy}");
    }
}
