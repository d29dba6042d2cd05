//! Closed pieces, put together in parts: a part is laid out by itself, and comes into the page and leaves it as a whole.

use std::ops::Range;

use super::Piece;

/// A part is full when it has so many pieces,
const PIECES: usize = 16;
/// or so many bytes of source.
const BYTES: usize = 4 * 1024;

/// Neighbouring pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Which pieces, by index.
    pub(super) pieces: Range<usize>,
    /// How many elements it is drawn with.
    pub(super) elements: usize,
    bytes: usize,
}

/// The parts of a text. Where one ends depends on what stands before it alone, so parts that are full never change.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Part>);

impl Parts {
    /// The parts of a text as it is.
    pub(super) fn of(pieces: &[Piece]) -> Self {
        let mut parts = Self::default();
        parts.grow(pieces);
        parts
    }

    /// Takes in the pieces that were closed since the last time.
    pub(super) fn grow(&mut self, pieces: &[Piece]) {
        let known = self.0.last().map_or(0, |last| last.pieces.end);
        for (index, piece) in pieces.iter().enumerate().skip(known) {
            let (bytes, elements) = (piece.range.len(), 1 + elements(&piece.html));
            match self.0.last_mut() {
                Some(last) if last.pieces.len() < PIECES && last.bytes < BYTES => {
                    last.pieces.end = index + 1;
                    last.bytes += bytes;
                    last.elements += elements;
                }
                _ => self.0.push(Part {
                    pieces: index..index + 1,
                    elements: 1 + elements,
                    bytes,
                }),
            }
        }
    }

    /// All of them, in order. All but the last are full.
    pub(super) fn all(&self) -> &[Part] {
        &self.0
    }

    /// How many are full.
    #[cfg(any(test, feature = "hydrate"))]
    pub(super) fn full(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// How many elements a piece is drawn with.
fn elements(html: &str) -> usize {
    let bytes = html.as_bytes();
    let after = bytes.get(1..).unwrap_or_default();
    bytes
        .iter()
        .zip(after)
        .filter(|(byte, next)| **byte == b'<' && **next != b'/')
        .count()
}
