use super::*;

/// A scenario file with these lines in the place of its only step.
fn file(steps: &str) -> String {
    format!(
        "name = \"x\"\norder = 1\ntitle = \"t\"\ndescription = \"d\"\nprompt = \"p\"\n\n[[turns]]\n\n{steps}\n"
    )
}

fn error(source: &str) -> String {
    let error = Scenario::parse("x.toml", source).unwrap_err().to_string();
    assert!(error.starts_with("scenario file x.toml: "), "{error}");
    error
}

fn wrong(steps: &str, words: &[&str]) {
    let error = error(&file(steps));
    for word in words {
        assert!(error.contains(word), "`{error}` does not say `{word}`");
    }
}

#[test]
fn a_wrong_file_is_named_with_its_key() {
    wrong(
        "[[turns.steps]]\nstep = \"text\"\ntext = \"a\"\nspeed = 3",
        &["unknown field `speed`"],
    );
    wrong("[[turns.steps]]\nstep = \"jump\"", &["unknown variant `jump`"]);
    wrong("[[turns.steps]]\nstep = \"cut\"\nat = 3", &["unknown field `at`"]);
    wrong("[[turns.steps]]\nstep = \"gate\"", &["missing field `name`"]);
    wrong("steps = []", &["turns[0].steps[0]"]);
    wrong(
        "[[turns.steps]]\nstep = \"text\"",
        &["turns[0].steps[0]", "neither `text` nor `generator`"],
    );
    wrong(
        "[[turns.steps]]\nstep = \"text\"\ntext = \"a\"\nrate = 0",
        &["`rate` is 0", "above 0"],
    );
    wrong(
        "[[turns.steps]]\nstep = \"silence\"\nseconds = -1",
        &["`seconds` is -1"],
    );
    wrong(
        "[[turns.steps]]\nstep = \"http_error\"\nstatus = 200",
        &["`status` is 200"],
    );
    wrong(
        "[[turns.steps]]\nstep = \"gate\"\nname = \"a/b\"",
        &["`name` is `a/b`"],
    );
    wrong(
        "[[turns.steps]]\nstep = \"text\"\ngenerator = \"load\"",
        &["`parameters.rate`"],
    );
    wrong(
        "[[turns.steps]]\nstep = \"text_on_open_tool\"\ntext = \"a\"",
        &["directly after `tool_call`"],
    );
    assert!(error("title = 3").contains("title"));
    assert!(error(&file("").replace("name = \"x\"", "name = \"y\"")).contains("missing field `steps`"));
    let named = file("[[turns.steps]]\nstep = \"stop\"").replace("name = \"x\"", "name = \"y\"");
    assert!(error(&named).contains("`name` is `y`, expected `x`"));
}

#[test]
fn nothing_follows_the_end_of_a_turn() {
    let text = "[[turns.steps]]\nstep = \"text\"\ntext = \"a\"\n";
    wrong(
        &format!("[[turns.steps]]\nstep = \"cut\"\n{text}"),
        &["turns[0].steps[0]", "last step"],
    );
    wrong(
        &format!("{text}[[turns.steps]]\nstep = \"http_error\"\nstatus = 500"),
        &["turns[0].steps[0]", "before `http_error`"],
    );
}

#[test]
fn cut_arguments_end_between_characters() {
    let steps = "[[turns.steps]]\nstep = \"tool_call\"\nname = \"n\"\narguments = '{\"é\":1}'\ncut_after = 3";
    let scenario = Scenario::parse("x.toml", &file(steps)).unwrap();
    let Step::ToolCall(call) = &scenario.turns[0].steps[0] else {
        panic!("no call")
    };
    assert_eq!(call.sent_arguments(), "{\"é");
}
