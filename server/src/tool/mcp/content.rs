//! What a call gave back, as text.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::tool::{ToolError, ToolOutput, words};

/// The parts of a result as one text: texts as they are, for all else a line that says what it is.
pub(super) fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut text = String::new();
    for part in &result.content {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part_as_text(part));
    }
    let mut media_type = "text/plain";
    if text.is_empty()
        && let Some(structured) = &result.structured_content
    {
        text = format!("{structured:#}");
        media_type = "application/json";
    }
    if result.is_error == Some(true) {
        let words = match text.is_empty() {
            true => "The tool failed and does not say why.".to_owned(),
            false => text,
        };
        return Err(ToolError::new("tool_failed", words));
    }
    Ok(ToolOutput {
        text,
        media_type: media_type.to_owned(),
        exit_code: None,
    })
}

fn part_as_text(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out("An image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => left_out("A sound", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}\n{text}"),
            ResourceContents::BlobResourceContents {
                uri, mime_type, blob, ..
            } => {
                let kind = mime_type.as_deref().unwrap_or("unknown");
                format!("{uri}\n{}", left_out("Data", kind, blob.len()))
            }
            _ => "[A resource of a kind that is not known is left out.]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => link.uri.clone(),
        _ => "[A part of a kind that is not known is left out.]".to_owned(),
    }
}

/// `encoded` is the length in base64.
fn left_out(what: &str, kind: &str, encoded: usize) -> String {
    let bytes = encoded / 4 * 3;
    format!(
        "[{what} of the type {kind}, about {}, is left out.]",
        words::size(bytes as u64)
    )
}
