//! The last run of text in the tree, while more can follow in it, and what in it is not decided.

use std::ops::Range;

use pulldown_cmark::{Event, Tag, TagEnd};

use crate::markdown::parse::{Parsed, Spanned, is_inline};
use crate::markdown::write::is_escaped;

/// Where the text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    /// In a paragraph, or in a list's item without one.
    Paragraph,
    Heading,
    Cell,
}

/// The last run of inline events, which more text can still join.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) kind: LeafKind,
    events: Range<usize>,
    /// How many quotes it stands in.
    quotes: usize,
    /// Its bytes in the parsed source.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What is undecided in a leaf.
#[derive(Debug)]
pub(super) enum Undecided {
    /// Parse only what stands before `at`; what stands from `plain_from` on is plain text.
    Cut { at: usize, plain_from: Option<usize> },
    /// Nothing more to cut; these marks are not shown.
    Hidden(Vec<Range<usize>>),
}

impl Leaf {
    /// The open leaf at the end of a parsed text, if there is one (code and raw HTML are none).
    pub(super) fn open_in(parsed: &Parsed<'_>, text: &str) -> Option<Self> {
        let events = &parsed.events;
        let is_border = |(event, _): &Spanned<'_>| matches!(event, Event::End(_)) && !is_inline(event);
        let mut end = events.iter().rposition(|spanned| !is_border(spanned))? + 1;
        // The parser fills up a row with empty cells.
        while let Some([.., (Event::End(_), _), (Event::Start(Tag::TableCell), _)]) = events.get(..end) {
            end -= 2;
        }
        let before = events
            .get(..end)?
            .iter()
            .rposition(|(event, _)| !is_inline(event))?;
        let mut start = before + 1;
        if matches!(events.get(start), Some((Event::TaskListMarker(_), _))) {
            start += 1;
        }
        let run = events.get(start..end).filter(|run| !run.is_empty())?;
        let kind = match &events.get(before)?.0 {
            Event::Start(Tag::CodeBlock(_)) => return None,
            Event::Start(Tag::Heading { .. }) => LeafKind::Heading,
            Event::Start(Tag::TableCell) => LeafKind::Cell,
            _ => LeafKind::Paragraph,
        };
        let from = run.iter().map(|(_, range)| range.start).min()?;
        let to = run.iter().map(|(_, range)| range.end).max()?;
        let after = text.get(to..)?;
        let is_open = match kind {
            LeafKind::Paragraph => after.matches('\n').count() <= 1,
            LeafKind::Heading => !after.contains('\n'),
            LeafKind::Cell => !after.contains(['\n', '|']),
        };
        // A backslash that escapes the first character belongs to the leaf.
        let from = if is_escaped(text, from) { from - 1 } else { from };
        let quotes = events
            .get(..before)?
            .iter()
            .fold(0_usize, |open, (event, _)| match event {
                Event::Start(Tag::BlockQuote(_)) => open + 1,
                Event::End(TagEnd::BlockQuote(_)) => open.saturating_sub(1),
                _ => open,
            });
        is_open.then_some(Self {
            kind,
            events: start..end,
            quotes,
            start: from,
            end: to,
        })
    }

    pub(super) fn events<'p, 'a>(&self, parsed: &'p Parsed<'a>) -> &'p [Spanned<'a>] {
        parsed.events.get(self.events.clone()).unwrap_or_default()
    }

    /// Source of it as plain text: without what is not its own at the start of lines, and what a cell escapes.
    pub(super) fn plain(&self, source: &str) -> String {
        let mut lines = source.trim_end().split('\n');
        let mut text = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            text.push('\n');
            text.push_str(self.own(line));
        }
        if self.kind == LeafKind::Cell {
            text = text.replace("\\|", "|");
        }
        if text.starts_with('<') {
            text = without_escapes(&text);
        }
        text
    }

    /// A line without blanks and marks of quotes before it.
    fn own<'l>(&self, line: &'l str) -> &'l str {
        let mut rest = line.trim_start_matches([' ', '\t']);
        for _ in 0..self.quotes {
            let Some(quoted) = rest.strip_prefix('>') else {
                break;
            };
            rest = quoted.trim_start_matches([' ', '\t']);
        }
        rest
    }
}

/// Looks through a leaf's events for marks that could still find their end. `text` is what was parsed: `source` up to `cut`,
/// and perhaps a placeholder.
pub(super) fn undecided(events: &[Spanned<'_>], source: &str, text: &str, cut: usize) -> Undecided {
    let mut hidden = Vec::new();
    for (event, range) in events {
        let Event::Text(_) = event else { continue };
        let mark = text.get(range.clone()).unwrap_or_default();
        if range.end > cut {
            continue;
        }
        if is_escaped(source, range.start) {
            // Of several backticks only the first one is escaped.
            if mark.len() > 1 && mark.bytes().all(|byte| byte == b'`') {
                return Undecided::Cut {
                    at: range.start + 1,
                    plain_from: Some(range.end),
                };
            }
            continue;
        }
        match mark.as_bytes() {
            [b'`', rest @ ..] if rest.iter().all(|byte| *byte == b'`') => {
                return Undecided::Cut {
                    at: range.start,
                    plain_from: Some(range.end),
                };
            }
            b"<" if may_be_address(source.get(range.end..).unwrap_or_default()) => {
                return Undecided::Cut {
                    at: range.start,
                    plain_from: Some(range.end),
                };
            }
            b"<" if may_be_tag(source.get(range.end..cut).unwrap_or_default()) => {
                return Undecided::Cut {
                    at: range.start,
                    plain_from: Some(range.start),
                };
            }
            b"[" | b"![" => match bracket(source.get(range.end..cut).unwrap_or_default()) {
                Bracket::Decided => {}
                Bracket::Open => hidden.push(marks(source, range)),
                Bracket::Closed(at) => {
                    hidden.push(marks(source, range));
                    return Undecided::Cut {
                        at: range.end + at,
                        plain_from: None,
                    };
                }
            },
            b"*" | b"_" | b"~" if may_open(source, range.start) => hidden.push(range.clone()),
            _ => {}
        }
    }
    Undecided::Hidden(hidden)
}

/// What may be a tag, without the backslashes that it loses if it is none.
fn without_escapes(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut without = String::with_capacity(text.len());
    while let Some(character) = rest.next() {
        let is_escape = character == '\\' && rest.peek().is_some_and(char::is_ascii_punctuation);
        without.extend(if is_escape { rest.next() } else { Some(character) });
    }
    without
}

/// A bracket, with the caret of a footnote.
fn marks(source: &str, bracket: &Range<usize>) -> Range<usize> {
    let is_footnote = source
        .get(bracket.end..)
        .is_some_and(|rest| rest.starts_with('^'));
    bracket.start..bracket.end + usize::from(is_footnote)
}

enum Bracket {
    /// It is no inline link; it may be a reference, which is decided by its definition.
    Decided,
    /// Its end has not come.
    Open,
    /// Its end stands here, and the target that follows has no end.
    Closed(usize),
}

/// What follows a `[`, as far as it can be seen.
fn bracket(rest: &str) -> Bracket {
    let mut depth = 0_usize;
    let mut escaped = false;
    let mut within = 0;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if at < within => {}
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'`' | b'<' => within = at + atom(rest.get(at..).unwrap_or_default()),
            b'[' => depth += 1,
            b']' if depth > 0 => depth -= 1,
            b']' => {
                let is_open = match rest.get(at + 1..).unwrap_or_default() {
                    "" => true,
                    target if target.starts_with('(') => may_be_target(target.get(1..).unwrap_or_default()),
                    label if label.starts_with('[') => !label.contains(']'),
                    _ => false,
                };
                return if is_open {
                    Bracket::Closed(at)
                } else {
                    Bracket::Decided
                };
            }
            _ => {}
        }
    }
    Bracket::Open
}

/// How long the code span, or what is in angle brackets, is that starts here: brackets in it are none. Marks without an end
/// stand for themselves.
fn atom(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix('<') {
        let is_tag = rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
        return rest.find(['>', '\n']).filter(|_| is_tag).map_or(1, |end| end + 2);
    }
    let inner = text.trim_start_matches('`');
    let ticks = text.len() - inner.len();
    let mut at = 0;
    while let Some(next) = inner.get(at..).and_then(|rest| rest.find('`')) {
        let run = inner.get(at + next..).unwrap_or_default();
        let length = run.len() - run.trim_start_matches('`').len();
        at += next + length;
        if length == ticks {
            return ticks + at;
        }
    }
    ticks
}

/// Whether this can be the start of a link's destination and title: CommonMark §6.3.
fn may_be_target(text: &str) -> bool {
    let text = text.trim_start_matches(BETWEEN);
    if let Some(quoted) = text.strip_prefix('<') {
        return match find(quoted, |byte| matches!(byte, b'<' | b'>' | b'\n')) {
            Some(end) if quoted.as_bytes().get(end) == Some(&b'>') => {
                may_be_title(quoted.get(end + 1..).unwrap_or_default())
            }
            Some(_) => false,
            None => true,
        };
    }
    let (destination, rest) = text.split_once([' ', '\n', '\t']).unwrap_or((text, ""));
    let mut depth = 0_usize;
    let is_closed = find(destination, |byte| {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return true,
            b')' => depth -= 1,
            _ => {}
        }
        false
    });
    is_closed.is_none() && may_be_title(rest)
}

/// What may stand between the parts of a link: blanks, line ends, and the marks of a quote at the start of a line.
const BETWEEN: [char; 5] = [' ', '\t', '\n', '\r', '>'];

/// The first place where a byte that is not escaped is as wanted.
fn find(text: &str, mut wanted: impl FnMut(u8) -> bool) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let was_escaped = escaped;
        escaped = byte == b'\\' && !was_escaped;
        !was_escaped && byte != b'\\' && wanted(byte)
    })
}

/// Whether this, after a `<`, is an address in angle brackets that has no end yet.
fn may_be_address(rest: &str) -> bool {
    let is_mail = !rest.contains(':');
    rest.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !rest.contains(|character: char| {
            character.is_whitespace() || matches!(character, '<' | '>') || (is_mail && character == '\\')
        })
}

/// Whether this, after a `<`, is a tag that has no end yet, with attributes: CommonMark §6.6. What is within it has no marks.
fn may_be_tag(rest: &str) -> bool {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let attributes = rest.trim_start_matches(is_name);
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic())
        || !attributes.starts_with(|character: char| character.is_ascii_whitespace())
    {
        return false;
    }
    let mut quote = None;
    let mut before = ' ';
    for character in attributes.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if before == '=' => quote = Some(character),
            (None, '=' | '/' | '_' | ':' | '.') => {}
            (None, _) if is_name(character) || character.is_ascii_whitespace() => {}
            (None, _) => return false,
        }
        if !character.is_ascii_whitespace() {
            before = character;
        }
    }
    true
}

/// Whether the run of marks at this place can open emphasis: CommonMark §6.2, and two `~`.
fn may_open(source: &str, at: usize) -> bool {
    let Some(mark) = source.get(at..).and_then(|rest| rest.chars().next()) else {
        return false;
    };
    let head = source.get(..at).unwrap_or_default().trim_end_matches(mark);
    let tail = source.get(at..).unwrap_or_default().trim_start_matches(mark);
    let length = source.len() - head.len() - tail.len();
    let before = head
        .chars()
        .next_back()
        .filter(|character| !character.is_whitespace());
    let Some(after) = tail.chars().next().filter(|character| !character.is_whitespace()) else {
        return tail.is_empty();
    };
    let is_left = after.is_alphanumeric() || !before.is_some_and(char::is_alphanumeric);
    match mark {
        '_' => is_left && !before.is_some_and(char::is_alphanumeric),
        '~' => is_left && length == 2,
        _ => is_left,
    }
}

/// Whether a paragraph, so far, may be a reference definition or a footnote (CommonMark §4.7) or a task's box.
pub(super) fn may_be_definition(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else {
        return false;
    };
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'[' => return false,
            b']' => {
                let after = rest.get(at + 1..).unwrap_or_default();
                return at > 0
                    && (after.trim().is_empty()
                        || after.strip_prefix(':').is_some_and(may_be_definition_target));
            }
            _ if at > 999 => return false,
            _ => {}
        }
    }
    !rest.contains("\n\n")
}

fn may_be_definition_target(text: &str) -> bool {
    let target = text.trim_start();
    if let Some(quoted) = target.strip_prefix('<') {
        return match find(quoted, |byte| matches!(byte, b'<' | b'>' | b'\n')) {
            Some(end) if quoted.as_bytes().get(end) == Some(&b'>') => {
                let rest = quoted.get(end + 1..).unwrap_or_default();
                !rest.starts_with(|character: char| !character.is_whitespace()) && may_be_title(rest)
            }
            Some(_) => false,
            None => true,
        };
    }
    let Some((_, rest)) = target.split_once([' ', '\t', '\n']) else {
        return true;
    };
    may_be_title(rest)
}

/// Whether this can be the start of a link's title, or nothing.
fn may_be_title(rest: &str) -> bool {
    let title = rest.trim_start_matches(BETWEEN);
    let closer = match title.chars().next() {
        None => return true,
        Some('"') => b'"',
        Some('\'') => b'\'',
        Some('(') => b')',
        Some(_) => return false,
    };
    let title = title.get(1..).unwrap_or_default();
    find(title, |byte| byte == closer).is_none_or(|end| {
        let after = title.get(end + 1..).unwrap_or_default();
        after.trim_start_matches(BETWEEN).is_empty()
    })
}
