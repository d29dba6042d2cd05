//! Sending without leaving the page.

use leptos::ev::{KeyboardEvent, MouseEvent, SubmitEvent};
use leptos::html::{Form, Select, Textarea};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use protocol::MAX_PROMPT;
use protocol::api::{CreateRun, CreateSession, Problem};
use protocol::id::SessionId;

use super::{Draft, Sending, Target, Tried};
use crate::data::api;
use crate::data::load::problem;
use crate::shell::keys::{self, Command, Region};
use crate::ui::format::bytes;

/// Ctrl or Cmd with Enter sends; Enter alone makes a new line.
pub(super) fn on_key(form: NodeRef<Form>) -> impl Fn(KeyboardEvent) + 'static {
    move |event| {
        if keys::pressed(Region::Composer, &event) == Some(Command::Send) {
            event.prevent_default();
            if let Some(form) = form.get_untracked() {
                let _ = form.request_submit();
            }
        }
    }
}

pub(super) fn on_submit(
    target: Target,
    text: NodeRef<Textarea>,
    model: NodeRef<Select>,
    sending: Sending,
    on_sent: Option<Callback<()>>,
) -> impl Fn(SubmitEvent) + 'static {
    let navigate = use_navigate();
    move |event| {
        event.prevent_default();
        let Some(field) = text.get_untracked() else { return };
        let model = model
            .get_untracked()
            .map(|model| model.value())
            .unwrap_or_default();
        let draft = Draft {
            prompt: field.value(),
            model,
        };
        if draft.prompt.trim().is_empty() {
            let words = "Write what is to be done first.";
            sending.problem.set(Some(problem("prompt_empty", words)));
            return;
        }
        if draft.prompt.len() > MAX_PROMPT {
            let words = format!(
                "The prompt has {}; at most {} are taken. Nothing was sent.",
                bytes(draft.prompt.len() as u64),
                bytes(MAX_PROMPT as u64)
            );
            sending.problem.set(Some(problem("prompt_too_long", words)));
            return;
        }
        match target {
            Target::NewSession => start(draft, sending, navigate.clone()),
            Target::Session(session) => {
                if sending.is_busy.get_untracked() {
                    return;
                }
                let id = session.session_id();
                leptos::task::spawn_local(async move {
                    match send(&draft, sending, Some(id)).await {
                        Ok((_, run)) => {
                            // Only what was sent is cleared, not what was typed since.
                            if field.value() == draft.prompt {
                                field.set_value("");
                            }
                            session.add_run(&run);
                            if let Some(on_sent) = on_sent {
                                on_sent.run(());
                            }
                        }
                        Err(problem) => drop(sending.problem.try_set(Some(problem))),
                    }
                });
            }
        }
    }
}

/// A click on a sample starts a session with it.
pub(super) fn on_sample(prompt: String, sending: Sending) -> impl Fn(MouseEvent) + 'static {
    let navigate = use_navigate();
    move |event| {
        event.prevent_default();
        start(
            Draft {
                prompt: prompt.clone(),
                model: String::new(),
            },
            sending,
            navigate.clone(),
        );
    }
}

fn start(draft: Draft, sending: Sending, navigate: impl Fn(&str, NavigateOptions) + 'static) {
    if sending.is_busy.get_untracked() {
        return;
    }
    leptos::task::spawn_local(async move {
        match send(&draft, sending, None).await {
            Ok((session, _)) => navigate(&format!("/s/{session}"), NavigateOptions::default()),
            Err(problem) => drop(sending.problem.try_set(Some(problem))),
        }
    });
}

/// Sends a draft. What a try before has done already for the same draft is used, not done again.
async fn send(
    draft: &Draft,
    sending: Sending,
    session: Option<SessionId>,
) -> Result<(SessionId, protocol::id::RunId), Problem> {
    sending.is_busy.set(true);
    sending.problem.set(None);
    let before = sending.tried.get_value().filter(|tried| tried.draft == *draft);
    let mut tried = before.unwrap_or_else(|| Tried {
        draft: draft.clone(),
        key: api::idempotency_key(),
        session: None,
    });
    tried.session = session.or(tried.session);
    let outcome = run(&mut tried).await;
    let left = if outcome.is_ok() { None } else { Some(tried) };
    // The page may have gone on meanwhile.
    sending.tried.try_set_value(left);
    let _ = sending.is_busy.try_set(false);
    outcome
}

async fn run(tried: &mut Tried) -> Result<(SessionId, protocol::id::RunId), Problem> {
    let session = match &tried.session {
        Some(session) => session.clone(),
        None => api::create_session(&CreateSession::default()).await?.session_id,
    };
    tried.session = Some(session.clone());
    let (provider, model) = tried.draft.choice();
    let body = CreateRun {
        prompt: tried.draft.prompt.clone(),
        provider,
        model,
        on_interruption: None,
        tool_mode: None,
    };
    let created = api::create_run(&session, &body, &tried.key).await?;
    Ok((session, created.run_id))
}
