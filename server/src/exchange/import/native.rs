//! Our own export.

use protocol::SCHEMA_VERSION;
use protocol::api::{ImportAnswer, ImportedRun};
use protocol::op::{Entry, InvalidEntry};
use serde_json::Value;
use tokio::io::AsyncBufRead;

use super::lines::{Line, Lines};
use super::writer::RunWriter;
use super::{ImportError, answer, beginning};
use crate::exchange::{BEGIN, Begin, END, EXPORT_VERSION, End};
use crate::store::Store;
use crate::store::imports::{RunHead, SessionHead};

/// The word for it.
pub(super) const FORMAT: &str = "runloom";

/// The most characters of a title or a prompt in a list.
const MOST: usize = 200;

/// Imports one export after another, as they stand in the file.
pub(super) async fn import<R: AsyncBufRead + Unpin + Send>(
    store: &Store,
    mut lines: Lines<R>,
    now: i64,
) -> Result<ImportAnswer, ImportError> {
    let mut runs = Vec::new();
    let mut session = None;
    while let Some((number, line)) = lines.next().await? {
        let begin = match line {
            Line::Text(text) => begin(&text)?,
            Line::Unreadable(_) => None,
        };
        // What stands between two exports belongs to neither.
        let Some(begin) = begin else {
            let words = format!("line {number} does not begin an export");
            return Err(ImportError::Unknown(words));
        };
        session = session.or_else(|| Some(begin.session.session_id.clone()));
        runs.push(one(store, &mut lines, begin, now).await?);
    }
    let Some(session) = session else {
        return Err(ImportError::Unknown("it holds no run".to_owned()));
    };
    Ok(answer(FORMAT, session, runs))
}

/// Whether a line begins an export.
pub(super) fn is_begin(line: &Line) -> bool {
    matches!(line, Line::Text(text) if matches!(other(text), Some(Other::Begin)))
}

/// The first line of an export; none where it is something else.
fn begin(text: &str) -> Result<Option<Begin>, ImportError> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Ok(None);
    };
    if value.get("type").and_then(Value::as_str) != Some(BEGIN) {
        return Ok(None);
    }
    for (name, known) in [
        ("export_version", EXPORT_VERSION),
        ("schema_version", SCHEMA_VERSION),
    ] {
        let found = value.get(name).cloned().unwrap_or_default();
        if found != known {
            let words = format!("The file has {name} {found}; this server reads {known}.");
            return Err(ImportError::Version(words));
        }
    }
    match serde_json::from_value::<Begin>(value) {
        Ok(mut begin) => {
            plain(&mut begin.session, &mut begin.run);
            Ok(Some(begin))
        }
        Err(error) => Err(ImportError::Unknown(format!(
            "its first line does not fit: {error}"
        ))),
    }
}

/// Words in lists are short, and columns of text.
pub(super) fn plain(session: &mut SessionHead, run: &mut RunHead) {
    for text in [
        &mut session.title,
        &mut run.prompt,
        &mut run.provider,
        &mut run.model,
    ] {
        *text = text.replace('\0', "\u{2400}").chars().take(MOST).collect();
    }
}

/// Imports the ops that follow on the first line, up to the end of this export.
async fn one<R: AsyncBufRead + Unpin + Send>(
    store: &Store,
    lines: &mut Lines<R>,
    begin: Begin,
    now: i64,
) -> Result<ImportedRun, ImportError> {
    let mut writer = RunWriter::begin(store, &begin.session, &begin.run, FORMAT).await?;
    let mut end = None;
    while let Some((number, line)) = lines.next().await? {
        let record = format!("line {number}");
        let text = match line {
            Line::Text(text) => text,
            Line::Unreadable(reason) => {
                writer.reject(record, reason);
                continue;
            }
        };
        match Entry::from_json(&text) {
            Ok(entry) => writer.entry(record, entry).await?,
            Err(error) => match other(&text) {
                Some(Other::End(told)) => {
                    end = Some(told);
                    break;
                }
                Some(Other::Begin) => {
                    lines.put_back(number, Line::Text(text));
                    break;
                }
                None => writer.reject(record, reason(&error, &text)),
            },
        }
    }
    if let Some(end) = &end {
        if end.seq > writer.seq() {
            let range = format!("ops {} to {}", writer.seq() + 1, end.seq);
            writer.reject(range, "they are not in the file");
        } else if end.digest != writer.digest() {
            writer.reject(
                "the end",
                "the record does not have the digest that its export was closed with",
            );
        }
    }
    writer.finish(end.is_some(), now).await
}

/// A line of an export that is no op.
enum Other {
    Begin,
    End(End),
}

fn other(text: &str) -> Option<Other> {
    let value: Value = serde_json::from_str(text).ok()?;
    match value.get("type")?.as_str()? {
        BEGIN => Some(Other::Begin),
        END => serde_json::from_value(value).ok().map(Other::End),
        _ => None,
    }
}

fn reason(error: &InvalidEntry, text: &str) -> String {
    match error {
        InvalidEntry::Envelope(_) => format!("{error}; it begins {:?}", beginning(text)),
        InvalidEntry::SchemaVersion { .. } | InvalidEntry::Op(_) => error.to_string(),
    }
}
