//! What another model is asked, and what it answers.

use super::{Answer, Form, RESULT, Shape, object, text_of};
use crate::content::partial_json::Fields;
use crate::content::words;

/// The fields that hold what is asked.
pub const PROMPT: &[&str] = &[
    "prompt",
    "question",
    "task",
    "message",
    "instructions",
    "query",
    "input",
];

/// The prompt, as far as it has come.
pub fn prompt(fields: &Fields, _: &str) -> Option<Shape> {
    let text = fields.any(PROMPT)?;
    let model = fields.any(&["model", "agent", "subagent_type", "agent_type", "role"]);
    let note = model
        .map(|model| words::line(model, super::NOTE))
        .unwrap_or_default();
    Some(Shape::with_text("Prompt", Form::Markdown, text).noted(note))
}

/// The answer.
pub fn answer(answer: &Answer<'_>) -> Option<Shape> {
    let Some(object) = object(answer) else {
        let text = answer.output.text.trim_start();
        let is_text = !text.is_empty() && !text.starts_with(['{', '[']);
        return is_text.then(|| Shape::of(RESULT, Form::Markdown));
    };
    let (_, text) = text_of(
        &object,
        &[
            "answer", "text", "content", "result", "output", "response", "message",
        ],
    )?;
    Some(Shape::with_text(RESULT, Form::Markdown, text))
}
