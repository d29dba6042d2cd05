//! The lines that were found, cut to what is useful to show.

use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};
use tokio_util::sync::CancellationToken;

/// How much of a line is shown, in characters.
const SHOWN_CHARACTERS: usize = 400;
/// How much stands before the match where a line is cut at its start, in bytes.
const LEAD_BYTES: usize = 100;
/// The most text of one result, in bytes.
const LARGEST_TEXT: usize = 256 * 1024;
/// The longest UTF-8 character.
const LONGEST_CHARACTER: usize = 4;

/// Matching lines, up to a number; the rest is counted.
pub(super) struct Found {
    text: String,
    shown: u64,
    rest: u64,
    wanted: u64,
}

impl Found {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            text: String::new(),
            shown: 0,
            rest: 0,
            wanted: wanted as u64,
        }
    }

    fn is_full(&self) -> bool {
        self.shown >= self.wanted || self.text.len() >= LARGEST_TEXT
    }

    /// The lines as text, how many they are, and how many more were found.
    pub(super) fn into_parts(self) -> (String, u64, u64) {
        (self.text, self.shown, self.rest)
    }
}

/// Takes the matching lines of one file.
pub(super) struct LineSink<'a> {
    matcher: &'a RegexMatcher,
    path: &'a str,
    found: &'a mut Found,
    cancel: &'a CancellationToken,
    met_binary: bool,
}

impl<'a> LineSink<'a> {
    pub(super) fn new(
        matcher: &'a RegexMatcher,
        path: &'a str,
        found: &'a mut Found,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            matcher,
            path,
            found,
            cancel,
            met_binary: false,
        }
    }

    /// Whether the search of the file ended at a NUL byte.
    pub(super) fn met_binary(&self) -> bool {
        self.met_binary
    }
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.cancel.is_cancelled() {
            return Ok(false);
        }
        if self.found.is_full() {
            self.found.rest += 1;
            return Ok(true);
        }
        let line = found.bytes();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (start, end) = match self.matcher.find(line) {
            Ok(Some(place)) => (place.start(), place.end()),
            Ok(None) | Err(_) => (0, 0),
        };
        let number = found.line_number().unwrap_or_default();
        self.found.text.push_str(&format!(
            "{}:{number}: {}\n",
            self.path,
            excerpt(line, start, end)
        ));
        self.found.shown += 1;
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.met_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// At most [`SHOWN_CHARACTERS`] of a line with the match from `start` to `end` (in bytes) among them, and `…` where
/// something was cut.
fn excerpt(line: &[u8], start: usize, end: usize) -> String {
    let most_bytes = SHOWN_CHARACTERS * LONGEST_CHARACTER;
    let fits = |bytes: &[u8]| {
        bytes.len() <= SHOWN_CHARACTERS
            || bytes.len() <= most_bytes && String::from_utf8_lossy(bytes).chars().count() <= SHOWN_CHARACTERS
    };
    let from = if fits(line) || fits(line.get(..end).unwrap_or(line)) {
        0
    } else {
        character_start(line, start.saturating_sub(LEAD_BYTES))
    };
    let rest = line.get(from..).unwrap_or_default();
    // One character more than is shown, so that what the cut leaves of a character is never among those.
    let text = String::from_utf8_lossy(rest.get(..most_bytes + LONGEST_CHARACTER).unwrap_or(rest));
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    let mut characters = text.chars();
    shown.extend(characters.by_ref().take(SHOWN_CHARACTERS));
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// The place itself, or the next one at which a character starts.
fn character_start(line: &[u8], place: usize) -> usize {
    let inside = line
        .iter()
        .skip(place)
        .take(LONGEST_CHARACTER - 1)
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    place + inside
}

/// A stream that ends with an error once the call is cancelled.
pub(super) struct UntilCancelled<'a, R> {
    stream: R,
    cancel: &'a CancellationToken,
}

impl<'a, R> UntilCancelled<'a, R> {
    pub(super) fn new(stream: R, cancel: &'a CancellationToken) -> Self {
        Self { stream, cancel }
    }
}

impl<R: Read> Read for UntilCancelled<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str, matched: &str) -> String {
        let start = line.find(matched).unwrap();
        excerpt(line.as_bytes(), start, start + matched.len())
    }

    #[test]
    fn a_line_that_fits_is_shown_whole() {
        assert_eq!(cut("short line", "line"), "short line");
        let full = "🦀".repeat(SHOWN_CHARACTERS);
        assert_eq!(cut(&full, "🦀"), full);
    }

    #[test]
    fn a_long_line_is_cut_at_a_character_with_a_mark() {
        let long = format!("match{}", "é".repeat(SHOWN_CHARACTERS));
        assert_eq!(
            cut(&long, "match"),
            format!("match{}…", "é".repeat(SHOWN_CHARACTERS - 5))
        );
    }

    #[test]
    fn a_match_far_into_a_line_is_among_what_is_shown() {
        let long = format!("{}match{}", "🦀".repeat(5000), "é".repeat(5000));
        let shown = cut(&long, "match");
        assert!(
            shown.starts_with("…🦀") && shown.ends_with("é…") && shown.contains("🦀match"),
            "{shown}"
        );
        assert_eq!(shown.chars().count(), SHOWN_CHARACTERS + 2);
        assert!(!shown.contains(char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_shown_as_replacement_characters() {
        assert_eq!(excerpt(b"a\xff match", 3, 8), "a\u{fffd} match");
        let shown = excerpt(&[0x80; 3000], 2999, 3000);
        assert!(
            shown.starts_with('…')
                && shown
                    .trim_start_matches('…')
                    .chars()
                    .all(|shown| shown == '\u{fffd}')
        );
    }
}
