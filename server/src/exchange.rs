//! The record of a run out of this server, and records into it.
//!
//! | module | does |
//! |---|---|
//! | [`export`] | a run as JSON lines that can be imported again, op by op |
//! | [`markdown`] | a run for people |
//! | [`html`] | a run as a page that needs nothing else |
//! | [`import`] | our own export, or what other programs keep |
//!
//! What is imported is history: it is written by the store's code for ops, belongs to no owner, and is never executed.

pub mod export;
pub mod html;
pub mod import;
pub mod markdown;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use protocol::SCHEMA_VERSION;
use protocol::id::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::store::imports::{RunHead, SessionHead};
use crate::store::{Store, StoreError};

/// How a record is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// One JSON object a line: what can be imported again.
    #[default]
    Json,
    /// For people.
    Markdown,
    /// One page that needs nothing else.
    Html,
}

impl ExportFormat {
    /// Its type on the wire.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/x-ndjson",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    /// The ending of its files' names.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Json => "ndjson",
            Self::Markdown => "md",
            Self::Html => "html",
        }
    }
}

/// A record as it is written, piece by piece.
pub type Pieces = BoxStream<'static, Result<Bytes, StoreError>>;

/// Writes a run as it is `now`; none when there is no such run.
pub async fn export(
    store: &Store,
    run_id: &RunId,
    format: ExportFormat,
    now: i64,
) -> Result<Option<Pieces>, StoreError> {
    Ok(match format {
        ExportFormat::Json => export::lines(store, run_id).await?.map(StreamExt::boxed),
        ExportFormat::Markdown => markdown::pieces(store, run_id).await?.map(StreamExt::boxed),
        ExportFormat::Html => html::document(store, run_id, now)
            .await?
            .map(|page| futures::stream::once(async move { Ok(page) }).boxed()),
    })
}

/// The word in the field `type` of the first line of an export.
const BEGIN: &str = "runloom_export";

/// The word in the field `type` of its last line.
const END: &str = "runloom_export_end";

/// The version of the lines around the ops.
const EXPORT_VERSION: u32 = 1;

/// The first line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Begin {
    #[serde(rename = "type")]
    kind: String,
    export_version: u32,
    schema_version: u32,
    session: SessionHead,
    run: RunHead,
}

impl Begin {
    fn new(session: SessionHead, run: RunHead) -> Self {
        Self {
            kind: BEGIN.to_owned(),
            export_version: EXPORT_VERSION,
            schema_version: SCHEMA_VERSION,
            session,
            run,
        }
    }
}

/// The last line of an export: how far it goes, and what the whole has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    #[serde(rename = "type")]
    kind: String,
    seq: u64,
    digest: String,
}

impl End {
    fn new(seq: u64, digest: String) -> Self {
        Self {
            kind: END.to_owned(),
            seq,
            digest,
        }
    }
}
