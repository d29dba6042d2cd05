//! What the page asks about colours: places, and honest refusals.

use serde_json::{Value, json};

use crate::harness::TestServer;

async fn ask(server: &TestServer, body: &Value) -> (u16, Value) {
    let request = server
        .http
        .post(format!("{}/api/highlight", server.base))
        .json(body);
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (
        status,
        serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_told_for_a_language_or_a_pattern_and_what_does_not_fit_is_refused() {
    let server = TestServer::start().await;
    let (status, answer) = ask(&server, &json!({"text": "return 12", "language": "js"})).await;
    assert_eq!(status, 200);
    assert_eq!(answer, json!({"places": {"keyword": [0, 6], "number": [7, 2]}}));
    let (status, answer) = ask(&server, &json!({"text": "é seq\nseq", "pattern": "s.q"})).await;
    assert_eq!(
        (status, answer),
        (200, json!({"places": {"match": [2, 3, 6, 3]}}))
    );
    let (status, answer) = ask(&server, &json!({"text": "a", "language": "klingon"})).await;
    assert_eq!((status, answer), (200, json!({"places": {}})));

    let long = "x".repeat(64 * 1024);
    assert_eq!(
        ask(&server, &json!({"text": long, "language": "rs"})).await.0,
        200
    );
    let refused = [
        (
            json!({"text": format!("{long}x"), "language": "rs"}),
            413,
            "text_too_long",
        ),
        (json!({"text": "a"}), 422, "invalid_request"),
        (
            json!({"text": "a", "language": "rs", "pattern": "a"}),
            422,
            "invalid_request",
        ),
        (json!({"text": "a", "pattern": "("}), 422, "invalid_request"),
        (
            json!({"text": "a", "pattern": "x".repeat(5_000)}),
            422,
            "invalid_request",
        ),
        (json!({"language": "rs"}), 422, "invalid_request"),
        (
            json!({"text": "a", "language": "rs", "theme": "b"}),
            422,
            "invalid_request",
        ),
    ];
    for (body, status, code) in refused {
        let (seen, problem) = ask(&server, &body).await;
        assert_eq!(
            (seen, problem["code"].as_str()),
            (status, Some(code)),
            "{problem}"
        );
    }
}
