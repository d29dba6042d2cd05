//! The words of what was said, by which the list of sessions is searched.

use protocol::id::RunId;
use sqlx::PgConnection;

use super::StoreError;

/// The most bytes of a text that one row indexes: its words have to fit into the database's limit for one.
const PART_BYTES: usize = 64 * 1024;

/// Indexes a text that does not change any more. Doing it again changes nothing.
pub(super) async fn index(
    connection: &mut PgConnection,
    run_id: &RunId,
    subject: &str,
    text: &str,
) -> Result<(), StoreError> {
    let mut rest = text;
    for part in 0_i32.. {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(cut(rest));
        rest = after;
        // Text of the database cannot hold NUL; it is in no word.
        let piece = piece.replace('\0', " ");
        sqlx::query(
            "insert into words (run_id, subject, part, words) values ($1, $2, $3, to_tsvector('simple', $4))
             on conflict do nothing",
        )
        .bind(run_id.as_str())
        .bind(subject)
        .bind(part)
        .bind(piece)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// How much of a text makes a part: it ends between words where it can.
fn cut(text: &str) -> usize {
    if text.len() <= PART_BYTES {
        return text.len();
    }
    let most = text.floor_char_boundary(PART_BYTES);
    let end = text[..most].rfind(char::is_whitespace);
    end.filter(|&end| end > most / 2).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_words_and_at_characters() {
        assert_eq!(cut("short"), 5);
        let words = "word ".repeat(PART_BYTES);
        assert!(words[..cut(&words)].ends_with("word"));
        let long = "é".repeat(PART_BYTES);
        assert_eq!(cut(&long), PART_BYTES);
    }
}
