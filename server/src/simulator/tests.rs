mod adapters;
mod client;
mod load;
mod tour;

use std::time::Duration;

use serde_json::{Value, json};

use super::catalogue::{Catalogue, built_in};
use super::generator::{echo, load_token, markdown, prose};
use super::parameters::Parameters;
use super::scenario::{ErrorBody, Scenario, Step, StopStep, TextStep, Turn};
use super::{SimulatorOptions, Speed, WireFormat};
use client::{FORMATS, Reply, Running, follow_up, parse, read, start, start_with};

fn scenarios() -> Vec<Scenario> {
    built_in().into_iter().map(Result::unwrap).collect()
}

fn text_of(scenario: &Scenario, step: &TextStep) -> String {
    use super::generator::Generator;
    let number = |name: &str| scenario.parameters[name];
    match step.generator {
        None => defaults_of(scenario).fill(step.text.as_deref().unwrap()),
        Some(Generator::Markdown) => markdown(number("characters") as usize),
        Some(Generator::Prose) => prose((number("rate") * number("seconds")) as usize),
        Some(Generator::Echo) => echo(&scenario.prompt, &Catalogue::new(Vec::new()).samples()),
        Some(Generator::Load) => (0..(number("rate") * number("seconds")) as usize)
            .map(load_token)
            .collect(),
    }
}

fn defaults_of(scenario: &Scenario) -> Parameters {
    Parameters::read(&scenario.name, &scenario.parameters, "").unwrap()
}

/// Compares what came with what the file says.
fn check_content(format: WireFormat, scenario: &Scenario, turn: &Turn, reply: &Reply) {
    let (mut text, mut reasoning, mut refusal) = (String::new(), String::new(), String::new());
    let mut calls = Vec::new();
    for step in &turn.steps {
        match step {
            Step::Text(step) => text.push_str(&text_of(scenario, step)),
            Step::TextOnOpenTool(step) => text.push_str(&step.text),
            Step::Reasoning(step) => reasoning.push_str(&text_of(scenario, step)),
            Step::Refusal(step) if format != WireFormat::Anthropic => {
                refusal.push_str(&text_of(scenario, step));
            }
            Step::Refusal(step) => text.push_str(&text_of(scenario, step)),
            Step::ToolCall(step) => {
                let parameters = defaults_of(scenario);
                let times = step.times.as_ref().map_or(1, |name| parameters.count(name));
                let arguments = parameters.fill(step.sent_arguments());
                calls.extend(
                    (1..=times)
                        .map(|number| (step.name.as_str(), arguments.replace("{n}", &number.to_string()))),
                );
            }
            _ => {}
        }
    }
    let got: Vec<_> = reply
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.clone()))
        .collect();
    let name = &scenario.name;
    assert_eq!(reply.text, text, "{name} {format:?}");
    assert_eq!(reply.reasoning, reasoning, "{name} {format:?}");
    assert_eq!(reply.refusal, refusal, "{name} {format:?}");
    assert_eq!(got, calls, "{name} {format:?}");
}

fn check_end(format: WireFormat, scenario: &Scenario, turn: &Turn, reply: &Reply) {
    let name = &scenario.name;
    let last = turn.steps.last().unwrap();
    match last {
        Step::HttpError(step) => {
            assert_eq!(reply.status, step.status, "{name}");
            let body: Result<Value, _> = serde_json::from_slice(&reply.bytes);
            match step.body {
                ErrorBody::Html => assert!(reply.bytes.starts_with(b"<html>"), "{name}"),
                ErrorBody::Json => assert!(body.unwrap()["error"]["message"].is_string(), "{name}"),
            }
            return;
        }
        Step::Cut(_) => assert!(
            reply.broken && !reply.terminal && reply.stop.is_none(),
            "{name} {format:?}"
        ),
        Step::EndWithoutTerminal(_) => {
            assert!(!reply.broken && !reply.terminal && reply.stop.is_none(), "{name}");
        }
        Step::ErrorEvent(step) => {
            assert_eq!(reply.error.as_ref().unwrap()["message"], step.message, "{name}");
            assert!(!reply.broken && !reply.terminal, "{name}");
        }
        step => {
            let stop = if let Step::Stop(stop) = step {
                *stop
            } else {
                StopStep::default()
            };
            // In Responses the end marker itself says why, and what was used.
            let unsaid = format == WireFormat::OpenaiResponses && stop.without_terminal;
            let missing = unsaid || stop.reason == Some(super::scenario::StopWord::Missing);
            assert_eq!(
                reply.stop.is_none(),
                missing,
                "{name} {format:?}: {:?}",
                reply.stop
            );
            assert_eq!(reply.terminal, !stop.without_terminal, "{name} {format:?}");
            assert!(
                reply.usage.is_some() != unsaid && !reply.broken,
                "{name} {format:?}"
            );
        }
    }
    assert_eq!(reply.status, 200, "{name}");
}

#[tokio::test]
async fn every_scenario_streams_to_its_end_in_every_format() {
    let running = start(Speed::MAX).await;
    for scenario in scenarios() {
        for format in FORMATS {
            let mut messages = vec![json!({"role": "user", "content": scenario.prompt})];
            for (round, turn) in scenario.turns.iter().enumerate() {
                // A round with repeats is asked for until its last one.
                let mut turn = turn;
                let mut repeats = turn.again.iter();
                let reply = loop {
                    let response = running.send(format, "demo", &json!(messages)).await;
                    let reply = read(format, response).await;
                    if turn.http_error().is_none() {
                        check_content(format, &scenario, turn, &reply);
                    }
                    check_end(format, &scenario, turn, &reply);
                    match repeats.next() {
                        Some(next) => turn = next,
                        None => break reply,
                    }
                };
                if round + 1 < scenario.turns.len() {
                    let is_cut = turn
                        .steps
                        .iter()
                        .any(|step| matches!(step, Step::ToolCall(call) if call.cut_after.is_some()));
                    let word = match (format, is_cut) {
                        (WireFormat::Anthropic, false) => "tool_use",
                        (WireFormat::Anthropic, true) => "max_tokens",
                        (WireFormat::OpenaiChat, false) => "tool_calls",
                        (WireFormat::OpenaiChat, true) => "length",
                        (WireFormat::OpenaiResponses, false) => "completed",
                        (WireFormat::OpenaiResponses, true) => "max_output_tokens",
                    };
                    assert_eq!(reply.stop.as_deref(), Some(word), "{}", scenario.name);
                    messages.extend(follow_up(format, &reply, round));
                }
            }
        }
    }
    let (_, report) = running.get("connections/idle").await;
    assert_eq!(
        (&report["open"], &report["client_closed"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test]
async fn the_same_request_gives_the_same_bytes() {
    for format in FORMATS {
        for prompt in ["welcome", "long", "refusal"] {
            let (first, second) = (start(Speed::MAX).await, start(Speed::MAX).await);
            let one = read(format, first.ask(format, prompt).await).await.bytes;
            assert_eq!(one, read(format, second.ask(format, prompt).await).await.bytes);
            let again = String::from_utf8(read(format, first.ask(format, prompt).await).await.bytes).unwrap();
            assert_eq!(
                String::from_utf8(one).unwrap(),
                again.replace("sim1x2", "sim1x1"),
                "{prompt}"
            );
        }
    }
}

/// Reads until the text so far ends with `end`.
async fn read_until(format: WireFormat, response: &mut reqwest::Response, end: &str) -> Reply {
    let mut reply = Reply {
        status: 200,
        ..Reply::default()
    };
    let mut bytes = Vec::new();
    while !reply.text.ends_with(end) {
        bytes.extend_from_slice(&response.chunk().await.unwrap().expect("the stream goes on"));
        reply = Reply {
            bytes: bytes.clone(),
            ..Reply::default()
        };
        parse(format, &mut reply);
    }
    reply
}

#[tokio::test]
async fn an_armed_gate_holds_the_stream_until_it_is_opened() {
    for format in FORMATS {
        let running = start(Speed::MAX).await;
        assert_eq!(running.post("gates/cut:before/arm").await.0, 200);
        assert_eq!(running.post("gates/error_event:before/arm").await.0, 200);
        let mut response = running.ask(format, "error_event").await;
        let (status, state) = running.get("gates/error_event:before/wait").await;
        assert_eq!((status, &state["waiting"]), (200, &json!(1)));
        // All that stands before the gate has been sent, and nothing of what stands after it.
        let before = read_until(format, &mut response, " has ").await;
        assert!(before.error.is_none());
        let (_, gates) = running.get("gates").await;
        assert_eq!(
            gates["error_event:before"],
            json!({"armed": true, "waiting": 1, "reached": 1})
        );
        assert_eq!(running.get("connections").await.1["open"], 1);
        running.post("gates/error_event:before/open").await;
        let rest = response.text().await.unwrap();
        assert!(rest.contains("Overloaded"));
        assert_eq!(running.get("gates").await.1["error_event:before"]["waiting"], 0);
    }
}

#[tokio::test]
async fn a_gate_holds_an_http_error_too() {
    let running = start(Speed::MAX).await;
    running.post("gates/http_429:before/arm").await;
    let answer = async { running.ask(WireFormat::Anthropic, "http_429").await };
    let open = async {
        assert_eq!(running.get("gates/http_429:before/wait").await.0, 200);
        running.post("gates/http_429:before/open").await
    };
    let (response, _) = tokio::join!(answer, open);
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "2");
}

#[tokio::test]
async fn an_unknown_gate_is_named_and_a_wait_ends_with_its_time() {
    let running = start(Speed::MAX).await;
    for answer in [
        running.post("gates/nowhere/arm").await,
        running.post("gates/nowhere/open").await,
        running.get("gates/nowhere/wait").await,
    ] {
        assert_eq!(answer.0, 404);
        let error = answer.1["error"].as_str().unwrap();
        assert!(
            error.contains("`nowhere`") && error.contains("welcome:middle"),
            "{error}"
        );
    }
    assert_eq!(running.get("gates/cut:before/wait?timeout_ms=1").await.0, 408);
}

async fn closed_connection(running: &Running) -> Value {
    let (status, report) = running.get("connections/idle").await;
    assert_eq!(status, 200, "{report}");
    assert_eq!(report["client_closed"], 1, "{report}");
    report["connections"][0].clone()
}

#[tokio::test]
async fn a_client_that_closes_is_seen_wherever_the_stream_is() {
    for format in FORMATS {
        // At a gate.
        let running = start(Speed::MAX).await;
        running.post("gates/slow:middle/arm").await;
        let response = running.ask(format, "slow").await;
        assert_eq!(running.get("gates/slow:middle/wait").await.0, 200);
        drop(response);
        let connection = closed_connection(&running).await;
        assert_eq!(
            (&connection["scenario"], &connection["end"]),
            (&json!("slow"), &json!("client_closed"))
        );
        assert!(connection["ended_at_ms"].as_i64() >= connection["opened_at_ms"].as_i64());
        assert_eq!(running.get("gates").await.1["slow:middle"]["waiting"], 0);

        // In a silence of ten minutes.
        let running = start(Speed::REAL).await;
        running.post("gates/silent:before/arm").await;
        let response = running.ask(format, "silent").await;
        assert_eq!(running.get("gates/silent:before/wait").await.0, 200);
        running.post("gates/silent:before/open").await;
        drop(response);
        assert_eq!(closed_connection(&running).await["scenario"], "silent");
    }
}

#[tokio::test]
async fn stopping_the_simulator_ends_open_streams() {
    let running = start(Speed::REAL).await;
    running.post("gates/slow:begin/arm").await;
    let response = running.ask(WireFormat::Anthropic, "slow").await;
    assert_eq!(running.get("gates/slow:begin/wait").await.0, 200);
    running.cancel.cancel();
    tokio::time::timeout(Duration::from_secs(10), running.served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let reply = read(WireFormat::Anthropic, response).await;
    assert!(!reply.terminal);
}

#[tokio::test]
async fn a_cut_loses_nothing_that_was_sent_before_it() {
    let running = start(Speed::MAX).await;
    for round in 0..30 {
        let format = FORMATS[round % 2];
        let reply = read(format, running.ask(format, "cut").await).await;
        assert!(reply.broken);
        assert!(
            reply.text.ends_with("breaks off in the mid"),
            "round {round}: {}",
            reply.text
        );
    }
}

#[tokio::test]
async fn requests_are_kept_as_received_without_keys() {
    let running = start(Speed::MAX).await;
    for format in FORMATS {
        read(format, running.ask(format, "refusal").await).await;
    }
    let refused = running.send(WireFormat::Anthropic, "", &json!([])).await;
    assert_eq!(refused.status(), 400);
    let (_, requests) = running.get("requests").await;
    let all = requests.to_string();
    assert!(!all.contains("very-secret"), "a key was kept");
    assert_eq!(requests[0]["body"]["messages"][0]["content"], "refusal");
    assert_eq!(requests[0]["headers"]["anthropic-version"], "2023-06-01");
    assert_eq!(
        (&requests[1]["format"], &requests[1]["path"]),
        (&json!("openai_chat"), &json!("/v1/chat/completions"))
    );
    assert_eq!(
        (&requests[2]["format"], &requests[2]["path"]),
        (&json!("openai_responses"), &json!("/v1/responses"))
    );
    assert_eq!(
        (&requests[1]["scenario"], &requests[1]["round"]),
        (&json!("refusal"), &json!(0))
    );
    assert_eq!(
        (&requests[3]["status"], &requests[3]["error"]),
        (&json!(400), &json!("model: Field required"))
    );
    assert_eq!(
        running.get("requests?limit=1").await.1.as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn errors_have_the_form_of_their_format() {
    let running = start(Speed::MAX).await;
    let anthropic: Value = running
        .ask(WireFormat::Anthropic, "http_401")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]["type"]),
        (&json!("error"), &json!("authentication_error"))
    );
    assert!(anthropic["request_id"].as_str().unwrap().starts_with("req_sim_"));
    let chat: Value = running
        .ask(WireFormat::OpenaiChat, "http_401")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(chat["error"]["code"], "invalid_api_key");
    let html = running.ask(WireFormat::OpenaiChat, "http_html").await;
    assert_eq!(
        (html.status().as_u16(), &html.headers()["content-type"]),
        (502, &"text/html; charset=utf-8".parse().unwrap())
    );
}

#[tokio::test]
async fn thinking_ends_with_a_recognisable_signature() {
    let running = start(Speed::MAX).await;
    let reply = read(
        WireFormat::Anthropic,
        running.ask(WireFormat::Anthropic, "welcome").await,
    )
    .await;
    assert_eq!(reply.signatures, [super::wire::signature(&reply.reasoning)]);
    assert!(reply.signatures[0].starts_with("sim-signature-"));
}

#[tokio::test]
async fn silence_with_pings_sends_pings() {
    let running = start(Speed::MAX).await;
    let reply = read(
        WireFormat::OpenaiChat,
        running.ask(WireFormat::OpenaiChat, "pings_only").await,
    )
    .await;
    assert_eq!(reply.pings, 120);
    let reply = read(
        WireFormat::Anthropic,
        running.ask(WireFormat::Anthropic, "pings_only").await,
    )
    .await;
    assert_eq!(reply.pings, 121, "one more after the first block began");
}

#[tokio::test]
async fn a_scenario_of_ones_own_replaces_a_built_in_one() {
    let source = "name = \"echo\"\norder = 1\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"p\"\n\
                  match.default = true\n[[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"mine\"\n";
    let mine = Scenario::parse("echo.toml", source).unwrap();
    let running = start_with(SimulatorOptions {
        speed: Speed::MAX,
        more_scenarios: vec![mine],
        ..SimulatorOptions::default()
    })
    .await;
    assert_eq!(
        read(
            WireFormat::Anthropic,
            running.ask(WireFormat::Anthropic, "hello").await
        )
        .await
        .text,
        "mine"
    );
    let (_, list) = running.get("scenarios").await;
    assert_eq!(list[0]["name"], "echo");
    assert_eq!(
        list.as_array()
            .unwrap()
            .iter()
            .filter(|info| info["name"] == "echo")
            .count(),
        1
    );
}
