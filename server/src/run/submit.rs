//! Creating a run: its first ops are written by the same code as all others, at generation 0.

use protocol::api::CreateRun;
use protocol::fold::{Applied, RunState};
use protocol::id::{MessageId, RunId, SessionId};
use protocol::op::{Entry, MessageAdded, Op};
use protocol::state::{MessageRole, RunStatus};
use protocol::{Extra, MAX_PROMPT};
use uuid::Uuid;

use super::Execution;
use super::context::first_line;
use super::ops::{plain, run_updated};
use super::target::{Target, UnknownTarget};
use crate::store::StoreError;
use crate::store::batch::RunBatch;
use crate::store::runs::{NewRun, RunCreation};

/// Why a run was not created.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// The prompt says nothing.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt is too long.
    #[error("the prompt has {found} bytes; at most {MAX_PROMPT} are taken")]
    LongPrompt {
        /// Its length in bytes.
        found: usize,
    },
    /// The key was used for another prompt.
    #[error("this Idempotency-Key was used in this session for another prompt; take a new key")]
    KeyReused,
    /// No such provider or model.
    #[error(transparent)]
    Target(#[from] UnknownTarget),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a text shows nothing: white space, and characters without a width.
fn is_blank(text: &str) -> bool {
    text.chars().all(|character| {
        character.is_whitespace()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
    })
}

impl Execution {
    /// What would serve this run; an error when it would not be taken.
    pub fn check(&self, wish: &CreateRun) -> Result<Target, SubmitError> {
        if is_blank(&wish.prompt) {
            return Err(SubmitError::EmptyPrompt);
        }
        if wish.prompt.len() > MAX_PROMPT {
            return Err(SubmitError::LongPrompt {
                found: wish.prompt.len(),
            });
        }
        let (provider, model) = (wish.provider.as_deref(), wish.model.as_deref());
        Ok(Target::choose(&self.services.config, provider, model)?)
    }

    /// Creates a run in a session and wakes its execution. The same key gives the same run.
    pub async fn submit(
        &self,
        session_id: &SessionId,
        wish: &CreateRun,
        idempotency_key: Option<&str>,
    ) -> Result<RunId, SubmitError> {
        let target = self.check(wish)?;
        let at = self.services.clock.now_ms();
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let ops = [
            Op::MessageAdded(MessageAdded {
                message_id: MessageId::from_uuid(Uuid::now_v7()),
                role: MessageRole::User,
                text: wish.prompt.clone(),
                extra: Extra::new(),
            }),
            run_updated(RunStatus::Queued, None, None),
        ];
        let mut state = RunState::new(run_id.clone(), session_id.clone());
        let mut steps = Vec::new();
        for (op, seq) in ops.into_iter().zip(1..) {
            let entry = Entry {
                run_id: run_id.clone(),
                generation: 0,
                seq,
                at,
                op,
            };
            if let Ok(Applied::Changed(changes)) = state.apply(&entry) {
                steps.push((entry, changes));
            }
        }
        let title = plain(&first_line(&wish.prompt));
        let new = NewRun {
            prompt_start: plain(
                &wish
                    .prompt
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .chars()
                    .take(200)
                    .collect::<String>(),
            ),
            provider: target.endpoint.provider_id,
            model: target.model.id,
            on_interruption: wish
                .on_interruption
                .unwrap_or(self.services.config.recovery.on_interruption),
            tool_mode: wish.tool_mode.unwrap_or(self.services.config.tools.mode),
            idempotency_key: idempotency_key.map(plain),
            created_at: at,
        };
        let batch = RunBatch {
            state: &state,
            previous_seq: 0,
            steps: &steps,
        };
        match self.services.store.create_run(&new, &batch).await? {
            RunCreation::NoSession => Err(SubmitError::NoSession(session_id.clone())),
            RunCreation::Repeated(known) => match self.services.store.prompt_of(&known).await? {
                Some(prompt) if prompt != wish.prompt.as_bytes() => Err(SubmitError::KeyReused),
                _ => Ok(known),
            },
            RunCreation::Created => {
                self.services.store.title_session(session_id, &title).await?;
                self.hub.session_changed(session_id.clone());
                self.worker.look_at_queue();
                Ok(run_id)
            }
        }
    }
}
