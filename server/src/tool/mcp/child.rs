//! The process of a server that is reached by its standard input and output.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::provider::Secret;
use crate::tool::shell::harmless_environment;

/// How long a process may take to end once its input is closed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The most bytes of one line of its error output that are looked at.
const LONGEST_LINE: u64 = 4 * 1024;

/// A running server. Its whole process group is killed when this is dropped.
pub(super) struct ServerProcess {
    child: Child,
    group: Option<Pid>,
    said: Arc<Mutex<String>>,
}

impl ServerProcess {
    /// Starts it, with nothing of our environment that could hold a key.
    pub(super) fn start(
        id: &str,
        command: &[String],
        environment: &BTreeMap<String, Secret>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(io::Error::other("no command"));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(harmless_environment())
            .envs(environment.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        let said = Arc::new(Mutex::new(String::new()));
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(io::Error::other("the process has no pipes"));
        };
        tokio::spawn(listen(id.to_owned(), errors, Arc::clone(&said)));
        let process = Self { child, group, said };
        Ok((process, output, input))
    }

    /// Waits for its end, a moment long, and says how it ended.
    pub(super) async fn end(mut self) -> String {
        let ended = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        let how = match ended {
            Ok(Ok(status)) => format!("its process ended ({status})"),
            Ok(Err(error)) => format!("its process is lost ({error})"),
            Err(_) => "it closed the connection".to_owned(),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match said.is_empty() {
            true => how,
            false => format!("{how}; it said: {said}"),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            // They may all have ended by themselves.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Reads what it writes to its error output, and keeps the last line.
async fn listen(id: String, errors: ChildStderr, said: Arc<Mutex<String>>) {
    let mut reader = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line: String = line
            .trim()
            .chars()
            .filter(|character| !character.is_control())
            .take(300)
            .collect();
        if line.is_empty() {
            continue;
        }
        tracing::debug!(mcp.server = %id, "{line}");
        *said.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }
}
