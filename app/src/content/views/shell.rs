//! Commands and programs, and what came of them.

use serde_json::Value;

use super::{Answer, Form, RESULT, Shape, object};
use crate::content::partial_json::Fields;
use crate::content::words;

/// The command, as far as it has come. One that is given in parts is shown as one line.
pub fn command(fields: &Fields, _: &str) -> Option<Shape> {
    let text = command_text(fields)?;
    let form = Form::Code {
        language: "sh".to_owned(),
        first: None,
    };
    let place = fields.any(&["cwd", "workdir", "working_directory", "dir"]);
    let note = place.map(|place| words::line(&format!("in {place}"), super::NOTE));
    Some(Shape::with_text("Command", form, text).noted(note.unwrap_or_default()))
}

/// The text of a command.
pub fn command_text(fields: &Fields) -> Option<String> {
    if let Some(text) = fields.any(&["command", "cmd", "script", "commands"]) {
        return Some(text.to_owned());
    }
    let parts = fields.nested("command").or(fields.nested("commands"))?;
    let parts: Vec<String> = protocol::from_json(parts).ok()?;
    Some(match parts.as_slice() {
        // A shell that runs a line says nothing that the line does not.
        [shell, flag, line] if shell.ends_with("sh") && matches!(flag.as_str(), "-c" | "-lc") => line.clone(),
        parts => parts.join(" "),
    })
}

/// What the terminal showed.
pub fn terminal(answer: &Answer<'_>) -> Option<Shape> {
    let Some(object) = object(answer) else {
        return (!answer.output.text.is_empty()).then(|| Shape::of(RESULT, Form::Terminal));
    };
    let streams = ["stdout", "output", "stderr"].map(|name| object.get(name).and_then(Value::as_str));
    if streams.iter().all(Option::is_none) {
        return None;
    }
    let mut text = String::new();
    for stream in streams.into_iter().flatten().filter(|stream| !stream.is_empty()) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(stream);
    }
    let code = ["exit_code", "exitCode", "returncode", "return_code", "code"]
        .iter()
        .find_map(|name| object.get(*name)?.as_i64());
    let note = code.map(|code| format!("exit {code}")).unwrap_or_default();
    Some(Shape::with_text(RESULT, Form::Terminal, text).noted(note))
}

/// A program, with what it is for.
pub fn program(fields: &Fields, language: &str) -> Option<Shape> {
    let text = fields.any(&["code", "program", "source", "script", "input"])?;
    let language = fields.any(&["language", "lang", "runtime"]).unwrap_or(language);
    let form = Form::Code {
        language: language.to_owned(),
        first: None,
    };
    let lines = words::counted(text.lines().count(), "line");
    let note = format!("{} · {lines}", words::line(language, 20));
    Some(Shape::with_text("Program", form, text).noted(note))
}

/// What a program gave back: JSON in its colours, else as on a terminal.
pub fn program_result(answer: &Answer<'_>) -> Option<Shape> {
    let text = answer.output.text.trim_start();
    if text.starts_with(['{', '[']) {
        let form = Form::Code {
            language: "json".to_owned(),
            first: None,
        };
        return Some(Shape::of(RESULT, form));
    }
    terminal(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_parts_is_one_line() {
        let of = |arguments: &str| command_text(&Fields::read(arguments));
        assert_eq!(of(r#"{"command": "cargo t"#).unwrap(), "cargo t");
        assert_eq!(
            of(r#"{"command": ["bash", "-lc", "cargo test"]}"#).unwrap(),
            "cargo test"
        );
        assert_eq!(of(r#"{"command": ["git", "log", "-3"]}"#).unwrap(), "git log -3");
        assert_eq!(of(r#"{"command": ["git", "lo"#), None);
        assert_eq!(of(r#"{"command": [1]}"#), None);
    }
}
