//! Closed texts, in pieces.

use std::collections::HashMap;

use protocol::id::RunId;
use sqlx::PgConnection;

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
