//! Files and lines larger than a result.

use std::fs::OpenOptions;

use super::*;

#[tokio::test]
async fn a_huge_file_is_refused_whole_and_read_in_parts() {
    let folder = Folder::new();
    folder.write("huge.log", numbered(1..=5000));
    let file = OpenOptions::new()
        .append(true)
        .open(folder.path("huge.log"))
        .unwrap();
    file.set_len(200 << 20).unwrap();

    let whole = read_whole(&folder, "huge.log").await.unwrap_err();
    assert_eq!(whole.code, "too_large");
    assert!(
        whole
            .message
            .starts_with("`huge.log` has 200.0 MiB; at most 10.0 MiB are read whole."),
        "{}",
        whole.message
    );
    assert!(whole.message.contains("`offset`") && whole.message.contains("`limit`"));

    let part = read_with(&folder, json!({"path": "huge.log", "offset": 4000, "limit": 3}))
        .await
        .unwrap();
    assert_eq!(
        part,
        format!(
            "{}[This was lines 4000 to 4002. Go on with offset 4003.]\n",
            numbered(4000..=4002)
        )
    );

    // The zeros behind the text are one line of almost 200 MiB.
    let zeros = read_with(&folder, json!({"path": "huge.log", "offset": 5001}))
        .await
        .unwrap();
    let (text, note) = split_note(&zeros);
    assert_eq!(text.trim_end_matches('\n').len(), LARGEST_RESULT);
    assert_eq!(
        note,
        "[Cut after 256 KiB inside line 5001. Go on in it with offset 5001 and column 262145.]"
    );
    let beyond = read_with(&folder, json!({"path": "huge.log", "offset": 5002}))
        .await
        .unwrap_err();
    assert_eq!(
        beyond.message,
        "`huge.log` has 5001 lines, so there is no line 5002."
    );
}

#[tokio::test]
async fn a_sparse_file_of_zeros_is_binary_at_once() {
    let folder = Folder::new();
    std::fs::File::create(folder.path("zeros"))
        .unwrap()
        .set_len(200 << 20)
        .unwrap();
    let error = read_whole(&folder, "zeros").await.unwrap_err();
    assert_eq!(error.code, "binary_file");
    assert!(error.message.contains("200.0 MiB"), "{}", error.message);
}

#[tokio::test]
async fn a_result_holds_whole_lines_up_to_the_cap_and_the_parts_make_the_file() {
    let folder = Folder::new();
    let text = numbered(1..=60_000);
    folder.write("long", &text);
    let mut put_together = String::new();
    let mut offset = 1;
    loop {
        let part = read_with(&folder, json!({"path": "long", "offset": offset}))
            .await
            .unwrap();
        let (lines, note) = split_note(&part);
        assert!(lines.len() <= LARGEST_RESULT && lines.ends_with('\n'));
        put_together.push_str(lines);
        if note.ends_with("the file ends here.]") {
            break;
        }
        let next = offset + lines.lines().count() as u64;
        assert_eq!(
            note,
            format!(
                "[Cut after 256 KiB: this was lines {offset} to {} of 60000. Go on with offset {next}.]",
                next - 1
            )
        );
        offset = next;
    }
    assert!(offset > 1);
    assert_eq!(put_together, text);
}

#[tokio::test]
async fn a_line_longer_than_a_result_is_read_by_columns_without_breaking_a_character() {
    let folder = Folder::new();
    // 3 bytes each and one before: no cut falls on a multiple.
    let line = format!("x{}", "€".repeat(200_000));
    folder.write("one-line", format!("short\n{line}\nend\n"));
    let mut put_together = String::new();
    let mut column = 1;
    loop {
        let arguments = json!({"path": "one-line", "offset": 2, "limit": 1, "column": column});
        let part = read_with(&folder, arguments).await.unwrap();
        let (piece, note) = split_note(&part);
        let piece = piece.trim_end_matches('\n');
        assert!(!piece.contains(char::REPLACEMENT_CHARACTER));
        put_together.push_str(piece);
        if note == "[This was line 2 of 3. Go on with offset 3.]" {
            break;
        }
        column += piece.len();
        assert_eq!(
            note,
            format!("[Cut after 256 KiB inside line 2 of 3. Go on in it with offset 2 and column {column}.]")
        );
    }
    assert_eq!(put_together, line);
}

#[tokio::test]
async fn replacement_characters_count_for_the_cap() {
    let folder = Folder::new();
    let mut content = vec![b'a'; SNIFFED_BYTES];
    content.extend(std::iter::repeat_n(0xff, LARGEST_RESULT));
    folder.write("garbage", &content);
    let text = read_whole(&folder, "garbage").await.unwrap();
    let (shown, note) = split_note(&text);
    assert!(shown.trim_end().len() <= LARGEST_RESULT);
    let bytes = SNIFFED_BYTES
        + shown
            .chars()
            .filter(|shown| *shown == char::REPLACEMENT_CHARACTER)
            .count();
    assert!(note.ends_with(&format!("column {}.]", bytes + 1)), "{note}");
}
