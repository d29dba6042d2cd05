//! Bad input: a problem document (RFC 9457) with the right status and a stable code; nothing is lost or begun.

use protocol::api::Problem;
use protocol::id::{NodeId, RunId};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::harness::TestServer;

async fn assert_problem(answer: Response, status: u16, code: &str) -> Problem {
    let what = answer.url().to_string();
    assert_eq!(answer.status(), status, "{what}");
    assert_eq!(
        answer.headers()["content-type"],
        "application/problem+json",
        "{what}"
    );
    let problem: Problem = answer.json().await.unwrap();
    assert_eq!(
        (problem.status, problem.code.as_str(), problem.kind.as_str()),
        (status, code, "about:blank"),
        "{what}"
    );
    assert!(!problem.title.is_empty() && !problem.detail.is_empty(), "{what}");
    problem
}

struct Asked {
    server: TestServer,
    session: String,
}

impl Asked {
    async fn new() -> Self {
        let server = TestServer::start().await;
        let session = server.session().await.to_string();
        Self { server, session }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.server
            .http
            .request(method, format!("{}{path}", self.server.base))
    }

    async fn run(&self, body: Value) -> Response {
        self.server
            .post(&format!("/api/sessions/{}/runs", self.session), body)
            .await
    }

    async fn raw(&self, content_type: &str, body: &str) -> Response {
        let request = self.request(Method::POST, &format!("/api/sessions/{}/runs", self.session));
        request
            .header("content-type", content_type)
            .body(body.to_owned())
            .send()
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_json_or_not_the_right_json_says_where() {
    let asked = Asked::new().await;
    for body in ["{\"prompt\": ", "nonsense", "", "{\"prompt\": \"a\"} and more"] {
        assert_problem(asked.raw("application/json", body).await, 400, "malformed_json").await;
    }
    let list = asked.server.post("/api/sessions", json!(["a title"])).await;
    assert_problem(list, 422, "invalid_request").await;
    let unknown = asked.run(json!({ "prompt": "a", "colour": "red" })).await;
    let problem = assert_problem(unknown, 422, "invalid_request").await;
    assert!(problem.detail.contains("colour"), "{}", problem.detail);
    let wrong = asked.run(json!({ "prompt": 1 })).await;
    let problem = assert_problem(wrong, 422, "invalid_request").await;
    assert!(problem.detail.contains("prompt"), "{}", problem.detail);
    assert_problem(asked.run(json!({})).await, 422, "invalid_request").await;
    let kind = asked
        .server
        .post("/api/sessions", json!({ "kind": "party" }))
        .await;
    assert_problem(kind, 422, "invalid_request").await;
    let title = asked
        .server
        .post("/api/sessions", json!({ "title": "x".repeat(300) }))
        .await;
    assert_problem(title, 422, "invalid_request").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_content_type_is_refused_so_that_no_form_of_another_site_gets_through() {
    let asked = Asked::new().await;
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
    ] {
        let answer = asked.raw(content_type, "{\"prompt\": \"a\"}").await;
        assert_problem(answer, 415, "not_json").await;
    }
    let answer = asked
        .raw("application/json; charset=utf-8", "{\"prompt\": \"max_tokens\"}")
        .await;
    assert_eq!(answer.status(), 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_neither_empty_nor_longer_than_a_mebibyte() {
    let asked = Asked::new().await;
    for prompt in ["", " \n\t ", "\u{200b}\u{feff}"] {
        assert_problem(asked.run(json!({ "prompt": prompt })).await, 422, "empty_prompt").await;
    }
    let long = "x".repeat(2 * 1024 * 1024);
    let problem = assert_problem(asked.run(json!({ "prompt": long })).await, 413, "prompt_too_long").await;
    assert!(problem.detail.contains("1048576"), "{}", problem.detail);
    let over = "x".repeat(9 * 1024 * 1024);
    assert_problem(asked.run(json!({ "prompt": over })).await, 413, "body_too_long").await;
    let session = asked.session.parse().unwrap();
    let session = asked
        .server
        .execution
        .store()
        .session(&session)
        .await
        .unwrap()
        .unwrap();
    assert!(session.runs.is_empty(), "nothing was begun");

    let longest = format!("max_tokens\n{}", "y".repeat(1024 * 1024 - 11));
    let answer = asked.run(json!({ "prompt": longest })).await;
    assert_eq!(answer.status(), 202);
    let run: Value = answer.json().await.unwrap();
    let seen = asked
        .server
        .ended(&run["run_id"].as_str().unwrap().parse().unwrap())
        .await;
    assert_eq!(seen.messages()[0].text.len(), 1024 * 1024);
    asked.server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_provider_or_model_is_told_with_those_that_exist() {
    let asked = Asked::new().await;
    let bodies = [
        json!({ "prompt": "a", "provider": "nobody" }),
        json!({ "prompt": "a", "model": "nothing" }),
        json!({ "prompt": "a", "provider": "openai", "model": "nothing" }),
    ];
    for body in bodies {
        let problem = assert_problem(asked.run(body).await, 422, "unknown_model").await;
        assert!(problem.detail.contains("anthropic"), "{}", problem.detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_not_found_and_what_is_no_id_is_said_to_be_none() {
    let asked = Asked::new().await;
    let missing = [
        "/api/sessions/ses_0000000000000000000000",
        "/api/runs/run_0000000000000000000000/snapshot",
        "/api/runs/run_0000000000000000000000/ops",
        "/api/runs/run_0000000000000000000000/transcripts",
        "/api/runs/run_0000000000000000000000/transcripts/chat/a.ndjson",
        "/api/nodes/call_0000000000000000000000",
        "/api/nodes/call_0000000000000000000000/output?channel=result",
        "/api/blocks/blk_0000000000000000000000/content",
    ];
    for path in missing {
        assert_problem(asked.server.get(path).await, 404, "not_found").await;
    }
    let cancel = asked
        .server
        .post("/api/runs/run_0000000000000000000000/cancel", json!({}))
        .await;
    assert_problem(cancel, 404, "not_found").await;
    let submit = asked.server.post(
        "/api/sessions/ses_0000000000000000000000/runs",
        json!({ "prompt": "a" }),
    );
    assert_problem(submit.await, 404, "not_found").await;

    let wrong = [
        "/api/sessions/run_1",
        "/api/sessions/ses_",
        "/api/runs/nonsense/snapshot",
        "/api/runs/run_1%00/snapshot",
        "/api/runs/run_'%3B--/ops",
        "/api/nodes/blk_1",
        "/api/blocks/call_1/content",
        "/api/runs/nonsense/transcripts/chat/a.ndjson",
        "/api/nodes/call_1/output?channel=nothing",
        "/api/nodes/call_1/output",
        "/api/runs/run_1/ops?after=-1",
        "/api/runs/run_1/ops?before=3",
        "/api/sessions?status=nothing",
        "/api/sessions?before=nonsense",
        "/api/sessions?before=1.%00",
    ];
    for path in wrong {
        assert_problem(asked.server.get(path).await, 422, "invalid_request").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_found_by_its_path_only() {
    let asked = Asked::new().await;
    let seen = asked.server.finish("max_tokens", "openai").await;
    let run = &seen.run().run_id;
    for path in [
        "chat/nothing.ndjson",
        "..%2F..%2Fworkspace/README.md",
        "%2Fetc%2Fpasswd.ndjson",
        "chat/a%00.ndjson",
        "chat",
    ] {
        let answer = asked
            .server
            .get(&format!("/api/runs/{run}/transcripts/{path}"))
            .await;
        assert_problem(answer, 404, "not_found").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_call_and_a_wrong_method_are_problems_too() {
    let asked = Asked::new().await;
    assert_problem(asked.server.get("/api/nonsense").await, 404, "no_such_call").await;
    assert_problem(
        asked.server.post("/api/runs/run_1/dance", json!({})).await,
        404,
        "no_such_call",
    )
    .await;
    for (method, path) in [
        (Method::DELETE, "/api/sessions"),
        (Method::PUT, "/api/runs/run_1/snapshot"),
        (Method::GET, "/api/runs/run_1/cancel"),
    ] {
        let answer = asked.request(method, path).send().await.unwrap();
        assert_problem(answer, 405, "method_not_allowed").await;
    }
    let answer = asked.server.get("/api/stream").await;
    assert_eq!(answer.headers()["upgrade"], "websocket");
    assert_problem(answer, 426, "not_a_socket").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_is_refused_says_that_nothing_was_done() {
    let asked = Asked::new().await;
    let run = RunId::from_uuid(uuid::Uuid::now_v7());
    for path in [
        format!("/runs/{run}/resume"),
        format!("/runs/{run}/cancel"),
        format!("/nodes/{}/regenerate", NodeId::root(&run)),
    ] {
        let answer = asked.request(Method::POST, &path).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        let page = answer.text().await.unwrap();
        assert!(page.contains("Not done") && !page.contains("typed"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_idempotency_key_is_refused() {
    let asked = Asked::new().await;
    for key in ["", &"k".repeat(201)] {
        let request = asked.request(Method::POST, &format!("/api/sessions/{}/runs", asked.session));
        let request = request
            .header("idempotency-key", key)
            .json(&json!({ "prompt": "a" }));
        assert_problem(request.send().await.unwrap(), 422, "invalid_request").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_used_for_another_prompt_is_refused_and_for_the_same_one_gives_its_run() {
    let asked = Asked::new().await;
    let send = async |prompt: &str| {
        let request = asked.request(Method::POST, &format!("/api/sessions/{}/runs", asked.session));
        let request = request
            .header("idempotency-key", "one")
            .json(&json!({ "prompt": prompt }));
        request.send().await.unwrap()
    };
    let first: Value = send("Say hello").await.json().await.unwrap();
    let again: Value = send("Say hello").await.json().await.unwrap();
    assert_eq!(first, again);
    assert_problem(send("Say goodbye").await, 422, "idempotency_key_reused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_refused_says_why_in_a_page_and_makes_no_session() {
    let asked = Asked::new().await;
    let sessions = async || {
        asked
            .server
            .text("/api/sessions")
            .await
            .matches("session_id")
            .count()
    };
    let before = sessions().await;
    let long = format!("prompt={}", "x".repeat(2 * 1024 * 1024));
    for (form, words) in [
        ("prompt=hi&model=nope/nope", "nope"),
        ("prompt=%20", "empty"),
        ("model=a", "prompt"),
        (&long, "1048576"),
        (&"x".repeat(9 * 1024 * 1024), "too long"),
    ] {
        let request = asked.request(Method::POST, "/sessions");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(form.to_owned()).send().await.unwrap();
        assert!(answer.status().is_client_error());
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        // What was not read of a long body ends its connection, and the next request must not go into that.
        let ends = answer
            .headers()
            .get("connection")
            .is_some_and(|word| word == "close");
        assert_eq!(ends, form.len() > 64 * 1024, "{words}");
        let page = answer.text().await.unwrap();
        assert!(page.contains(words), "{page}");
    }
    assert_eq!(sessions().await, before);
}
