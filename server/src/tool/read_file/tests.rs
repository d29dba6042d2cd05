//! What is read, what is refused, and how to go on after a part.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::json;

use super::*;
use crate::tool::test_support::{Folder, call};

async fn read_with(folder: &Folder, arguments: Value) -> Result<String, ToolError> {
    call(&ReadFile::new(Arc::clone(&folder.workspace)), arguments)
        .await
        .map(|output| output.text)
}

async fn read_whole(folder: &Folder, path: &str) -> Result<String, ToolError> {
    read_with(folder, json!({ "path": path })).await
}

/// The text without the note, and the note.
fn split_note(text: &str) -> (&str, &str) {
    let start = text.trim_end().rfind("\n[").unwrap() + 1;
    (&text[..start], text[start..].trim_end())
}

fn numbered(lines: std::ops::RangeInclusive<u64>) -> String {
    lines.map(|number| format!("line {number}\n")).collect()
}

#[tokio::test]
async fn a_whole_file_is_given_as_it_is() {
    let folder = Folder::new();
    for text in [
        "one line",
        "two\nlines\n",
        "größe 🦀\n",
        "mixed\r\nline\nends\r\n\r\n",
        "\u{feff}with a mark\n",
    ] {
        folder.write("file.txt", text);
        assert_eq!(read_whole(&folder, "file.txt").await.unwrap(), text);
    }
}

#[tokio::test]
async fn an_empty_file_says_so() {
    let folder = Folder::new();
    folder.write("empty", "");
    assert_eq!(
        read_whole(&folder, "empty").await.unwrap(),
        "[The file is empty.]\n"
    );
    let from_the_first = read_with(&folder, json!({"path": "empty", "offset": 1, "limit": 5}))
        .await
        .unwrap();
    assert_eq!(from_the_first, "[The file is empty.]\n");
}

#[tokio::test]
async fn lines_are_counted_from_one_and_the_note_says_how_to_go_on() {
    let folder = Folder::new();
    folder.write("file", numbered(1..=20));
    let part = read_with(&folder, json!({"path": "file", "offset": 3, "limit": 2}))
        .await
        .unwrap();
    assert_eq!(
        part,
        "line 3\nline 4\n[This was lines 3 to 4 of 20. Go on with offset 5.]\n"
    );
    let first = read_with(&folder, json!({"path": "file", "limit": 1}))
        .await
        .unwrap();
    assert_eq!(first, "line 1\n[This was line 1 of 20. Go on with offset 2.]\n");
    let last = read_with(&folder, json!({"path": "file", "offset": 20, "limit": 1}))
        .await
        .unwrap();
    assert_eq!(last, "line 20\n[This was line 20; the file ends here.]\n");
    let all = read_with(&folder, json!({"path": "file", "offset": 1, "limit": 20}))
        .await
        .unwrap();
    assert_eq!(all, numbered(1..=20));
}

#[tokio::test]
async fn carriage_returns_stay_and_lines_are_counted_the_same() {
    let folder = Folder::new();
    folder.write("file", "a\r\nb\r\nc");
    let part = read_with(&folder, json!({"path": "file", "offset": 2, "limit": 1}))
        .await
        .unwrap();
    assert_eq!(part, "b\r\n[This was line 2 of 3. Go on with offset 3.]\n");
    let last = read_with(&folder, json!({"path": "file", "offset": 3}))
        .await
        .unwrap();
    assert_eq!(last, "c\n[This was line 3; the file ends here.]\n");
}

#[tokio::test]
async fn a_line_or_column_beyond_the_end_is_named() {
    let folder = Folder::new();
    folder.write("file", "a\nb\n");
    let message = async |arguments: Value| {
        let error = read_with(&folder, arguments).await.unwrap_err();
        assert_eq!(error.code, "out_of_range");
        error.message
    };
    for offset in [3, 4, 1000] {
        assert_eq!(
            message(json!({"path": "file", "offset": offset})).await,
            format!("`file` has 2 lines, so there is no line {offset}.")
        );
    }
    assert_eq!(
        message(json!({"path": "file", "offset": 2, "column": 9})).await,
        "Line 2 of `file` has 1 byte, so there is no column 9."
    );
}

#[tokio::test]
async fn bytes_that_are_not_utf8_become_replacement_characters() {
    let folder = Folder::new();
    folder.write("latin1", b"Gr\xfc\xdfe aus M\xfcnchen, sagt der Text");
    assert_eq!(
        read_whole(&folder, "latin1").await.unwrap(),
        "Gr\u{fffd}\u{fffd}e aus M\u{fffd}nchen, sagt der Text"
    );
}

#[tokio::test]
async fn a_binary_file_is_refused_with_size_and_kind() {
    let folder = Folder::new();
    folder.write("image.dat", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let error = read_whole(&folder, "image.dat").await.unwrap_err();
    assert_eq!(error.code, "binary_file");
    assert_eq!(
        error.message,
        "`image.dat` is a binary file of 16 bytes, a PNG image; only text can be read."
    );
    let part = read_with(&folder, json!({"path": "image.dat", "limit": 1}))
        .await
        .unwrap_err();
    assert_eq!(part.code, "binary_file");
}

#[tokio::test]
async fn a_nul_late_in_a_text_is_kept() {
    let folder = Folder::new();
    let text = format!("{}a\0b\n", numbered(1..=2000));
    folder.write("log", &text);
    assert_eq!(read_whole(&folder, "log").await.unwrap(), text);
}

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

/// Counts what is taken from it.
struct Endless {
    given: u64,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(b'x');
        self.given += buffer.len() as u64;
        Ok(buffer.len())
    }
}

#[test]
fn no_more_is_read_than_a_result_and_a_buffer() {
    let cancel = CancellationToken::new();
    let mut stream = Endless { given: 0 };
    let window = Lines::new(&mut stream, &cancel)
        .window(Start { line: 1, column: 1 }, u64::MAX, LARGEST_RESULT)
        .unwrap();
    assert_eq!(window.text.len(), LARGEST_RESULT);
    assert!(window.text.capacity() <= 2 * LARGEST_RESULT);
    assert!(
        stream.given <= LARGEST_RESULT as u64 + 2 * 64 * 1024,
        "{}",
        stream.given
    );
}

#[test]
fn a_cancelled_read_ends_even_in_an_endless_line() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut lines = Lines::new(Endless { given: 0 }, &cancel);
    let stop = lines
        .window(Start { line: 2, column: 1 }, 1, LARGEST_RESULT)
        .unwrap_err();
    assert!(matches!(stop, Stop::Cancelled));
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

#[tokio::test]
async fn a_file_that_grew_after_it_was_opened_is_read_to_its_new_end() {
    let folder = Folder::new();
    folder.write("log", "first\n");
    let path = folder.workspace.resolve("log").unwrap();
    let opened = folder.workspace.open_file(&path).unwrap();
    OpenOptions::new()
        .append(true)
        .open(folder.path("log"))
        .unwrap()
        .write_all(b"second\n")
        .unwrap();
    let cancel = CancellationToken::new();
    let window = Lines::new(opened.file, &cancel)
        .window(Start { line: 1, column: 1 }, 9, 100)
        .unwrap();
    assert_eq!(window.text, "first\nsecond\n");
    assert_eq!(window.end, End::OfFile);
}

#[tokio::test]
async fn what_is_no_text_file_of_the_workspace_is_refused() {
    let folder = Folder::new();
    folder.write("src/main.rs", "");
    folder.pipe("pipe");
    folder.link("../outside/secret.txt", "way-out");
    let code = async |path: &str| read_whole(&folder, path).await.unwrap_err().code;
    assert_eq!(code("src").await, "is_directory");
    assert_eq!(code("").await, "is_directory");
    assert_eq!(code("pipe").await, "not_a_file");
    assert_eq!(code("way-out").await, "outside_workspace");
    assert_eq!(code("../outside/secret.txt").await, "outside_workspace");
    assert_eq!(code("src/main.rd").await, "not_found");
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    let folder = Folder::new();
    let message = async |arguments: Value| {
        let error = read_with(&folder, arguments).await.unwrap_err();
        assert_eq!(error.code, "invalid_arguments");
        error.message
    };
    assert_eq!(
        message(json!({})).await,
        "The arguments do not fit: missing field `path`."
    );
    assert_eq!(
        message(json!({"path": "a", "offset": 0})).await,
        "The argument `offset` does not fit: invalid value: integer `0`, expected a whole number from 1."
    );
    assert!(
        message(json!({"path": "a", "lines": 3}))
            .await
            .contains("unknown field `lines`")
    );
}
