//! The scenario file: what a data file may say, and how it is read.
//!
//! A scenario is a TOML file in `simulator/scenarios/`. It holds one turn for each provider round; a turn is a list
//! of steps. Everything that a hostile stream can do is a step or a field of one, so that a new fault is added here,
//! in the player and in the two encoders, and nowhere else. `docs/scenarios.md` describes the format for people.

mod check;

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
    /// One short line about it, where the page offers it as a sample.
    #[serde(default)]
    pub sample: Option<String>,
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
    /// What is done instead where a scenario that calls itself has come to its end.
    #[serde(default)]
    pub bottom: Option<Bottom>,
}

/// The turns at the end of a scenario that calls itself with a smaller number each time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bottom {
    /// The parameter that counts down: once it is 1 or less, these turns are played.
    pub parameter: String,
    /// As [`Scenario::turns`].
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
    /// What is done when the same round is asked for again: the first time, the second time …. After the last one the
    /// round begins anew. Without any it is the same each time.
    #[serde(default)]
    pub again: Vec<Turn>,
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

/// One tool call, or several alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallStep {
    /// The tool's name.
    pub name: String,
    /// The arguments: JSON text, streamed in pieces. `{name}` is the number of that parameter, `{name-1}` one less, and
    /// `{n}` the number of the call among those of the step, from 1. Texts take the first two as well.
    pub arguments: String,
    /// The parameter that says how often the call is made; without it once.
    #[serde(default)]
    pub times: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SilenceStep {
    /// Its length at speed 1.
    #[serde(default)]
    pub seconds: f64,
    /// The parameter that gives its length instead.
    #[serde(default)]
    pub parameter: Option<String>,
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

#[cfg(test)]
mod tests;
