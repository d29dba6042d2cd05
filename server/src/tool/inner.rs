//! Models that a tool asks while it runs.
//!
//! A tool only says what it wants; whoever runs the call runs the model too, below the node of the call, and gives the
//! answer back. So a model ends with the call that asked for it, whatever the tool does.

use tokio::sync::{mpsc, oneshot};

use super::ToolError;

/// What a tool asks a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerCall {
    /// What it is asked.
    pub prompt: String,
    /// What it is told about its task; none: a text of the execution's own.
    pub system: Option<String>,
    /// `PROVIDER/MODEL`, or a model alone; none: the first of the role `inner`.
    pub model: Option<String>,
    /// The names of its tools; none: all tools of the model that called this one.
    pub tools: Option<Vec<String>>,
    /// Whether a part of an answer that breaks off can serve, when it is long enough.
    pub accept_partial: bool,
}

/// A question on its way.
#[derive(Debug)]
pub struct InnerRequest {
    /// What is asked.
    pub call: InnerCall,
    /// Takes the answer, or why there is none. Closed when nobody waits for it any more.
    pub answer: oneshot::Sender<Result<String, ToolError>>,
}

/// Asks models on behalf of one call.
#[derive(Debug, Clone)]
pub struct InnerModels {
    requests: mpsc::UnboundedSender<InnerRequest>,
}

impl InnerModels {
    /// A handle, and where its questions come out.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<InnerRequest>) {
        let (requests, received) = mpsc::unbounded_channel();
        (Self { requests }, received)
    }

    /// Asks a model and waits for its whole answer. Several may be asked at once. Dropping the future stops the model.
    ///
    /// # Errors
    /// Why there is no answer: a limit is reached, the model or a tool is not known, the model failed or was stopped.
    pub async fn ask(&self, call: InnerCall) -> Result<String, ToolError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(InnerRequest { call, answer });
        if sent.is_err() {
            return Err(ToolError::new(
                "no_models",
                "No model can be asked here: the call that asks is over.",
            ));
        }
        answered.await.unwrap_or_else(|_| Err(ToolError::cancelled()))
    }
}
