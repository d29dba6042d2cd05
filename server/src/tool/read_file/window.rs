//! A part of a text, taken from a stream of any length in bounded memory.

use std::io::{self, BufRead, BufReader, Read};

use tokio_util::sync::CancellationToken;

/// How much is read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// The longest UTF-8 character.
const LONGEST_CHARACTER: usize = 4;

/// Where a part starts: a line, and a byte in it, both counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) line: u64,
    pub(super) column: u64,
}

/// A part of a text.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) text: String,
    /// The number of the last line of which something is in the text.
    pub(super) last_line: u64,
    pub(super) end: End,
}

/// Why a part ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing is left.
    OfFile,
    /// It has as many lines as were asked for.
    Limit,
    /// More does not fit.
    Full {
        /// Where to go on in the last line, if it was cut; in bytes from 1.
        next_column: Option<u64>,
    },
}

/// Why there is no part.
#[derive(Debug)]
pub(super) enum Stop {
    Cancelled,
    Failed(io::Error),
    /// The text has fewer lines.
    NoSuchLine {
        lines: u64,
    },
    /// The line has fewer bytes, its end not counted.
    NoSuchColumn {
        bytes: u64,
    },
}

/// The lines of a stream.
pub(super) struct Lines<'a, R> {
    reader: BufReader<R>,
    cancel: &'a CancellationToken,
    /// Line ends passed so far.
    passed: u64,
    /// Whether what was passed ends inside a line.
    inside_line: bool,
}

/// What one look at the buffer came to.
enum Taken {
    /// So many bytes up to a line end, and that.
    Line(u64),
    /// So many bytes without a line end.
    Piece(u64),
    EndOfFile,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(super) fn new(stream: R, cancel: &'a CancellationToken) -> Self {
        let reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        Self {
            reader,
            cancel,
            passed: 0,
            inside_line: false,
        }
    }

    /// Takes the part from `start` with at most `limit` lines and `largest` bytes of text.
    pub(super) fn window(&mut self, start: Start, limit: u64, largest: usize) -> Result<Window, Stop> {
        self.go_to(start)?;
        // A character may be cut by the end of what is read. So a little more is read than can be used: then what is
        // used ends before that.
        let room = largest + LONGEST_CHARACTER;
        let mut raw = Vec::new();
        let mut lines = 0;
        while lines < limit && raw.len() < room {
            match self.take(room - raw.len(), |bytes| raw.extend_from_slice(bytes))? {
                Taken::Line(_) => lines += 1,
                Taken::Piece(_) => {}
                Taken::EndOfFile => break,
            }
        }
        let (mut text, used) = decode(&raw, largest);
        let end = if used == raw.len() {
            if self.at_end()? { End::OfFile } else { End::Limit }
        } else if let Some(end_of_line) = text.rfind('\n') {
            text.truncate(end_of_line + 1);
            End::Full { next_column: None }
        } else {
            End::Full {
                next_column: Some(start.column + used as u64),
            }
        };
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        let complete = u64::from(text.ends_with('\n'));
        Ok(Window {
            last_line: start.line + line_ends - complete,
            text,
            end,
        })
    }

    /// Reads to the end of the stream and says how many lines it has.
    pub(super) fn count(&mut self) -> Result<u64, Stop> {
        while !matches!(self.take(usize::MAX, |_| {})?, Taken::EndOfFile) {}
        Ok(self.passed + u64::from(self.inside_line))
    }

    fn go_to(&mut self, start: Start) -> Result<(), Stop> {
        while self.passed + 1 < start.line {
            if matches!(self.take(usize::MAX, |_| {})?, Taken::EndOfFile) {
                break;
            }
        }
        // An empty text has no line 1 either, but to read it from there is no mistake.
        if start.line > 1 && self.at_end()? {
            return Err(Stop::NoSuchLine {
                lines: self.passed + u64::from(self.inside_line),
            });
        }
        let before = start.column - 1;
        let mut skipped = 0;
        while skipped < before {
            let room = usize::try_from(before - skipped).unwrap_or(usize::MAX);
            match self.take(room, |_| {})? {
                Taken::Piece(bytes) => skipped += bytes,
                Taken::Line(bytes) => {
                    return Err(Stop::NoSuchColumn {
                        bytes: skipped + bytes,
                    });
                }
                Taken::EndOfFile => return Err(Stop::NoSuchColumn { bytes: skipped }),
            }
        }
        Ok(())
    }

    /// Passes what is buffered, up to `room` bytes or the end of the line, and hands it to `keep`.
    fn take(&mut self, room: usize, mut keep: impl FnMut(&[u8])) -> Result<Taken, Stop> {
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        let buffer = fill(&mut self.reader)?;
        let buffer = buffer.get(..room).unwrap_or(buffer);
        if buffer.is_empty() {
            return Ok(Taken::EndOfFile);
        }
        let (length, taken) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, Taken::Line(at as u64)),
            None => (buffer.len(), Taken::Piece(buffer.len() as u64)),
        };
        keep(buffer.get(..length).unwrap_or_default());
        self.reader.consume(length);
        self.inside_line = matches!(taken, Taken::Piece(_));
        self.passed += u64::from(!self.inside_line);
        Ok(taken)
    }

    fn at_end(&mut self) -> Result<bool, Stop> {
        Ok(fill(&mut self.reader)?.is_empty())
    }
}

fn fill<R: Read>(reader: &mut BufReader<R>) -> Result<&[u8], Stop> {
    while let Err(error) = reader.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(Stop::Failed(error));
        }
    }
    // Filled above, so this only looks at it.
    Ok(reader.buffer())
}

/// Decodes as much as fits into `largest` bytes of text, and says how many bytes of `raw` that was. What is not UTF-8
/// becomes U+FFFD, which never makes it shorter.
fn decode(raw: &[u8], largest: usize) -> (String, usize) {
    let mut text = String::with_capacity(raw.len().min(largest));
    let mut used = 0;
    for chunk in raw.utf8_chunks() {
        let valid = chunk.valid();
        let fitting = valid.floor_char_boundary(largest - text.len());
        text.push_str(valid.get(..fitting).unwrap_or_default());
        used += fitting;
        let replacement = if chunk.invalid().is_empty() {
            0
        } else {
            char::REPLACEMENT_CHARACTER.len_utf8()
        };
        if fitting < valid.len() || text.len() + replacement > largest {
            break;
        }
        if replacement > 0 {
            text.push(char::REPLACEMENT_CHARACTER);
            used += chunk.invalid().len();
        }
    }
    (text, used)
}

#[cfg(test)]
mod tests;
