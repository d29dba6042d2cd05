//! Records into this server: our own export, an older record, or what another program keeps.
//!
//! The format is told by the beginning of the file. A file of lines is read line by line; our own export is written
//! while it is read. What cannot be taken is told in the run itself, and the rest is taken.

mod ai_sdk;
mod claude_code;
mod codex;
mod draft;
mod drafts;
mod foreign;
mod legacy;
mod lines;
mod native;
mod sound;
mod value;
mod writer;

use std::io;

use protocol::api::{ImportAnswer, ImportedRun};
use protocol::id::{RunId, SessionId};
use tokio::io::AsyncBufRead;

use self::lines::Lines;
use crate::store::{Store, StoreError};

/// The most bytes of a file that is one JSON value.
const MAX_DOCUMENT: usize = 64 * 1024 * 1024;

/// The most bytes of a file of another program: it is read to its end before it is written.
const MAX_FOREIGN: usize = 512 * 1024 * 1024;

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is none of the known formats.
    #[error(
        "This is no record that can be imported: {0}. Known are exports of Runloom, its legacy records, session logs of \
         Claude Code and of Codex, and messages of the AI SDK."
    )]
    Unknown(String),
    /// It is too large to be read at once.
    #[error(
        "The file is too large: of one JSON value at most {} MiB are read, of lines of another program {} MiB.",
        MAX_DOCUMENT / 1024 / 1024,
        MAX_FOREIGN / 1024 / 1024
    )]
    TooLong,
    /// Another version wrote it.
    #[error("{0}")]
    Version(String),
    /// Somebody else imports the same run.
    #[error("{0} is being imported by somebody else.")]
    Busy(RunId),
    /// Another record has this id.
    #[error("Another record of {0} is here already; it stays as it is.")]
    Differs(RunId),
    /// Another run has a thing of this one.
    #[error("{run} cannot be imported: {thing} belongs to another run.")]
    Taken {
        /// The run of the file.
        run: RunId,
        /// What is taken.
        thing: String,
    },
    /// The file could not be read to its end; importing it again goes on.
    #[error("The file could not be read to its end ({0}). What came is kept: import it again to go on.")]
    Read(io::Error),
    /// The database did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// What a format is called.
fn format_words(format: &str) -> &'static str {
    match format {
        native::FORMAT => "an export of Runloom",
        legacy::FORMAT => "a legacy record",
        claude_code::FORMAT => "a session log of Claude Code",
        codex::FORMAT => "a session log of Codex",
        ai_sdk::FORMAT => "messages of the AI SDK",
        _ => "a file",
    }
}

/// Imports all that a file holds; `now` is when.
pub async fn import<R: AsyncBufRead + Unpin + Send>(
    store: &Store,
    reader: R,
    now: i64,
) -> Result<ImportAnswer, ImportError> {
    let mut lines = Lines::new(reader);
    let Some((number, first)) = lines.next().await? else {
        return Err(ImportError::Unknown("it is empty".to_owned()));
    };
    if native::is_begin(&first) {
        lines.put_back(number, first);
        native::import(store, lines, now).await
    } else {
        foreign::import(store, lines, (number, first), now).await
    }
}

fn beginning(text: &str) -> String {
    text.trim().chars().take(60).collect()
}

fn answer(format: &str, session_id: SessionId, runs: Vec<ImportedRun>) -> ImportAnswer {
    ImportAnswer {
        format: format.to_owned(),
        session_id,
        runs,
    }
}
