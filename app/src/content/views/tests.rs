//! Views from arguments and return values, also unfinished and hostile ones.

use super::*;
use crate::content::registry;

fn arguments(tool: &str, raw: &str) -> Option<Shape> {
    (registry::view_of(tool).arguments)(&Fields::read(raw), raw)
}

fn result(tool: &str, raw: &str, text: &str) -> Option<Shape> {
    result_of_type(tool, raw, text, None)
}

fn result_of_type(tool: &str, raw: &str, text: &str, media_type: Option<&str>) -> Option<Shape> {
    let output = Output {
        text: text.to_owned(),
        bytes: text.len() as u64,
        media_type: media_type.map(str::to_owned),
        ..Output::default()
    };
    (registry::view_of(tool).output)(&Answer {
        fields: &Fields::read(raw),
        output: &output,
        is_whole: true,
    })
}

fn text(shape: Option<Shape>) -> String {
    shape.and_then(|shape| shape.text).unwrap_or_default()
}

#[test]
fn an_edit_is_shown_as_lines_with_their_signs_while_it_comes() {
    let shape = arguments(
        "edit_file",
        r#"{"path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"}"#,
    );
    let shape = shape.unwrap();
    assert_eq!(
        (shape.title, shape.note.as_str(), &shape.form),
        ("Change", "a.rs", &Form::Diff)
    );
    assert_eq!(shape.text.as_deref(), Some(" one\n-two\n+2\n"));
    // Until the new text begins, nothing goes.
    let of = |raw: &str| text(arguments("edit_file", raw));
    assert_eq!(of(r#"{"path": "a.rs", "old_string": "one\ntw"#), " one\n tw\n");
    assert_eq!(
        of(r#"{"old_string": "one\ntwo", "new_string": "one\n2"#),
        " one\n-two\n+2\n"
    );
    assert_eq!(of(r#"{"old_string": "", "new_string": "a"}"#), "+a\n");
    assert_eq!(of(r#"{"old_str": "a", "new_str": ""}"#), "-a\n");
    assert_eq!(arguments("edit_file", r#"{"path": "a.rs""#), None);
    assert_eq!(arguments("edit_file", "[1, 2]"), None);
}

#[test]
fn several_edits_and_patches_are_changes_too() {
    let edits = r#"{"path": "a.rs", "edits": [{"old_text": "a", "new_text": "b"}, {"oldText": "c", "newText": "d"}]}"#;
    assert_eq!(text(arguments("multi_edit", edits)), "@@\n-a\n+b\n@@\n-c\n+d\n");
    assert_eq!(arguments("multi_edit", &edits[..60]), None, "not while they come");
    assert_eq!(arguments("multi_edit", r#"{"edits": [{"old_text": "a"}]}"#), None);
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-a\n+b\n*** End Patch";
    let as_field = serde_json::json!({ "input": patch }).to_string();
    assert_eq!(text(arguments("apply_patch", &as_field)), patch);
    assert_eq!(text(arguments("apply_patch", patch)), patch);
    assert_eq!(arguments("apply_patch", r#"{"input": "no patch"}"#), None);
    let inserted = r#"{"command": "insert", "path": "a.rs", "insert_line": 3, "insert_text": "x\ny"}"#;
    assert_eq!(
        text(arguments("str_replace_based_edit_tool", inserted)),
        "@@ after line 3\n+x\n+y\n"
    );
    let created = r#"{"command": "create", "path": "a.rs", "file_text": "x\ny"}"#;
    assert_eq!(
        arguments("str_replace_based_edit_tool", created).unwrap().title,
        "Content"
    );
}

#[test]
fn a_file_that_is_written_is_numbered_code_of_its_language() {
    let shape = arguments("write_file", r#"{"path": "src/a.py", "content": "def a"#).unwrap();
    assert_eq!(
        shape,
        Shape::with_text(
            "Content",
            Form::Code {
                language: "py".to_owned(),
                first: Some(1)
            },
            "def a"
        )
        .noted("src/a.py")
    );
    assert_eq!(arguments("write_file", r#"{"path": "src/a.py"}"#), None);
}

#[test]
fn a_file_that_was_read_keeps_the_numbers_of_its_lines() {
    let first = |raw: &str, text: &str| match result("read_file", raw, text).map(|shape| shape.form) {
        Some(Form::Code { first, .. }) => first,
        _ => None,
    };
    assert_eq!(first(r#"{"path": "a.rs"}"#, "x\n"), Some(1));
    assert_eq!(first(r#"{"path": "a.rs", "offset": 30}"#, "x\n"), Some(30));
    assert_eq!(
        first(r#"{"path": "a.rs", "view_range": [12, 20]}"#, "x\n"),
        Some(12)
    );
    // Numbers that are there already stay the only ones.
    assert_eq!(first(r#"{"path": "a.rs"}"#, "     1\tx\n     2\ty\n"), None);
    assert_eq!(first(r#"{"path": "a.rs", "offset": "far"}"#, "x\n"), None);
    assert_eq!(first("{}", "x\n"), None);
    assert_eq!(
        lines_read("a\nb\n[This was lines 1 to 2 of 9. Go on with offset 3.]\n"),
        2
    );
    assert_eq!(lines_read("a\n[b]"), 2);
}

#[test]
fn what_a_search_found_is_by_file_or_as_it_came() {
    let found = "a.rs:4: fn x()\na.rs:9: fn y()\n[1 more line]\n";
    let shape = result(
        "search_files",
        r#"{"pattern": "fn", "case_sensitive": false}"#,
        found,
    )
    .unwrap();
    assert_eq!(
        shape.form,
        Form::Hits {
            pattern: "fn".to_owned(),
            case_sensitive: false
        }
    );
    assert_eq!(shape.text, None, "the text is that of the channel");
    assert_eq!(
        result("search_files", r#"{"pattern": "fn"}"#, "Nothing was found.\n"),
        None
    );
    assert_eq!(result("search_files", "{}", found), None);
}

#[test]
fn a_command_its_output_and_its_exit_code_are_shown() {
    let shape = arguments("shell", r#"{"command": "cargo test", "cwd": "/srv"}"#).unwrap();
    assert_eq!((shape.title, shape.note.as_str()), ("Command", "in /srv"));
    assert_eq!(shape.text.as_deref(), Some("cargo test"));
    let shape = result(
        "shell",
        "{}",
        r#"{"stdout": "out", "stderr": "err\n", "exit_code": 101}"#,
    )
    .unwrap();
    assert_eq!(
        (shape.note.as_str(), shape.text.as_deref()),
        ("exit 101", Some("out\nerr\n"))
    );
    assert_eq!(
        result("shell", "{}", "\u{1b}[31mno\u{1b}[0m").unwrap(),
        Shape::of("Return value", Form::Terminal)
    );
    assert_eq!(result("shell", "{}", r#"{"other": 1}"#), None);
    assert_eq!(result("shell", "{}", ""), None);
}

#[test]
fn a_page_of_the_web_has_its_status_and_title_and_a_list_its_addresses() {
    let page = r##"{"status": 200, "title": "A", "url": "https://example.org", "markdown": "# A"}"##;
    let shape = result("fetch_url", "{}", page).unwrap();
    assert_eq!(
        (shape.note.as_str(), &shape.form),
        ("200 · A · https://example.org", &Form::Markdown)
    );
    let shape = result(
        "fetch_url",
        "{}",
        r#"{"content": "<b>", "content_type": "text/html"}"#,
    )
    .unwrap();
    assert!(matches!(shape.form, Form::Code { .. }), "{shape:?}");
    let found = r#"[{"title": "A", "url": "https://example.org/a", "snippet": "words"}]"#;
    let shape = result("web_search", "{}", found).unwrap();
    assert_eq!(shape.text.as_deref(), Some("A\nhttps://example.org/a\nwords"));
    assert_eq!(
        result_of_type("fetch_url", "{}", "# A", Some("text/markdown"))
            .unwrap()
            .form,
        Form::Markdown
    );
    assert_eq!(result("fetch_url", "{}", "plain").unwrap().form, Form::Wrapped);
    assert_eq!(
        result("web_search", "{}", r#"[{"title": 1}]"#).unwrap().form,
        Form::Wrapped
    );
}

#[test]
fn a_program_and_a_question_are_shown_as_what_they_are() {
    let shape = arguments(
        "run_code",
        r#"{"description": "Count", "code": "let a = \"b\";\n1"#,
    )
    .unwrap();
    assert_eq!((shape.title, shape.note.as_str()), ("Program", "js · 2 lines"));
    assert_eq!(shape.text.as_deref(), Some("let a = \"b\";\n1"));
    let shape = arguments("python", r#"{"code": "1"}"#).unwrap();
    assert!(matches!(shape.form, Form::Code { language, .. } if language == "python"));
    assert!(matches!(
        result("run_code", "{}", "{\"a\": 1}").unwrap().form,
        Form::Code { .. }
    ));
    assert_eq!(result("run_code", "{}", "done").unwrap().form, Form::Terminal);

    let shape = arguments("ask_model", r#"{"model": "small", "prompt": "Is **this** ri"#).unwrap();
    assert_eq!(
        (shape.title, shape.note.as_str(), &shape.form),
        ("Prompt", "small", &Form::Markdown)
    );
    assert_eq!(
        result("ask_model", "{}", "It *is*.").unwrap().form,
        Form::Markdown
    );
    assert_eq!(
        text(result("ask_model", "{}", r#"{"answer": "It is."}"#)),
        "It is."
    );
    assert_eq!(result("ask_model", "{}", r#"{"score": 1}"#), None);
}

#[test]
fn no_prefix_and_no_odd_value_breaks_a_view() {
    let tools = [
        "read_file",
        "list_dir",
        "search_files",
        "edit_file",
        "multi_edit",
        "apply_patch",
        "write_file",
        "shell",
        "fetch_url",
        "web_search",
        "run_code",
        "python",
        "ask_model",
        "other",
    ];
    let odd = [
        r#"{"path": ["a"], "offset": 99999999999999999999999, "pattern": {"a": 1}, "edits": "x", "command": [[]], "code": null, "prompt": 1}"#,
        r#"{"path": "é\ud800\n\u0000", "old_string": "\r", "new_string": "é😀", "content": "\u001b[31m", "edits": [], "insert_line": "x"}"#,
        "\u{0}\u{1b}[31m{\"path\"",
        "{{{{[[[[\"\\",
    ];
    let outputs = [
        "",
        "\u{0}",
        "{",
        "[]",
        "{}",
        "é:1:",
        ":1:x",
        "a:18446744073709551616: x\n",
        "a:1:\n",
        "\u{1b}[",
        "[{\"url\": 1}]",
    ];
    for tool in tools {
        for raw in odd {
            for end in raw.char_indices().map(|(end, _)| end).chain([raw.len()]) {
                let _ = arguments(tool, &raw[..end]);
            }
            for output in outputs {
                let _ = result(tool, raw, output);
            }
        }
    }
}
