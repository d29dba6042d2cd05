//! Searching a session: what is found, where, in which order, and what it costs.

use std::time::Instant;

use protocol::digest::sha256;
use protocol::fold::RunState;
use protocol::id::SessionId;
use protocol::op::Op;
use protocol::search::{SearchAnswer, SearchField, SearchHit, WayTo};
use serde_json::{Value, json};
use server::store::search::SearchWish;
use server::store::test_support::TestDatabase;

use crate::attempts::QUICK;
use crate::harness::{Setup, TestServer};
use crate::large::{flood, with_flood};
use crate::provider::scenario;
use crate::recorder::{Owner, running};

async fn ask(server: &TestServer, session: &SessionId, fields: &[(&str, &str)]) -> reqwest::Response {
    let encoded = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    server
        .get(&format!("/api/sessions/{session}/search?{}", fields.join("&")))
        .await
}

async fn search(server: &TestServer, session: &SessionId, words: &str) -> SearchAnswer {
    let answer = ask(server, session, &[("q", words)]).await;
    assert_eq!(answer.status(), 200, "{words:?}");
    answer.json().await.unwrap()
}

async fn fields(server: &TestServer, session: &SessionId, words: &str) -> Vec<SearchField> {
    let answer = search(server, session, words).await;
    answer.hits.iter().map(|hit| hit.field).collect()
}

/// The text that a hit names, as a client reads it.
async fn named(server: &TestServer, hit: &SearchHit) -> String {
    let address = match hit.field {
        SearchField::Text | SearchField::Reasoning => {
            format!("/api/blocks/{}/content", hit.block_id.as_ref().unwrap())
        }
        field => {
            let node = hit.node_id.as_ref().unwrap();
            format!("/api/nodes/{node}/output?channel={}", field.as_str())
        }
    };
    let (from, to) = (hit.offset, hit.offset + hit.bytes - 1);
    let request = server
        .http
        .get(format!("{}{address}", server.base))
        .header("range", format!("bytes={from}-{to}"));
    request.send().await.unwrap().text().await.unwrap()
}

const EVERYWHERE: &str = r#"
name = "everywhere"
title = "Everywhere"
description = "One word in every place."
order = 90
prompt = "find everywhere"
[[turns]]
[[turns.steps]]
step = "reasoning"
text = "First the NEEDLE in thought."
[[turns.steps]]
step = "text"
text = "Then a **needle** in the text, with 100% of a_b\\c."
[[turns.steps]]
step = "tool_call"
name = "read_file"
arguments = '{"path": "needle/none.txt"}'
[[turns]]
[[turns.steps]]
step = "text"
text = "Ünd nothing\u0000 more, in other\n words."
"#;

async fn with_everywhere() -> (TestServer, SessionId, RunState) {
    let server = TestServer::start_with(Setup {
        scenarios: vec![scenario("everywhere", EVERYWHERE)],
        ..Setup::default()
    })
    .await;
    let session = server.session().await;
    let run = server.submit(&session, "everywhere", "anthropic").await;
    let seen = server.ended(&run).await;
    (server, session, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_is_found_in_every_place_in_the_order_of_the_page() {
    let (server, session, seen) = with_everywhere().await;
    let answer = search(&server, &session, "Needle").await;
    assert_eq!(answer.next, None);
    let fields: Vec<_> = answer.hits.iter().map(|hit| hit.field).collect();
    use SearchField as F;
    assert_eq!(
        fields,
        [F::Reasoning, F::Text, F::Error, F::Error, F::Arguments],
        "{answer:?}"
    );
    let call = seen.nodes().iter().find(|node| node.name == "read_file").unwrap();
    let row = seen.block_of_node(&call.node_id).unwrap();
    for hit in &answer.hits {
        assert_eq!(hit.run_id, seen.run().run_id);
        assert_eq!(hit.found.to_lowercase(), "needle");
        if hit.field != F::Error {
            assert_eq!(named(&server, hit).await, hit.found);
        }
    }
    assert_eq!(answer.hits[0].before, "First the ");
    assert_eq!(answer.hits[0].after, " in thought.");
    for hit in &answer.hits[2..] {
        assert_eq!(hit.node_id.as_ref(), Some(&call.node_id));
        assert_eq!(hit.block_id.as_ref(), Some(&row.block_id));
    }
    let names = search(&server, &session, "read_file").await;
    assert!(names.hits.iter().any(|hit| hit.field == F::Name));
    let prompt = search(&server, &session, "everywhere").await;
    assert_eq!(prompt.hits[0].field, F::Message);
    assert_eq!(
        prompt.hits[0].message_id.as_ref(),
        Some(&seen.messages()[0].message_id)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_literal_without_regard_to_case_and_white_space_is_any() {
    let (server, session, _) = with_everywhere().await;
    use SearchField as F;
    for (words, found) in [
        ("100% OF A_B\\C", vec![F::Text]),
        ("100% of axb", vec![]),
        ("a needle in", vec![F::Text]),
        ("other   words", vec![F::Text]),
        ("üND", vec![F::Text]),
        (".*", vec![]),
        ("%", vec![F::Text]),
        ("nowhere at all", vec![]),
    ] {
        assert_eq!(fields(&server, &session, words).await, found, "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_searched_for_is_refused_in_words() {
    let (server, session, _) = with_everywhere().await;
    let long = "x".repeat(201);
    for fields in [
        vec![("q", "")],
        vec![("q", " \n ")],
        vec![("q", "a\0b")],
        vec![("q", long.as_str())],
        vec![("q", "x"), ("limit", "0")],
        vec![("q", "x"), ("after", "nonsense")],
        vec![("q", "x"), ("after", "run_none.run.error.0")],
        vec![],
    ] {
        let answer = ask(&server, &session, &fields).await;
        assert_eq!(answer.status(), 422, "{fields:?}");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["code"], "invalid_request", "{problem}");
    }
    let none = "ses_none".parse().unwrap();
    assert_eq!(ask(&server, &none, &[("q", "x")]).await.status(), 404);
    for (to, status) in [("exec_none", 404), ("a%00b", 422), ("", 422)] {
        let answer = server.get(&format!("/api/sessions/{session}/way?to={to}")).await;
        assert_eq!(answer.status(), status, "{to:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_an_answer_together_are_the_whole() {
    let (server, session, _) = with_everywhere().await;
    let whole = search(&server, &session, "e").await;
    assert!(whole.hits.len() > 10 && whole.next.is_none());
    for limit in ["1", "3", "7"] {
        let (mut hits, mut after): (Vec<SearchHit>, Option<String>) = (Vec::new(), None);
        loop {
            let mut fields = vec![("q", "e"), ("limit", limit)];
            fields.extend(after.as_deref().map(|after| ("after", after)));
            let page: SearchAnswer = ask(&server, &session, &fields).await.json().await.unwrap();
            assert!(page.hits.len() <= limit.parse().unwrap());
            hits.extend(page.hits);
            assert!(hits.len() <= whole.hits.len(), "{limit}: it does not end");
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(hits, whole.hits, "{limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_still_grows_is_searched_as_far_as_it_is_written() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.provider.arm("slow:middle").await;
    let run = server.submit(&session, "slow", "openai").await;
    server.provider.reached("slow:middle").await;
    let mut viewer = server.watch(&run).await;
    viewer.until_text(&run, "takes its time").await;
    let answer = search(&server, &session, "takes its time").await;
    let open = answer
        .hits
        .iter()
        .find(|hit| hit.field == SearchField::Text)
        .unwrap();
    assert!(
        !viewer
            .state(&run)
            .block(open.block_id.as_ref().unwrap())
            .unwrap()
            .state
            .status()
            .is_final()
    );
    assert_eq!(named(&server, open).await, open.found);
    server.provider.open("slow:middle").await;
    viewer.until_end(&run).await;
    let after = search(&server, &session, "takes its time").await;
    let same = after
        .hits
        .iter()
        .find(|hit| hit.field == SearchField::Text)
        .unwrap();
    assert_eq!(same.offset, open.offset);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_were_given_up_are_searched_before_the_one_that_followed() {
    let server = TestServer::start_with(Setup {
        recovery: Some(QUICK),
        ..Setup::default()
    })
    .await;
    let session = server.session().await;
    let run = server.submit(&session, "Cut the connection once", "openai").await;
    let seen = server.ended(&run).await;
    let [first, second] = seen.attempts() else {
        panic!("two attempts")
    };
    let hits = search(&server, &session, "line").await.hits;
    let of = |hit: &SearchHit| hit.attempt_id.clone().unwrap();
    let texts: Vec<_> = hits
        .iter()
        .filter(|hit| hit.field == SearchField::Text)
        .map(of)
        .collect();
    assert_eq!(texts.first(), Some(&first.attempt_id));
    assert_eq!(texts.last(), Some(&second.attempt_id));
    let turn = texts
        .iter()
        .position(|attempt| *attempt == second.attempt_id)
        .unwrap();
    assert!(texts[turn..].iter().all(|attempt| *attempt == second.attempt_id));
    // Why the first one ended stands in its place.
    let error = &first.state.end().unwrap().error.as_ref().unwrap().message;
    let told = search(&server, &session, error).await.hits;
    assert_eq!(told[0].field, SearchField::Error);
    assert_eq!(told[0].attempt_id.as_ref(), Some(&first.attempt_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_across_two_pieces_and_at_the_end_of_a_long_text_is_found() {
    let server = with_flood(300_000).await;
    let session = server.session().await;
    let run = server.submit(&session, "calling", "anthropic").await;
    server.ended(&run).await;
    let text = flood(300_000);
    // The line in which the second piece begins.
    let part = text.floor_char_boundary(64 * 1024);
    let start = text[..part].rfind("line").unwrap();
    let line = text[start..].lines().next().unwrap();
    assert!(start < 64 * 1024 && start + line.len() > 64 * 1024);
    let last = text.lines().rfind(|line| line.len() > 20).unwrap();
    for words in [line, last] {
        let hits = search(&server, &session, words).await.hits;
        let [hit] = hits.as_slice() else {
            panic!("{hits:?}")
        };
        assert_eq!(hit.field, SearchField::Result);
        assert_eq!(hit.offset as usize, text.find(words).unwrap());
        assert_eq!(named(&server, hit).await, *words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_of_50_mb_is_searched_to_its_end_in_a_few_steps() {
    const BYTES: usize = 50 * 1000 * 1000;
    let server = with_flood(BYTES).await;
    let session = server.session().await;
    let run = server.submit(&session, "calling", "openai").await;
    let mut viewer = crate::viewer::Viewer::connect(&server.base).await;
    viewer.subscribe_window(&run, 0, Some(200)).await;
    viewer.until_end(&run).await;
    let text = flood(BYTES);
    let last = text
        .lines()
        .rfind(|line| line.len() > 20)
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap();
    let started = Instant::now();
    let (mut hits, mut after, mut steps) = (Vec::new(), None::<String>, 0);
    loop {
        let mut fields = vec![("q", last)];
        fields.extend(after.as_deref().map(|after| ("after", after)));
        let page: SearchAnswer = ask(&server, &session, &fields).await.json().await.unwrap();
        hits.extend(page.hits);
        steps += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let took = started.elapsed();
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].offset as usize, text.rfind(last).unwrap());
    assert!(took.as_secs() < 20 && steps < 10, "{took:?} in {steps} steps");
    // What stands everywhere is answered from its beginning, without the rest being read.
    let started = Instant::now();
    let first = search(&server, &session, "line").await;
    assert_eq!(first.hits.len(), 100);
    assert!(first.next.is_some());
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_that_is_not_saved_is_never_found() {
    let server = TestServer::start().await;
    let answer = server
        .post("/api/sessions", json!({"settings": {"reasoning": "not_saved"}}))
        .await;
    let body: Value = answer.json().await.unwrap();
    let session: SessionId = body["session_id"].as_str().unwrap().parse().unwrap();
    server.provider.arm("welcome:middle").await;
    let run = server
        .submit(&session, "Show me what Runloom does", "anthropic")
        .await;
    server.provider.reached("welcome:middle").await;
    let hidden = [SearchField::Reasoning; 0];
    let found = async |words: &str| fields(&server, &session, words).await;
    assert_eq!(found("look around in the workspace").await, hidden);
    server.provider.open("welcome:middle").await;
    server.ended(&run).await;
    assert_eq!(found("look around in the workspace").await, hidden);
    assert_eq!(found("sim-signature").await, hidden);
}

/// Ops of a chain of models and calls, twelve levels deep, with a word at the end of it.
fn deep(run: &str) -> Vec<Op> {
    let mut ops = vec![json!({
        "op": "node_started", "node_id": format!("root_{run}"), "parent_id": null, "after": [], "kind": "root",
        "name": "run", "title": "", "ordinal": 0, "executor": "runloom",
    })];
    let mut parent = format!("root_{run}");
    for level in 0..12 {
        let (model, attempt) = (format!("call_{level}"), format!("att_{level}"));
        ops.push(json!({
            "op": "node_started", "node_id": model, "parent_id": parent, "after": [], "kind": "model",
            "name": format!("model {level}"), "title": "", "ordinal": 0, "executor": "runloom",
        }));
        ops.push(json!({
            "op": "attempt_started", "node_id": model, "attempt_id": attempt, "attempt_index": 0, "reason": "initial",
            "provider": "p", "model": "m",
        }));
        let text = if level == 11 {
            "the needle is here"
        } else {
            "deeper"
        };
        let block = format!("blk_{level}");
        ops.push(json!({
            "op": "block_started", "node_id": model, "attempt_id": attempt, "block_id": block, "block_index": 0,
            "round": 0, "kind": "text",
        }));
        ops.push(json!({ "op": "block_delta", "block_id": block, "offset": 0, "delta": text }));
        ops.push(json!({
            "op": "block_finished", "block_id": block, "status": "complete", "bytes": text.len(),
            "sha256": sha256(text.as_bytes()),
        }));
        let (call, occurrence) = (format!("exec_{level}"), format!("occ_{level}"));
        ops.push(json!({
            "op": "block_started", "node_id": model, "attempt_id": attempt, "block_id": format!("blk_call_{level}"),
            "block_index": 1, "round": 0, "kind": "tool_ref", "tool_call_id": occurrence,
            "occurrence_id": occurrence, "ref_node_id": call, "tool_name": "ask_model",
        }));
        ops.push(json!({
            "op": "node_started", "node_id": call, "parent_id": model, "after": [], "kind": "function",
            "name": "ask_model", "title": "", "ordinal": 0, "executor": "runloom", "occurrence_id": occurrence,
        }));
        parent = call;
    }
    ops.into_iter()
        .map(|op| serde_json::from_value(op).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_at_level_twelve_is_found_and_the_way_to_it_is_told() {
    let database = std::sync::Arc::new(TestDatabase::new().await);
    let owner = Owner::new("one", database.options.clone()).await;
    owner.queue().await;
    let claim = owner.store.claim_queued(owner.name).await.unwrap().unwrap();
    let run = claim.run_id;
    let writer = owner.writer(&run).await;
    writer.write(running()).await;
    for op in deep(run.as_str().trim_start_matches("run_")) {
        writer.write(op).await;
    }
    writer.flush().await.unwrap();
    let state = owner.store.load_run(&run).await.unwrap().unwrap();
    let session = state.run().session_id.clone();
    let wish = SearchWish {
        query: "needle",
        after: None,
        most: 10,
    };
    let hits = owner.store.search(&session, &wish).await.unwrap().hits;
    let [hit] = hits.as_slice() else {
        panic!("{hits:?}")
    };
    assert_eq!(hit.block_id.as_ref().unwrap().as_str(), "blk_11");
    assert_eq!(hit.node_id.as_ref().unwrap().as_str(), "call_11");

    let server = TestServer::start_with(Setup {
        database: Some(database),
        has_neighbours: true,
        ..Setup::default()
    })
    .await;
    let way = server
        .text(&format!("/api/sessions/{session}/way?to=blk_11"))
        .await;
    let way: WayTo = serde_json::from_str(&way).unwrap();
    assert_eq!(way.run_id, run);
    let mut known = RunState::new(run.clone(), session);
    for window in way.windows {
        known.add(window).unwrap();
    }
    let block = known.block(&"blk_11".parse().unwrap()).unwrap();
    assert_eq!(block.body.content().unwrap().text, "the needle is here");
}
