//! What is read, what is refused, and how to go on after a part.

mod large;

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
