//! Transcripts: one NDJSON file for each stream, `<data_dir>/transcripts/<run>/<phase>/<stream>.ndjson`.
//!
//! Each line is `{"at","attempt","kind", …}`, `at` in milliseconds since the Unix epoch. A line is whole or absent: it
//! is one write at the end of the file, and what a crash left of a last line is cut when the file is opened again.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::task::JoinHandle;

use super::redact::redact_line;
use crate::clock::SharedClock;

mod entry;
#[cfg(test)]
mod tests;

pub use entry::TranscriptEntry;

/// The folder of all transcripts.
#[derive(Debug, Clone)]
pub struct TranscriptStore {
    root: PathBuf,
    /// Held by whoever takes a transcript away, and shared by those who open one.
    moves: Arc<RwLock<()>>,
}

/// One transcript that is being written. Clones write to the same file.
#[derive(Clone)]
pub struct Transcript {
    file: Arc<Mutex<Appender>>,
    clock: SharedClock,
}

/// One transcript in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Its path below the run, without the ending, such as `chat/call_1`.
    pub stream: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Reads the whole lines of a transcript, with opaque values hidden.
#[derive(Debug)]
pub struct TranscriptReader {
    file: BufReader<tokio::fs::File>,
    line: Vec<u8>,
}

/// Why a transcript cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// A part of the path is empty, too long, or has characters other than letters, digits, `_`, `-` and `.`.
    #[error("`{0}` is not a valid part of a transcript's path")]
    Path(String),
    /// There is no such transcript.
    #[error("there is no transcript `{0}`")]
    NotFound(String),
    /// The file system refuses.
    #[error("the transcript cannot be {action}: {source}")]
    Io {
        /// What was tried: `opened`, `written`, `read` or `listed`.
        action: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
}

impl TranscriptStore {
    /// The transcripts below a data folder.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            root: data_dir.join("transcripts"),
            moves: Arc::default(),
        }
    }

    /// While this is held no transcript is taken away.
    pub(crate) async fn no_move(&self) -> RwLockReadGuard<'_, ()> {
        self.moves.read().await
    }

    /// While this is held no transcript is opened.
    pub(crate) async fn moving(&self) -> RwLockWriteGuard<'_, ()> {
        self.moves.write().await
    }

    /// The names of all runs that have transcripts here.
    pub(crate) async fn runs(&self) -> Result<Vec<String>, TranscriptError> {
        let root = self.root.clone();
        blocking("listed", move || match std::fs::read_dir(root) {
            Ok(entries) => entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        })
        .await
    }

    /// Whether a transcript is here.
    pub(crate) async fn exists(&self, run: &str, stream: &str) -> Result<bool, TranscriptError> {
        let path = self.path(run, stream)?;
        blocking("opened", move || path.try_exists()).await
    }

    /// The whole lines of a transcript as they were recorded.
    pub(crate) async fn recorded(&self, run: &str, stream: &str) -> Result<Vec<u8>, TranscriptError> {
        let path = self.path(run, stream)?;
        blocking("read", move || {
            let mut text = std::fs::read(path)?;
            let whole = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
            text.truncate(whole);
            Ok(text)
        })
        .await
    }

    /// Puts a transcript back that was taken away.
    pub(crate) async fn restore(
        &self,
        run: &str,
        stream: &str,
        text: Vec<u8>,
    ) -> Result<(), TranscriptError> {
        let path = self.path(run, stream)?;
        blocking("written", move || {
            let mut appender = Appender::open(&path)?;
            appender.append(&text)
        })
        .await
    }

    /// Takes a transcript away, with the folders that are empty then.
    pub(crate) async fn remove(&self, run: &str, stream: &str) -> Result<(), TranscriptError> {
        let (path, root) = (self.path(run, stream)?, self.root.clone());
        blocking("written", move || {
            std::fs::remove_file(&path)?;
            let folders = path.ancestors().skip(1).take_while(|folder| *folder != root);
            for folder in folders {
                // One that is not empty stays.
                if std::fs::remove_dir(folder).is_err() {
                    break;
                }
            }
            Ok(())
        })
        .await
    }

    /// Opens a transcript for writing, with its folders. `stream` is the path below the run without the ending, such
    /// as `chat/call_1`.
    pub async fn open(
        &self,
        run: &str,
        stream: &str,
        clock: SharedClock,
    ) -> Result<Transcript, TranscriptError> {
        let path = self.path(run, stream)?;
        let appender = blocking("opened", move || Appender::open(&path)).await?;
        Ok(Transcript {
            file: Arc::new(Mutex::new(appender)),
            clock,
        })
    }

    /// The transcripts of a run, sorted by path; none when there is no such run.
    pub async fn list(&self, run: &str) -> Result<Vec<TranscriptFile>, TranscriptError> {
        check_part(run)?;
        let folder = self.root.join(run);
        blocking("listed", move || {
            let mut found = Vec::new();
            collect_files(&folder, "", &mut found)?;
            found.sort_by(|a: &TranscriptFile, b| a.stream.cmp(&b.stream));
            Ok(found)
        })
        .await
    }

    /// Opens a transcript for reading.
    pub async fn read(&self, run: &str, stream: &str) -> Result<TranscriptReader, TranscriptError> {
        let path = self.path(run, stream)?;
        match tokio::fs::File::open(&path).await {
            Ok(file) => Ok(TranscriptReader {
                file: BufReader::new(file),
                line: Vec::new(),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(TranscriptError::NotFound(format!("{run}/{stream}")))
            }
            Err(source) => Err(TranscriptError::Io {
                action: "opened",
                source,
            }),
        }
    }

    fn path(&self, run: &str, stream: &str) -> Result<PathBuf, TranscriptError> {
        check_part(run)?;
        let mut path = self.root.join(run);
        let (folders, name) = stream.rsplit_once('/').unwrap_or(("", stream));
        for part in folders.split('/').filter(|_| !folders.is_empty()) {
            check_part(part)?;
            path.push(part);
        }
        check_part(name)?;
        path.push(format!("{name}.ndjson"));
        Ok(path)
    }
}

impl Transcript {
    /// Appends lines; they are in the file when this returns.
    pub async fn append(&self, attempt: &str, entries: Vec<TranscriptEntry>) -> Result<(), TranscriptError> {
        finished(self.begin_append(attempt, entries).await)
    }

    /// A transcript whose file refuses to be written.
    #[cfg(test)]
    pub(super) fn read_only_for_test(clock: SharedClock) -> Self {
        let file = File::open("/dev/null").expect("opens for reading");
        Self {
            file: Arc::new(Mutex::new(Appender { file, length: 0 })),
            clock,
        }
    }

    /// Starts to append on a thread where blocking is allowed; the handle is done when the lines are in the file.
    pub(super) fn begin_append(
        &self,
        attempt: &str,
        entries: Vec<TranscriptEntry>,
    ) -> JoinHandle<std::io::Result<()>> {
        let at = self.clock.now_ms();
        let lines: Vec<Vec<u8>> = entries.into_iter().map(|entry| entry.line(at, attempt)).collect();
        let file = Arc::clone(&self.file);
        tokio::task::spawn_blocking(move || {
            // A writer that panicked left whole lines, since a short write is taken back.
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            lines.iter().try_for_each(|line| file.append(line))
        })
    }
}

/// What became of [`Transcript::begin_append`].
pub(super) fn finished(
    joined: Result<std::io::Result<()>, tokio::task::JoinError>,
) -> Result<(), TranscriptError> {
    let result = joined.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    result.map_err(|source| TranscriptError::Io {
        action: "written",
        source,
    })
}

impl TranscriptReader {
    /// The next whole line without its end, opaque values replaced by their length. None when there is no whole line
    /// yet: called again it goes on, so that a growing file can be followed.
    pub async fn next_line(&mut self) -> Result<Option<String>, TranscriptError> {
        Ok(self.next_recorded_line().await?.map(|line| redact_line(&line)))
    }

    /// The same as it was recorded: for a replay, never for people.
    pub(super) async fn next_recorded_line(&mut self) -> Result<Option<String>, TranscriptError> {
        let read = self.file.read_until(b'\n', &mut self.line).await;
        read.map_err(|source| TranscriptError::Io {
            action: "read",
            source,
        })?;
        let Some(line) = self.line.strip_suffix(b"\n") else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(line).into_owned();
        self.line.clear();
        Ok(Some(line))
    }
}

/// A file that grows by whole lines.
#[derive(Debug)]
struct Appender {
    file: File,
    length: u64,
}

impl Appender {
    fn open(path: &Path) -> std::io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let length = whole_length(&mut file)?;
        if length != file.metadata()?.len() {
            file.set_len(length)?;
        }
        Ok(Self { file, length })
    }

    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        let written = loop {
            match self.file.write(line) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        if matches!(written, Ok(count) if count == line.len()) {
            self.length += line.len() as u64;
            return Ok(());
        }
        self.file.set_len(self.length)?;
        Err(written
            .err()
            .unwrap_or_else(|| std::io::Error::from(std::io::ErrorKind::StorageFull)))
    }
}

/// The length up to the end of the last whole line.
fn whole_length(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = vec![0; 64 * 1024];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let size = usize::try_from(end - start).unwrap_or(block.len());
        let part = block.get_mut(..size).unwrap_or_default();
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = memchr::memrchr(b'\n', part) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn check_part(part: &str) -> Result<(), TranscriptError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if !part.is_empty() && part.len() <= 128 && !part.starts_with('.') && part.bytes().all(legal) {
        return Ok(());
    }
    Err(TranscriptError::Path(part.chars().take(128).collect()))
}

fn collect_files(folder: &Path, prefix: &str, found: &mut Vec<TranscriptFile>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect_files(&entry.path(), &format!("{prefix}{name}/"), found)?;
        } else if kind.is_file()
            && let Some(stem) = name.strip_suffix(".ndjson")
        {
            found.push(TranscriptFile {
                stream: format!("{prefix}{stem}"),
                bytes: entry.metadata()?.len(),
            });
        }
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    action: &'static str,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, TranscriptError> {
    let result = tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)));
    result.map_err(|source| TranscriptError::Io { action, source })
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript").finish_non_exhaustive()
    }
}
