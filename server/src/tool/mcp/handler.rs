//! What a server sends by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RoleClient};
use tokio::sync::Notify;

use crate::tool::ToolProgress;

/// Hands on what servers tell: progress to its call, and that the tools are others.
#[derive(Clone, Default)]
pub(super) struct Handler {
    calls: Arc<Mutex<HashMap<ProgressToken, Call>>>,
    changed: Arc<Notify>,
}

/// A call that is under way.
struct Call {
    progress: Arc<dyn ToolProgress>,
    /// How far it was last: what comes later and says less is older.
    done: f64,
}

/// A call that hears of its progress, until this is dropped.
pub(super) struct Hears {
    handler: Handler,
    token: ProgressToken,
}

impl Drop for Hears {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

impl Handler {
    /// Hands progress with this token on to a call.
    pub(super) fn hears(&self, token: ProgressToken, progress: Arc<dyn ToolProgress>) -> Hears {
        let done = f64::NEG_INFINITY;
        self.calls().insert(token.clone(), Call { progress, done });
        Hears {
            handler: self.clone(),
            token,
        }
    }

    /// Ends when the server has said that its tools are others.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of a server, as we count: whole and not negative.
fn count(number: f64) -> u64 {
    number.max(0.0) as u64
}

impl ClientHandler for Handler {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let call = self.calls().get_mut(&params.progress_token).and_then(|call| {
            let is_news = params.progress > call.done;
            call.done = call.done.max(params.progress);
            is_news.then(|| Arc::clone(&call.progress))
        });
        if let Some(call) = call {
            // Shares of one become hundredths.
            let (done, total) = match params.total {
                Some(total) if total <= 1.0 => (params.progress * 100.0, Some(100.0)),
                total => (params.progress, total),
            };
            let note = params
                .message
                .as_deref()
                .map(|words| words.chars().take(200).collect::<String>());
            call.progress(count(done), total.map(count), note.as_deref());
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("runloom", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }
}
