//! What must hold at each moment while a text grows.

use crate::markdown::{Piece, StreamingMarkdown, render};

/// A text that grows, looked at after each delta.
pub(super) struct Growth<'t> {
    text: &'t str,
    sent: usize,
    streaming: StreamingMarkdown,
    known: Vec<Piece>,
    /// What a reader saw last.
    seen: String,
    /// How often closed pieces were rendered again.
    again: usize,
    look: Look,
}

/// What must not disappear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing that a reader sees.
    Everything,
    /// Anything may. In a text without sense a mark may find itself in a code span that never ends, and outside of it again
    /// at the end of its paragraph.
    Nothing,
}

impl<'t> Growth<'t> {
    pub(super) fn of(text: &'t str, look: Look) -> Self {
        Self {
            look,
            text,
            sent: 0,
            streaming: StreamingMarkdown::new("p"),
            known: Vec::new(),
            seen: String::new(),
            again: 0,
        }
    }

    /// Grows by so many bytes, and by what is left of a character.
    pub(super) fn step(&mut self, bytes: usize) {
        let from = self.sent;
        let mut end = (from + bytes).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.sent = end;
        let changes = self.streaming.push(&self.text[from..end]);
        let at = &self.text[..end];
        assert_eq!(self.streaming.source(), at, "the source is never edited");
        assert!(!changes.restarted);
        assert_eq!(changes.closed, self.known.len()..self.streaming.pieces().len());
        for (index, piece) in self.known.iter().enumerate() {
            let now = &self.streaming.pieces()[index];
            let is_the_exception =
                changes.changed.contains(&index) && refers(&self.text[piece.range.clone()]);
            assert!(
                piece == now || is_the_exception,
                "piece {index} changed at {at:?}"
            );
        }
        assert!(
            changes.changed.is_empty() || has_definition(at),
            "pieces were rendered again without a definition at {at:?}"
        );
        self.again += changes.changed.len();
        self.known = self.streaming.pieces().to_vec();
        self.look(from, !changes.changed.is_empty());
    }

    /// Nothing that a reader sees disappears, marks included.
    fn look(&mut self, from: usize, is_defined: bool) {
        let tail = self.streaming.tail_html();
        let html = self.known.iter().map(|piece| piece.html.as_str());
        let now = visible(&html.chain([tail.as_str()]).collect::<String>());
        // A reference within what is still open is found at its definition, too.
        let is_defined = is_defined || lines_around(&self.text[..self.sent], from).contains("]:");
        assert!(
            self.look == Look::Nothing || is_defined || is_within(&self.seen, &now),
            "{:?} is no part of {now:?} at {:?}",
            self.seen,
            &self.text[..self.sent]
        );
        self.seen = now;
    }

    /// Ends the text. Gives how often closed pieces were rendered again.
    pub(super) fn end(mut self) -> usize {
        while self.sent < self.text.len() {
            self.step(self.text.len());
        }
        let changes = self.streaming.finish();
        self.again += changes.changed.len();
        assert_eq!(self.streaming.tail_html(), "");
        assert_eq!(
            self.streaming.pieces(),
            render(self.text, "p"),
            "the end is not what one render makes of {:?}",
            self.text
        );
        self.again
    }
}

/// Grows a text by deltas of these sizes, the last of them again and again.
pub(super) fn grow(text: &str, sizes: impl IntoIterator<Item = usize>) -> usize {
    grow_looking(text, Look::Everything, sizes)
}

pub(super) fn grow_looking(text: &str, look: Look, sizes: impl IntoIterator<Item = usize>) -> usize {
    let mut growth = Growth::of(text, look);
    let mut sizes = sizes.into_iter();
    let mut size = 1;
    while growth.sent < text.len() {
        size = sizes.next().unwrap_or(size).max(1);
        growth.step(size);
    }
    growth.end()
}

/// Sizes of deltas that are the same for a seed: most of them small.
pub(super) fn sizes(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let most = if state & 0x300 == 0 { 80 } else { 9 };
        1 + (state >> 32) as usize % most
    })
}

/// Whether a piece may wait for a definition.
fn refers(source: &str) -> bool {
    source.contains('[')
}

fn has_definition(source: &str) -> bool {
    source.contains("]:")
}

/// The last three lines before a place, and what follows it.
fn lines_around(text: &str, from: usize) -> &str {
    let start = text[..from].rmatch_indices('\n').nth(3).map_or(0, |(at, _)| at);
    &text[start..]
}

/// What a reader sees, without blanks.
fn visible(html: &str) -> String {
    // The words on a code block's button and on an image's chip are ours.
    let html = html.replace(">Copy</button>", ">").replace("<b>Image</b>", "");
    let mut text = String::new();
    let mut in_tag = false;
    for character in html.chars() {
        match character {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag || character.is_whitespace() => {}
            _ => text.push(character),
        }
    }

    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&nbsp;", "").replace("&amp;", "&")
}

fn is_within(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars()
        .all(|wanted| rest.any(|character| character == wanted))
}
