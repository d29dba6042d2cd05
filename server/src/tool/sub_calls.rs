//! Calls that a program makes while it runs.
//!
//! As with inner models, a tool only says what it wants: whoever runs the call runs its sub-calls too, by the same code
//! as any other call, as nodes below its own.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Why a sub-call gave nothing back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubCallError {
    /// The stable code, such as `not_found`.
    pub code: String,
    /// In plain words.
    pub message: String,
}

impl SubCallError {
    /// An error with its code and its words.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// What a sub-call gave back: the whole text.
pub type SubCallResult = Result<String, SubCallError>;

/// A call on its way.
#[derive(Debug)]
pub struct SubCallRequest {
    /// The tool's name, as the program wrote it.
    pub name: String,
    /// The arguments; an object.
    pub arguments: Value,
    /// Takes the result.
    pub answer: oneshot::Sender<SubCallResult>,
}

/// Calls tools on behalf of one call.
#[derive(Debug, Clone)]
pub struct SubCalls {
    requests: mpsc::UnboundedSender<SubCallRequest>,
}

impl SubCalls {
    /// A handle, and where its calls come out.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<SubCallRequest>) {
        let (requests, received) = mpsc::unbounded_channel();
        (Self { requests }, received)
    }

    /// Hands a call over; its result comes where the answer says. Calls begin in the order in which they are handed over.
    pub fn start(&self, name: String, arguments: Value) -> oneshot::Receiver<SubCallResult> {
        let (answer, answered) = oneshot::channel();
        // Where nobody runs calls any more, the answer is dropped with the request.
        let _ = self.requests.send(SubCallRequest {
            name,
            arguments,
            answer,
        });
        answered
    }
}
