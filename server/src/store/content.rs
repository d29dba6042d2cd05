//! Closed texts, in pieces.

use std::collections::HashMap;
use std::ops::Range;

use protocol::id::RunId;
use sqlx::PgConnection;
use sqlx::postgres::PgPool;

use super::StoreError;

/// The most bytes of one piece.
pub const PART_BYTES: usize = 64 * 1024;

/// Writes a closed text. Writing it again changes nothing.
pub async fn write(
    connection: &mut PgConnection,
    run_id: &RunId,
    subject: &str,
    channel: &str,
    bytes: &[u8],
) -> Result<(), StoreError> {
    for (part, piece) in bytes.chunks(PART_BYTES).enumerate() {
        sqlx::query(
            "insert into content_parts (subject, channel, part, run_id, bytes) values ($1, $2, $3, $4, $5)
             on conflict do nothing",
        )
        .bind(subject)
        .bind(channel)
        .bind(part as i32)
        .bind(run_id.as_str())
        .bind(piece)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// All closed texts of a run, by subject and channel.
pub async fn of_run(
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

/// The bytes of a range of a closed text; what lies beyond its end is left out.
pub async fn range(pool: &PgPool, subject: &str, channel: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let piece = PART_BYTES as u64;
    let first = range.start / piece;
    let last = (range.end - 1) / piece;
    let rows: Vec<(Vec<u8>,)> = sqlx::query_as(
        "select bytes from content_parts where subject = $1 and channel = $2 and part between $3 and $4 order by part",
    )
    .bind(subject)
    .bind(channel)
    .bind(i32::try_from(first).unwrap_or(i32::MAX))
    .bind(i32::try_from(last).unwrap_or(i32::MAX))
    .fetch_all(pool)
    .await?;
    let bytes: Vec<u8> = rows.into_iter().flat_map(|(bytes,)| bytes).collect();
    let skip = usize::try_from(range.start - first * piece).unwrap_or(usize::MAX).min(bytes.len());
    let take = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    Ok(bytes.into_iter().skip(skip).take(take).collect())
}
