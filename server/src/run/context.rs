//! What a request holds: the session's earlier runs, then the prompt.

mod chain;

use protocol::fold::RunState;
use protocol::id::{AttemptId, NodeId, RunId};
use protocol::model::{Kept, Node};
use protocol::state::{MessageRole, MessageState, NodeKind, Retention};
use serde_json::json;

pub(super) use self::chain::CANCELLED;
use self::chain::Replays;
use super::Services;
use crate::provider::{AssistantPart, GO_ON, ModelMessage};
use crate::store::StoreError;

/// Characters that count as one token where nothing better is known.
pub(super) const CHARACTERS_PER_TOKEN: usize = 4;

/// What a run is executed with.
pub(super) struct Context {
    /// The provider that the run was created for.
    pub(super) provider: String,
    /// The model that the run was created for.
    pub(super) model: String,
    /// Whether the session wants reasoning to be kept, where it says so.
    pub(super) reasoning: Option<Retention>,
    /// Earlier runs and the prompt.
    pub(super) conversation: Conversation,
}

/// What an attempt is asked.
pub(super) struct Conversation {
    /// The messages, oldest first.
    pub(super) messages: Vec<ModelMessage>,
    /// What had to be left out: code and detail of a notice.
    pub(super) notices: Vec<(&'static str, serde_json::Value)>,
    /// The attempt that the next one goes on from, and how much of its text.
    pub(super) continues: Option<(AttemptId, Kept)>,
}

/// Where the conversation of a model node begins.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// The session's runs, this one's prompt being the last.
    Session,
    /// What another node asks it.
    Asked(String),
}

/// The first line of a prompt, as a title: at most 120 characters.
pub(super) fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .chars()
        .take(120)
        .collect()
}

/// Builds the context of a run: earlier runs and the prompt, and with `continues` what the attempts of that node said
/// and did. It fits into `limit` tokens, or where that is absent into what the model of the run takes.
pub(super) async fn of_run(
    services: &Services,
    state: &RunState,
    continues: Option<&NodeId>,
    limit: Option<u64>,
) -> Result<Context, StoreError> {
    let run = state.run();
    let session = services
        .store
        .session(&run.session_id)
        .await?
        .ok_or_else(|| StoreError::Row {
            table: "sessions",
            row: run.session_id.to_string(),
            problem: "it is gone".to_owned(),
        })?;
    let this = session
        .runs
        .iter()
        .position(|summary| summary.run_id == run.run_id)
        .ok_or_else(|| StoreError::Row {
            table: "runs",
            row: run.run_id.to_string(),
            problem: "it is gone".to_owned(),
        })?;
    let mut messages = Vec::new();
    for earlier in &session.runs[..this] {
        if let Some(earlier_state) = services.store.load_run(&earlier.run_id).await? {
            let replays = replays_of(services, &earlier.run_id).await?;
            messages.extend(of_earlier(&earlier_state, replays));
        }
    }
    messages.extend(prompts(state, true));
    let (provider, model) = (
        session.runs[this].provider.clone(),
        session.runs[this].model.clone(),
    );
    let reference = crate::config::ModelRef {
        provider_id: provider.clone(),
        model: model.clone(),
    };
    let limit = limit.or_else(|| services.config.model(&reference).map(|(_, model)| model.context));
    Ok(Context {
        provider,
        model,
        reasoning: session.settings.reasoning,
        conversation: complete(services, state, messages, continues, limit).await?,
    })
}

/// Builds what the next attempt of an inner model is asked: the question, and what its attempts said and did.
pub(super) async fn of_asked(
    services: &Services,
    state: &RunState,
    prompt: String,
    node_id: &NodeId,
    limit: u64,
) -> Result<Conversation, StoreError> {
    let messages = vec![ModelMessage::User { text: prompt }];
    complete(services, state, messages, Some(node_id), Some(limit)).await
}

/// Adds what the attempts of a node said and did, and makes all of it fit the model.
async fn complete(
    services: &Services,
    state: &RunState,
    mut messages: Vec<ModelMessage>,
    continues: Option<&NodeId>,
    limit: Option<u64>,
) -> Result<Conversation, StoreError> {
    let mut broke_off = false;
    let mut continued = None;
    if let Some(node) = continues {
        let replays = replays_of(services, &state.run().run_id).await?;
        if let Some((attempt, kept, said)) = chain::to_continue(state, node, replays) {
            messages.extend(said.messages);
            if !said.open.is_empty() {
                broke_off = true;
                messages.push(ModelMessage::Assistant {
                    parts: vec![AssistantPart::Text { text: said.open }],
                    replay: None,
                });
            }
            continued = Some((attempt, kept));
        }
    }
    let notices = limit
        .map(|limit| shorten(&mut messages, limit))
        .unwrap_or_default();
    if broke_off {
        // After the conversation was made to fit: this is no turn of its own.
        messages.push(ModelMessage::User {
            text: GO_ON.to_owned(),
        });
    }
    Ok(Conversation {
        messages,
        notices,
        continues: continued,
    })
}

async fn replays_of(services: &Services, run_id: &RunId) -> Result<Replays, StoreError> {
    let replays = services.store.replays_of_run(run_id).await?;
    Ok(replays
        .into_iter()
        .map(|(attempt, round, replay)| ((attempt, round), replay))
        .collect())
}

/// What people said in a run. What was taken back before anybody read it was never said, unless the run is `executed`
/// again.
fn prompts(state: &RunState, executed: bool) -> impl Iterator<Item = ModelMessage> {
    state
        .messages()
        .iter()
        .filter(move |message| {
            message.role == MessageRole::User && (executed || message.state != MessageState::Returned)
        })
        .map(|message| ModelMessage::User {
            text: message.text.clone(),
        })
}

/// The prompt of an earlier run and what its model said and did: its current attempt, and those that it continues.
fn of_earlier(state: &RunState, replays: Replays) -> Vec<ModelMessage> {
    let mut messages: Vec<ModelMessage> = prompts(state, false).collect();
    if let Some(answer) = answer_of(state) {
        messages.extend(chain::whole(state, &answer.node_id, replays).messages);
    }
    messages
}

/// The model node that answers the prompt of a run.
pub(super) fn answer_of(state: &RunState) -> Option<&Node> {
    let root = state.root()?;
    state
        .children(&root.node_id)
        .find(|node| node.kind == NodeKind::Model)
}

/// The most bytes of one result that a model is given.
const MAX_RESULT: usize = 320 * 1024;

/// A result as a model is given it: of a long one the beginning and the end, with a note of what is left out between.
pub(super) fn bounded(text: &str) -> String {
    if text.len() <= MAX_RESULT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_RESULT / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - MAX_RESULT / 4);
    let (first, last) = (
        text.get(..head).unwrap_or_default(),
        text.get(tail..).unwrap_or_default(),
    );
    format!(
        "{first}\n\n[{} of {} bytes of this result are left out here. Ask for a smaller part to see them.]\n\n{last}",
        tail - head,
        text.len()
    )
}

/// Makes the conversation fit the model: first the oldest tool results are replaced, then the oldest turns are left
/// out; each with a notice.
fn shorten(
    conversation: &mut Vec<ModelMessage>,
    context_tokens: u64,
) -> Vec<(&'static str, serde_json::Value)> {
    let tokens = usize::try_from(context_tokens).unwrap_or(usize::MAX);
    // A quarter stays free for the reply and for what is not counted here.
    let limit = tokens.saturating_mul(CHARACTERS_PER_TOKEN) / 4 * 3;
    let mut size: usize = conversation.iter().map(characters).sum();
    let mut notices = Vec::new();
    let mut replaced = 0_u32;
    for message in conversation.iter_mut() {
        if size <= limit {
            break;
        }
        if let ModelMessage::ToolResults { results } = message {
            for result in results {
                let words = format!(
                    "[This result of {} characters was left out to make room.]",
                    result.content.len()
                );
                if words.len() < result.content.len() {
                    size -= result.content.len() - words.len();
                    result.content = words;
                    replaced += 1;
                }
            }
        }
    }
    if replaced > 0 {
        let words = format!(
            "{replaced} of the oldest tool results were left out of the request, to fit the model's context."
        );
        notices.push((
            "context_results_left_out",
            json!({ "message": words, "results": replaced }),
        ));
    }
    let mut turns = 0_u32;
    while size > limit {
        // A turn is a prompt and all that follows up to the next prompt; the last one stays.
        let next = conversation
            .iter()
            .skip(1)
            .position(|message| matches!(message, ModelMessage::User { .. }));
        let Some(end) = next.map(|place| place + 1) else {
            break;
        };
        size -= conversation
            .drain(..end)
            .map(|message| characters(&message))
            .sum::<usize>();
        turns += 1;
    }
    if turns > 0 {
        let words =
            format!("{turns} of the oldest turns were left out of the request, to fit the model's context.");
        notices.push((
            "context_turns_left_out",
            json!({ "message": words, "turns": turns }),
        ));
    }
    notices
}

fn characters(message: &ModelMessage) -> usize {
    match message {
        ModelMessage::User { text } => text.len(),
        ModelMessage::Assistant { parts, .. } => parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text { text } => text.len(),
                AssistantPart::ToolCall { name, arguments, .. } => name.len() + arguments.len(),
            })
            .sum(),
        ModelMessage::ToolResults { results } => results.iter().map(|result| result.content.len()).sum(),
    }
}
