//! What the tests of the tools share.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{InnerModels, SubCalls, Tool, ToolContext, ToolError, ToolOutput, ToolProgress, Workspace};

/// A workspace in a folder of its own beside an `outside` folder that holds `secret.txt`.
pub(crate) struct Folder {
    parent: tempfile::TempDir,
    pub(crate) workspace: Arc<Workspace>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("inside")).unwrap();
        std::fs::create_dir(parent.path().join("outside")).unwrap();
        std::fs::write(parent.path().join("outside/secret.txt"), "secret words\n").unwrap();
        let workspace = Arc::new(Workspace::open(&parent.path().join("inside")).unwrap());
        Self { parent, workspace }
    }

    /// A path inside of the workspace's folder.
    pub(crate) fn path(&self, relative: &str) -> std::path::PathBuf {
        self.parent.path().join("inside").join(relative)
    }

    /// The folder beside the workspace.
    pub(crate) fn outside(&self) -> std::path::PathBuf {
        self.parent.path().join("outside")
    }

    /// Writes a file, with the folders that lead to it.
    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Makes a symbolic link at `relative`.
    pub(crate) fn link(&self, target: impl AsRef<Path>, relative: &str) {
        std::os::unix::fs::symlink(target, self.path(relative)).unwrap();
    }

    /// Makes a named pipe at `relative`.
    pub(crate) fn pipe(&self, relative: &str) {
        assert!(
            Command::new("mkfifo")
                .arg(self.path(relative))
                .status()
                .unwrap()
                .success()
        );
    }
}

/// Keeps what a tool reports.
#[derive(Default)]
pub(crate) struct RecordedProgress {
    pub(crate) log: Mutex<String>,
    pub(crate) done: Mutex<Vec<u64>>,
    /// Cancelled by the first report of progress.
    pub(crate) cancel_on_progress: Option<CancellationToken>,
}

impl ToolProgress for RecordedProgress {
    fn log(&self, text: &str) {
        self.log.lock().unwrap().push_str(text);
    }

    fn progress(&self, done: u64, _total: Option<u64>, _note: Option<&str>) {
        self.done.lock().unwrap().push(done);
        if let Some(token) = &self.cancel_on_progress {
            token.cancel();
        }
    }
}

/// A context whose reports go nowhere.
pub(crate) fn quiet_context() -> ToolContext {
    ToolContext {
        cancel: CancellationToken::new(),
        progress: Arc::new(RecordedProgress::default()),
        models: InnerModels::channel().0,
        calls: SubCalls::channel().0,
    }
}

/// Checks and calls a tool as the dispatcher does.
pub(crate) async fn call(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    tool.check(&arguments)?;
    tool.call(arguments, &quiet_context()).await
}
