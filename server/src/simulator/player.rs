//! Plays one turn of a scenario into a reply.

use std::sync::Arc;

use super::Simulator;
use super::generator::{Generator, echo, load_size, load_token, markdown, prose};
use super::ledger::{Connection, ConnectionEnd};
use super::outlet::{Gone, Outlet};
use super::pace::Pace;
use super::parameters::Parameters;
use super::scenario::{SilenceStep, Step, StopStep, StopWord, TextStep, ToolCallStep, UsageStep};
use super::wire::{Encode, Frame, ToolStart, UsageCounts};

/// About how many characters one token has, for counts that a scenario does not give.
const CHARACTERS_PER_TOKEN: usize = 4;

/// Tokens for that many characters.
pub(super) fn tokens(characters: usize) -> u64 {
    u64::try_from(characters.div_ceil(CHARACTERS_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// How a turn was played to its end.
enum Ended {
    /// Nothing more follows.
    Final(ConnectionEnd),
    /// The steps are over without an end of their own.
    Open,
}

/// One reply being played.
pub(super) struct Player {
    pub(super) simulator: Arc<Simulator>,
    pub(super) outlet: Outlet,
    pub(super) encoder: Box<dyn Encode>,
    pub(super) parameters: Parameters,
    pub(super) prompt: String,
    /// The id of the response; ids of tool calls and send times are named after it.
    pub(super) response_id: String,
    /// How ids of tool calls begin in the wire format.
    pub(super) call_prefix: &'static str,
    pub(super) usage: UsageCounts,
    pub(super) pace: Pace,
    pub(super) calls: usize,
    pub(super) cut_arguments: bool,
    pub(super) characters: usize,
    pub(super) reasoning_characters: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Text,
    Refusal,
}

impl Player {
    /// Plays the steps and settles the connection.
    pub(super) async fn play(mut self, steps: &[Step], connection: Connection) {
        match self.run(steps).await {
            Ok(end) => connection.finish(end),
            Err(Gone::Shutdown) => {
                // No end marker: for the client this is a server that went away.
                connection.finish(ConnectionEnd::Shutdown);
            }
            Err(Gone::Client) => connection.finish(ConnectionEnd::ClientClosed),
        }
    }

    async fn run(&mut self, steps: &[Step]) -> Result<ConnectionEnd, Gone> {
        for (index, step) in steps.iter().enumerate() {
            let rest = steps.get(index + 1..).unwrap_or_default();
            if let Ended::Final(end) = self.step(step, rest).await? {
                return Ok(end);
            }
        }
        self.stop(&StopStep::default()).await
    }

    async fn step(&mut self, step: &Step, rest: &[Step]) -> Result<Ended, Gone> {
        match step {
            Step::Reasoning(text) => self.content(Kind::Reasoning, text, rest).await?,
            Step::Text(text) => self.content(Kind::Text, text, rest).await?,
            Step::Refusal(text) => self.content(Kind::Refusal, text, rest).await?,
            Step::ToolCall(call) => {
                let times = call.times.as_ref();
                for number in 1..=times.map_or(1, |name| self.parameters.count(name)) {
                    self.tool_call(call, number, rest).await?;
                }
            }
            Step::TextOnOpenTool(text) => {
                self.characters += text.text.chars().count();
                self.emit(|encoder, out| encoder.text_on_open_tool(&text.text, out))
                    .await?;
            }
            Step::Silence(silence) => self.silence(silence).await?,
            Step::Gate(gate) => {
                self.outlet
                    .while_read(self.simulator.gates.pass(&gate.name))
                    .await?;
                self.pace.restart();
            }
            Step::Usage(usage) => self.set_usage(usage),
            Step::Comment(comment) => self.outlet.send(&[Frame::Comment(comment.text.clone())]).await?,
            Step::ErrorEvent(error) => {
                self.emit(|encoder, out| encoder.error(error, out)).await?;
                return Ok(Ended::Final(ConnectionEnd::Complete));
            }
            Step::Stop(stop) => return Ok(Ended::Final(self.stop(stop).await?)),
            Step::Cut(_) => {
                self.outlet.cut().await?;
                return Ok(Ended::Final(ConnectionEnd::Cut));
            }
            // An HTTP error is answered before there is a player.
            Step::EndWithoutTerminal(_) | Step::HttpError(_) => {
                return Ok(Ended::Final(ConnectionEnd::Complete));
            }
        }
        Ok(Ended::Open)
    }

    async fn emit(&mut self, write: impl FnOnce(&mut dyn Encode, &mut Vec<Frame>)) -> Result<(), Gone> {
        let mut out = Vec::new();
        write(self.encoder.as_mut(), &mut out);
        self.outlet.send(&out).await
    }

    async fn wait(&mut self, seconds: f64) -> Result<(), Gone> {
        self.outlet.while_read(self.pace.wait(seconds)).await
    }

    async fn content(&mut self, kind: Kind, step: &TextStep, rest: &[Step]) -> Result<(), Gone> {
        if step.generator == Some(Generator::Load) {
            self.load().await?;
        } else {
            let (text, rate) = self.made(step);
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(step.chunk.max(1)) {
                self.wait(piece.len() as f64 / rate).await?;
                let text: String = piece.iter().collect();
                self.count(kind, piece.len());
                self.emit(|encoder, out| match kind {
                    Kind::Reasoning => encoder.reasoning(&text, out),
                    Kind::Text => encoder.text(&text, out),
                    Kind::Refusal => encoder.refusal(&text, out),
                })
                .await?;
            }
        }
        if !goes_on(kind, rest) {
            self.emit(|encoder, out| encoder.close(out)).await?;
        }
        Ok(())
    }

    /// The text of a step and its rate in characters per second.
    fn made(&self, step: &TextStep) -> (String, f64) {
        let rate = match self.parameters.number("rate") {
            rate if rate > 0.0 && step.generator.is_some() => rate,
            _ => step.rate,
        };
        let text = match step.generator {
            Some(Generator::Markdown) => markdown(self.parameters.count("characters")),
            Some(Generator::Prose) => prose((rate * self.parameters.number("seconds")) as usize),
            Some(Generator::Echo) => echo(&self.prompt, &self.simulator.catalogue.samples()),
            Some(Generator::Load) | None => self.parameters.fill(step.text.as_deref().unwrap_or_default()),
        };
        (text, rate)
    }

    fn count(&mut self, kind: Kind, characters: usize) {
        self.characters += characters;
        if kind == Kind::Reasoning {
            self.reasoning_characters += characters;
        }
    }

    async fn load(&mut self) -> Result<(), Gone> {
        let (count, rate) = load_size(&self.parameters);
        let id = self
            .parameters
            .id
            .clone()
            .unwrap_or_else(|| self.response_id.clone());
        self.simulator.ledger.begin_load(&id, rate, count);
        for index in 0..count {
            self.wait(1.0 / rate).await?;
            let text = load_token(index);
            self.count(Kind::Text, text.len());
            let mut out = Vec::new();
            self.encoder.text(&text, &mut out);
            let ledger = &self.simulator.ledger;
            self.outlet.send_stamped(&out, || ledger.stamp_load(&id)).await?;
        }
        Ok(())
    }

    async fn tool_call(&mut self, step: &ToolCallStep, number: usize, rest: &[Step]) -> Result<(), Gone> {
        let made_id = format!("{}{}_{}", self.call_prefix, self.response_id, self.calls);
        let id = if step.without_id {
            None
        } else {
            Some(step.id.clone().unwrap_or(made_id))
        };
        self.calls += 1;
        let start = ToolStart {
            id,
            name: step.name.clone(),
            index: step.index,
        };
        self.emit(|encoder, out| encoder.tool_start(&start, out)).await?;
        let arguments = self.parameters.fill(step.sent_arguments());
        let characters: Vec<char> = arguments.replace("{n}", &number.to_string()).chars().collect();
        for piece in characters.chunks(step.chunk.max(1)) {
            self.wait(piece.len() as f64 / step.rate).await?;
            self.characters += piece.len();
            let json: String = piece.iter().collect();
            self.emit(|encoder, out| encoder.tool_arguments(&json, out))
                .await?;
        }
        self.cut_arguments |= step.cut_after.is_some();
        if !matches!(next_content(rest), Some(Step::TextOnOpenTool(_))) {
            self.emit(|encoder, out| encoder.close(out)).await?;
        }
        Ok(())
    }

    async fn silence(&mut self, step: &SilenceStep) -> Result<(), Gone> {
        let mut left = step.length(&self.parameters);
        while step.ping_seconds > 0.0 && left >= step.ping_seconds {
            left -= step.ping_seconds;
            self.wait(step.ping_seconds).await?;
            self.emit(|encoder, out| encoder.ping(out)).await?;
        }
        self.wait(left).await
    }

    fn set_usage(&mut self, step: &UsageStep) {
        // Counted values are added when the turn stops; a given one is kept as it is.
        self.usage.input = step.input_tokens.unwrap_or(self.usage.input);
        self.usage.output = step.output_tokens.unwrap_or(self.usage.output);
        self.usage.reasoning = step.reasoning_tokens.unwrap_or(self.usage.reasoning);
    }

    async fn stop(&mut self, step: &StopStep) -> Result<ConnectionEnd, Gone> {
        let reason = step.reason.unwrap_or(match (self.cut_arguments, self.calls) {
            (true, _) => StopWord::MaxTokens,
            (false, 0) => StopWord::EndTurn,
            (false, _) => StopWord::ToolUse,
        });
        let mut usage = self.usage;
        if usage.output == 0 {
            usage.output = tokens(self.characters);
        }
        if usage.reasoning == 0 {
            usage.reasoning = tokens(self.reasoning_characters);
        }
        self.emit(|encoder, out| encoder.stop(reason, usage, out)).await?;
        if !step.without_terminal {
            self.emit(|encoder, out| encoder.terminal(out)).await?;
        }
        if step.keep_open_seconds > 0.0 {
            self.wait(step.keep_open_seconds).await?;
        }
        Ok(ConnectionEnd::Complete)
    }
}

impl SilenceStep {
    /// Its length in seconds at speed 1.
    pub(super) fn length(&self, parameters: &Parameters) -> f64 {
        let given = self.parameter.as_ref();
        given.map_or(self.seconds, |name| parameters.number(name))
    }
}

/// The next step that sends something, holds or waits aside.
fn next_content(rest: &[Step]) -> Option<&Step> {
    rest.iter().find(|step| {
        !matches!(
            step,
            Step::Gate(_) | Step::Silence(_) | Step::Usage(_) | Step::Comment(_)
        )
    })
}

/// Whether the piece of content that just ended goes on in a later step: it is then one block. A fault in the middle
/// leaves it open, too.
fn goes_on(kind: Kind, rest: &[Step]) -> bool {
    match next_content(rest) {
        Some(Step::Reasoning(_)) => kind == Kind::Reasoning,
        Some(Step::Text(_)) => kind == Kind::Text,
        Some(Step::Refusal(_)) => kind == Kind::Refusal,
        Some(Step::Cut(_) | Step::ErrorEvent(_) | Step::EndWithoutTerminal(_)) => true,
        _ => false,
    }
}
