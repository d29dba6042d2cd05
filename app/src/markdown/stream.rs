//! A text that grows: closed pieces, and one open tail.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Piece;
use super::definitions::{Definitions, footnote_key, id_of};
use super::live;
use super::parse::{footnote_labels, parse};
use super::write::{Scope, write};

/// What a step did to the pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The text was not a continuation: all pieces are new ones.
    pub restarted: bool,
    /// The indices of pieces that were closed. They are never touched again, but for `changed`.
    pub closed: Range<usize>,
    /// Older pieces whose reference has now been defined: their HTML is another.
    pub changed: Vec<usize>,
}

/// A text that grows, with its closed pieces and its open tail.
#[derive(Debug)]
pub struct StreamingMarkdown {
    prefix: String,
    source: String,
    pieces: Vec<Piece>,
    /// What to parse for each piece if it must be rendered again.
    texts: Vec<Range<usize>>,
    definitions: Definitions,
    /// The pieces that wait for the definition of a label.
    waiting: BTreeMap<String, Vec<usize>>,
    /// Where the open tail starts: always the start of a line.
    open: usize,
    /// The end of the last line that was looked at.
    seen: usize,
    /// The fence of the code block that the tail consists of, while nothing has closed it.
    fence: Option<Fence>,
    finished: bool,
    parsed_bytes: u64,
}

impl StreamingMarkdown {
    /// An empty text. `id_prefix` is as in [`render`](super::render).
    #[must_use]
    pub fn new(id_prefix: &str) -> Self {
        Self {
            prefix: id_of(id_prefix),
            source: String::new(),
            pieces: Vec::new(),
            texts: Vec::new(),
            definitions: Definitions::default(),
            waiting: BTreeMap::new(),
            open: 0,
            seen: 0,
            fence: None,
            finished: false,
            parsed_bytes: 0,
        }
    }

    /// Adds to the end of the text. After [`finish`](Self::finish) it does nothing.
    pub fn push(&mut self, delta: &str) -> Changes {
        if self.finished || delta.is_empty() {
            return self.unchanged();
        }
        self.source.push_str(delta);
        let end = self.source.rfind('\n').map_or(0, |newline| newline + 1);
        if end <= self.seen || self.fence_stays_open(end) {
            self.seen = self.seen.max(end);
            return self.unchanged();
        }
        self.seen = end;
        self.close(end, false)
    }

    /// Takes the whole text so far. If it does not start with what was known, everything starts over.
    ///
    /// While a text grows only its first and its newest known bytes are compared, so that this costs the same at any length;
    /// at its end all of it is.
    pub fn sync(&mut self, whole: &str, finished: bool) -> Changes {
        let known = self.source.as_str();
        let delta = if finished {
            whole.strip_prefix(known)
        } else {
            whole
                .split_at_checked(known.len())
                .filter(|(old, _)| is_likely_same(old.as_bytes(), known.as_bytes()))
                .map(|(_, delta)| delta)
        };
        let grew = match delta {
            Some(delta) if !self.finished || (delta.is_empty() && finished) => self.push(delta),
            _ => {
                *self = Self {
                    prefix: std::mem::take(&mut self.prefix),
                    ..Self::new("")
                };
                Changes {
                    restarted: true,
                    ..self.push(whole)
                }
            }
        };
        if !finished || self.finished {
            return grew;
        }
        let ended = self.finish();
        let mut changed = grew.changed;
        changed.extend(
            ended
                .changed
                .into_iter()
                .filter(|index| *index < grew.closed.start),
        );
        changed.sort_unstable();
        changed.dedup();
        Changes {
            restarted: grew.restarted,
            closed: grew.closed.start..ended.closed.end,
            changed,
        }
    }

    /// The text has ended: closes the tail.
    pub fn finish(&mut self) -> Changes {
        if self.finished {
            return self.unchanged();
        }
        self.finished = true;
        let changes = self.close(self.source.len(), true);
        self.open = self.source.len();
        changes
    }

    /// The text so far.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The closed pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether the text has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The open tail as HTML: none to a few block elements.
    pub fn tail_html(&mut self) -> String {
        let tail = self.source.get(self.open..).unwrap_or_default();
        if self.finished || tail.is_empty() {
            return String::new();
        }
        let scope = Scope {
            prefix: &self.prefix,
            definitions: &self.definitions,
            piece: self.pieces.len(),
        };
        let (html, parsed_bytes) = live::tail(tail, &scope);
        self.parsed_bytes += parsed_bytes;
        html
    }

    /// How many bytes the parser has read for this text, each as often as it was read.
    #[must_use]
    pub fn parsed_bytes(&self) -> u64 {
        self.parsed_bytes
    }

    fn unchanged(&self) -> Changes {
        Changes {
            closed: self.pieces.len()..self.pieces.len(),
            ..Changes::default()
        }
    }

    /// Whether the tail is an open code block that no line up to `end` closes: then there is nothing to parse.
    fn fence_stays_open(&self, end: usize) -> bool {
        let Some(fence) = &self.fence else { return false };
        let new = self.source.get(self.seen..end).unwrap_or_default();
        !new.lines().any(|line| fence.is_closed_by(line))
    }

    /// Parses the tail up to `end` and closes its blocks, but for the last if more can join it and not `all` shall be closed.
    fn close(&mut self, end: usize, all: bool) -> Changes {
        let source = std::mem::take(&mut self.source);
        let changes = self.close_in(&source, end, all);
        self.source = source;
        changes
    }

    fn close_in(&mut self, source: &str, end: usize, all: bool) -> Changes {
        let open = self.open;
        let tail = source.get(open..end).unwrap_or_default();
        let parsed = parse(tail, &self.definitions);
        self.parsed_bytes += tail.len() as u64;
        let first = self.pieces.len();
        let fence = parsed.last_fenced(tail).map(Fence::open_in);
        let all = all || parsed.last_is_closed(tail, fence == Some(None));
        let mut count = parsed.blocks.len();
        if !all {
            // The last block stays open, and with it those that it must be parsed with.
            count = count.saturating_sub(1);
            while count > 0
                && parsed
                    .blocks
                    .get(count)
                    .is_some_and(|block| parsed.leans_on_previous(block, tail))
            {
                count -= 1;
            }
        }
        self.fence = fence
            .flatten()
            .filter(|_| !all && count + 1 == parsed.blocks.len());
        // What stands before the block that stays open is settled.
        let boundary = match parsed.blocks.get(count) {
            Some(block) if count > 0 => block.start,
            None if all => tail.len(),
            _ => 0,
        };

        let mut settled: Vec<String> = parsed
            .definitions
            .iter()
            .filter(|definition| definition.start < boundary)
            .filter_map(|definition| self.definitions.define_link(definition))
            .collect();
        for (index, block) in parsed.blocks.iter().take(count).enumerate() {
            for label in parsed.footnotes_of(block) {
                settled.extend(self.definitions.define_footnote(label, first + index));
            }
        }

        for (index, block) in parsed.blocks.iter().take(count).enumerate() {
            let range = parsed.range_of(index, tail.len());
            let scope = Scope {
                prefix: &self.prefix,
                definitions: &self.definitions,
                piece: first + index,
            };
            let written = write(parsed.events_of(block), tail, &scope, None);
            let text = tail.get(range.clone()).unwrap_or_default();
            let footnotes = footnote_labels(text).map(footnote_key);
            let labels = parsed
                .unresolved_in(&range)
                .into_iter()
                .chain(written.open_labels)
                .chain(footnotes);
            for label in labels {
                self.waiting.entry(label).or_default().push(first + index);
            }
            let trimmed = parsed.trimmed_range_of(block, tail);
            let from = match self.texts.last().filter(|_| index > 0) {
                _ if !parsed.leans_on_previous(block, tail) => open + range.start,
                Some(text) => text.start,
                None => open,
            };
            self.texts.push(from..open + range.end);
            self.pieces.push(Piece {
                range: open + trimmed.start..open + trimmed.end,
                html: written.html,
            });
        }

        self.open = open + boundary;
        let changed = self.render_again(source, &settled, first);
        Changes {
            restarted: false,
            closed: first..self.pieces.len(),
            changed,
        }
    }

    /// Renders again what waits for these labels. Returns those of the pieces before `first` that look different now.
    fn render_again(&mut self, source: &str, settled: &[String], first: usize) -> Vec<usize> {
        let mut indices: Vec<usize> = settled
            .iter()
            .filter_map(|label| self.waiting.remove(label))
            .flatten()
            .collect();
        indices.sort_unstable();
        indices.dedup();
        let mut changed = Vec::new();
        for index in indices {
            let (Some(piece), Some(range)) = (self.pieces.get_mut(index), self.texts.get(index)) else {
                continue;
            };
            let text = source.get(range.clone()).unwrap_or_default();
            self.parsed_bytes += text.len() as u64;
            let parsed = parse(text, &self.definitions);
            let start = piece.range.start - range.start;
            let Some(block) = parsed.blocks.iter().find(|block| block.start == start) else {
                continue;
            };
            let scope = Scope {
                prefix: &self.prefix,
                definitions: &self.definitions,
                piece: index,
            };
            let html = write(parsed.events_of(block), text, &scope, None).html;
            if html != piece.html {
                piece.html = html;
                if index < first {
                    changed.push(index);
                }
            }
        }
        changed
    }
}

/// Whether two texts of one length have the same beginning and the same end.
fn is_likely_same(one: &[u8], other: &[u8]) -> bool {
    /// Bytes that are compared at each side.
    const SIDE: usize = 512;
    let end = one.len().saturating_sub(SIDE);
    let sides = [0..SIDE.min(one.len()), end..one.len()];
    sides
        .into_iter()
        .all(|side| one.get(side.clone()) == other.get(side))
}

/// The opener of a fenced code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// The fence of the code block that starts this text, unless a line of the text closes it (CommonMark §4.5).
    fn open_in(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (mark, length, info) = Self::run(lines.next()?)?;
        let fence = Self { mark, length };
        let is_fence = length >= 3 && (mark == '~' || !info.contains('`'));
        (is_fence && !lines.any(|line| fence.is_closed_by(line))).then_some(fence)
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::run(line).is_some_and(|(mark, length, rest)| {
            mark == self.mark && length >= self.length && rest.trim_start_matches(' ').is_empty()
        })
    }

    /// The run of fence marks that starts a line, and what follows it.
    fn run(line: &str) -> Option<(char, usize, &str)> {
        let text = line.trim_start_matches(' ');
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        (line.len() - text.len() <= 3).then_some((mark, text.len() - rest.len(), rest))
    }
}
