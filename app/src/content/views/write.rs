//! What is written to a file.

use super::{Form, PATH, Shape, language_of, note_of_path};
use crate::content::partial_json::Fields;

/// The content of the file, as far as it has come.
pub fn content(fields: &Fields, _: &str) -> Option<Shape> {
    let text = fields.any(&[
        "content",
        "contents",
        "file_text",
        "text",
        "new_content",
        "code_edit",
        "data",
    ])?;
    let form = Form::Code {
        language: fields.any(PATH).map(language_of).unwrap_or_default(),
        first: Some(1),
    };
    Some(Shape::with_text("Content", form, text).noted(note_of_path(fields)))
}
