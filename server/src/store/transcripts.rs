//! Transcripts of runs that are over, in compressed pieces. While a run executes its transcripts are files beside its
//! owner ([`crate::stream::TranscriptStore`]).

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use protocol::id::RunId;

use super::{Store, StoreError};

/// The most bytes of a piece before it is compressed.
const PART_BYTES: usize = 1024 * 1024;

/// A transcript in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTranscript {
    /// Its path below the run, without the ending, such as `chat/call_1`.
    pub stream: String,
    /// Its size in bytes, uncompressed.
    pub bytes: u64,
}

impl Store {
    /// Keeps a transcript. What is there already stays in front of it, unless the new text begins with it.
    pub async fn put_transcript(
        &self,
        run_id: &RunId,
        stream: &str,
        text: Vec<u8>,
    ) -> Result<(), StoreError> {
        let text = match self.transcript(run_id, stream).await? {
            Some(there) if !text.starts_with(&there) => [there, text].concat(),
            _ => text,
        };
        let pieces = blocking(move || {
            text.chunks(PART_BYTES)
                .map(compressed)
                .collect::<std::io::Result<Vec<_>>>()
        });
        let pieces = pieces.await.map_err(|error| unreadable(run_id, stream, &error))?;
        let mut transaction = self.pool().begin().await?;
        sqlx::query("delete from transcript_parts where run_id = $1 and stream = $2")
            .bind(run_id.as_str())
            .bind(stream)
            .execute(&mut *transaction)
            .await?;
        for ((bytes, data), part) in pieces.into_iter().zip(0_i32..) {
            sqlx::query(
                "insert into transcript_parts (run_id, stream, part, bytes, data) values ($1, $2, $3, $4, $5)",
            )
            .bind(run_id.as_str())
            .bind(stream)
            .bind(part)
            .bind(bytes)
            .bind(data)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// A transcript as it was recorded; none when it is not here.
    pub async fn transcript(&self, run_id: &RunId, stream: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let pieces: Vec<(Vec<u8>,)> = sqlx::query_as(
            "select data from transcript_parts where run_id = $1 and stream = $2 order by part",
        )
        .bind(run_id.as_str())
        .bind(stream)
        .fetch_all(self.pool())
        .await?;
        if pieces.is_empty() {
            return Ok(None);
        }
        let text = blocking(move || {
            let mut text = Vec::new();
            for (piece,) in pieces {
                DeflateDecoder::new(piece.as_slice()).read_to_end(&mut text)?;
            }
            Ok(text)
        });
        text.await
            .map(Some)
            .map_err(|error| unreadable(run_id, stream, &error))
    }

    /// The transcripts of a run that are here, by path.
    pub async fn transcripts(&self, run_id: &RunId) -> Result<Vec<StoredTranscript>, StoreError> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "select stream, sum(bytes)::bigint from transcript_parts where run_id = $1 group by stream order by stream",
        )
        .bind(run_id.as_str())
        .fetch_all(self.pool())
        .await?;
        let stored = rows.into_iter().map(|(stream, bytes)| StoredTranscript {
            stream,
            bytes: u64::try_from(bytes).unwrap_or(0),
        });
        Ok(stored.collect())
    }
}

/// A piece with its length before.
fn compressed(piece: &[u8]) -> std::io::Result<(i32, Vec<u8>)> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(piece)?;
    Ok((i32::try_from(piece.len()).unwrap_or(i32::MAX), encoder.finish()?))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

fn unreadable(run_id: &RunId, stream: &str, error: &std::io::Error) -> StoreError {
    StoreError::row("transcript_parts", format!("{run_id}/{stream}"), error)
}
