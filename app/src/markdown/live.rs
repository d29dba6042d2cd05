//! The open tail of a text that grows: what of its end is shown, and how, before it is decided.
//!
//! The source is not edited. The tail is parsed up to a **cut**: a last line of which nothing is decided yet (`-`, `1.`,
//! a fence's opener) is left out, and so is a last run of marks. What stands after an opener that could still take
//! everything with it (a code span, an address) is put as plain text into the parsed tree, where a placeholder stands for
//! it. Other openers that could still find their end (`**`, `[`) are hidden, and what follows keeps the style around it.

mod leaf;
mod line;

use std::borrow::Cow;

use super::parse::{Parsed, parse};
use super::write::{Live, PLACEHOLDER, Scope, is_escaped, without_pipes, write};
use leaf::{Leaf, LeafKind, Undecided};

/// How often the cut may move. Ordinary texts need two or three; beyond, a text is hostile and shown as it is.
const MAX_CUTS: usize = 8;

/// The HTML of the tail, and how many bytes were parsed for it.
pub(super) fn tail(source: &str, scope: &Scope<'_>) -> (String, u64) {
    let mut view = View::of(source);
    let mut parsed_bytes = 0;
    for _ in 0..MAX_CUTS {
        let text = view.text();
        parsed_bytes += text.len() as u64;
        if let Some(html) = view.step(&text, scope) {
            return (html, parsed_bytes);
        }
    }
    let text = view.text();
    let html = write(
        &parse(&text, scope.definitions).events,
        &text,
        scope,
        Some(&view.live),
    )
    .html;
    (html, parsed_bytes + text.len() as u64)
}

/// How much of a tail is shown.
struct View<'s> {
    source: &'s str,
    /// Where the last line starts.
    line: usize,
    /// Where the parsed part ends.
    cut: usize,
    live: Live,
    /// Whether the last marks of the last line have been looked at.
    is_trimmed: bool,
    /// Where the text ends that may stand for a placeholder.
    plain_end: Option<usize>,
}

impl<'s> View<'s> {
    fn of(source: &'s str) -> Self {
        let line = source.rfind('\n').map_or(0, |newline| newline + 1);
        let last = source.get(line..).unwrap_or_default();
        let is_undecided = line::is_undecided(last);
        let cut = if is_undecided {
            line
        } else {
            source.trim_end_matches([' ', '\t', '\r']).len()
        };
        let is_trimmed = is_undecided || cut < source.len();
        Self {
            source,
            line,
            cut,
            live: Live::default(),
            is_trimmed,
            plain_end: None,
        }
    }

    /// What the parser gets to see.
    fn text(&self) -> Cow<'s, str> {
        let shown = self.source.get(..self.cut).unwrap_or_default();
        if self.live.plain.is_none() {
            return Cow::Borrowed(shown);
        }
        let mut text = String::with_capacity(shown.len() + PLACEHOLDER.len_utf8());
        text.push_str(shown);
        text.push(PLACEHOLDER);
        Cow::Owned(text)
    }

    /// Looks for something undecided in the last line of text. Returns the HTML if there is nothing more to cut.
    fn step(&mut self, text: &str, scope: &Scope<'_>) -> Option<String> {
        let parsed = parse(text, scope.definitions);
        if let Some(leaf) = Leaf::open_in(&parsed, text) {
            if self.trims_marks() || self.trims_break() || self.leaves_out_definition(&parsed, &leaf) {
                return None;
            }
            let plain_end = *self.plain_end.get_or_insert(if leaf.kind == LeafKind::Cell {
                leaf.end.min(self.cut)
            } else {
                self.cut
            });
            match leaf::undecided(leaf.events(&parsed), self.source, text, self.cut) {
                Undecided::Cut { at, plain_from } => {
                    self.cut = at;
                    let plain = plain_from.map(|from| self.source.get(from..plain_end).unwrap_or_default());
                    self.live.plain = plain.map(|plain| (at, leaf.plain(plain)));
                    return None;
                }
                Undecided::Hidden(hidden) => self.live.hidden = hidden,
            }
            if leaf.kind == LeafKind::Paragraph {
                self.hide_pipes(&leaf);
            }
        }
        Some(write(&parsed.events, text, scope, Some(&self.live)).html)
    }

    /// Leaves out the marks at the very end, whose meaning the next character decides.
    fn trims_marks(&mut self) -> bool {
        if std::mem::replace(&mut self.is_trimmed, true) {
            return false;
        }
        let line = self.source.get(self.line..).unwrap_or_default();
        let shown = line::without_last_marks(line);
        let cut = if line::is_undecided(shown) {
            self.line
        } else {
            self.line + shown.len()
        };
        std::mem::replace(&mut self.cut, cut) != cut
    }

    /// Leaves out a backslash at the end of a line: with another line after it, it is a break.
    fn trims_break(&mut self) -> bool {
        let shown = self.source.get(..self.cut).unwrap_or_default();
        let after = self.source.get(self.cut..).unwrap_or_default();
        let line = match shown.strip_suffix('\n') {
            Some(line) => line.strip_suffix('\r').unwrap_or(line),
            None if after.starts_with('\r') => shown,
            None => return false,
        };
        let is_break = line.ends_with('\\') && !is_escaped(line, line.len() - 1);
        if is_break {
            self.cut = line.len() - 1;
        }
        is_break
    }

    /// Leaves out a paragraph that may turn out to be a reference definition, which is not shown, or the title of one.
    fn leaves_out_definition(&mut self, parsed: &Parsed<'_>, leaf: &Leaf) -> bool {
        let text = self.source.get(leaf.start..).unwrap_or_default();
        let before = parsed
            .definitions
            .iter()
            .rfind(|definition| definition.start < leaf.start);
        let titled = before
            .and_then(|definition| self.source.get(definition.start..))
            .filter(|source| {
                let end = source.len() - text.len();
                !source.get(..end).unwrap_or_default().contains("\n\n")
            });
        let is_left_out = leaf.kind == LeafKind::Paragraph
            && self.cut > leaf.start
            && [Some(text), titled]
                .into_iter()
                .flatten()
                .any(leaf::may_be_definition);
        if is_left_out {
            // A list's mark with nothing after it is none within a paragraph.
            let marks = self.source.get(self.line..leaf.start);
            let is_alone = marks.is_some_and(line::is_undecided);
            self.cut = if is_alone { self.line } else { leaf.start };
            self.live = Live::default();
        }
        is_left_out
    }

    /// A line that may become a table's head has no pipes until the next line decides; in code only if a pipe starts it.
    fn hide_pipes(&mut self, leaf: &Leaf) {
        let shown = self.source.get(..self.cut).unwrap_or_default();
        let shown_lines = shown.trim_end_matches('\n');
        let start = shown_lines
            .rfind('\n')
            .map_or(0, |newline| newline + 1)
            .max(leaf.start);
        let line = shown_lines.get(start..).unwrap_or_default();
        let pipes = line.match_indices('|').map(|(at, _)| {
            // In a cell a pipe takes one of the backslashes before it.
            let escape = line.get(..at).is_some_and(|before| before.ends_with('\\'));
            start + at - usize::from(escape)..start + at + 1
        });
        self.live.hidden.extend(pipes);
        self.live.hides_in_code = line.trim_start().starts_with('|');
        if self.live.hides_in_code
            && let Some((_, plain)) = &mut self.live.plain
        {
            *plain = without_pipes(plain);
        }
    }
}
