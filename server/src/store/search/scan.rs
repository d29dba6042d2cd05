//! Finding in a text that comes in pieces, also what lies across two of them.

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

/// What is found is at most so long where it lies across pieces, in bytes: white space in it has no length of its own.
const OVERLAP: usize = 4 * 1024;

/// So much of what stands before and after is a part of an excerpt, in bytes at most.
pub(super) const EXCERPT: usize = 120;

/// The most bytes that are told of what was found.
const LONGEST: usize = 1024;

/// What searches.
pub(super) struct Engine(RegexMatcher);

impl Engine {
    /// For an expression, without regard to case.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        RegexMatcherBuilder::new()
            .case_insensitive(true)
            .build(pattern)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it begins, in bytes from the beginning of the text.
    pub(super) offset: u64,
    /// Its length.
    pub(super) bytes: u64,
    pub(super) before: String,
    pub(super) text: String,
    pub(super) after: String,
}

/// How far a text was searched.
pub(super) struct Scan {
    /// What was read and is still needed.
    buffer: Vec<u8>,
    /// Where the buffer begins in the text.
    base: u64,
    /// From here on it is searched.
    from: u64,
}

impl Scan {
    /// Of a text that is read from the byte `base` on, and searched from the byte `from` on.
    pub(super) fn new(base: u64, from: u64) -> Self {
        Self {
            buffer: Vec::new(),
            base,
            from,
        }
    }

    /// Everything before this is searched.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// Takes in a piece, and gives what is found as far as it and what stands after it are there.
    pub(super) fn push(&mut self, engine: &Engine, piece: &[u8], is_last: bool) -> Vec<Found> {
        self.buffer.extend_from_slice(piece);
        let mut found = Vec::new();
        let mut at = usize::try_from(self.from.saturating_sub(self.base)).unwrap_or(usize::MAX);
        while at <= self.buffer.len() {
            // An engine without backtracking has no errors of its own.
            let Ok(Some(place)) = engine.0.find_at(&self.buffer, at) else {
                break;
            };
            if !is_last && place.end() + EXCERPT > self.buffer.len() {
                break;
            }
            at = place.end();
            found.push(self.found(place.start(), place.end()));
        }
        let settled = if is_last {
            self.buffer.len()
        } else {
            self.buffer.len().saturating_sub(OVERLAP)
        };
        self.from = self
            .from
            .max(self.base + at.max(settled).min(self.buffer.len()) as u64);
        let kept = usize::try_from(self.from - self.base).unwrap_or(0);
        let gone = kept.saturating_sub(EXCERPT).min(self.buffer.len());
        self.buffer.drain(..gone);
        self.base += gone as u64;
        found
    }

    fn found(&self, start: usize, end: usize) -> Found {
        let slice = |from: usize, to: usize| self.buffer.get(from..to).unwrap_or_default();
        let before = slice(start.saturating_sub(EXCERPT), start);
        let after = slice(end, (end + EXCERPT).min(self.buffer.len()));
        Found {
            offset: self.base + start as u64,
            bytes: (end - start) as u64,
            before: words(before).0,
            text: words(slice(start, end.min(start + LONGEST))).1,
            after: words(after).1,
        }
    }
}

/// Bytes as text, without the rest of a character that was cut at the beginning; and without that of one cut at the end.
fn words(bytes: &[u8]) -> (String, String) {
    let start = bytes
        .iter()
        .position(|byte| byte & 0xc0 != 0x80)
        .unwrap_or(bytes.len());
    let rest = bytes.get(start..).unwrap_or_default();
    let end = match std::str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(rest), text(bytes.get(..end).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::search::{Writing, pattern};

    fn engine(text: &str, writing: Writing) -> Engine {
        Engine::new(&pattern(text, writing)).expect("a pattern")
    }

    /// Offsets of what is found in a text that comes in pieces of a length.
    fn offsets(engine: &Engine, text: &str, length: usize) -> Vec<u64> {
        let mut scan = Scan::new(0, 0);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(length).collect();
        let last = pieces.len() - 1;
        let mut found = Vec::new();
        for (place, piece) in pieces.into_iter().enumerate() {
            found.extend(scan.push(engine, piece, place == last));
        }
        found.into_iter().map(|found| found.offset).collect()
    }

    #[test]
    fn however_a_text_is_cut_the_same_is_found() {
        let text = format!(
            "Wörter {}wÖrter{}WÖRTER und\nWörter",
            "x".repeat(5000),
            "é".repeat(4000)
        );
        let engine = engine("wörter", Writing::Plain);
        let whole = offsets(&engine, &text, text.len());
        assert_eq!(whole, [0, 5008, 13_015, 13_027]);
        for length in [1, 2, 7, 100, 4096, 5009] {
            assert_eq!(offsets(&engine, &text, length), whole, "{length}");
        }
    }

    #[test]
    fn signs_of_patterns_are_found_as_they_are() {
        for text in ["100%", "a_b", "a\\b", "(x)", "[y]", "a.b", "^$", "#", "-&~"] {
            let engine = engine(text, Writing::Plain);
            assert_eq!(offsets(&engine, &format!("§ {text} §"), 64), [3], "{text}");
            assert_eq!(
                offsets(&engine, "100 axb a/b x y zz", 64),
                [] as [u64; 0],
                "{text}"
            );
        }
    }

    #[test]
    fn white_space_is_any_and_marks_around_words_are_passed_over() {
        let text = "one\n\ttwo **one** `two` one\\ntwo one-two";
        assert_eq!(offsets(&engine("one two", Writing::Plain), text, 64), [0]);
        assert_eq!(offsets(&engine("one two", Writing::Markdown), text, 64), [0, 11]);
        assert_eq!(offsets(&engine("one two", Writing::Json), text, 64), [0, 23]);
        assert_eq!(
            offsets(&engine("say \"x\"", Writing::Json), "say \\\"x\\\"", 64),
            [0]
        );
    }

    #[test]
    fn an_excerpt_ends_at_characters() {
        let text = format!("{}needle{}", "é".repeat(200), "漢".repeat(200));
        let mut scan = Scan::new(0, 0);
        let found = scan.push(&engine("NEEDLE", Writing::Plain), text.as_bytes(), true);
        let [found] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((found.offset, found.bytes), (400, 6));
        assert_eq!(found.before, "é".repeat(60));
        assert_eq!(found.after, "漢".repeat(40));
        assert_eq!(found.text, "needle");
    }

    #[test]
    fn a_search_goes_on_from_a_place_within_a_text() {
        let mut scan = Scan::new(0, 4);
        let found = scan.push(&engine("ab", Writing::Plain), b"ab..ab..ab", true);
        let offsets: Vec<u64> = found.iter().map(|found| found.offset).collect();
        assert_eq!(offsets, [4, 8]);
        assert_eq!(found[0].before, "ab..");
    }
}
