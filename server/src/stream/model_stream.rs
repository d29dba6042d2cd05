//! One provider request while it runs.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use protocol::state::Retention;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::clocks::{Deadlines, Silence, StreamClocks, StreamLimits};
use super::transcript::{Transcript, TranscriptEntry, finished};
use super::unsaved::UnsavedReasoning;
use crate::clock::SharedClock;
use crate::provider::client::without_secret;
use crate::provider::{
    ByteStream, DecoderOptions, Endpoint, ModelRequest, ProviderClient, ProviderError, ProviderErrorClass,
    ProviderEvent, Replay, SseDecoder, SseEvent, SseItem, SseTail, StreamDecoder, StreamEnd, WireRequest,
    build_request, stream_decoder,
};

#[cfg(test)]
mod tests;

/// What a stream is started with.
#[derive(Clone)]
pub struct StreamStart {
    /// Where the model is served.
    pub endpoint: Endpoint,
    /// What is asked.
    pub request: ModelRequest,
    /// The attempt, for the transcript.
    pub attempt_id: String,
    /// How long it may be silent.
    pub limits: StreamLimits,
    /// What the endpoint's quirks ask for.
    pub options: DecoderOptions,
    /// Whether reasoning may be written down.
    pub reasoning: Retention,
}

/// What a stream gives.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// Events, never none. The last item of a stream holds [`ProviderEvent::End`].
    Events(Vec<ProviderEvent>),
    /// Bytes came that show nothing, such as a ping. Milliseconds since the Unix epoch.
    Clocks {
        /// When any byte came last.
        last_byte_at: Option<i64>,
        /// When content came last.
        last_content_at: Option<i64>,
    },
}

/// One provider request: open it, read it to its end. Dropping it closes the connection.
pub struct ModelStream {
    open: OpenRequest,
    wire: WireRequest,
    provider_id: String,
    attempt_id: String,
    source: Source,
    sse: SseDecoder,
    decoder: Box<dyn StreamDecoder>,
    transcript: Transcript,
    /// What may not be written down, where reasoning is not saved.
    unsaved: Option<UnsavedReasoning>,
    clock: SharedClock,
    clocks: Arc<StreamClocks>,
    limits: StreamLimits,
    deadlines: Deadlines,
    cancel: CancellationToken,
    /// Lines on their way to the file, and what is done once they are there. Kept here so that a caller that drops
    /// the future of [`ModelStream::next`] loses nothing.
    writing: Option<(JoinHandle<std::io::Result<()>>, Step)>,
    /// The connection was asked for without a field that the endpoint refused.
    simplified: bool,
    ended: bool,
}

type Chunks = BoxStream<'static, Result<Bytes, ProviderError>>;
type OpenRequest = Box<dyn Fn(WireRequest) -> BoxFuture<'static, Result<Chunks, ProviderError>> + Send>;

enum Source {
    /// The request line is not written yet.
    New,
    Opening(BoxFuture<'static, Result<Chunks, ProviderError>>),
    Open(Chunks),
    Closed,
}

enum Input {
    Opened(Result<Chunks, ProviderError>),
    Chunk(Bytes),
    Broken(ProviderError),
    EndOfBytes,
    Silent(Silence, u64),
    Cancelled,
}

/// What follows once the lines are in the transcript.
enum Step {
    Send,
    Decode(Vec<SseItem>),
    HandOn(Vec<ProviderEvent>),
    Finish(Option<SseEvent>),
    Deliver(Vec<ProviderEvent>),
}

impl ModelStream {
    /// Makes the request. Nothing is sent before the first [`ModelStream::next`]. A request that cannot be
    /// written is an error here.
    pub fn start(
        client: &ProviderClient,
        transcript: Transcript,
        clock: SharedClock,
        start: StreamStart,
        cancel: CancellationToken,
    ) -> Result<Self, ProviderError> {
        let client = client.clone();
        let token = cancel.clone();
        let open: OpenRequest = Box::new(move |request| {
            let (client, token) = (client.clone(), token.clone());
            Box::pin(async move { client.open(&request, &token).await.map(ByteStream::into_stream) })
        });
        Self::with_source(open, transcript, clock, start, cancel)
    }

    fn with_source(
        open: OpenRequest,
        transcript: Transcript,
        clock: SharedClock,
        start: StreamStart,
        cancel: CancellationToken,
    ) -> Result<Self, ProviderError> {
        let wire = build_request(&start.endpoint, &start.request);
        let decoder = stream_decoder(&start.endpoint, &start.request.model, start.options);
        Ok(Self {
            open,
            wire,
            provider_id: start.endpoint.provider_id,
            attempt_id: start.attempt_id,
            source: Source::New,
            sse: SseDecoder::default(),
            decoder,
            transcript,
            unsaved: (start.reasoning == Retention::NotSaved).then(UnsavedReasoning::default),
            clock,
            clocks: Arc::default(),
            limits: start.limits,
            deadlines: Deadlines::new(start.limits),
            cancel,
            writing: None,
            simplified: false,
            ended: false,
        })
    }

    /// The next item; none after the one that holds [`ProviderEvent::End`]. May be dropped and called again without
    /// a loss.
    pub async fn next(&mut self) -> Option<StreamItem> {
        loop {
            if let Some((handle, _)) = &mut self.writing {
                let joined = handle.await;
                let (_, step) = self.writing.take()?;
                if let Err(error) = finished(joined) {
                    return self.give_up(&error.to_string());
                }
                if let Some(item) = self.follow(step) {
                    return Some(item);
                }
                continue;
            }
            if self.ended {
                return None;
            }
            if matches!(self.source, Source::New) {
                let line = self.request_line();
                self.write(vec![line], Step::Send);
                continue;
            }
            let input = self.wait().await;
            self.take(input);
        }
    }

    /// The answer as the provider sent it, for [`crate::provider::ModelMessage::Assistant`]. Only after a complete
    /// end; an answer without anything to send back has none.
    pub fn replay(&self) -> Option<Replay> {
        self.decoder.replay()
    }

    /// The clocks, for another task to show.
    pub fn clocks(&self) -> Arc<StreamClocks> {
        Arc::clone(&self.clocks)
    }

    async fn wait(&mut self) -> Input {
        let deadline = self.deadlines.next();
        let limit = async {
            match deadline {
                Some((at, silence, ms)) => {
                    tokio::time::sleep_until(at).await;
                    Input::Silent(silence, ms)
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Input::Cancelled,
            input = receive(&mut self.source) => input,
            input = limit => input,
        }
    }

    /// Writes down what came and says what follows from it.
    fn take(&mut self, input: Input) {
        match input {
            Input::Opened(Ok(chunks)) => self.source = Source::Open(chunks),
            Input::Opened(Err(error)) if self.can_be_simpler(&error) => {
                self.simplified = true;
                if let Some(body) = self.wire.body.as_object_mut() {
                    body.shift_remove("stream_options");
                }
                let lines = vec![
                    TranscriptEntry::guard(
                        "ask_without",
                        json!({ "field": "stream_options", "error": error.message }),
                    ),
                    self.request_line(),
                ];
                self.source = Source::Closed;
                self.write(lines, Step::Send);
            }
            Input::Opened(Err(error)) => self.abort(Some(error), Vec::new()),
            Input::Chunk(chunk) => {
                self.clocks.note_bytes(self.clock.now_ms(), chunk.len() as u64);
                self.deadlines.note_byte();
                let items = self.sse.push(&chunk);
                if self.unsaved.is_some() {
                    let (lines, events) = self.decode_unsaved(&items);
                    self.write(lines, Step::HandOn(events));
                } else {
                    let lines = items.iter().map(TranscriptEntry::item).collect();
                    self.write(lines, Step::Decode(items));
                }
            }
            Input::Broken(error) => {
                let lines = match self.sse.finish() {
                    SseTail::Clean => Vec::new(),
                    SseTail::Event(SseEvent { data, .. }) | SseTail::Cut { data, .. } => {
                        vec![self.cut_line(&data)]
                    }
                };
                self.abort(Some(error), lines);
            }
            Input::EndOfBytes => self.end_of_bytes(Vec::new()),
            Input::Silent(Silence::AfterStop, ms) => {
                let lines = vec![TranscriptEntry::guard(
                    "end_after_stop",
                    json!({ "after_ms": ms }),
                )];
                self.end_of_bytes(lines);
            }
            Input::Silent(silence, ms) => {
                let (word, words) = match silence {
                    Silence::FirstByte => ("first_byte", "No first byte came"),
                    Silence::FirstContent => ("first_content", "No first content came"),
                    Silence::Byte => ("no_byte", "No byte came"),
                    Silence::Content | Silence::AfterStop => ("no_content", "Bytes but no content came"),
                };
                let message = format!("{words} for {}.", seconds(ms));
                let line = TranscriptEntry::guard("abort", json!({ "silence": word, "after_ms": ms }));
                self.abort(
                    Some(ProviderError::new(ProviderErrorClass::Stalled, message)),
                    vec![line],
                );
            }
            Input::Cancelled => self.abort(None, Vec::new()),
        }
    }

    fn end_of_bytes(&mut self, mut lines: Vec<TranscriptEntry>) {
        self.source = Source::Closed;
        let event = match self.sse.finish() {
            SseTail::Clean => None,
            SseTail::Event(event) if self.unsaved.is_some() => {
                let (written, mut events) = self.decode_unsaved(&[SseItem::Event(event)]);
                lines.extend(written);
                events.extend(self.decoder.finish());
                return self.write(lines, Step::HandOn(events));
            }
            SseTail::Event(event) => {
                lines.push(TranscriptEntry::event(&event));
                Some(event)
            }
            SseTail::Cut { data, .. } => {
                lines.push(self.cut_line(&data));
                None
            }
        };
        self.write(lines, Step::Finish(event));
    }

    /// Ends the stream from outside; without an error a person cancelled it.
    fn abort(&mut self, error: Option<ProviderError>, mut lines: Vec<TranscriptEntry>) {
        self.source = Source::Closed;
        let events = self.decoder.abort(error);
        lines.push(end_line(&events));
        self.write(lines, Step::Deliver(events));
    }

    fn follow(&mut self, step: Step) -> Option<StreamItem> {
        match step {
            Step::Send => {
                self.deadlines = Deadlines::new(self.limits);
                self.source = Source::Opening((self.open)(self.wire.clone()));
                None
            }
            Step::Decode(items) => {
                let events = items.iter().flat_map(|item| self.decode(item)).collect();
                self.hand_on(events)
            }
            Step::HandOn(events) => self.hand_on(events),
            Step::Finish(event) => {
                let mut events = event.map(|event| self.decoder.push(&event)).unwrap_or_default();
                events.extend(self.decoder.finish());
                self.hand_on(events)
            }
            Step::Deliver(events) => {
                self.ended = true;
                Some(StreamItem::Events(events))
            }
        }
    }

    fn decode(&mut self, item: &SseItem) -> Vec<ProviderEvent> {
        match item {
            SseItem::Event(event) => self.decoder.push(event),
            SseItem::Comment { .. } => Vec::new(),
            SseItem::TooLarge { limit } => {
                let message = format!(
                    "an event of the stream is larger than {} MiB",
                    limit / (1024 * 1024)
                );
                let error = ProviderError::new(ProviderErrorClass::Protocol, message);
                self.decoder.abort(Some(error))
            }
        }
    }

    /// Decodes first, since only the adapter knows what is reasoning, and writes the lines without it.
    fn decode_unsaved(&mut self, items: &[SseItem]) -> (Vec<TranscriptEntry>, Vec<ProviderEvent>) {
        let (mut lines, mut events) = (Vec::new(), Vec::new());
        for item in items {
            let decoded = self.decode(item);
            let mut line = TranscriptEntry::item(item);
            if let Some(unsaved) = &mut self.unsaved {
                line = line.hiding(|value| unsaved.hide_in(value, &decoded));
            }
            lines.push(line);
            events.extend(decoded);
        }
        (lines, events)
    }

    fn request_line(&self) -> TranscriptEntry {
        let line = TranscriptEntry::request(&self.provider_id, &self.wire);
        match &self.unsaved {
            Some(unsaved) => line.hiding(|body| unsaved.hide_in_request(body)),
            None => line,
        }
    }

    /// The part of an event that came before the bytes ended: nobody knows whether it is reasoning.
    fn cut_line(&self, data: &str) -> TranscriptEntry {
        match &self.unsaved {
            Some(_) => TranscriptEntry::cut_event(&format!("[{} bytes]", data.len())),
            None => TranscriptEntry::cut_event(data),
        }
    }

    /// Gives events to the caller; the last ones only after the end line is written.
    fn hand_on(&mut self, mut events: Vec<ProviderEvent>) -> Option<StreamItem> {
        let secret = self.wire.auth.as_ref().map(|(_, secret)| secret);
        for event in &mut events {
            if let ProviderEvent::Error(error) = event {
                *error = without_secret(error.clone(), secret);
            }
        }
        let chars: u64 = events.iter().map(content_chars).sum();
        if chars > 0 {
            self.clocks.note_content(self.clock.now_ms(), chars);
            self.deadlines.note_content();
        }
        if self.decoder.is_ended() {
            self.source = Source::Closed;
            self.write(vec![end_line(&events)], Step::Deliver(events));
            return None;
        }
        if self.decoder.has_stopped() {
            self.deadlines.note_stop();
        }
        if events.is_empty() {
            return Some(StreamItem::Clocks {
                last_byte_at: self.clocks.last_byte_at(),
                last_content_at: self.clocks.last_content_at(),
            });
        }
        Some(StreamItem::Events(events))
    }

    /// What cannot be written down may not be shown: the stream ends here.
    fn give_up(&mut self, message: &str) -> Option<StreamItem> {
        self.source = Source::Closed;
        self.ended = true;
        let error = ProviderError::new(ProviderErrorClass::Broken, message);
        let mut events = self.decoder.abort(Some(error.clone()));
        if events.is_empty() {
            events = vec![
                ProviderEvent::Error(error),
                ProviderEvent::End(StreamEnd::Interrupted),
            ];
        }
        Some(StreamItem::Events(events))
    }

    fn can_be_simpler(&self, error: &ProviderError) -> bool {
        !self.simplified
            && error.class == ProviderErrorClass::InvalidRequest
            && error.message.contains("stream_options")
            && self.wire.body.get("stream_options").is_some()
    }

    fn write(&mut self, lines: Vec<TranscriptEntry>, step: Step) {
        let secret = self.wire.auth.as_ref().map(|(_, secret)| secret);
        let lines = lines
            .into_iter()
            .map(|line| line.without_secret(secret))
            .collect();
        self.writing = Some((self.transcript.begin_append(&self.attempt_id, lines), step));
    }
}

async fn receive(source: &mut Source) -> Input {
    match source {
        Source::Opening(opening) => Input::Opened(opening.await),
        Source::Open(chunks) => match chunks.next().await {
            Some(Ok(chunk)) => Input::Chunk(chunk),
            Some(Err(error)) => Input::Broken(error),
            None => Input::EndOfBytes,
        },
        Source::New | Source::Closed => std::future::pending().await,
    }
}

/// How much an event shows. Starts and ends are no content: a provider can send them and then hang.
fn content_chars(event: &ProviderEvent) -> u64 {
    match event {
        ProviderEvent::Delta { text, .. }
        | ProviderEvent::ArgumentsDelta { json: text, .. }
        | ProviderEvent::ServerToolResult { text, .. } => text.chars().count() as u64,
        ProviderEvent::Started { .. }
        | ProviderEvent::BlockStart { .. }
        | ProviderEvent::BlockEnd { .. }
        | ProviderEvent::Contradiction { .. }
        | ProviderEvent::Usage(_)
        | ProviderEvent::Stop { .. }
        | ProviderEvent::Error(_)
        | ProviderEvent::End(_) => 0,
    }
}

fn end_line(events: &[ProviderEvent]) -> TranscriptEntry {
    let error = events.iter().find_map(|event| match event {
        ProviderEvent::Error(error) => Some(error),
        _ => None,
    });
    let outcome = match (events.last(), error) {
        (Some(ProviderEvent::End(StreamEnd::Complete)), _) => "complete",
        (_, Some(_)) => "interrupted",
        (_, None) => "cancelled",
    };
    let error = error.map(|error| {
        json!({
            "class": error.class, "status": error.status, "message": error.message,
            "retry_after_ms": error.retry_after_ms,
        })
    });
    TranscriptEntry::end(outcome, error)
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{ms} ms")
    }
}

impl std::fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelStream")
            .field("attempt_id", &self.attempt_id)
            .finish_non_exhaustive()
    }
}
