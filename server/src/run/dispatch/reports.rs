//! What a tool reports while it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::Extra;
use protocol::model::Progress;
use protocol::op::{NodeUpdated, Op};
use protocol::state::Channel;
use tokio::sync::Notify;

use crate::run::ops::OpenNode;
use crate::run::recorder::RunWriter;
use crate::tool::ToolProgress;

/// What a tool reported and nobody has written yet.
#[derive(Debug, Default)]
pub(super) struct Reports {
    reported: Mutex<Reported>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Reported {
    log: String,
    progress: Option<Progress>,
}

impl Reports {
    /// Ends when there is something to write.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Writes what was reported since the last time.
    pub(super) async fn write(&self, writer: &RunWriter, node: &mut OpenNode) {
        let Reported { log, progress } = std::mem::take(&mut *self.lock());
        node.append_long(writer, Channel::Log, &log).await;
        if progress.is_some() {
            writer
                .write(Op::NodeUpdated(NodeUpdated {
                    node_id: node.id().clone(),
                    status: None,
                    title: None,
                    progress,
                    started_at: None,
                    extra: Extra::new(),
                }))
                .await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolProgress for Reports {
    fn log(&self, text: &str) {
        self.lock().log.push_str(text);
        self.changed.notify_one();
    }

    fn progress(&self, done: u64, total: Option<u64>, note: Option<&str>) {
        self.lock().progress = Some(Progress {
            done,
            total,
            note: note.map(str::to_owned),
        });
        self.changed.notify_one();
    }
}
