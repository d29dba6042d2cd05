//! What was read from the web: a page, or a list of pages.

use serde_json::{Map, Value};

use super::{Answer, Form, RESULT, Shape, object, text_of};
use crate::content::words;

/// The page, with its status and title; or the pages that were found.
pub fn page(answer: &Answer<'_>) -> Option<Shape> {
    let is_markdown = answer
        .output
        .media_type
        .as_deref()
        .is_some_and(|media_type| media_type.starts_with("text/markdown"));
    if let Some(results) = results(answer) {
        return Some(results);
    }
    let Some(object) = object(answer) else {
        let form = if is_markdown {
            Form::Markdown
        } else {
            Form::Wrapped
        };
        return (!answer.output.text.is_empty()).then(|| Shape::of(RESULT, form));
    };
    let (name, text) = text_of(
        &object,
        &["markdown", "content", "text", "body", "result", "output"],
    )?;
    let media_type = text_of(
        &object,
        &["content_type", "contentType", "media_type", "mime_type"],
    );
    let form = match media_type {
        Some((_, media_type)) if media_type.starts_with("text/markdown") => Form::Markdown,
        _ if name == "markdown" => Form::Markdown,
        Some((_, media_type)) if media_type.starts_with("text/html") => Form::Code {
            language: "html".to_owned(),
            first: None,
        },
        Some((_, media_type)) if media_type.contains("json") => Form::Code {
            language: "json".to_owned(),
            first: None,
        },
        _ => Form::Wrapped,
    };
    let status = ["status", "status_code", "statusCode"]
        .iter()
        .find_map(|name| object.get(*name)?.as_u64())
        .map(|status| status.to_string());
    let title = text_of(&object, &["title"]).map(|(_, title)| words::line(title, super::NOTE));
    let address =
        text_of(&object, &["final_url", "finalUrl", "url"]).map(|(_, url)| words::line(url, super::NOTE));
    let note: Vec<String> = [status, title, address].into_iter().flatten().collect();
    Some(Shape::with_text(RESULT, form, text).noted(note.join(" · ")))
}

/// A list of what was found: title, address and some words of each.
fn results(answer: &Answer<'_>) -> Option<Shape> {
    if !answer.is_whole {
        return None;
    }
    let value: Value = serde_json::from_str(answer.output.text.trim_start()).ok()?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(object) => object.get("results")?.as_array()?,
        _ => return None,
    };
    let mut text = String::new();
    for found in list {
        let found: &Map<String, Value> = found.as_object()?;
        let (_, address) = text_of(found, &["url", "link", "href"])?;
        for line in [
            text_of(found, &["title", "name"]).map(|(_, title)| title),
            Some(address),
            text_of(found, &["snippet", "description", "content", "text", "body"]).map(|(_, words)| words),
        ]
        .into_iter()
        .flatten()
        {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    let note = words::counted(list.len(), "result");
    (!list.is_empty()).then(|| Shape::with_text(RESULT, Form::Wrapped, text).noted(note))
}
