//! Streams: one provider request while it runs, its transcript on disk, and its two clocks.
//!
//! [`ModelStream`] opens a request, appends every raw item to the [`Transcript`] before anything is made of it, moves
//! the clocks, holds them against [`StreamLimits`], and gives [`ProviderEvent`]s. Its end is always explicit:
//! the last item holds [`ProviderEvent::End`]. `Complete` means that the format's end marker came; `Interrupted` is
//! preceded by [`ProviderEvent::Error`], except after a cancel. Calls may be run only after `Complete`.
//!
//! One round of a turn:
//!
//! ```no_run
//! # use server::provider::*;
//! # use server::stream::*;
//! # use tokio_util::sync::CancellationToken;
//! # async fn round(client: ProviderClient, transcripts: TranscriptStore, endpoint: Endpoint, mut request: ModelRequest,
//! #     clock: server::clock::SharedClock, cancel: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
//! let transcript = transcripts.open("run_1", "chat/call_1", clock.clone()).await?;
//! let start = StreamStart {
//!     endpoint,
//!     request: request.clone(),
//!     attempt_id: "att_1".to_owned(),
//!     limits: StreamLimits::thinking(),
//!     options: DecoderOptions::default(),
//!     reasoning: protocol::state::Retention::Saved,
//! };
//! let mut stream = ModelStream::start(&client, transcript, clock, start, cancel)?;
//! let mut round = RoundContent::default();
//! while let Some(item) = stream.next().await {
//!     match item {
//!         StreamItem::Events(events) => events.iter().for_each(|event| round.apply(event)), // and: ops
//!         StreamItem::Clocks { .. } => {} // alive, nothing to show
//!     }
//! }
//! if round.end == Some(StreamEnd::Complete) {
//!     request.messages.push(ModelMessage::Assistant { parts: round.parts(), replay: stream.replay() });
//!     let results: Vec<ToolResult> = round.calls().into_iter().map(|call| todo_run(call)).collect();
//!     request.messages.push(ModelMessage::ToolResults { results });
//! }
//! # Ok(()) }
//! # fn todo_run(_: RoundCall) -> ToolResult { unreachable!() }
//! ```
//!
//! [`ProviderEvent`]: crate::provider::ProviderEvent
//! [`ProviderEvent::End`]: crate::provider::ProviderEvent::End
//! [`ProviderEvent::Error`]: crate::provider::ProviderEvent::Error

mod clocks;
mod health;
mod model_stream;
mod redact;
pub(crate) mod replay;
mod retry;
mod transcript;
mod unsaved;

pub use clocks::{Silence, StreamClocks, StreamLimits};
pub use health::{Outage, ProviderHealth, Seat};
pub use model_stream::{ModelStream, StreamItem, StreamStart};
pub use redact::redact_line;
pub use retry::{Decision, Failure, FixedJitter, Jitter, RandomJitter, Retries, SharedJitter};
pub use transcript::{
    Transcript, TranscriptEntry, TranscriptError, TranscriptFile, TranscriptReader, TranscriptStore,
};
