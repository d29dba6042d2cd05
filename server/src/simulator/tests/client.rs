//! A client of the simulator that speaks all formats as simply as possible: it is not the server's own adapter, so
//! that an error common to both sides cannot hide.

use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::simulator::{Simulator, SimulatorOptions, Speed, WireFormat, serve};

pub(super) const FORMATS: [WireFormat; 3] = [
    WireFormat::Anthropic,
    WireFormat::OpenaiChat,
    WireFormat::OpenaiResponses,
];

/// A simulator on a port of its own.
pub(super) struct Running {
    pub(super) base: String,
    pub(super) client: Client,
    pub(super) cancel: CancellationToken,
    pub(super) served: JoinHandle<std::io::Result<()>>,
}

pub(super) async fn start(speed: Speed) -> Running {
    start_with(SimulatorOptions {
        speed,
        ..SimulatorOptions::default()
    })
    .await
}

pub(super) async fn start_with(options: SimulatorOptions) -> Running {
    // Fails when another test of this process was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let cancel = CancellationToken::new();
    let served = tokio::spawn(serve(listener, Simulator::new(options), cancel.clone()));
    let client = Client::builder().no_proxy().build().unwrap();
    Running {
        base,
        client,
        cancel,
        served,
    }
}

/// One call as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// What one reply held.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) bytes: Vec<u8>,
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) refusal: String,
    pub(super) signatures: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Option<String>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) pings: usize,
    pub(super) terminal: bool,
    /// Whether the connection broke.
    pub(super) broken: bool,
}

impl Running {
    pub(super) async fn send(&self, format: WireFormat, model: &str, messages: &Value) -> Response {
        let (path, body) = match format {
            WireFormat::Anthropic => (
                "/v1/messages",
                json!({"model": model, "max_tokens": 1000, "stream": true, "messages": messages}),
            ),
            WireFormat::OpenaiChat => (
                "/v1/chat/completions",
                json!({
                    "model": model, "stream": true, "stream_options": {"include_usage": true}, "messages": messages,
                }),
            ),
            WireFormat::OpenaiResponses => (
                "/v1/responses",
                json!({"model": model, "stream": true, "store": false, "input": messages}),
            ),
        };
        self.client
            .post(format!("{}{path}", self.base))
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", "very-secret")
            .header("authorization", "Bearer very-secret")
            .json(&body)
            .send()
            .await
            .unwrap()
    }

    pub(super) async fn ask(&self, format: WireFormat, prompt: &str) -> Response {
        self.send(format, "demo", &json!([{"role": "user", "content": prompt}]))
            .await
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        let response = self
            .client
            .get(format!("{}/_sim/{path}", self.base))
            .send()
            .await
            .unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(super) async fn post(&self, path: &str) -> (u16, Value) {
        let response = self
            .client
            .post(format!("{}/_sim/{path}", self.base))
            .send()
            .await
            .unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

/// Reads a reply to its end.
pub(super) async fn read(format: WireFormat, mut response: Response) -> Reply {
    let mut reply = Reply {
        status: response.status().as_u16(),
        ..Reply::default()
    };
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => reply.bytes.extend_from_slice(&bytes),
            Ok(None) => break,
            Err(_) => {
                reply.broken = true;
                break;
            }
        }
    }
    if reply.status == 200 {
        parse(format, &mut reply);
    }
    reply
}

/// Reads the events of the bytes so far; each piece that the simulator sends holds whole events.
pub(super) fn parse(format: WireFormat, reply: &mut Reply) {
    let stream = String::from_utf8(reply.bytes.clone()).unwrap();
    let stream = stream.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    for line in stream.lines() {
        if let Some(data) = line.strip_prefix("data:").map(str::trim_start) {
            assert!(!reply.terminal, "something follows the end marker: {data}");
            match format {
                WireFormat::Anthropic => anthropic(&serde_json::from_str(data).unwrap(), reply),
                WireFormat::OpenaiChat if data == "[DONE]" => reply.terminal = true,
                WireFormat::OpenaiChat => chat(&serde_json::from_str(data).unwrap(), reply),
                WireFormat::OpenaiResponses => responses(&serde_json::from_str(data).unwrap(), reply),
            }
        } else if line.starts_with(": keep-alive") {
            reply.pings += 1;
        }
    }
}

fn push(text: &mut String, value: &Value) {
    text.push_str(value.as_str().unwrap_or_default());
}

fn anthropic(event: &Value, reply: &mut Reply) {
    match event["type"].as_str().unwrap() {
        "content_block_start" if event["content_block"]["type"] == "tool_use" => reply.calls.push(Call {
            id: event["content_block"]["id"].as_str().map(str::to_owned),
            name: event["content_block"]["name"].as_str().unwrap().to_owned(),
            arguments: String::new(),
        }),
        "content_block_delta" => {
            let delta = &event["delta"];
            push(&mut reply.text, &delta["text"]);
            push(&mut reply.reasoning, &delta["thinking"]);
            if let Some(json) = delta["partial_json"].as_str() {
                reply.calls.last_mut().unwrap().arguments.push_str(json);
            }
            reply
                .signatures
                .extend(delta["signature"].as_str().map(str::to_owned));
        }
        "message_delta" => {
            reply.stop = event["delta"]["stop_reason"].as_str().map(str::to_owned);
            reply.usage = Some(event["usage"].clone());
        }
        "error" => reply.error = Some(event["error"].clone()),
        "message_stop" => reply.terminal = true,
        "ping" => reply.pings += 1,
        "message_start" | "content_block_start" | "content_block_stop" => {}
        other => panic!("unknown event {other}"),
    }
}

fn chat(chunk: &Value, reply: &mut Reply) {
    if !chunk["error"].is_null() {
        reply.error = Some(chunk["error"].clone());
        return;
    }
    if !chunk["usage"].is_null() {
        reply.usage = Some(chunk["usage"].clone());
    }
    let choice = &chunk["choices"][0];
    let delta = &choice["delta"];
    push(&mut reply.text, &delta["content"]);
    push(&mut reply.reasoning, &delta["reasoning_content"]);
    push(&mut reply.refusal, &delta["refusal"]);
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        if let Some(name) = call["function"]["name"].as_str() {
            let id = call["id"].as_str().map(str::to_owned);
            reply.calls.push(Call {
                id,
                name: name.to_owned(),
                arguments: String::new(),
            });
        }
        push(
            &mut reply.calls.last_mut().unwrap().arguments,
            &call["function"]["arguments"],
        );
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        reply.stop = Some(reason.to_owned());
    }
}

fn responses(event: &Value, reply: &mut Reply) {
    let delta = &event["delta"];
    match event["type"].as_str().unwrap() {
        "response.output_item.added" if event["item"]["type"] == "function_call" => reply.calls.push(Call {
            id: event["item"]["call_id"].as_str().map(str::to_owned),
            name: event["item"]["name"].as_str().unwrap().to_owned(),
            arguments: String::new(),
        }),
        "response.output_text.delta" => push(&mut reply.text, delta),
        "response.refusal.delta" => push(&mut reply.refusal, delta),
        "response.reasoning_summary_text.delta" => push(&mut reply.reasoning, delta),
        "response.function_call_arguments.delta" => {
            push(&mut reply.calls.last_mut().unwrap().arguments, delta);
        }
        "response.output_item.done" => {
            let signature = event["item"]["encrypted_content"].as_str();
            reply.signatures.extend(signature.map(str::to_owned));
        }
        "error" => reply.error = Some(event.clone()),
        "response.completed" | "response.incomplete" => {
            let response = &event["response"];
            let reason = response["incomplete_details"]["reason"].as_str();
            reply.stop = reason.or(response["status"].as_str()).map(str::to_owned);
            reply.usage = Some(response["usage"].clone());
            reply.terminal = true;
        }
        other => assert!(other.starts_with("response."), "unknown event {other}"),
    }
}

/// The messages that follow a reply with tool calls: the reply itself, and a result for each call.
pub(super) fn follow_up(format: WireFormat, reply: &Reply, round: usize) -> Vec<Value> {
    // Ids as an executor makes them where they are missing, empty or repeated.
    let ids: Vec<String> = (0..reply.calls.len())
        .map(|index| format!("own_{round}_{index}"))
        .collect();
    let calls = reply.calls.iter().zip(&ids);
    // Arguments that were cut are sent back as none.
    let whole = |arguments: &str| serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
    match format {
        WireFormat::Anthropic => {
            let uses = calls.map(|(call, id)| {
                let input = whole(&call.arguments);
                json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
            });
            let mut content: Vec<Value> = uses.collect();
            if let [signature] = reply.signatures.as_slice() {
                let block = json!({"type": "thinking", "thinking": reply.reasoning, "signature": signature});
                content.insert(0, block);
            }
            let results: Vec<Value> = ids
                .iter()
                .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"}))
                .collect();
            vec![
                json!({"role": "assistant", "content": content}),
                json!({"role": "user", "content": results}),
            ]
        }
        WireFormat::OpenaiChat => {
            let calls: Vec<Value> = calls
                .map(|(call, id)| {
                    let function =
                        json!({"name": call.name, "arguments": whole(&call.arguments).to_string()});
                    json!({"id": id, "type": "function", "function": function})
                })
                .collect();
            let assistant = json!({"role": "assistant", "content": reply.text, "tool_calls": calls});
            let results = ids
                .iter()
                .map(|id| json!({"role": "tool", "tool_call_id": id, "content": "ok"}));
            std::iter::once(assistant).chain(results).collect()
        }
        WireFormat::OpenaiResponses => {
            let uses = calls.map(|(call, id)| {
                let arguments = whole(&call.arguments).to_string();
                json!({"type": "function_call", "call_id": id, "name": call.name, "arguments": arguments})
            });
            let mut items: Vec<Value> = uses.collect();
            if let [signature] = reply.signatures.as_slice() {
                let summary = json!([{"type": "summary_text", "text": reply.reasoning}]);
                let reasoning =
                    json!({"type": "reasoning", "summary": summary, "encrypted_content": signature});
                items.insert(0, reasoning);
            }
            let results = ids
                .iter()
                .map(|id| json!({"type": "function_call_output", "call_id": id, "output": "ok"}));
            items.extend(results);
            items
        }
    }
}
