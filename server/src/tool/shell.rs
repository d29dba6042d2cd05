//! `shell`: runs a command in the workspace. It has all rights of the server's user, so it is off by default.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{FusedFuture as _, FutureExt as _};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::arguments::{PositiveInteger, decode, schema_of};
use super::{
    Approval, Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput,
    ToolProgress, Workspace, words,
};

/// The most bytes of output that are kept; the end of a longer one.
const LARGEST_OUTPUT: usize = 1024 * 1024;

/// The most bytes of output that are shown while the command runs.
const LARGEST_LOG: usize = 1024 * 1024;

/// How long output is waited for once the command has ended: what it left running is killed by then.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The longest command.
const LONGEST_COMMAND: usize = 64 * 1024;

/// What a command gets of the server's environment: nothing that holds a secret.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The part of the server's environment that programs get.
pub(crate) fn harmless_environment() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    ENVIRONMENT
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, as for `sh -c`. It runs in the root of the workspace, without a terminal and without input.
    command: String,
    /// What it is for, in a few words, for people who watch.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    /// How many seconds it may take. Left out: as long as any call.
    timeout: Option<PositiveInteger>,
}

/// The tool `shell`.
pub struct Shell {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl Shell {
    /// The tool over a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let info = ToolInfo {
            name: "shell".to_owned(),
            description: format!(
                "Runs a command by `sh` in the root of the workspace and gives back what it writes, the last {} of it. \
                 What it leaves running is ended with it.",
                words::size(LARGEST_OUTPUT as u64)
            ),
            parameters: schema_of::<Arguments>(),
            concurrency: Concurrency::Exclusive,
            mutating: true,
            exposure: Exposure::Full,
        };
        Self { info, workspace }
    }
}

impl Tool for Shell {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn approval(&self) -> Approval {
        Approval::Ask
    }

    fn asks(&self, arguments: &Value) -> String {
        let command = arguments.get("command").and_then(Value::as_str);
        format!(
            "Run the command `{}`",
            words::beginning(command.unwrap_or_default())
        )
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        let wrong = |words: String| Err(ToolError::new("invalid_arguments", words));
        if arguments.command.trim().is_empty() {
            return wrong("The argument `command` is empty.".to_owned());
        }
        if arguments.command.contains('\0') {
            return wrong("A command cannot hold a NUL character.".to_owned());
        }
        if arguments.command.len() > LONGEST_COMMAND {
            return wrong(format!(
                "The command has {} bytes; at most {LONGEST_COMMAND} are taken. Write a script with `write_file`.",
                arguments.command.len()
            ));
        }
        Ok(())
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: Arguments = decode(&arguments)?;
            self.run(&arguments, context).await
        })
    }
}

/// The processes of a command. They are killed when it is dropped, however that comes.
struct Group(Option<Pid>);

impl Group {
    /// Once: later its number may be another group's.
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // They may all have ended by themselves.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Shell {
    async fn run(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (reader, writer) = std::io::pipe().map_err(|error| cannot_start(&error))?;
        let mut command = Command::new("sh");
        command
            .args(["-c", &arguments.command])
            .current_dir(self.workspace.root())
            .env_clear()
            .envs(harmless_environment())
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            // One pipe, so that both stay in their order.
            .stdout(writer.try_clone().map_err(|error| cannot_start(&error))?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
        // It holds the ends of the pipe.
        drop(command);
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let Some(id) = id else {
            return Err(ToolError::new("cannot_start", "The command has no process."));
        };
        let mut group = Group(Some(Pid::from_raw(id)));
        let receiver = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into());
        let receiver = receiver.map_err(|error| cannot_start(&error))?;
        let mut output = Output::default();
        let limit = async {
            match arguments.timeout {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds.get())).await,
                None => std::future::pending().await,
            }
        };
        let ended = {
            let reading = output.read(receiver, context.progress.as_ref()).fuse();
            tokio::pin!(reading);
            let status = tokio::select! {
                biased;
                () = context.cancel.cancelled() => None,
                () = limit => {
                    let seconds = arguments.timeout.map_or(0, PositiveInteger::get);
                    let words = format!("The command took longer than {seconds} s and was stopped.");
                    return Err(ToolError::new("timed_out", words));
                }
                status = async {
                    // The output is read meanwhile; it may end before the command does.
                    tokio::select! {
                        status = child.wait() => status,
                        () = &mut reading => child.wait().await,
                    }
                } => Some(status),
            };
            group.kill();
            if status.is_some() && !reading.is_terminated() {
                // A process that left the group may hold the pipe: it is not waited for.
                let _ = timeout(LAST_OUTPUT, &mut reading).await;
            }
            status
        };
        let Some(status) = ended else {
            return Err(ToolError::cancelled());
        };
        let status = status.map_err(|error| cannot_start(&error))?;
        let code = {
            use std::os::unix::process::ExitStatusExt as _;
            // As a shell tells it.
            status.code().or(status.signal().map(|signal| 128 + signal))
        };
        Ok(ToolOutput {
            text: output.text(code.unwrap_or(0)),
            media_type: "text/plain".to_owned(),
            exit_code: code,
        })
    }
}

fn cannot_start(error: &std::io::Error) -> ToolError {
    ToolError::new("cannot_start", format!("The command could not be run: {error}."))
}

/// What a command wrote: the end of it, and how much there was.
#[derive(Default)]
struct Output {
    kept: std::collections::VecDeque<u8>,
    bytes: u64,
    logged: usize,
}

impl Output {
    /// Reads to the end.
    async fn read(&mut self, mut from: impl AsyncRead + Unpin, progress: &dyn ToolProgress) {
        let mut piece = vec![0; 16 * 1024];
        // A character may be cut by the border of two pieces.
        let mut rest = Vec::new();
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let piece = piece.get(..length).unwrap_or_default();
            self.bytes += length as u64;
            self.kept.extend(piece);
            let surplus = self.kept.len().saturating_sub(LARGEST_OUTPUT);
            self.kept.drain(..surplus);
            if self.logged < LARGEST_LOG {
                self.logged += length;
                rest.extend_from_slice(piece);
                let whole = whole_characters(&rest);
                let text: Vec<u8> = rest.drain(..whole).collect();
                progress.log(&String::from_utf8_lossy(&text));
            }
        }
        progress.log(&String::from_utf8_lossy(&rest));
    }

    /// The text with what has to be said about it.
    fn text(mut self, code: i32) -> String {
        let mut text = String::new();
        let left_out = self.bytes.saturating_sub(self.kept.len() as u64);
        if left_out > 0 {
            text.push_str(&format!("[The first {} are left out.]\n", words::size(left_out)));
        }
        text.push_str(&String::from_utf8_lossy(self.kept.make_contiguous()));
        if code != 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[The command ended with exit code {code}.]\n"));
        }
        text
    }
}

/// The length without a character that has only begun.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests;
