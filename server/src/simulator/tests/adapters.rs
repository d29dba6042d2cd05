//! The server's own adapters and tools against the simulator: each scenario through all its rounds.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::scenario::{Scenario, Step, Turn};
use super::super::{Speed, sample_workspace};
use super::client::{Running, start};
use super::scenarios;
use crate::clock::SystemClock;
use crate::provider::{
    AssistantPart, BlockStart, DecoderOptions, Endpoint, ModelMessage, ModelRequest, ProviderClient,
    ProviderError, ProviderErrorClass, ProviderKind, Replay, RoundContent, SseDecoder, SseItem, StopReason,
    StreamEnd, ToolDefinition, ToolResult, build_request, stream_decoder,
};
use crate::tool::{InnerModels, InnerRequest, ToolContext, ToolError, ToolProgress, ToolRegistry, Workspace};

struct NoProgress;

impl ToolProgress for NoProgress {
    fn log(&self, _text: &str) {}
    fn progress(&self, _done: u64, _total: Option<u64>, _note: Option<&str>) {}
}

async fn round(
    endpoint: &Endpoint,
    request: &ModelRequest,
) -> Result<(RoundContent, Option<Replay>), ProviderError> {
    let client = ProviderClient::new(Arc::new(SystemClock))?;
    let mut bytes = client
        .open(&build_request(endpoint, request), &CancellationToken::new())
        .await?;
    let mut events = SseDecoder::default();
    let mut decoder = stream_decoder(endpoint, &request.model, DecoderOptions::default());
    let mut content = RoundContent::default();
    while let Some(chunk) = bytes.next().await {
        match chunk {
            Ok(chunk) => {
                for item in events.push(&chunk) {
                    if let SseItem::Event(event) = item {
                        decoder.push(&event).iter().for_each(|event| content.apply(event));
                    }
                }
            }
            Err(error) => decoder
                .abort(Some(error))
                .iter()
                .for_each(|event| content.apply(event)),
        }
    }
    decoder.finish().iter().for_each(|event| content.apply(event));
    Ok((content, decoder.replay()))
}

/// Plays a scenario through all its rounds with real tools; the last round, and every tool result.
async fn play(
    running: &Running,
    kind: ProviderKind,
    scenario: &Scenario,
    tools: &ToolRegistry,
) -> (Result<RoundContent, ProviderError>, Vec<ToolResult>) {
    let base_url = match kind {
        ProviderKind::Anthropic => running.base.clone(),
        _ => format!("{}/v1", running.base),
    };
    let endpoint = Endpoint {
        provider_id: "demo".to_owned(),
        kind,
        base_url,
        api_key: None,
    };
    let definitions = tools.definitions().map(|info| ToolDefinition {
        name: info.name.clone(),
        description: info.description.clone(),
        parameters: info.parameters.clone(),
    });
    let mut request = ModelRequest {
        model: "demo".to_owned(),
        system: Some("Be brief.".to_owned()),
        messages: vec![ModelMessage::User {
            text: scenario.prompt.clone(),
        }],
        tools: definitions.collect(),
        max_tokens: Some(1000),
    };
    let mut all = Vec::new();
    // A round with repeats is asked for again when it fails.
    let mut repeats: usize = scenario.turns.iter().map(|turn| turn.again.len()).sum();
    loop {
        let asked = round(&endpoint, &request).await;
        let is_whole = asked
            .as_ref()
            .is_ok_and(|(content, _)| content.end == Some(StreamEnd::Complete) && !content.blocks.is_empty());
        if !is_whole && repeats > 0 {
            repeats -= 1;
            continue;
        }
        let (content, replay) = match asked {
            Ok(done) => done,
            Err(error) => return (Err(error), all),
        };
        let calls = content.calls();
        if content.end != Some(StreamEnd::Complete) || calls.iter().all(|call| call.parsed.is_err()) {
            return (Ok(content), all);
        }
        let mut parts = Vec::new();
        for block in &content.blocks {
            if block.kind == BlockStart::Text {
                parts.push(AssistantPart::Text {
                    text: block.content.clone(),
                });
            }
        }
        let mut results = Vec::new();
        for call in calls {
            let context = ToolContext {
                cancel: CancellationToken::new(),
                progress: Arc::new(NoProgress),
                models: answering(),
                calls: crate::tool::SubCalls::channel().0,
            };
            let arguments = call.parsed.clone().unwrap();
            let answer = match tools.get(&call.name) {
                Some(tool) => {
                    tool.check(&arguments)
                        .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
                    tool.call(arguments, &context).await
                }
                None => Err(ToolError::new("unknown_tool", "There is no such tool.")),
            };
            results.push(ToolResult {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                is_error: answer.is_err(),
                content: answer.map_or_else(|error| error.message, |output| output.text),
            });
            parts.push(AssistantPart::ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            });
        }
        all.extend(results.iter().cloned());
        request.messages.push(ModelMessage::Assistant { parts, replay });
        request.messages.push(ModelMessage::ToolResults { results });
    }
}

/// Models that answer every question for which no model is named.
fn answering() -> InnerModels {
    let (models, mut requests) = InnerModels::channel();
    tokio::spawn(async move {
        while let Some(InnerRequest { call, answer }) = requests.recv().await {
            let said = match call.model {
                None => Ok("It is so.".to_owned()),
                Some(_) => Err(ToolError::new("unknown_model", "There is no such model.")),
            };
            answer.send(said).unwrap();
        }
    });
    models
}

/// What serves a round at last.
fn last_of(turn: &Turn) -> &Turn {
    turn.again.last().unwrap_or(turn)
}

#[tokio::test]
async fn the_adapters_and_tools_play_every_scenario_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    sample_workspace::unpack(folder.path()).unwrap();
    let tools = ToolRegistry::built_in(Arc::new(Workspace::open(folder.path()).unwrap()));
    let running = start(Speed::MAX).await;
    for scenario in scenarios() {
        for kind in [
            ProviderKind::Anthropic,
            ProviderKind::OpenaiChat,
            ProviderKind::OpenaiResponses,
        ] {
            let name = format!("{} {kind:?}", scenario.name);
            let (last, results) = play(&running, kind, &scenario, &tools).await;
            let turn = last_of(scenario.turns.last().unwrap());
            match (turn.steps.last().unwrap(), last) {
                (Step::HttpError(step), last) => {
                    assert_eq!(last.unwrap_err().status, Some(step.status), "{name}");
                }
                (Step::Cut(_) | Step::EndWithoutTerminal(_), last) => {
                    let last = last.unwrap();
                    assert_eq!(last.end, Some(StreamEnd::Interrupted), "{name}");
                    assert_eq!(last.error.unwrap().class, ProviderErrorClass::Broken, "{name}");
                }
                (Step::ErrorEvent(_), last) => {
                    assert_eq!(
                        last.unwrap().error.unwrap().class,
                        ProviderErrorClass::Overloaded,
                        "{name}"
                    );
                }
                (Step::Stop(stop), last) if stop.without_terminal && kind != ProviderKind::OpenaiChat => {
                    assert_eq!(last.unwrap().end, Some(StreamEnd::Interrupted), "{name}");
                }
                (_, last) => assert_eq!(last.unwrap().end, Some(StreamEnd::Complete), "{name}"),
            }
            let calls = scenario.turns.iter().flat_map(|turn| &last_of(turn).steps);
            let calls = calls
                .map(|step| match step {
                    Step::ToolCall(call) if call.cut_after.is_none() => {
                        let times = call.times.as_ref();
                        times.map_or(1, |name| scenario.parameters[name] as usize)
                    }
                    _ => 0,
                })
                .sum::<usize>();
            assert_eq!(results.len(), calls, "{name}: {results:?}");
            let failed = match scenario.name.as_str() {
                "tool_error" => calls,
                // It calls tools that are not built in, and a model that there is not; it writes one file.
                "rows" => calls - 1,
                // Programs and MCP servers are not among the tools here.
                "program" | "program_many" | "mcp" => calls,
                _ => 0,
            };
            assert_eq!(
                results.iter().filter(|result| result.is_error).count(),
                failed,
                "{name}: {results:?}"
            );
            if scenario.name == "welcome" {
                assert!(results[0].content.contains("acorn"), "{}", results[0].content);
                for file in ["cli.py", "log.py", "store.py"] {
                    assert!(results[1].content.contains(file), "{}", results[1].content);
                }
                assert!(
                    results[2].content.contains("def records"),
                    "{}",
                    results[2].content
                );
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_is_told_apart_from_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let tools = ToolRegistry::built_in(Arc::new(Workspace::open(folder.path()).unwrap()));
    let running = start(Speed::MAX).await;
    let refusal = scenarios()
        .into_iter()
        .find(|scenario| scenario.name == "refusal")
        .unwrap();
    let (anthropic, _) = play(&running, ProviderKind::Anthropic, &refusal, &tools).await;
    assert_eq!(anthropic.unwrap().stop.unwrap().1, StopReason::Refusal);
    for kind in [ProviderKind::OpenaiChat, ProviderKind::OpenaiResponses] {
        let (content, _) = play(&running, kind, &refusal, &tools).await;
        let blocks = content.unwrap().blocks;
        assert!(
            blocks.iter().any(|block| block.kind == BlockStart::Refusal),
            "{kind:?}"
        );
    }
}
