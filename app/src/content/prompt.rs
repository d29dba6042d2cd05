//! A person's words: the prompt of a run, and what was said to it later. They are shown as they were typed.

use leptos::prelude::*;
use protocol::id::MessageId;
use protocol::model::Message;
use protocol::state::{MessageRole, MessageState};

use super::scope::scoped;
use crate::data::clock::TimeOfDay;
use crate::data::run_store::{Piece, RunStore};
use crate::ui::dynamic::{dynamic_list, dynamic_view, memo};
use crate::ui::{StateKind, StateMark};

/// All messages of a run, the prompt first.
#[component]
pub fn Messages(
    /// The run.
    run: RunStore,
) -> impl IntoView {
    let messages = {
        let run = run.clone();
        memo(move || {
            run.read(Piece::Messages, |state| {
                state
                    .messages()
                    .iter()
                    .map(|message| message.message_id.clone())
                    .collect::<Vec<_>>()
            })
        })
    };
    view! {
        {dynamic_list(
            move || messages.get().into_iter().enumerate(),
            |(_, message)| message.clone(),
            move |(place, message_id)| view! { <MessageView run=run.clone() message_id is_prompt=place == 0/> },
        )}
    }
}

#[component]
fn MessageView(run: RunStore, message_id: MessageId, is_prompt: bool) -> impl IntoView {
    // Its words never change, only its state does.
    let message = run.peek(|state| state.message(&message_id).cloned());
    let state = {
        let message_id = message_id.clone();
        memo(move || {
            run.read(Piece::Messages, |state| {
                state.message(&message_id).map(|message| message.state)
            })
        })
    };
    // That the model has the prompt goes without saying.
    let mark = dynamic_view(move || {
        let (kind, words) = match (state.get()?, is_prompt) {
            (MessageState::Delivered, _) | (MessageState::Queued, true) => return None,
            (MessageState::Queued, false) => (StateKind::Pending, "queued"),
            (MessageState::Returned, _) => (StateKind::NotRun, "not delivered"),
        };
        Some(view! { <StateMark state=kind words=Signal::stored(words.to_owned())/> })
    });
    message.map(|message| {
        let Message { role, text, at, .. } = message;
        let title = match (role, is_prompt) {
            (MessageRole::User, true) => "Prompt",
            (MessageRole::User, false) => "Steering",
            (MessageRole::System, _) => "System",
        };
        view! {
            <div
                class=if is_prompt { "prompt" } else { "prompt prompt--steer" }
                id=scoped(&message_id)
                data-message-id=message_id.to_string()
            >
                <div class="prompt__meta"><span>{title}</span>{mark}<TimeOfDay at/></div>
                <p class="prompt__text">{text}</p>
            </div>
        }
    })
}
