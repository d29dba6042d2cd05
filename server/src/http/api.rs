//! The calls of the API: one list, of which the router and the OpenAPI document are made.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use protocol::api::{
    AnswerApproval, CreateRun, CreateSession, HighlightText, Highlighted, ImportAnswer, NodeRecord,
    RunCreated, RunDigest, RunMarks, SessionCreated, SessionList, SessionSummary, TranscriptSummary,
};
use protocol::frame::{ClientFrame, ServerFrame};
use protocol::op::Entry;
use protocol::search::{SearchAnswer, WayTo};
use protocol::snapshot::Snapshot;

use super::error::ApiError;
use super::openapi::{Call, document};
use super::{AppState, exchange, highlight, nodes, runs, search, sessions, stream, transcripts};

/// Every call below `/api`.
pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/api/openapi.json", document, "openapi", "This document.")
            .answers_text(StatusCode::OK, "application/json"),
        Call::get(
            "/api/setup",
            sessions::setup,
            "setup",
            "What can be started on this server: models, and sample prompts of the demo provider.",
        )
        .answers::<app::data::port::Setup>(StatusCode::OK),
        Call::get(
            "/api/sessions",
            sessions::list,
            "listSessions",
            "Sessions, newest first, a page of 50 at a time.",
        )
        .query::<sessions::ListParameters>()
        .answers::<SessionList>(StatusCode::OK),
        Call::post("/api/sessions", sessions::create, "createSession", "Creates a session.")
            .takes::<CreateSession>()
            .answers::<SessionCreated>(StatusCode::CREATED),
        Call::get(
            "/api/sessions/{session}",
            sessions::read,
            "readSession",
            "A session with the summaries of its runs.",
        )
        .answers::<SessionSummary>(StatusCode::OK),
        Call::get(
            "/api/sessions/{session}/search",
            search::search,
            "searchSession",
            "Finds a text in all that the page of a session could show, in the order of the page.",
        )
        .query::<search::SearchParameters>()
        .answers::<SearchAnswer>(StatusCode::OK),
        Call::get(
            "/api/sessions/{session}/way",
            search::way,
            "readWay",
            "What leads to a block or a node: windows to be added to the one that is known.",
        )
        .query::<search::WayParameters>()
        .answers::<WayTo>(StatusCode::OK),
        Call::post(
            "/api/sessions/{session}/runs",
            runs::create,
            "createRun",
            "Queues a run. The same Idempotency-Key in a session gives the same run.",
        )
        .header("Idempotency-Key", "1 to 200 visible ASCII characters.")
        .takes::<CreateRun>()
        .answers::<RunCreated>(StatusCode::ACCEPTED),
        Call::get(
            "/api/runs/{run}/snapshot",
            runs::snapshot,
            "readSnapshot",
            "The state of a run; with `window` a part of it, and with `attempt` and `before` the blocks before a place.",
        )
        .query::<runs::SnapshotParameters>()
        .answers::<Snapshot>(StatusCode::OK),
        Call::get(
            "/api/runs/{run}/digest",
            runs::digest,
            "readDigest",
            "The digest of a run, over its whole record.",
        )
        .answers::<RunDigest>(StatusCode::OK),
        Call::get(
            "/api/runs/{run}/ops",
            runs::ops,
            "readOps",
            "The journal of a run: one op a line.",
        )
        .query::<runs::OpsParameters>()
        .answers_lines::<Entry>(StatusCode::OK),
        Call::get(
            "/api/runs/{run}/marks",
            runs::marks,
            "readMarks",
            "What stands out in a run, by op: attempts, calls, stalls, notices.",
        )
        .answers::<RunMarks>(StatusCode::OK),
        Call::get(
            "/api/runs/{run}/export",
            exchange::export,
            "exportRun",
            "The whole record of a run: JSON lines that can be imported again, Markdown, or one HTML page.",
        )
        .query::<exchange::ExportParameters>()
        .answers_text(StatusCode::OK, "application/x-ndjson"),
        Call::post(
            "/api/import",
            exchange::import,
            "importRecord",
            "Takes in a record: an export, a legacy record, or what another program keeps. Repeating it is harmless.",
        )
        .takes_file()
        .answers::<ImportAnswer>(StatusCode::OK),
        Call::post(
            "/api/runs/{run}/cancel",
            runs::cancel,
            "cancelRun",
            "Stops a run. Repeating it is harmless.",
        )
        .answers_nothing(StatusCode::ACCEPTED),
        Call::post(
            "/api/runs/{run}/resume",
            runs::resume,
            "resumeRun",
            "Lets a run that was interrupted, failed or was cancelled go on from what is kept. Repeating it is harmless.",
        )
        .answers_nothing(StatusCode::ACCEPTED),
        Call::get(
            "/api/runs/{run}/transcripts",
            transcripts::list,
            "listTranscripts",
            "What providers sent: the streams of a run as recorded.",
        )
        .answers::<Vec<TranscriptSummary>>(StatusCode::OK),
        Call::get(
            "/api/runs/{run}/transcripts/{*path}",
            transcripts::read,
            "readTranscript",
            "One transcript, one JSON object a line, opaque values replaced by their length.",
        )
        .query::<transcripts::ReadParameters>()
        .ranged("text/plain; charset=utf-8"),
        Call::get(
            "/api/nodes/{node}",
            nodes::read,
            "readNode",
            "A node with its attempts and blocks.",
        )
        .answers::<NodeRecord>(StatusCode::OK),
        Call::post(
            "/api/nodes/{node}/cancel",
            runs::cancel_node,
            "cancelNode",
            "Stops one call or one inner model of a run, and all below it; the rest goes on. Repeating it is harmless.",
        )
        .answers_nothing(StatusCode::ACCEPTED),
        Call::post(
            "/api/nodes/{node}/approval",
            runs::approval,
            "answerApproval",
            "Answers a call that waits for that: the first answer counts, and repeating it is harmless.",
        )
        .takes::<AnswerApproval>()
        .answers_nothing(StatusCode::ACCEPTED),
        Call::post(
            "/api/nodes/{node}/regenerate",
            runs::regenerate,
            "regenerateNode",
            "Asks for another answer to the last prompt of a session. Repeating it is harmless.",
        )
        .answers_nothing(StatusCode::ACCEPTED),
        Call::get(
            "/api/nodes/{node}/output",
            nodes::output,
            "readOutput",
            "The whole of one channel of a node.",
        )
        .query::<nodes::OutputParameters>()
        .ranged("text/plain; charset=utf-8"),
        Call::get(
            "/api/blocks/{block}/content",
            nodes::content,
            "readContent",
            "The whole content of a block.",
        )
        .ranged("text/plain; charset=utf-8"),
        Call::post(
            "/api/highlight",
            highlight::highlight,
            "highlight",
            "Tells apart the words of a text's language, or marks what a pattern matches in it.",
        )
        .takes::<HighlightText>()
        .answers::<Highlighted>(StatusCode::OK),
        Call::get(
            "/api/stream",
            stream::connect,
            "stream",
            "The WebSocket of a page: the client's messages and the server's are the schemas ClientFrame and ServerFrame.",
        )
        .frames::<ClientFrame, ServerFrame>(),
    ]
}

/// The router of all calls; any other address below `/api` is a problem document.
pub(super) fn router() -> Router<AppState> {
    calls()
        .into_iter()
        .fold(Router::new(), |router, call| {
            let (path, handler) = call.into_route();
            router.route(path, handler)
        })
        .route("/api/{*rest}", any(async || ApiError::NoSuchCall))
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
}
