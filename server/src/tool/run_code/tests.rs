use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::tool::sub_calls::{SubCallError, SubCallRequest, SubCalls};
use crate::tool::test_support::{RecordedProgress, quiet_context};
use crate::tool::{ToolContext, ToolOutput};

/// How a program ended, what it logged, and what it called.
struct Ran {
    outcome: Result<ToolOutput, ToolError>,
    log: String,
    calls: Vec<(String, Value)>,
}

impl Ran {
    fn value(&self) -> &str {
        &self.outcome.as_ref().unwrap().text
    }

    fn error(&self) -> (&str, &str) {
        let error = self.outcome.as_ref().unwrap_err();
        (error.code, &error.message)
    }
}

async fn run(code: &str) -> Ran {
    run_with(&RunCode::default(), code).await
}

/// Runs a program whose tool `echo` gives its arguments back, whose tool `fail` fails, and whose tool `never` does not
/// answer.
async fn run_with(tool: &RunCode, code: &str) -> Ran {
    let (calls, mut requests) = SubCalls::channel();
    let progress = Arc::new(RecordedProgress::default());
    let context = ToolContext {
        calls,
        progress: Arc::clone(&progress) as Arc<dyn crate::tool::ToolProgress>,
        ..quiet_context()
    };
    let arguments = json!({ "code": code, "description": "Tries" });
    tool.check(&arguments).unwrap();
    let mut running = tool.call(arguments, &context);
    let mut calls = Vec::new();
    let mut kept = Vec::new();
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome,
            Some(SubCallRequest { name, arguments, answer }) = requests.recv() => {
                let result = match name.as_str() {
                    "echo" => Some(Ok(arguments.to_string())),
                    "fail" => Some(Err(SubCallError::new("not_found", "There is no such thing."))),
                    "never" => None,
                    _ => Some(Err(SubCallError::new("unknown_tool", format!("There is no tool named `{name}`.")))),
                };
                calls.push((name, arguments));
                match result {
                    Some(result) => { let _ = answer.send(result); }
                    None => kept.push(answer),
                }
            }
        }
    };
    let log = progress.log.lock().unwrap().clone();
    Ran { outcome, log, calls }
}

fn limited(change: impl FnOnce(&mut CodeLimits)) -> RunCode {
    let mut limits = CodeLimits {
        compute: Duration::from_secs(20),
        total: Duration::from_secs(60),
        ..CodeLimits::default()
    };
    change(&mut limits);
    RunCode::new(limits)
}

#[tokio::test]
async fn a_program_awaits_calls_and_returns_a_value() {
    let ran = run(
        "const text = await tools['echo']({ a: 1 });\nconst [b, c] = await Promise.all([tools.echo({ b: 2 }), \
         tools.echo()]);\nreturn { text, b, c, list: [1.5, null, true, 'ü\\u0000'] };",
    )
    .await;
    let value: Value = serde_json::from_str(ran.value()).unwrap();
    assert_eq!(
        value,
        json!({ "text": "{\"a\":1}", "b": "{\"b\":2}", "c": "{}", "list": [1.5, null, true, "ü\0"] })
    );
    assert_eq!(ran.outcome.unwrap().media_type, "application/json");
    let calls: Vec<_> = ran
        .calls
        .iter()
        .map(|(_, arguments)| arguments.to_string())
        .collect();
    assert_eq!(calls, ["{\"a\":1}", "{\"b\":2}", "{}"]);
}

#[tokio::test]
async fn a_text_is_returned_as_it_is_and_nothing_as_nothing() {
    for (code, value) in [
        ("return 'a\\nb'", "a\nb"),
        ("// words", ""),
        ("return undefined", ""),
    ] {
        let ran = run(code).await;
        assert_eq!(ran.value(), value, "{code}");
        assert_eq!(ran.outcome.unwrap().media_type, "text/plain", "{code}");
    }
}

#[tokio::test]
async fn a_call_that_fails_throws_an_error_that_names_the_tool_and_may_be_caught() {
    let ran = run(
        "try { await tools.fail({}); } catch (error) {\n return [error.name, error.tool, error.code, error.message, \
         error instanceof Error]; }",
    )
    .await;
    let value: Value = serde_json::from_str(ran.value()).unwrap();
    assert_eq!(
        value,
        json!([
            "ToolError",
            "fail",
            "not_found",
            "fail: There is no such thing.",
            true
        ])
    );
    let ran = run("const one = 1;\nawait tools.fail({});").await;
    let (code, words) = ran.error();
    assert_eq!(code, "program_failed");
    assert!(
        words.contains("ToolError: fail: There is no such thing."),
        "{words}"
    );
}

#[tokio::test]
async fn every_name_is_asked_for_as_a_tool_and_nothing_else_is_there() {
    for name in ["__proto__", "constructor", "toString", "nothing"] {
        let ran = run(&format!("await tools[{name:?}]({{}})")).await;
        assert_eq!(ran.calls[0].0, name);
        assert!(
            ran.error()
                .1
                .contains(&format!("There is no tool named `{name}`")),
            "{name}"
        );
    }
    let ran = run(
        "return [typeof process, typeof require, typeof fetch, typeof setTimeout, typeof std, typeof os, typeof Deno, \
         typeof WebAssembly, typeof performance, typeof WeakRef]",
    )
    .await;
    let value: Vec<String> = serde_json::from_str(ran.value()).unwrap();
    assert!(value.iter().all(|kind| kind == "undefined"), "{value:?}");
    let ran = run("return (await import('fs')).readFileSync('/etc/passwd', 'utf8')").await;
    assert_eq!(ran.error().0, "program_failed");
    for name in ["''", "'x'.repeat(1000)"] {
        let ran = run(&format!("await tools[{name}]({{}})")).await;
        assert!(
            ran.calls.is_empty() && ran.error().1.contains("There is no tool"),
            "{name}"
        );
    }
    // What one program changes, the next one does not see.
    run("Object.prototype.seen = 1; globalThis.seen = 1; tools = null;").await;
    assert_eq!(
        run("return typeof seen + ' ' + ({}).seen").await.value(),
        "undefined undefined"
    );
}

#[tokio::test]
async fn console_lines_are_logged_in_words() {
    let ran = run(
        "console.log('a', 1, { b: [2] }, undefined, null, 3n, () => 1);\nconsole.error(new Error('no'));\nconst c = {}; \
         c.c = c; console.info(c, Symbol('s'), NaN, '\\ud800');",
    )
    .await;
    ran.outcome.unwrap();
    let lines: Vec<_> = ran.log.lines().collect();
    assert_eq!(lines[0], "a 1 {\"b\":[2]} undefined null 3 () => 1");
    assert_eq!(lines[1], "Error: no");
    assert_eq!(
        lines.last().unwrap(),
        &"[object Object] Symbol(s) NaN [a value that cannot be shown]"
    );
}

#[tokio::test]
async fn what_is_no_json_is_refused_with_its_place() {
    for (value, words) in [
        (
            "(() => { const a = {}; a.b = [a]; return a; })()",
            "at b[0], an object that it lies within (a cycle)",
        ),
        ("{ a: { b: 1n } }", "at a.b, a BigInt"),
        ("{ a: undefined }", "at a, undefined"),
        ("[1, , 2]", "at [1], undefined"),
        ("NaN", "it is NaN"),
        ("[1 / 0]", "at [0], an infinite number"),
        ("{ run() {} }", "at run, a function"),
        ("Symbol('a')", "a symbol"),
        ("'\\ud83d'", "a text with half of a surrogate pair"),
        ("{ ['\\udc00']: 1 }", "a text with half of a surrogate pair"),
        ("new Date(0)", "an object of the class Date"),
        ("new Map()", "an object of the class Map"),
        ("new (class Cat {})()", "an object of the class Cat"),
        ("{ a: Promise.resolve(1) }", "at a, a promise; await it first"),
        ("{ t: tools }", "at t, a proxy"),
        ("{ [Symbol('a')]: 1 }", "a symbol as a name"),
        (
            "(() => { let a = []; for (let i = 0; i < 200; i++) a = [a]; return a; })()",
            "more than 100 levels",
        ),
    ] {
        let ran = run(&format!("return {value}")).await;
        let (code, message) = ran.error();
        assert_eq!(code, "not_json", "{value}");
        assert!(message.contains(words), "{value}: {message}");
        // The same for what is passed to a tool, and the program may catch it.
        let ran = run(&format!(
            "try {{ await tools.echo({{ x: {value} }}) }} catch (e) {{ return String(e) }}"
        ))
        .await;
        assert!(ran.calls.is_empty(), "{value}");
        assert!(
            ran.value()
                .contains("echo: the argument cannot be passed as JSON"),
            "{value}: {}",
            ran.value()
        );
    }
    for (value, written) in [
        ("9007199254740991", "9007199254740991"),
        ("-0", "-0.0"),
        ("1e300", "1e+300"),
        ("0.1", "0.1"),
        ("'😀'.length", "2"),
        ("Object.assign(Object.create(null), { a: 1 }).a", "1"),
        ("JSON.parse('{\"__proto__\": 1}')", "{\n  \"__proto__\": 1\n}"),
    ] {
        assert_eq!(run(&format!("return {value}")).await.value(), written, "{value}");
    }
    let ran = run("return { get a() { throw new Error('out of reach') } }").await;
    assert!(ran.error().1.contains("out of reach"));
}

#[tokio::test]
async fn a_program_that_is_none_says_where() {
    let ran = run("const a = 1;\nconst b = ;").await;
    let (code, words) = ran.error();
    assert_eq!(code, "syntax_error");
    assert!(words.contains("program:2"), "{words}");
    let ran = run("const a: number = 1;").await;
    assert_eq!(ran.error().0, "syntax_error");
    let tool = RunCode::default();
    for arguments in [
        json!({ "code": "1" }),
        json!({ "description": "a" }),
        json!({ "code": " ", "description": "a" }),
        json!({ "code": "1", "description": "" }),
        json!({ "code": "a\0b", "description": "a" }),
        json!({ "code": "x".repeat(2_000_000), "description": "a" }),
        json!({ "code": "1", "description": "a", "more": 1 }),
    ] {
        assert_eq!(tool.check(&arguments).unwrap_err().code, "invalid_arguments");
    }
}

#[tokio::test]
async fn a_program_without_end_ends_at_its_limit_with_what_it_logged() {
    let tool = limited(|limits| limits.compute = Duration::from_millis(300));
    for code in [
        "while (true);",
        "(function f() { Promise.resolve().then(f); })(); await new Promise(() => {});",
        "try { while (true); } catch {} finally { while (true); }",
        "while (true) { try { while (true); } catch {} }",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "return { get a() { while (true); } }",
        "console.log({ toString() { while (true); }, get a() { while (true); } })",
    ] {
        let ran = run_with(&tool, &format!("console.log('so far');{code}")).await;
        assert_eq!(
            ran.error().0,
            "limit_compute",
            "{code}: {ran:?}",
            ran = ran.outcome
        );
        assert_eq!(ran.log, "so far\n", "{code}");
    }
    let tool = limited(|limits| limits.total = Duration::from_millis(200));
    let ran = run_with(&tool, "console.log('so far'); await tools.never({});").await;
    assert_eq!(ran.error().0, "limit_time");
    assert_eq!(ran.log, "so far\n");
}

#[tokio::test]
async fn what_the_engine_cannot_interrupt_is_left_alone_and_the_call_ends() {
    let tool = limited(|limits| limits.compute = Duration::from_millis(100));
    let code = "Array.prototype.indexOf.call({ length: 1e8 }, 1)";
    let ran = run_with(&tool, code).await;
    assert_eq!(ran.error().0, "limit_compute");
}

#[tokio::test]
async fn memory_stack_output_and_calls_have_limits_of_their_own() {
    let tool = limited(|limits| {
        limits.memory = 16 * 1024 * 1024;
        limits.output = 1024 * 1024;
        limits.calls = 20;
    });
    for (code, kind) in [
        (
            "const a = []; while (true) a.push('x'.repeat(100000) + a.length)",
            "limit_memory",
        ),
        ("let a = 'x'; while (true) a += a + 'y'", "program_failed"),
        ("return new Uint8Array(1e9).length", "limit_memory"),
        ("(function f() { return f() + 1; })()", "limit_recursion"),
        ("const f = () => [1].map(f); f()", "limit_recursion"),
        ("while (true) console.log('x'.repeat(1000))", "limit_output"),
        ("return 'x'.repeat(2e6)", "limit_output"),
        ("await tools.echo({ x: 'x'.repeat(2e6) })", "limit_output"),
        (
            "try { for (;;) tools.never({}) } catch { return 1 }",
            "limit_calls",
        ),
        ("await new Promise(() => {})", "never_settled"),
        ("await tools.echo({}); await { then() {} }", "never_settled"),
        ("throw null", "program_failed"),
        ("throw { a: 1 }", "program_failed"),
    ] {
        let ran = run_with(&tool, code).await;
        assert_eq!(ran.error().0, kind, "{code}: {:?}", ran.outcome);
    }
}

#[tokio::test]
async fn ten_megabytes_pass_to_a_tool_and_back() {
    let ran = run("return (await tools.echo({ x: 'ü'.repeat(5000000) })).length").await;
    assert_eq!(ran.value(), (5_000_000 + "{\"x\":\"\"}".len()).to_string());
}

#[tokio::test]
async fn a_cancelled_program_ends_at_once_whether_it_computes_or_waits() {
    for code in [
        "console.log('here'); while (true);",
        "console.log('here'); await tools.never({})",
    ] {
        let tool = RunCode::default();
        let (calls, _requests) = SubCalls::channel();
        let (logged, mut has_logged) = tokio::sync::mpsc::unbounded_channel();
        struct Tell(tokio::sync::mpsc::UnboundedSender<()>);
        impl crate::tool::ToolProgress for Tell {
            fn log(&self, _: &str) {
                let _ = self.0.send(());
            }
            fn progress(&self, _: u64, _: Option<u64>, _: Option<&str>) {}
        }
        let context = ToolContext {
            calls,
            progress: Arc::new(Tell(logged)),
            ..quiet_context()
        };
        let cancel = context.cancel.clone();
        let arguments = json!({ "code": code, "description": "Tries" });
        let running = tool.call(arguments, &context);
        let cancelling = async {
            has_logged.recv().await.unwrap();
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(running, cancelling);
        assert_eq!(outcome.unwrap_err().code, "cancelled", "{code}");
        // Its place is free again.
        tool.gate.enter().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_compute_take_turns_at_the_gate() {
    let tool = Arc::new(RunCode {
        gate: Gate::with_places(1),
        ..limited(|limits| limits.compute = Duration::from_secs(2))
    });
    let ended = Arc::new(AtomicUsize::new(0));
    let mut programs = JoinSet::new();
    let long = Arc::clone(&tool);
    let before = Arc::clone(&ended);
    programs.spawn(async move {
        let ran = run_with(&long, "while (true);").await;
        assert_eq!(ran.error().0, "limit_compute");
        // All short ones came in between.
        assert_eq!(before.load(Ordering::SeqCst), 5);
    });
    for _ in 0..5 {
        let (tool, ended) = (Arc::clone(&tool), Arc::clone(&ended));
        programs.spawn(async move {
            let ran = run_with(&tool, "await tools.echo({}); return 1").await;
            assert_eq!(ran.value(), "1");
            ended.fetch_add(1, Ordering::SeqCst);
        });
    }
    while let Some(ended) = programs.join_next().await {
        ended.unwrap();
    }
}
