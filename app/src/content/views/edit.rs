//! What an edit changes: old and new text as lines with their signs, or a patch as it is.

use serde_json::Value;

use super::{Answer, Form, PATH, RESULT, Shape, change, note_of_path};
use crate::content::partial_json::Fields;

const OLD: &[&str] = &[
    "old_string",
    "old_str",
    "old_text",
    "oldText",
    "old",
    "search",
    "find",
    "target_content",
];
const NEW: &[&str] = &[
    "new_string",
    "new_str",
    "new_text",
    "newText",
    "new",
    "replace",
    "replacement",
    "replacement_content",
];
const PATCH: &[&str] = &["patch", "diff", "patch_text", "input", "changes"];

/// The change that the arguments of an edit ask for, as far as they have come.
pub fn edit(fields: &Fields, raw: &str) -> Option<Shape> {
    let text = several(fields)
        .or_else(|| one(fields))
        .or_else(|| inserted(fields))
        .or_else(|| patch(fields, raw))?;
    Some(Shape::with_text("Change", Form::Diff, text).noted(note_of_path(fields)))
}

/// The change that an edit gave back, where it says that it is one.
pub fn patched(answer: &Answer<'_>) -> Option<Shape> {
    let media_type = answer.output.media_type.as_deref()?;
    media_type
        .starts_with("text/x-diff")
        .then(|| Shape::of(RESULT, Form::Diff))
}

/// One text in the place of another. The new one may not have come.
fn one(fields: &Fields) -> Option<String> {
    let old = fields.any(OLD);
    let new = fields.any(NEW);
    // An empty text is one: nothing goes, or nothing comes.
    let has = |names: &[&str]| names.iter().any(|name| fields.has(name));
    if !has(OLD) {
        return None;
    }
    match (old, new) {
        (None, None) => None,
        // Until the new text begins, nothing is known to go.
        (Some(old), None) if !has(NEW) => Some(change::unified(old, old)),
        (old, new) => Some(change::unified(old.unwrap_or_default(), new.unwrap_or_default())),
    }
}

/// Several at once, when all of them have come.
fn several(fields: &Fields) -> Option<String> {
    let edits: Vec<Value> =
        protocol::from_json(fields.nested("edits").or(fields.nested("replacements"))?).ok()?;
    let text = |edit: &Value, names: &[&str]| {
        let mut found = names.iter().filter_map(|name| edit.get(name)?.as_str());
        found.next().map(str::to_owned)
    };
    let mut all = String::new();
    for edit in &edits {
        let (old, new) = (text(edit, OLD)?, text(edit, NEW)?);
        if edits.len() > 1 {
            let place = text(edit, PATH)
                .map(|path| format!(" {path}"))
                .unwrap_or_default();
            all.push_str(&format!("@@{place}\n"));
        }
        all.push_str(&change::unified(&old, &new));
    }
    (!all.is_empty()).then_some(all)
}

/// Lines that are put somewhere.
fn inserted(fields: &Fields) -> Option<String> {
    let line = fields.get("insert_line")?;
    let text = fields.any(&["insert_text", "new_str", "text", "content"])?;
    Some(format!("@@ after line {line}\n{}", change::unified("", text)))
}

/// A patch, in a field or as all there is.
fn patch(fields: &Fields, raw: &str) -> Option<String> {
    let is_patch = |text: &str| {
        text.lines().take(40).any(|line| {
            ["@@", "*** Begin Patch", "--- ", "diff --git "]
                .iter()
                .any(|start| line.starts_with(start))
        })
    };
    let text = fields
        .any(PATCH)
        .or_else(|| (!raw.trim_start().starts_with('{')).then_some(raw))?;
    is_patch(text).then(|| text.to_owned())
}
