//! The text of a file that was read.

use super::{Answer, Form, PATH, RESULT, Shape, language_of, note_of_path};

/// Notes with which a text of a file may end; they are no line of it.
const NOTES: [&str; 3] = ["[This was ", "[Cut after ", "[The file is empty."];

/// The lines that were read, with their numbers.
pub fn text_read(answer: &Answer<'_>) -> Option<Shape> {
    let fields = answer.fields;
    let path = fields.any(PATH)?;
    if answer.output.text.is_empty() || is_numbered(&answer.output.text) {
        return None;
    }
    let from = fields
        .any(&[
            "offset",
            "start_line",
            "line_start",
            "start_line_one_indexed",
            "from_line",
        ])
        .map(str::to_owned)
        .or_else(|| fields.nested("view_range").and_then(first_of));
    let first = match from {
        Some(from) => from.parse::<u64>().ok()?.max(1),
        None => 1,
    };
    let form = Form::Code {
        language: language_of(path),
        first: Some(first),
    };
    Some(Shape::of(RESULT, form).noted(note_of_path(fields)))
}

/// The first number of a list.
fn first_of(list: &str) -> Option<String> {
    let numbers: Vec<u64> = protocol::from_json(list).ok()?;
    numbers.first().map(u64::to_string)
}

/// Whether a text has its lines' numbers already.
fn is_numbered(text: &str) -> bool {
    let numbered = |line: &str| {
        let rest = line
            .trim_start()
            .trim_start_matches(|digit: char| digit.is_ascii_digit());
        rest.len() < line.trim_start().len() && (rest.starts_with(['\t', '→', '|']) || rest.starts_with(": "))
    };
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(5)
        .peekable();
    lines.peek().is_some() && lines.all(numbered)
}

/// How many lines of a file a text holds: a note at its end is none.
pub(super) fn lines_read(text: &str) -> u64 {
    let lines = text.lines().count() as u64;
    let is_note = text
        .lines()
        .next_back()
        .is_some_and(|line| NOTES.iter().any(|note| line.starts_with(note)));
    lines.saturating_sub(u64::from(is_note))
}
