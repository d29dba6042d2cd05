//! The provider's routes: a request comes in, a turn is picked, its stream or its error goes out.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::Value;
use std::sync::Arc;

use super::control::Control;
use super::failure::Failure;
use super::generator::{Generator, check_load};
use super::ledger::{ConnectionEnd, RequestRecord, public_headers};
use super::outlet::Outlet;
use super::pace::Pace;
use super::parameters::Parameters;
use super::player::{Player, tokens};
use super::request::{self, Incoming};
use super::scenario::{Scenario, Step, Turn};
use super::wire::{
    AnthropicEncoder, Encode, Framing, OpenaiChatEncoder, OpenaiResponsesEncoder, UsageCounts, WireFormat,
};

/// The largest body that is read; the limit of Anthropic Messages.
const BODY_LIMIT: usize = 32 * 1024 * 1024;

pub(super) fn router(control: Control) -> Router {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/chat/completions", post(chat_completions))
        .route("/v1/responses", post(responses))
        .route("/responses", post(responses))
        .with_state(control)
}

async fn messages(State(control): State<Control>, request: Request<Body>) -> Response {
    serve(control, WireFormat::Anthropic, request).await
}

async fn chat_completions(State(control): State<Control>, request: Request<Body>) -> Response {
    serve(control, WireFormat::OpenaiChat, request).await
}

async fn responses(State(control): State<Control>, request: Request<Body>) -> Response {
    serve(control, WireFormat::OpenaiResponses, request).await
}

/// A request with the turn that serves it.
struct Picked {
    incoming: Incoming,
    scenario: Arc<Scenario>,
    turn: Turn,
    parameters: Parameters,
}

fn pick(control: &Control, format: WireFormat, parts: &Parts, body: &[u8]) -> Result<Picked, Failure> {
    let incoming = request::read(format, &parts.headers, body)?;
    let (scenario, parameters) = control
        .simulator
        .catalogue
        .pick(&incoming.model, &incoming.prompt)?;
    let bottom = scenario.bottom.as_ref();
    let turns = match bottom.filter(|bottom| parameters.number(&bottom.parameter) <= 1.0) {
        Some(bottom) => &bottom.turns,
        None => &scenario.turns,
    };
    let turn = turns
        .get(incoming.round)
        .or_else(|| turns.last())
        .ok_or_else(|| Failure::new(500, "the scenario has no turns"))?;
    let place = (
        format,
        scenario.name.clone(),
        incoming.prompt.clone(),
        incoming.round,
    );
    let turn = control.simulator.repeats.pick(place, turn, incoming.goes_on);
    let is_load = |step: &Step| matches!(step, Step::Text(text) if text.generator == Some(Generator::Load));
    if turn.steps.iter().any(is_load) {
        check_load(&parameters).map_err(Failure::invalid)?;
    }
    Ok(Picked {
        incoming,
        scenario,
        turn,
        parameters,
    })
}

async fn serve(control: Control, format: WireFormat, request: Request<Body>) -> Response {
    let simulator = &control.simulator;
    let number = simulator.next_number();
    let request_id = format!("req_sim_{}_{number}", simulator.seed);
    let at_ms = simulator.ledger.now_ms();
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        let failure = Failure::new(
            413,
            "Request exceeds the maximum size of 32 MB, or its body broke off",
        );
        return with_id(failure.into_response(format, &request_id), format, &request_id);
    };
    let picked = pick(&control, format, &parts, &body);
    let mut record = RequestRecord {
        number,
        at_ms,
        path: parts.uri.path().to_owned(),
        format,
        headers: public_headers(&parts.headers),
        body: serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned())),
        status: 200,
        scenario: None,
        round: None,
        error: None,
    };
    let response = match picked {
        Err(failure) => {
            record.status = failure.status;
            record.error = Some(failure.message.clone());
            simulator.ledger.record_request(record, body.len());
            failure.into_response(format, &request_id)
        }
        Ok(picked) => {
            record.scenario = Some(picked.scenario.name.clone());
            record.round = Some(picked.incoming.round);
            record.status = picked.turn.http_error().map_or(200, |(_, error)| error.status);
            simulator.ledger.record_request(record, body.len());
            let input_tokens = tokens(body.len());
            answer(&control, format, picked, number, input_tokens, &request_id).await
        }
    };
    with_id(response, format, &request_id)
}

fn with_id(mut response: Response, format: WireFormat, request_id: &str) -> Response {
    let name = match format {
        WireFormat::Anthropic => "request-id",
        WireFormat::OpenaiChat | WireFormat::OpenaiResponses => "x-request-id",
    };
    if let Ok(value) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn answer(
    control: &Control,
    format: WireFormat,
    picked: Picked,
    number: u64,
    input_tokens: u64,
    request_id: &str,
) -> Response {
    let simulator = control.simulator.clone();
    let Picked {
        incoming,
        scenario,
        turn,
        parameters,
    } = picked;
    let connection = simulator
        .ledger
        .open_connection(number, &scenario.name, incoming.round);
    if let Some((before, error)) = turn.http_error() {
        // Here the client's leaving drops this future, and with it the connection.
        let end = tokio::select! {
            () = delay(control, before, &parameters) => ConnectionEnd::Complete,
            () = control.shutdown.cancelled() => ConnectionEnd::Shutdown,
        };
        connection.finish(end);
        return Failure::of_step(error).into_response(format, request_id);
    }
    let response_id = format!("sim{}x{number}", simulator.seed);
    let (encoder, call_prefix): (Box<dyn Encode>, _) = match format {
        WireFormat::Anthropic => {
            let id = format!("msg_{response_id}");
            (
                Box::new(AnthropicEncoder::new(id, incoming.model, input_tokens)),
                "toolu_",
            )
        }
        WireFormat::OpenaiChat => {
            let id = format!("chatcmpl-{response_id}");
            (
                Box::new(OpenaiChatEncoder::new(id, incoming.model, incoming.include_usage)),
                "call_",
            )
        }
        WireFormat::OpenaiResponses => {
            let id = format!("resp_{response_id}");
            (Box::new(OpenaiResponsesEncoder::new(id, incoming.model)), "call_")
        }
    };
    let (outlet, body) = Outlet::new(Framing::new(scenario.wire.clone()), control.shutdown.clone());
    let player = Player {
        pace: Pace::new(simulator.speed),
        simulator,
        outlet,
        encoder,
        parameters,
        prompt: incoming.prompt,
        response_id,
        call_prefix,
        usage: UsageCounts {
            input: input_tokens,
            output: 0,
            reasoning: 0,
        },
        calls: 0,
        cut_arguments: false,
        characters: 0,
        reasoning_characters: 0,
    };
    tokio::spawn(async move { player.play(&turn.steps, connection).await });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}

/// What stands before an HTTP error: gates and silences only, as its file was checked.
async fn delay(control: &Control, steps: &[Step], parameters: &Parameters) {
    let mut pace = Pace::new(control.simulator.speed);
    for step in steps {
        match step {
            Step::Gate(gate) => {
                control.simulator.gates.pass(&gate.name).await;
                pace.restart();
            }
            Step::Silence(silence) => pace.wait(silence.length(parameters)).await,
            _ => {}
        }
    }
}
