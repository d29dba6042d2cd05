//! The last run of text in the tree, while more can follow in it, and what in it is not decided.

use std::ops::Range;

use pulldown_cmark::{Event, Tag};

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
        let end = events.iter().rposition(|spanned| !is_border(spanned))? + 1;
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
        is_open.then_some(Self {
            kind,
            events: start..end,
            start: from,
            end: to,
        })
    }

    pub(super) fn events<'p, 'a>(&self, parsed: &'p Parsed<'a>) -> &'p [Spanned<'a>] {
        parsed.events.get(self.events.clone()).unwrap_or_default()
    }
}

/// Looks through a leaf's events for marks that could still find their end. `text` is what was parsed: `source` up to `cut`,
/// and perhaps a placeholder.
pub(super) fn undecided(events: &[Spanned<'_>], source: &str, text: &str, cut: usize) -> Undecided {
    let mut hidden = Vec::new();
    for (event, range) in events {
        let Event::Text(_) = event else { continue };
        let mark = text.get(range.clone()).unwrap_or_default();
        if range.end > cut || is_escaped(source, range.start) {
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
            b"[" | b"![" => match bracket(source.get(range.end..cut).unwrap_or_default()) {
                Bracket::Decided => {}
                Bracket::Open => hidden.push(range.clone()),
                Bracket::Closed(at) => {
                    hidden.push(range.clone());
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
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
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

/// Whether this can be the start of a link's destination and title: CommonMark §6.3.
fn may_be_target(text: &str) -> bool {
    let text = text.trim_start();
    let (destination, rest) = match text.strip_prefix('<') {
        Some(quoted) => match quoted.find(['>', '\n']) {
            Some(end) => (quoted, quoted.get(end + 1..).unwrap_or_default()),
            None => return true,
        },
        None => text.split_once([' ', '\n', '\t']).unwrap_or((text, "")),
    };
    let opened = destination.matches('(').count();
    let closed = destination.matches(')').count();
    if !text.starts_with('<') && closed > opened {
        return false;
    }
    may_be_title(rest)
}

/// Whether this, after a `<`, is an address in angle brackets that has no end yet.
fn may_be_address(rest: &str) -> bool {
    rest.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !rest.contains(|character: char| character.is_whitespace() || matches!(character, '<' | '>'))
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
    if target.is_empty() {
        return true;
    }
    if target.starts_with('<') && !target.contains(['>', '\n']) {
        return true;
    }
    let Some((_, rest)) = target.split_once([' ', '\t', '\n']) else {
        return true;
    };
    may_be_title(rest)
}

/// Whether this can be the start of a link's title, or nothing.
fn may_be_title(rest: &str) -> bool {
    let title = rest.trim_start();
    let closer = match title.chars().next() {
        None => return true,
        Some(quote @ ('"' | '\'')) => quote,
        Some('(') => ')',
        Some(_) => return false,
    };
    let title = title.get(1..).unwrap_or_default();
    title
        .find(closer)
        .is_none_or(|end| title.get(end + 1..).unwrap_or_default().trim().is_empty())
}
