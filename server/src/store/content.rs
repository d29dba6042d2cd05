//! Texts in pieces: written once, as they become full, and read by any range.
//!
//! A text that still grows has its full pieces here already; the rest of it is in the journal until it closes.

mod read;

use std::collections::HashMap;

use protocol::id::RunId;
use sqlx::PgConnection;

use super::StoreError;

pub use read::{Kept, Length};

/// The most bytes of one piece.
pub const PART_BYTES: usize = 64 * 1024;

/// Pieces that are written by one statement.
const PARTS_AT_ONCE: usize = 32;

/// Whose text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) run_id: &'a RunId,
    /// A block or a node.
    pub(super) subject: &'a str,
    /// `content`, or a node's channel.
    pub(super) channel: &'static str,
}

/// Writes the pieces that became full since the text had `before` bytes.
pub(super) async fn grow(
    connection: &mut PgConnection,
    place: Place<'_>,
    bytes: &[u8],
    before: u64,
) -> Result<(), StoreError> {
    let full = bytes.len() / PART_BYTES;
    write(connection, place, bytes, part_of(before), full).await
}

/// Writes what is not yet written of a closed text, which had `before` bytes before this transaction. Writing it again
/// changes nothing.
pub(super) async fn close(
    connection: &mut PgConnection,
    place: Place<'_>,
    bytes: &[u8],
    before: u64,
) -> Result<(), StoreError> {
    let mut first = part_of(before);
    if first > 0 {
        // Texts that were open when an older version ended have no pieces yet.
        let (there,): (i64,) =
            sqlx::query_as("select count(*) from content_parts where subject = $1 and channel = $2")
                .bind(place.subject)
                .bind(place.channel)
                .fetch_one(&mut *connection)
                .await?;
        if usize::try_from(there).unwrap_or(0) < first {
            first = 0;
        }
    }
    write(connection, place, bytes, first, bytes.len().div_ceil(PART_BYTES)).await
}

fn part_of(bytes: u64) -> usize {
    usize::try_from(bytes / PART_BYTES as u64).unwrap_or(usize::MAX)
}

/// Writes the pieces from `first` up to, not including, `end`.
async fn write(
    connection: &mut PgConnection,
    place: Place<'_>,
    bytes: &[u8],
    first: usize,
    end: usize,
) -> Result<(), StoreError> {
    let pieces: Vec<(i32, &[u8])> = bytes
        .chunks(PART_BYTES)
        .zip(0_i32..)
        .map(|(piece, part)| (part, piece))
        .take(end)
        .skip(first)
        .collect();
    for group in pieces.chunks(PARTS_AT_ONCE) {
        let (parts, pieces): (Vec<i32>, Vec<&[u8]>) = group.iter().copied().unzip();
        sqlx::query(
            "insert into content_parts (subject, channel, part, run_id, bytes)
             select $1, $2, piece.part, $3, piece.bytes from unnest($4::integer[], $5::bytea[]) as piece(part, bytes)
             on conflict do nothing",
        )
        .bind(place.subject)
        .bind(place.channel)
        .bind(place.run_id.as_str())
        .bind(parts)
        .bind(pieces)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// All texts of a run, by subject and channel; of those that still grow the full pieces.
pub(super) async fn of_run(
    connection: &mut PgConnection,
    run_id: &RunId,
) -> Result<HashMap<(String, String), Vec<u8>>, StoreError> {
    let rows: Vec<(String, String, Vec<u8>)> = sqlx::query_as(
        "select subject, channel, bytes from content_parts where run_id = $1 order by subject, channel, part",
    )
    .bind(run_id.as_str())
    .fetch_all(connection)
    .await?;
    let mut contents: HashMap<(String, String), Vec<u8>> = HashMap::new();
    for (subject, channel, bytes) in rows {
        contents.entry((subject, channel)).or_default().extend(bytes);
    }
    Ok(contents)
}

/// The first `limit` bytes, at most a piece, of the texts of these subjects, by subject and channel.
pub(super) async fn beginnings(
    connection: &mut PgConnection,
    subjects: &[String],
    limit: usize,
) -> Result<HashMap<(String, String), Vec<u8>>, StoreError> {
    let rows: Vec<(String, String, Vec<u8>)> = sqlx::query_as(
        "select subject, channel, substring(bytes from 1 for $2) from content_parts
         where subject = any($1) and part = 0",
    )
    .bind(subjects)
    .bind(i32::try_from(limit).unwrap_or(i32::MAX))
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(subject, channel, bytes)| ((subject, channel), bytes))
        .collect())
}
