//! Streams of any length, in bounded memory.

use std::fs::OpenOptions;
use std::io::Write;

use super::*;
use crate::tool::test_support::Folder;

const LARGEST: usize = 256 * 1024;

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
        .window(Start { line: 1, column: 1 }, u64::MAX, LARGEST)
        .unwrap();
    assert_eq!(window.text.len(), LARGEST);
    assert!(window.text.capacity() <= 2 * LARGEST);
    assert!(stream.given <= LARGEST as u64 + 2 * 64 * 1024, "{}", stream.given);
}

#[test]
fn a_cancelled_read_ends_even_in_an_endless_line() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut lines = Lines::new(Endless { given: 0 }, &cancel);
    let stop = lines
        .window(Start { line: 2, column: 1 }, 1, LARGEST)
        .unwrap_err();
    assert!(matches!(stop, Stop::Cancelled));
}

#[test]
fn a_file_that_grew_after_it_was_opened_is_read_to_its_new_end() {
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
