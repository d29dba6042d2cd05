//! The scenario file: what a data file may say, and how it is read.
//!
//! A scenario is a TOML file in `simulator/scenarios/`. It holds one turn for each provider round; a turn is a list
//! of steps. Everything that a hostile stream can do is a step or a field of one, so that a new fault is added here,
//! in the player and in the two encoders, and nowhere else. `docs/scenarios.md` describes the format for people.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::generator::Generator;

/// A scenario as its file says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; equal to the name of its file.
    pub name: String,
    /// Where it stands when scenarios are offered; lower comes first.
    pub order: u32,
    /// A short title for people.
    pub title: String,
    /// What a viewer should see.
    pub description: String,
    /// A prompt that picks this scenario, to be offered to people.
    pub prompt: String,
    /// What else picks it.
    #[serde(default, rename = "match")]
    pub matching: Matching,
    /// Numbers that a prompt or a model name may change with `name=value`, and their defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
    /// How the bytes of the stream are framed and cut.
    #[serde(default)]
    pub wire: WireOptions,
    /// One turn for each provider round; rounds beyond the last one repeat it.
    pub turns: Vec<Turn>,
}

/// What picks a scenario, beside its name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matching {
    /// Model names; the scenario's own name always counts.
    #[serde(default)]
    pub models: Vec<String>,
    /// Phrases that the prompt contains, upper and lower case alike.
    #[serde(default)]
    pub phrases: Vec<String>,
    /// Whether this scenario serves every prompt that no other one takes.
    #[serde(default)]
    pub default: bool,
}

/// How the stream's bytes look, where the content is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireOptions {
    /// How lines end.
    #[serde(default)]
    pub line_end: LineEnd,
    /// Whether the stream begins with a byte order mark.
    #[serde(default)]
    pub byte_order_mark: bool,
    /// Whether the space after `data:` is left out.
    #[serde(default)]
    pub no_space: bool,
    /// Cuts the bytes into pieces of this size, also inside a character; 0 leaves each event whole.
    #[serde(default)]
    pub cut_bytes: usize,
}

/// How lines of a stream end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// `\n`.
    #[default]
    Lf,
    /// `\r\n`.
    Crlf,
    /// `\r`.
    Cr,
}

/// One provider round.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One thing that the provider does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Streams reasoning.
    Reasoning(TextStep),
    /// Streams text.
    Text(TextStep),
    /// Streams a refusal: `delta.refusal` in Chat Completions, text in Anthropic Messages.
    Refusal(TextStep),
    /// Streams one tool call.
    ToolCall(ToolCallStep),
    /// Sends text while the block of the last tool call is still open, as broken gateways do.
    TextOnOpenTool(LiteralStep),
    /// Sends no content for a while.
    Silence(SilenceStep),
    /// Waits until the gate is open.
    Gate(GateStep),
    /// Says what the tokens were; without it they are counted from the text.
    Usage(UsageStep),
    /// Sends one comment line.
    Comment(LiteralStep),
    /// Answers with an HTTP error instead of a stream.
    HttpError(HttpErrorStep),
    /// Sends an error event inside the 200 and ends the body.
    ErrorEvent(ErrorEventStep),
    /// Ends the turn regularly.
    Stop(StopStep),
    /// Breaks the connection.
    Cut(Bare),
    /// Ends the body cleanly, without stop reason and without the format's end marker.
    EndWithoutTerminal(Bare),
}

/// A step that takes no fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bare {}

/// Content that is streamed at a rate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextStep {
    /// The text itself; exactly one of this and `generator`.
    pub text: Option<String>,
    /// What makes the text.
    pub generator: Option<Generator>,
    /// Characters per second at speed 1.
    #[serde(default = "default_rate")]
    pub rate: f64,
    /// Characters per delta.
    #[serde(default = "default_chunk")]
    pub chunk: usize,
}

/// A text that is sent at once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiteralStep {
    /// The text.
    pub text: String,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallStep {
    /// The tool's name.
    pub name: String,
    /// The arguments: JSON text, streamed in pieces.
    pub arguments: String,
    /// The call's id; without it the simulator makes one. The empty text sends an empty id.
    pub id: Option<String>,
    /// Leaves the id out.
    #[serde(default)]
    pub without_id: bool,
    /// The index that Chat Completions gives the call; without it the calls are counted.
    pub index: Option<u32>,
    /// Bytes of arguments per second at speed 1.
    #[serde(default = "default_rate")]
    pub rate: f64,
    /// Characters of arguments per delta.
    #[serde(default = "default_arguments_chunk")]
    pub chunk: usize,
    /// Stops in the arguments after this many characters, as an output limit does; the turn's stop reason is then
    /// `max_tokens` unless a `stop` step says another.
    pub cut_after: Option<usize>,
}

/// A time without content.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SilenceStep {
    /// Its length at speed 1.
    pub seconds: f64,
    /// Sends a ping each time this many seconds have passed; 0 sends no byte at all.
    #[serde(default)]
    pub ping_seconds: f64,
}

/// A place where a test can hold the stream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateStep {
    /// The gate's name, by custom `scenario:place`.
    pub name: String,
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageStep {
    /// Input tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// An answer that is no stream.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpErrorStep {
    /// The status, 400 to 599.
    pub status: u16,
    /// What the body is.
    #[serde(default)]
    pub body: ErrorBody,
    /// The message; without it the usual one of that status.
    pub message: Option<String>,
    /// The `retry-after` header in seconds.
    pub retry_after: Option<u32>,
}

/// The body of an HTTP error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorBody {
    /// The error object of the wire format.
    #[default]
    Json,
    /// A page, as proxies answer.
    Html,
}

/// An error inside a stream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEventStep {
    /// The type, in Anthropic's words, such as `overloaded_error`.
    pub error: String,
    /// The message.
    pub message: String,
}

/// A regular end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopStep {
    /// Why; without it `tool_use` after a tool call, else `end_turn`.
    pub reason: Option<StopWord>,
    /// Leaves the end marker (`message_stop`, `[DONE]`) out, although the reason was given.
    #[serde(default)]
    pub without_terminal: bool,
    /// Keeps the connection open this many seconds after the end.
    #[serde(default)]
    pub keep_open_seconds: f64,
}

/// Why a turn ends, in Anthropic's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWord {
    /// Done.
    EndTurn,
    /// Waits for tool results.
    ToolUse,
    /// Cut by the output limit.
    MaxTokens,
    /// Declined.
    Refusal,
    /// Stopped by a filter; Anthropic has no such word and says `refusal`.
    ContentFilter,
    /// No reason at all, only the end marker.
    Missing,
}

fn default_rate() -> f64 {
    150.0
}

fn default_chunk() -> usize {
    5
}

fn default_arguments_chunk() -> usize {
    8
}

/// Why a scenario file cannot be used. The text names the file and the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scenario file {file}: {problem}")]
pub struct ScenarioError {
    /// The file's name.
    pub file: String,
    /// What is wrong, with its key, what was found and what is expected.
    pub problem: String,
}

impl Scenario {
    /// Reads one file. `file` is its name with extension, for messages and to check the scenario's name.
    pub fn parse(file: &str, source: &str) -> Result<Self, ScenarioError> {
        let fail = |problem: String| ScenarioError {
            file: file.to_owned(),
            problem,
        };
        let scenario: Self = toml::from_str(source).map_err(|error| fail(error.to_string()))?;
        scenario.check(file).map_err(fail)?;
        Ok(scenario)
    }

    fn check(&self, file: &str) -> Result<(), String> {
        let stem = file.trim_end_matches(".toml");
        if self.name != stem {
            return Err(format!(
                "`name` is `{}`, expected `{stem}`, the name of the file",
                self.name
            ));
        }
        for (key, value) in [
            ("title", &self.title),
            ("description", &self.description),
            ("prompt", &self.prompt),
        ] {
            if value.trim().is_empty() {
                return Err(format!("`{key}` is empty, expected a text"));
            }
        }
        for (key, value) in &self.parameters {
            check_number(&format!("parameters.{key}"), *value, true)?;
        }
        if self.turns.is_empty() {
            return Err("`turns` is empty, expected at least one turn".to_owned());
        }
        for (turn_index, turn) in self.turns.iter().enumerate() {
            turn.check(&self.parameters)
                .map_err(|(step, problem)| format!("turns[{turn_index}].steps[{step}]: {problem}"))?;
        }
        Ok(())
    }

    /// The names of all gates, in order of their first appearance.
    pub fn gates(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for step in self.turns.iter().flat_map(|turn| &turn.steps) {
            if let Step::Gate(gate) = step
                && !names.contains(&gate.name.as_str())
            {
                names.push(gate.name.as_str());
            }
        }
        names
    }
}

impl Turn {
    /// Where the answer is an HTTP error: the steps before it, which delay the answer, and the error.
    pub fn http_error(&self) -> Option<(&[Step], &HttpErrorStep)> {
        match self.steps.split_last() {
            Some((Step::HttpError(error), before)) => Some((before, error)),
            _ => None,
        }
    }

    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), (usize, String)> {
        let last = self
            .steps
            .len()
            .checked_sub(1)
            .ok_or((0, "missing, expected at least one step".to_owned()))?;
        let answers_error = self.http_error().is_some();
        for (index, step) in self.steps.iter().enumerate() {
            step.check(parameters).map_err(|problem| (index, problem))?;
            if index < last && step.is_final() {
                return Err((index, "ends the turn, expected it to be the last step".to_owned()));
            }
            if answers_error && index < last && !matches!(step, Step::Gate(_) | Step::Silence(_)) {
                return Err((
                    index,
                    "comes before `http_error`, expected only `gate` or `silence`".to_owned(),
                ));
            }
        }
        Ok(())
    }
}

impl Step {
    fn is_final(&self) -> bool {
        matches!(
            self,
            Self::HttpError(_)
                | Self::ErrorEvent(_)
                | Self::Stop(_)
                | Self::Cut(_)
                | Self::EndWithoutTerminal(_)
        )
    }

    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), String> {
        match self {
            Self::Reasoning(text) | Self::Text(text) | Self::Refusal(text) => text.check(parameters),
            Self::ToolCall(call) => call.check(),
            Self::Silence(silence) => {
                check_number("seconds", silence.seconds, false)?;
                check_number("ping_seconds", silence.ping_seconds, false)
            }
            Self::Stop(stop) => check_number("keep_open_seconds", stop.keep_open_seconds, false),
            Self::HttpError(error) if !(400..=599).contains(&error.status) => {
                Err(format!("`status` is {}, expected 400 to 599", error.status))
            }
            Self::Gate(gate) if gate.name.is_empty() || gate.name.contains(['/', '?', '#', ' ']) => {
                Err(format!(
                    "`name` is `{}`, expected a text that can stand in an address",
                    gate.name
                ))
            }
            _ => Ok(()),
        }
    }
}

impl TextStep {
    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), String> {
        check_number("rate", self.rate, true)?;
        if let Some(missing) = self.generator.and_then(|generator| {
            generator
                .parameters()
                .iter()
                .find(|name| !parameters.contains_key(**name))
        }) {
            return Err(format!(
                "its generator needs `parameters.{missing}`, which is missing"
            ));
        }
        if self.chunk == 0 {
            return Err("`chunk` is 0, expected at least 1".to_owned());
        }
        match (&self.text, self.generator) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) => Err("has both `text` and `generator`, expected one of them".to_owned()),
            (None, None) => Err("has neither `text` nor `generator`, expected one of them".to_owned()),
        }
    }
}

impl ToolCallStep {
    fn check(&self) -> Result<(), String> {
        check_number("rate", self.rate, true)?;
        if self.chunk == 0 {
            return Err("`chunk` is 0, expected at least 1".to_owned());
        }
        if self.without_id && self.id.is_some() {
            return Err("has both `id` and `without_id`, expected one of them".to_owned());
        }
        Ok(())
    }

    /// The arguments as far as they are sent.
    pub fn sent_arguments(&self) -> &str {
        match self
            .cut_after
            .and_then(|count| self.arguments.char_indices().nth(count))
        {
            Some((end, _)) => self.arguments.get(..end).unwrap_or(&self.arguments),
            None => &self.arguments,
        }
    }
}

fn check_number(key: &str, value: f64, above_zero: bool) -> Result<(), String> {
    let good = value.is_finite() && if above_zero { value > 0.0 } else { value >= 0.0 };
    if good {
        return Ok(());
    }
    let expected = if above_zero {
        "a number above 0"
    } else {
        "a number not below 0"
    };
    Err(format!("`{key}` is {value}, expected {expected}"))
}

#[cfg(test)]
mod tests;
