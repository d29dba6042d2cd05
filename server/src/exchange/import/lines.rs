//! A file line by line, of which no line is ever held that is longer than it may be.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The most bytes of a line. Logs of other programs hold images as text.
pub(super) const MAX_LINE: usize = 64 * 1024 * 1024;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// As it stands, without its end.
    Text(String),
    /// One that cannot be read, and why.
    Unreadable(String),
}

/// The lines of a file that are not empty, with their numbers from 1.
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
    /// One that was read already.
    held: Option<(u64, Line)>,
}

impl<R: AsyncBufRead + Unpin + Send> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            number: 0,
            held: None,
        }
    }

    /// Gives a line back, to be read again.
    pub(super) fn put_back(&mut self, number: u64, line: Line) {
        self.held = Some((number, line));
    }

    /// The next line; none at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<(u64, Line)>> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        loop {
            let Some(line) = self.read().await? else {
                return Ok(None);
            };
            self.number += 1;
            let is_blank = matches!(&line, Line::Text(text) if text.trim().is_empty());
            if !is_blank {
                return Ok(Some((self.number, line)));
            }
        }
    }

    async fn read(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut length = 0_u64;
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                if length == 0 {
                    return Ok(None);
                }
                break;
            }
            let end = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            length += piece.len() as u64;
            if length <= MAX_LINE as u64 {
                line.extend_from_slice(piece);
            } else {
                line = Vec::new();
            }
            let read = end.map_or(buffer.len(), |end| end + 1);
            length += u64::from(end.is_some());
            self.reader.consume(read);
            if end.is_some() {
                break;
            }
        }
        if length > MAX_LINE as u64 + 1 {
            return Ok(Some(Line::Unreadable(format!(
                "it has {length} bytes; at most {MAX_LINE} are read"
            ))));
        }
        Ok(Some(match String::from_utf8(line) {
            Ok(text) => Line::Text(
                text.strip_prefix('\u{feff}')
                    .map_or_else(|| text.clone(), str::to_owned),
            ),
            Err(_) => Line::Unreadable("it is not UTF-8".to_owned()),
        }))
    }

    /// What is left, at most `most` bytes of it; none where there is more.
    pub(super) async fn rest(&mut self, most: usize) -> io::Result<Option<String>> {
        let mut rest = match self.held.take() {
            Some((_, Line::Text(text))) => text.into_bytes(),
            Some((_, Line::Unreadable(_))) | None => Vec::new(),
        };
        // Its end was read with it.
        rest.push(b'\n');
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                break;
            }
            let read = buffer.len();
            rest.extend_from_slice(buffer);
            self.reader.consume(read);
            if rest.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(String::from_utf8_lossy(&rest).into_owned()))
    }
}
