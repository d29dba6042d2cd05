//! The thread of one program: the engine, its two objects, and the way of calls and results.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use rquickjs::context::intrinsic::{
    Date, Eval, Json, MapSet, Promise as Promises, Proxy, RegExp, RegExpCompiler, TypedArrays,
};
use rquickjs::function::{Opt, Rest};
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Exception, Function, Object, Promise, Runtime, Value};
use tokio::runtime::Handle;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

use super::console::{error_words, line};
use super::gate::Gate;
use super::json::{NotJson, Reader};
use super::watch::{Watch, used_up};
use super::{CodeLimits, RUN_CODE};
use crate::tool::sub_calls::SubCallResult;
use crate::tool::{SubCalls, ToolError, ToolOutput, ToolProgress};

/// How much of its thread's stack the engine takes.
pub(super) const STACK: usize = 1024 * 1024;

/// The longest name of a tool: what a program calls is shown by it.
const LONGEST_NAME: usize = 128;

/// What the language has here: no clock but `Date`, and nothing that tells when memory is freed.
type Language = (
    Date,
    Eval,
    RegExpCompiler,
    RegExp,
    Json,
    Proxy,
    MapSet,
    TypedArrays,
    Promises,
);

/// Gives a program its two objects. Every name is a tool: who runs calls says which there are.
const OBJECTS: &str = r#"(call, line) => {
    const tools = new Proxy(Object.freeze(Object.create(null)), {
        get: (_, name) => typeof name === "string" ? (argument) => call(name, argument) : undefined,
    });
    const console = Object.freeze({ log: line, info: line, warn: line, error: line, debug: line });
    for (const [name, value] of [["tools", tools], ["console", console]]) {
        Object.defineProperty(globalThis, name, { value, enumerable: true });
    }
}"#;

/// A program that is to be run.
pub(super) struct Program {
    pub(super) code: String,
    pub(super) limits: CodeLimits,
    pub(super) gate: Gate,
    pub(super) cancel: CancellationToken,
    pub(super) calls: SubCalls,
    pub(super) progress: Arc<dyn ToolProgress>,
    pub(super) alive: Sender<Option<tokio::time::Instant>>,
    pub(super) runtime: Handle,
}

/// Calls that were made and have not been answered.
type Waiting = FuturesUnordered<BoxFuture<'static, (u32, SubCallResult)>>;

/// What a program's functions share.
struct Shared<'js> {
    watch: Rc<Watch>,
    calls: SubCalls,
    progress: Arc<dyn ToolProgress>,
    waiting: RefCell<Waiting>,
    /// How the promise of each call is settled.
    promises: RefCell<HashMap<u32, (String, Function<'js>, Function<'js>)>>,
    made: RefCell<u32>,
}

/// Lets go of all values before the engine ends: they must not live longer than it.
struct LetGo<'js>(Rc<Shared<'js>>);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        self.0.promises.borrow_mut().clear();
    }
}

impl Program {
    /// Runs it to its end, on this thread.
    pub(super) fn run(self) -> Result<ToolOutput, ToolError> {
        let Self {
            code,
            limits,
            gate,
            cancel,
            calls,
            progress,
            alive,
            runtime,
        } = self;
        let memory = limits.memory;
        let watch = Rc::new(Watch::new(limits, gate, cancel, runtime, alive));
        let cannot =
            |error: Error| ToolError::new("cannot_start", format!("The engine cannot start: {error}."));
        let engine = Runtime::new().map_err(cannot)?;
        engine.set_memory_limit(memory);
        engine.set_max_stack_size(STACK);
        let asked = Rc::clone(&watch);
        engine.set_interrupt_handler(Some(Box::new(move || asked.is_over())));
        let context = Context::custom::<Language>(&engine).map_err(cannot)?;
        let outcome = context.with(|ctx| {
            let shared = Rc::new(Shared {
                watch: Rc::clone(&watch),
                calls,
                progress,
                waiting: RefCell::default(),
                promises: RefCell::default(),
                made: RefCell::new(0),
            });
            let _let_go = LetGo(Rc::clone(&shared));
            drive(&ctx, &shared, &code)
        });
        watch.leave_off();
        // A limit that was reached counts, whatever the program made of it.
        match watch.why() {
            Some(why) => Err(why),
            None => outcome,
        }
    }
}

/// Computes and waits by turns until the program has ended.
fn drive<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared<'js>>, code: &str) -> Result<ToolOutput, ToolError> {
    let watch = &shared.watch;
    watch.begin_to_compute();
    if let Some(why) = watch.why() {
        return Err(why);
    }
    let program = begin(ctx, shared, code).map_err(|error| thrown(ctx, watch, &error))?;
    loop {
        while !watch.is_over() && ctx.execute_pending_job() {}
        if let Some(why) = watch.why() {
            return Err(why);
        }
        match program.state() {
            PromiseState::Resolved => return returned(ctx, shared, &program),
            PromiseState::Rejected => {
                let error = program.result::<Value<'js>>().and_then(Result::err);
                return Err(thrown(ctx, watch, &error.unwrap_or(Error::Unknown)));
            }
            PromiseState::Pending => {}
        }
        watch.leave_off();
        let answered = {
            let mut waiting = shared.waiting.borrow_mut();
            watch.wait(waiting.next())
        };
        match answered {
            None => {}
            Some(None) => return Err(never_settled()),
            Some(Some((call, result))) => {
                watch.begin_to_compute();
                if watch.why().is_none() {
                    answer(ctx, shared, call, result).map_err(|error| thrown(ctx, watch, &error))?;
                }
            }
        }
        if let Some(why) = watch.why() {
            return Err(why);
        }
    }
}

/// Makes the objects and begins the program: gives the promise of its value.
fn begin<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared<'js>>, code: &str) -> rquickjs::Result<Promise<'js>> {
    let of_call = Rc::clone(shared);
    let call = Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, name: Value<'js>, argument: Opt<Value<'js>>| {
            call_tool(&ctx, &of_call, &name, argument.0)
        },
    )?;
    let of_line = Rc::clone(shared);
    let line = Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
        log(&ctx, &of_line, &values.0)
    })?;
    let objects: Function<'js> = ctx.eval(OBJECTS)?;
    objects.call::<_, ()>((call, line))?;
    // On one line with the program, so that the lines that errors name are the program's.
    let source = format!("(async () => {{{code}\n}})()");
    let mut options = rquickjs::context::EvalOptions::default();
    options.strict = false;
    options.filename = Some("program".to_owned());
    ctx.eval_with_options(source, options)
}

/// `console.log(…)`
fn log<'js>(ctx: &Ctx<'js>, shared: &Shared<'js>, values: &[Value<'js>]) -> rquickjs::Result<()> {
    let line = line(ctx, &shared.watch, values)?;
    match shared.watch.puts_out(line.len()) {
        true => shared.progress.log(&line),
        false => return Err(over(ctx)),
    }
    Ok(())
}

/// `tools[name](argument)`: gives the promise of the result.
fn call_tool<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared<'js>,
    name: &Value<'js>,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    let watch = &shared.watch;
    let name: String = name.get()?;
    if name.is_empty() || name.len() > LONGEST_NAME {
        let words = format!("There is no tool with a name of {} bytes.", name.len());
        return Err(Exception::throw_type(ctx, &words));
    }
    let arguments = match argument.filter(|argument| !argument.is_undefined()) {
        None => serde_json::Value::Object(serde_json::Map::new()),
        Some(argument) => match Reader::new(ctx, watch)?.read(&argument) {
            Ok(arguments @ serde_json::Value::Object(_)) => arguments,
            Ok(_) => {
                let words = format!("{name}: the argument is not an object with named fields");
                return Err(Exception::throw_type(ctx, &words));
            }
            Err(NotJson::Holds(what)) => {
                let words = format!("{name}: the argument cannot be passed as JSON: {what}");
                return Err(Exception::throw_type(ctx, &words));
            }
            Err(NotJson::Engine(error)) => return Err(error),
        },
    };
    if !watch.calls() {
        return Err(over(ctx));
    }
    let (promise, resolve, reject) = ctx.promise()?;
    let number = shared.made.replace_with(|made| *made + 1);
    let answered = shared.calls.start(name.clone(), arguments);
    shared
        .promises
        .borrow_mut()
        .insert(number, (name, resolve, reject));
    let answered = answered.map(move |answered| {
        let nobody = || crate::tool::SubCallError::new("cancelled", "The call was not run.");
        (number, answered.unwrap_or_else(|_| Err(nobody())))
    });
    shared.waiting.borrow_mut().push(answered.boxed());
    Ok(promise)
}

/// Settles the promise of a call.
fn answer<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared<'js>,
    call: u32,
    result: SubCallResult,
) -> rquickjs::Result<()> {
    let promise = shared.promises.borrow_mut().remove(&call);
    let Some((name, resolve, reject)) = promise else {
        return Ok(());
    };
    match result {
        Ok(text) => resolve.call((text,)),
        Err(failed) => {
            let error = Exception::from_message(ctx.clone(), &format!("{name}: {}", failed.message))?;
            let object: &Object<'js> = error.as_object();
            object.set("name", "ToolError")?;
            object.set("tool", name)?;
            object.set("code", failed.code)?;
            reject.call((error,))
        }
    }
}

/// What the program gave back: a text as it is, all else as JSON, nothing where it returned nothing.
fn returned<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared<'js>,
    program: &Promise<'js>,
) -> Result<ToolOutput, ToolError> {
    let watch = &shared.watch;
    let output = |text: String, media_type: &str| ToolOutput {
        text,
        media_type: media_type.to_owned(),
        exit_code: None,
    };
    let value = match program.result::<Value<'js>>() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(thrown(ctx, watch, &error)),
        None => return Err(never_settled()),
    };
    if value.is_undefined() {
        return Ok(output(String::new(), "text/plain"));
    }
    let read = Reader::new(ctx, watch).map_err(NotJson::from);
    match read.and_then(|mut reader| reader.read(&value)) {
        Ok(serde_json::Value::String(text)) => Ok(output(text, "text/plain")),
        Ok(json) => Ok(output(format!("{json:#}"), "application/json")),
        Err(NotJson::Holds(what)) => Err(ToolError::new(
            "not_json",
            format!("What the program returned cannot be given back as JSON: {what}."),
        )),
        Err(NotJson::Engine(error)) => Err(thrown(ctx, watch, &error)),
    }
}

/// What is thrown where the program has to end anyway: it will not get to see it.
fn over(ctx: &Ctx<'_>) -> Error {
    Exception::throw_message(ctx, "The program is over.")
}

fn never_settled() -> ToolError {
    ToolError::new(
        "never_settled",
        "The program waits for a promise that nothing will settle: no call of it is running.",
    )
}

/// An error that the program did not catch, or an error of the engine.
fn thrown(ctx: &Ctx<'_>, watch: &Watch, error: &Error) -> ToolError {
    if let Some(why) = watch.why() {
        return why;
    }
    if !error.is_exception() {
        let words = format!("The engine could not go on: {error}.");
        return ToolError::new("program_failed", words);
    }
    let value = ctx.catch();
    let words = error_words(&value);
    let first = words.lines().next().unwrap_or_default();
    match first {
        "InternalError: out of memory" => used_up(watch.limits()),
        "RangeError: Maximum call stack size exceeded" => ToolError::new(
            "limit_recursion",
            "The program called itself more often than the stack has room for.",
        ),
        _ if first.starts_with("SyntaxError: ") => {
            ToolError::new("syntax_error", format!("The program is not JavaScript. {words}"))
        }
        _ => ToolError::new("program_failed", format!("The program threw an error. {words}")),
    }
}

/// The thread carries the tool's name.
const _: () = assert!(RUN_CODE.len() < 16);
