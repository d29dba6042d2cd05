//! Replaying a transcript: from what a provider sent to the events that an adapter made of it.

use serde::Deserialize;

use super::transcript::TranscriptError;
use super::{TranscriptReader, TranscriptStore};
use crate::provider::{
    DecoderOptions, Endpoint, ProviderError, ProviderEvent, SseEvent, StreamDecoder, StreamEnd,
    stream_decoder,
};

/// The longest transcript that is replayed, in bytes: a longer one would hold up whoever waits for it.
const MAX_REPLAYED: u64 = 64 * 1024 * 1024;

/// A line of a transcript, as far as a replay needs it.
#[derive(Debug, Deserialize)]
struct Line {
    attempt: String,
    kind: String,
    #[serde(default)]
    event: Option<String>,
    #[serde(default)]
    data: Option<String>,
    /// What came of an event when the bytes ended: it was never decoded.
    #[serde(default)]
    cut: bool,
    #[serde(default)]
    outcome: Option<String>,
    #[serde(default)]
    decision: Option<String>,
}

/// The rounds of one attempt, rebuilt from its recorded lines.
struct Replay<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
    options: DecoderOptions,
    decoder: Option<Box<dyn StreamDecoder>>,
    rounds: Vec<Vec<ProviderEvent>>,
    /// What follows cannot be told apart from what came before.
    is_over: bool,
}

/// The events of every round of an attempt, as far as they are recorded; none when there is no transcript, or one
/// that is too long. Only the last round may be incomplete. A broken last line is ignored.
pub(crate) async fn rounds(
    transcripts: &TranscriptStore,
    run: &str,
    stream: &str,
    attempt: &str,
    endpoint: &Endpoint,
    model: &str,
) -> Result<Option<Vec<Vec<ProviderEvent>>>, ReplayError> {
    let files = transcripts.list(run).await?;
    match files.iter().find(|file| file.stream == stream) {
        None => return Ok(None),
        Some(file) if file.bytes > MAX_REPLAYED => {
            tracing::warn!(
                run.id = run,
                bytes = file.bytes,
                "a transcript is too long to be replayed"
            );
            return Ok(None);
        }
        Some(_) => {}
    }
    let mut reader = transcripts.read(run, stream).await?;
    replay(&mut reader, attempt, endpoint, model).await.map(Some)
}

async fn replay(
    reader: &mut TranscriptReader,
    attempt: &str,
    endpoint: &Endpoint,
    model: &str,
) -> Result<Vec<Vec<ProviderEvent>>, ReplayError> {
    let mut replay = Replay {
        endpoint,
        model,
        options: DecoderOptions::default(),
        decoder: None,
        rounds: Vec::new(),
        is_over: false,
    };
    while let Some(line) = reader.next_recorded_line().await? {
        // A line that is none was not written by a transcript.
        if let Ok(line) = serde_json::from_str::<Line>(&line)
            && line.attempt == attempt
        {
            replay.take(line)?;
        }
    }
    Ok(replay.rounds)
}

/// Why a transcript cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// The provider has no adapter.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl Replay<'_> {
    fn take(&mut self, line: Line) -> Result<(), ReplayError> {
        if self.is_over {
            return Ok(());
        }
        match line.kind.as_str() {
            "request" => self.request()?,
            "event" if !line.cut => {
                let data = line.data.unwrap_or_default();
                let bytes = data.len() as u64;
                let event = SseEvent {
                    event: line.event,
                    data,
                    bytes,
                };
                self.events(|decoder| decoder.push(&event));
            }
            "guard" if line.decision.as_deref() == Some("too_large") => {
                self.events(|decoder| decoder.abort(None));
            }
            "end" => match line.outcome.as_deref() {
                Some("complete") => self.events(|decoder| decoder.finish()),
                _ => self.events(|decoder| decoder.abort(None)),
            },
            _ => {}
        }
        Ok(())
    }

    /// A request begins a round, unless the one before gave nothing: then it is asked for again.
    fn request(&mut self) -> Result<(), ReplayError> {
        let is_again = match self.rounds.last() {
            None => false,
            Some(events) if is_complete(events) => false,
            Some(events) if !shows_anything(events) => true,
            Some(_) => {
                self.is_over = true;
                return Ok(());
            }
        };
        if is_again {
            self.rounds.pop();
        }
        self.rounds.push(Vec::new());
        self.decoder = Some(stream_decoder(self.endpoint, self.model, self.options));
        Ok(())
    }

    fn events(&mut self, decode: impl FnOnce(&mut Box<dyn StreamDecoder>) -> Vec<ProviderEvent>) {
        if let (Some(decoder), Some(round)) = (&mut self.decoder, self.rounds.last_mut()) {
            round.extend(decode(decoder));
        }
    }
}

/// Whether the round's end marker came.
pub(crate) fn is_complete(events: &[ProviderEvent]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, ProviderEvent::End(StreamEnd::Complete)))
}

fn shows_anything(events: &[ProviderEvent]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, ProviderEvent::BlockStart { .. }))
}

#[cfg(test)]
mod tests;
