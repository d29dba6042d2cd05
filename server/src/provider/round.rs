//! Collects the events of one provider round into what the next request and the dispatcher need.

use serde_json::Value;

use super::{
    AssistantPart, BlockStart, Position, ProviderError, ProviderEvent, StopReason, StreamEnd, Usage,
};

/// Everything that one round gave, so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoundContent {
    /// The blocks by position, in the order of their start.
    pub blocks: Vec<RoundBlock>,
    /// Results of calls that the provider ran itself, in the order in which they came.
    pub results: Vec<RoundResult>,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The model that really answered.
    pub model: Option<String>,
    /// The latest usage.
    pub usage: Option<Usage>,
    /// Why the model stopped: the provider's word and its meaning.
    pub stop: Option<(String, StopReason)>,
    /// What failed, if something did.
    pub error: Option<ProviderError>,
    /// How the stream ended, once it has.
    pub end: Option<StreamEnd>,
}

/// One block of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundBlock {
    /// Its position.
    pub position: Position,
    /// What it is.
    pub kind: BlockStart,
    /// Its text, or the arguments of a call as the model wrote them.
    pub content: String,
    /// Whether its end came. A block without one when the stream is over is cut.
    pub ended: bool,
}

/// The result of a call that the provider ran itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundResult {
    /// The position of the call, when it was made in this round.
    pub position: Option<Position>,
    /// The provider's id of the call.
    pub tool_call_id: String,
    /// What can be shown of it.
    pub text: String,
    /// Whether the provider says that it failed.
    pub is_error: bool,
}

/// A call that is for us to run.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundCall {
    /// Its position.
    pub position: Position,
    /// The provider's id, or the adapter's own.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them; nothing and `null` are `{}`.
    pub arguments: String,
    /// The arguments as an object, or why the call may not be run, in words for the model.
    pub parsed: Result<Value, String>,
}

impl RoundContent {
    /// Takes one event.
    pub fn apply(&mut self, event: &ProviderEvent) {
        match event {
            ProviderEvent::Started { response_id, model } => {
                self.response_id.clone_from(response_id);
                self.model.clone_from(model);
            }
            ProviderEvent::BlockStart { position, kind } => {
                let kind = kind.clone();
                self.blocks.push(RoundBlock {
                    position: *position,
                    kind,
                    content: String::new(),
                    ended: false,
                });
            }
            ProviderEvent::Delta {
                position,
                text: piece,
            }
            | ProviderEvent::ArgumentsDelta {
                position,
                json: piece,
            } => {
                if let Some(block) = self.block_mut(*position) {
                    block.content.push_str(piece);
                }
            }
            ProviderEvent::BlockEnd { position } => {
                if let Some(block) = self.block_mut(*position) {
                    block.ended = true;
                }
            }
            ProviderEvent::ServerToolResult {
                position,
                tool_call_id,
                text,
                is_error,
            } => {
                self.results.push(RoundResult {
                    position: *position,
                    tool_call_id: tool_call_id.clone(),
                    text: text.clone(),
                    is_error: *is_error,
                });
            }
            // What was shown stays; the contradiction is for a notice.
            ProviderEvent::Contradiction { .. } => {}
            ProviderEvent::Usage(usage) => self.usage = Some(usage.clone()),
            ProviderEvent::Stop { raw, reason } => self.stop = Some((raw.clone(), *reason)),
            ProviderEvent::Error(error) => self.error = Some(error.clone()),
            ProviderEvent::End(end) => self.end = Some(*end),
        }
    }

    /// The calls that are for us, in order. They may be run only when the stream ended [`StreamEnd::Complete`].
    pub fn calls(&self) -> Vec<RoundCall> {
        let is_cut = matches!(
            self.stop,
            Some((_, StopReason::Length | StopReason::ContextWindow))
        );
        let last = self.blocks.len().saturating_sub(1);
        self.blocks
            .iter()
            .enumerate()
            .filter_map(|(place, block)| match &block.kind {
                BlockStart::ToolCall { id, name } => Some(RoundCall {
                    position: block.position,
                    id: id.clone(),
                    name: name.clone(),
                    arguments: whole_arguments(block).to_owned(),
                    // Where a limit came before the first argument, nothing does not mean that there are none.
                    parsed: match is_cut && place == last && block.content.trim().is_empty() {
                        true => Err(CUT_BY_LIMIT.to_owned()),
                        false => parse_arguments(block),
                    },
                }),
                BlockStart::Text
                | BlockStart::Reasoning
                | BlockStart::Refusal
                | BlockStart::ServerTool { .. }
                | BlockStart::Unsupported { .. } => None,
            })
            .collect()
    }

    /// The displayable parts for [`super::ModelMessage::Assistant`]. A refusal counts as text; reasoning and calls
    /// that the provider ran are in the replay record only.
    pub fn parts(&self) -> Vec<AssistantPart> {
        self.blocks
            .iter()
            .filter_map(|block| match &block.kind {
                BlockStart::Text | BlockStart::Refusal => Some(AssistantPart::Text {
                    text: block.content.clone(),
                }),
                BlockStart::ToolCall { id, name } => Some(AssistantPart::ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: whole_arguments(block).to_owned(),
                }),
                BlockStart::Reasoning | BlockStart::ServerTool { .. } | BlockStart::Unsupported { .. } => {
                    None
                }
            })
            .collect()
    }

    /// The texts, without those that show nothing.
    pub fn texts(&self) -> Vec<String> {
        let blocks = self.blocks.iter();
        let texts = blocks.filter(|block| block.kind == BlockStart::Text && !block.content.trim().is_empty());
        texts.map(|block| block.content.clone()).collect()
    }

    /// The parts that can be sent back after a round that failed: a call that was not written to its end is dropped,
    /// since no result will ever answer it.
    pub fn kept_parts(&self) -> Vec<AssistantPart> {
        let kept = self
            .blocks
            .iter()
            .filter(|block| block.ended || !matches!(block.kind, BlockStart::ToolCall { .. }));
        Self {
            blocks: kept.cloned().collect(),
            ..Self::default()
        }
        .parts()
    }

    fn block_mut(&mut self, position: Position) -> Option<&mut RoundBlock> {
        self.blocks
            .iter_mut()
            .rev()
            .find(|block| block.position == position)
    }
}

/// What a model is told of the call in which the output limit cut it.
const CUT_BY_LIMIT: &str = "The output limit cut the call before its arguments, so it was not run.";

fn whole_arguments(block: &RoundBlock) -> &str {
    match block.content.trim() {
        "" | "null" if block.ended => "{}",
        _ => &block.content,
    }
}

fn parse_arguments(block: &RoundBlock) -> Result<Value, String> {
    if !block.ended {
        return Err("The arguments were cut off before their end, so the call was not run.".to_owned());
    }
    match serde_json::from_str(whole_arguments(block)) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) => Err("The arguments are not a JSON object, so the call was not run.".to_owned()),
        Err(error) => Err(format!(
            "The arguments are not valid JSON, so the call was not run: {error}."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(position: Position, kind: BlockStart) -> ProviderEvent {
        ProviderEvent::BlockStart { position, kind }
    }

    fn call(id: &str) -> BlockStart {
        BlockStart::ToolCall {
            id: id.to_owned(),
            name: "tool".to_owned(),
        }
    }

    #[test]
    fn a_round_gives_its_calls_with_what_is_wrong_and_drops_cut_ones_after_a_failure() {
        let mut round = RoundContent::default();
        for event in [
            start(0, BlockStart::Reasoning),
            ProviderEvent::Delta {
                position: 0,
                text: "why".to_owned(),
            },
            ProviderEvent::BlockEnd { position: 0 },
            start(1, BlockStart::Text),
            ProviderEvent::Delta {
                position: 1,
                text: "Hi".to_owned(),
            },
            start(2, call("none")),
            ProviderEvent::BlockEnd { position: 2 },
            start(3, call("list")),
            ProviderEvent::ArgumentsDelta {
                position: 3,
                json: "[1]".to_owned(),
            },
            ProviderEvent::BlockEnd { position: 3 },
            start(4, call("cut")),
            ProviderEvent::ArgumentsDelta {
                position: 4,
                json: "{\"a\"".to_owned(),
            },
        ] {
            round.apply(&event);
        }
        let calls = round.calls();
        assert_eq!(calls[0].parsed, Ok(Value::Object(serde_json::Map::new())));
        assert!(
            calls[1]
                .parsed
                .as_ref()
                .is_err_and(|words| words.contains("not a JSON object"))
        );
        assert!(
            calls[2]
                .parsed
                .as_ref()
                .is_err_and(|words| words.contains("cut off"))
        );
        let part = |id: &str, arguments: &str| AssistantPart::ToolCall {
            id: id.to_owned(),
            name: "tool".to_owned(),
            arguments: arguments.to_owned(),
        };
        let text = AssistantPart::Text {
            text: "Hi".to_owned(),
        };
        assert_eq!(
            round.kept_parts(),
            [text.clone(), part("none", "{}"), part("list", "[1]")]
        );
        assert_eq!(
            round.parts(),
            [
                text,
                part("none", "{}"),
                part("list", "[1]"),
                part("cut", "{\"a\"")
            ]
        );
    }
}
