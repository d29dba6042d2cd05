//! Files of other programs, and legacy records: read to their end, then told as ops.

use protocol::api::{ImportAnswer, ImportedRun};
use protocol::digest::sha256;
use protocol::fold::RunState;
use serde_json::Value;
use tokio::io::AsyncBufRead;

use super::drafts::Drafts;
use super::lines::{Line, Lines};
use super::native::plain;
use super::writer::RunWriter;
use super::{ImportError, MAX_DOCUMENT, MAX_FOREIGN, ai_sdk, answer, beginning, claude_code, codex, legacy};
use crate::store::Store;
use crate::store::imports::{RunHead, SessionHead};

/// A session that was read.
struct Told {
    format: &'static str,
    session: SessionHead,
    runs: Vec<(RunHead, RunState)>,
}

impl From<Drafts> for Told {
    fn from(drafts: Drafts) -> Self {
        Self {
            format: drafts.format(),
            session: drafts.session,
            runs: drafts
                .runs
                .into_iter()
                .map(|draft| (draft.head(), draft.into_state()))
                .collect(),
        }
    }
}

/// Reads lines of one format.
enum Reader {
    Claude(Box<claude_code::Reader>),
    Codex(Box<codex::Reader>),
    Legacy(Box<legacy::Reader>),
}

impl Reader {
    /// The reader of a file that begins with this line.
    fn of(first: &Value, key: &str) -> Option<Self> {
        if first.get("type").and_then(Value::as_str) == Some(legacy::BEGIN) {
            Some(Self::Legacy(Box::new(legacy::Reader::new(first, key))))
        } else if codex::is_line(first) {
            Some(Self::Codex(Box::new(codex::Reader::new(first, key))))
        } else if claude_code::is_line(first) {
            Some(Self::Claude(Box::new(claude_code::Reader::new(first, key))))
        } else {
            None
        }
    }

    fn line(&mut self, record: &str, text: &str) {
        let value = match serde_json::from_str::<Value>(text) {
            Ok(value) if value.is_object() => value,
            Ok(_) => return self.bad(record, "it is no JSON object"),
            Err(error) => {
                return self.bad(
                    record,
                    &format!("it is no JSON ({error}); it begins {:?}", beginning(text)),
                );
            }
        };
        match self {
            Self::Claude(reader) => reader.line(record, &value),
            Self::Codex(reader) => reader.line(record, &value),
            Self::Legacy(reader) => reader.node(record, &value),
        }
    }

    fn bad(&mut self, record: &str, reason: &str) {
        match self {
            Self::Claude(reader) => reader.bad(record, reason),
            Self::Codex(reader) => reader.bad(record, reason),
            Self::Legacy(reader) => reader.bad(record, reason),
        }
    }

    fn finish(self) -> Told {
        match self {
            Self::Claude(reader) => reader.finish().into(),
            Self::Codex(reader) => reader.finish().into(),
            Self::Legacy(reader) => told(*reader),
        }
    }
}

fn told(reader: legacy::Reader) -> Told {
    let (session, head, state) = reader.finish();
    Told {
        format: legacy::FORMAT,
        session,
        runs: vec![(head, state)],
    }
}

/// Imports what is none of our exports.
pub(super) async fn import<R: AsyncBufRead + Unpin + Send>(
    store: &Store,
    mut lines: Lines<R>,
    (number, first): (u64, Line),
    now: i64,
) -> Result<ImportAnswer, ImportError> {
    let Line::Text(text) = &first else {
        return Err(ImportError::Unknown("its first line cannot be read".to_owned()));
    };
    let value = serde_json::from_str::<Value>(text).ok();
    let key = sha256(text.as_bytes());
    let reader = value.as_ref().and_then(|value| Reader::of(value, &key));
    let told = match reader {
        Some(mut reader) => {
            let is_head = matches!(reader, Reader::Legacy(_));
            if !is_head {
                reader.line(&format!("line {number}"), text);
            }
            let mut bytes = text.len();
            while let Some((number, line)) = lines.next().await? {
                let record = format!("line {number}");
                match line {
                    Line::Text(text) => {
                        bytes += text.len();
                        if bytes > MAX_FOREIGN {
                            return Err(ImportError::TooLong);
                        }
                        reader.line(&record, &text);
                    }
                    Line::Unreadable(reason) => reader.bad(&record, &reason),
                }
            }
            reader.finish()
        }
        None => {
            let begin = beginning(text);
            lines.put_back(number, first);
            let whole = lines.rest(MAX_DOCUMENT).await?.ok_or(ImportError::TooLong)?;
            document(&whole, now).ok_or_else(|| ImportError::Unknown(format!("it begins {begin:?}")))?
        }
    };
    write(store, told, now).await
}

/// A file that is one JSON value.
fn document(text: &str, now: i64) -> Option<Told> {
    let value: Value = serde_json::from_str(text).ok()?;
    let key = sha256(text.trim().as_bytes());
    if let Some(nodes) = value.get("nodes").and_then(Value::as_array) {
        let mut reader = legacy::Reader::new(&value, &key);
        for (place, node) in nodes.iter().enumerate() {
            reader.node(&format!("node {}", place + 1), node);
        }
        return Some(told(reader));
    }
    let messages = ai_sdk::messages(&value)?;
    let id = value.get("id").and_then(Value::as_str).unwrap_or(&key);
    Some(ai_sdk::read(messages, id, now).into())
}

async fn write(store: &Store, told: Told, now: i64) -> Result<ImportAnswer, ImportError> {
    let Told {
        format,
        mut session,
        runs,
    } = told;
    if runs.is_empty() {
        return Err(ImportError::Unknown(
            "it holds no prompt and no answer".to_owned(),
        ));
    }
    let mut written: Vec<ImportedRun> = Vec::new();
    for (mut head, state) in runs {
        plain(&mut session, &mut head);
        let quarantined = state
            .notices()
            .iter()
            .filter(|notice| notice.code == "quarantined_record")
            .count();
        let mut writer = RunWriter::begin(store, &session, &head, format).await?;
        for (at, op) in state.retold() {
            writer.op(at, op).await?;
        }
        let mut run = writer.finish(true, now).await?;
        run.quarantined += quarantined;
        written.push(run);
    }
    Ok(answer(format, session.session_id, written))
}
