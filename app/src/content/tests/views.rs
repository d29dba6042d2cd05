//! Opened rows of the tools that people know, as HTML.

use protocol::state::{Channel, NodeStatus};

use super::{details, page, tag, words};
use crate::fixtures::script::Script;

/// One node as the details panel shows it, without the framework's marks.
fn shown(script: &Script) -> String {
    details(script, "exec_1").replace("<!>", "")
}

/// A call that is done, as the details panel shows it.
fn done(tool: &str, arguments: &str, result: &str) -> String {
    let mut script = Script::started();
    script.tool("exec_1", tool, 0);
    script.output("exec_1", Channel::Arguments, arguments);
    script.output("exec_1", Channel::Result, result);
    script.node_status("exec_1", NodeStatus::Succeeded);
    shown(&script)
}

#[test]
fn a_file_that_was_read_has_its_lines_numbered_beside_the_text() {
    let html = done(
        "read_file",
        r#"{"path": "a.rs", "offset": 9}"#,
        "fn a() {\n}\n[This was lines 9 to 10; the file ends here.]\n",
    );
    let code = tag(&html, "data-language=\"rs\"");
    assert!(code.contains("data-lines=\"9\n10\""), "{code}");
    assert!(
        html.contains(">fn a() {\n}\n[This was lines 9 to 10; the file ends here.]\n<"),
        "{html}"
    );
    assert!(
        words(&html).contains(r#"{"path": "a.rs", "offset": 9}"#),
        "{html}"
    );
}

#[test]
fn what_was_found_stands_under_the_name_of_its_file() {
    let html = done(
        "search_files",
        r#"{"pattern": "fn"}"#,
        "a.rs:4: fn x()\na.rs:19: fn y()\nb.rs:1: fn z()\n",
    );
    assert!(
        tag(&html, "data-pattern=\"fn\"").contains("class=\"hits\""),
        "{html}"
    );
    assert_eq!(html.matches("class=\"hits__file\"").count(), 2, "{html}");
    assert!(
        html.contains("data-lines=\"4\n19\" class=\"code\">fn x()\nfn y()\n</span>"),
        "{html}"
    );
}

#[test]
fn lines_that_came_and_went_have_their_sign_and_their_class_and_the_row_counts_them() {
    let arguments = r#"{"path": "a.rs", "old_string": "a\nb\nc", "new_string": "a\nx\ny\nc"}"#;
    let html = done("edit_file", arguments, "");
    for line in [
        "<span class=\"ctx\"> a\n</span>",
        "<span class=\"del\">-b\n</span>",
        "<span class=\"add\">+x\n+y\n</span>",
    ] {
        assert!(html.contains(line), "{line}: {html}");
    }
    assert!(words(&html).contains("Change a.rs"), "{}", words(&html));
    let mut script = Script::started();
    script.tool("exec_1", "edit_file", 0);
    script.output("exec_1", Channel::Arguments, arguments);
    script.node_status("exec_1", NodeStatus::Succeeded);
    assert!(
        words(&page(&script)).contains("edit_file a.rs +2 −1 done"),
        "{}",
        words(&page(&script))
    );
}

#[test]
fn the_colours_of_a_terminal_are_classes_and_its_escapes_are_gone() {
    let html = done(
        "shell",
        r#"{"command": "make"}"#,
        "1%\r\u{1b}[32m100%\u{1b}[0m\n\u{1b}]0;title\u{7}<b>end\n",
    );
    assert!(
        html.contains("<span class=\"ansi--green\">100%\n</span>"),
        "{html}"
    );
    assert!(
        html.contains("&lt;b&gt;end") && !html.contains("title\u{7}"),
        "{html}"
    );
    assert!(!html.contains("1%\r") && !html.contains('\u{1b}'), "{html}");
    assert!(words(&html).contains("Command 4 B Raw make"), "{}", words(&html));
}

#[test]
fn a_prompt_and_its_answer_are_markdown() {
    let html = done("ask_model", r#"{"prompt": "Is **it**?"}"#, "It *is*.");
    assert!(
        html.contains("<strong>it</strong>") && html.contains("<em>is</em>"),
        "{html}"
    );
}

#[test]
fn each_view_has_a_way_to_the_text_as_it_came_and_a_generic_card_needs_none() {
    let count = |html: &str| html.matches(">Raw</button>").count();
    assert_eq!(count(&done("shell", r#"{"command": "make"}"#, "done")), 2);
    assert_eq!(count(&done("read_file", r#"{"path": "a"}"#, "done")), 1);
    assert_eq!(count(&done("some_tool", r#"{"command": "make"}"#, "done")), 0);
    // Where the data does not fit, it is the generic card.
    let html = done("shell", r#"["make"]"#, "");
    assert_eq!(count(&html), 0);
    assert!(
        words(&html).contains(r#"Arguments 8 B ["make"]"#),
        "{}",
        words(&html)
    );
}

#[test]
fn a_view_is_there_while_its_arguments_come_and_has_no_colours_yet() {
    let mut script = Script::started();
    script.tool("exec_1", "write_file", 0);
    script.output(
        "exec_1",
        Channel::Arguments,
        r#"{"path": "a.rs", "content": "fn a() {\n  le"#,
    );
    let html = shown(&script);
    assert!(
        tag(&html, "data-lines=\"1\n2\"").contains("class=\"code\""),
        "{html}"
    );
    assert!(
        html.contains(">fn a() {\n  le</span>") && !html.contains("data-language"),
        "{html}"
    );
    script.node_status("exec_1", NodeStatus::Running);
    assert!(shown(&script).contains("data-language=\"rs\""));
}

#[test]
fn what_tools_were_given_and_gave_back_is_text_in_every_view() {
    let hostile = "</pre><img src=x onerror=alert(1)><script>alert(2)</script>\"'&\u{0}\u{1b}[31m";
    let tools = [
        ("read_file", "path"),
        ("search_files", "pattern"),
        ("edit_file", "old_string"),
        ("write_file", "content"),
        ("shell", "command"),
        ("fetch_url", "url"),
        ("run_code", "code"),
        ("ask_model", "prompt"),
        ("other", "x"),
    ];
    for (tool, field) in tools {
        let arguments =
            serde_json::json!({ field: hostile, "path": hostile, "language": hostile }).to_string();
        let found = format!("{hostile}:3: {hostile}\n");
        for result in [
            hostile,
            &found,
            &serde_json::json!({ "stdout": hostile, "text": hostile, "title": hostile }).to_string(),
        ] {
            let html = done(tool, &arguments, result);
            for forbidden in ["<img", "<script", "</script", "style=", "\u{0}", "\u{1b}"] {
                assert!(!html.contains(forbidden), "{tool}: {forbidden:?}: {html}");
            }
        }
    }
}
