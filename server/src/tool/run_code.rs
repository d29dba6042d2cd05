//! `run_code`: a model writes a program that calls the tools.
//!
//! The program runs in an engine of its own (QuickJS, by `rquickjs`) on a thread of its own. It has the language,
//! `tools["name"](arguments)` and `console`: no files, no network, no timers, no modules. What it calls is run by whoever
//! runs the call ([`super::SubCalls`]).

mod console;
mod engine;
mod gate;
mod json;
mod signature;
mod watch;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use self::engine::Program;
use self::gate::Gate;
pub(crate) use self::signature::signatures;
use super::arguments::{decode, schema_of};
use super::{Concurrency, Exposure, Tool, ToolContext, ToolError, ToolFuture, ToolInfo};

/// The name of the tool.
pub const RUN_CODE: &str = "run_code";

/// The longest program.
const LONGEST_PROGRAM: usize = 1024 * 1024;

/// The stack of a program's thread. The engine takes a part of it ([`engine::STACK`]); the rest is for what the engine
/// calls.
const THREAD_STACK: usize = 8 * 1024 * 1024;

/// How long a program may go on without a sign of life after its time is over: some of the engine's own functions cannot
/// be interrupted.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// Limits on one program; each ends it with its own reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLimits {
    /// How long it may compute. Waiting for calls is free.
    pub compute: Duration,
    /// How long it may take in all.
    pub total: Duration,
    /// The most bytes of memory.
    pub memory: usize,
    /// The most bytes that it may log, pass to tools and give back together.
    pub output: usize,
    /// The most calls that it may make.
    pub calls: u32,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            compute: Duration::from_secs(60),
            total: Duration::from_secs(600),
            memory: 256 * 1024 * 1024,
            output: 64 * 1024 * 1024,
            calls: 10_000,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The program: the body of an async function in JavaScript. `await` works everywhere in it; `return` gives a value
    /// back.
    code: String,
    /// What the program does, in a few words, for people who watch.
    description: String,
}

/// The tool `run_code`.
pub struct RunCode {
    info: ToolInfo,
    limits: CodeLimits,
    gate: Gate,
}

impl RunCode {
    /// The tool, with its limits on each program.
    pub fn new(limits: CodeLimits) -> Self {
        let info = ToolInfo {
            name: RUN_CODE.to_owned(),
            description: "Runs a JavaScript program that calls tools, and gives back what it returns. Use it where many \
                          calls belong together, or where results are to be filtered or counted before you read \
                          them. tools[\"name\"](arguments) calls a tool and gives a promise of its result, a text; a \
                          call that fails throws an error, which the program may catch. Calls that are made \
                          together, as with Promise.all, run together where they may. console.log shows a line to \
                          people who watch, not to you. What the program returns has to be JSON. There are no files, \
                          no network, no timers and no modules but by tools."
                .to_owned(),
            parameters: schema_of::<Arguments>(),
            // Its calls decide what else may run.
            concurrency: Concurrency::Exclusive,
            mutating: false,
            exposure: Exposure::Full,
        };
        Self {
            info,
            limits,
            gate: Gate::new(),
        }
    }
}

impl Default for RunCode {
    fn default() -> Self {
        Self::new(CodeLimits::default())
    }
}

impl Tool for RunCode {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let arguments: Arguments = decode(arguments)?;
        let wrong = |words: String| Err(ToolError::new("invalid_arguments", words));
        for (name, text) in [("code", &arguments.code), ("description", &arguments.description)] {
            if text.trim().is_empty() {
                return wrong(format!("The argument `{name}` is empty."));
            }
        }
        if arguments.code.contains('\0') {
            return wrong("A program cannot hold a NUL character; write \\u0000 in a string.".to_owned());
        }
        if arguments.code.len() > LONGEST_PROGRAM {
            return wrong(format!(
                "The program has {} bytes; at most {LONGEST_PROGRAM} are taken.",
                arguments.code.len()
            ));
        }
        Ok(())
    }

    /// A program has limits of its own; this one is for a thread that does not answer.
    fn own_limit(&self) -> Option<Duration> {
        Some(self.limits.total + SIGN_OF_LIFE * 2)
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let Arguments { code, .. } = decode(&arguments)?;
            // It ends with the call, also when the call's future is dropped.
            let cancel = context.cancel.child_token();
            let _ends_with_the_call = cancel.clone().drop_guard();
            let (alive, mut signs) = tokio::sync::watch::channel(None);
            let (done, ended) = oneshot::channel();
            let program = Program {
                code,
                limits: self.limits.clone(),
                gate: self.gate.clone(),
                cancel,
                calls: context.calls.clone(),
                progress: std::sync::Arc::clone(&context.progress),
                alive,
                runtime: tokio::runtime::Handle::current(),
            };
            std::thread::Builder::new()
                .name(RUN_CODE.to_owned())
                .stack_size(THREAD_STACK)
                .spawn(move || {
                    // The call may be over.
                    let _ = done.send(program.run());
                })
                .map_err(|error| {
                    ToolError::new(
                        "cannot_start",
                        format!("The program could not be started: {error}."),
                    )
                })?;
            let compute = self.limits.compute;
            let is_stuck = async {
                loop {
                    let computes_since = *signs.borrow_and_update();
                    let silent = async {
                        match computes_since {
                            Some(since) => tokio::time::sleep_until(since + compute + SIGN_OF_LIFE).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        changed = signs.changed() => if changed.is_err() {
                            // The thread ends by itself.
                            std::future::pending::<()>().await;
                        },
                        () = silent => return,
                    }
                }
            };
            tokio::select! {
                biased;
                outcome = ended => outcome.unwrap_or_else(|_| {
                    tracing::error!("the thread of a program ended without a result");
                    Err(ToolError::new("internal", "The program broke off because of an error of the server's own; \
                        this was logged."))
                }),
                () = context.cancel.cancelled() => Err(ToolError::cancelled()),
                // Its thread keeps its place at the gate: other programs get a processor only while one stays free.
                () = is_stuck => {
                    tracing::error!("a program cannot be interrupted; its thread is left alone");
                    Err(watch::computed_too_long(&self.limits))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
