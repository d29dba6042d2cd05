//! Markdown, the page's only renderer of it, the same on the server and in the browser.
//!
//! A text is split into **top-level pieces** (a paragraph, a list, a code block …). [`render`] renders a whole text at
//! once; [`StreamingMarkdown`] renders a text that grows. Both hold to these rules:
//!
//! - A piece that is closed is rendered once. Only the open tail, the last piece and what follows it, is parsed again,
//!   so what a delta costs does not depend on how long the message is.
//! - At the end the pieces equal those of [`render`], whatever the sizes of the deltas.
//! - The one exception: a piece with a reference whose definition comes later is rendered again, alone
//!   ([`Changes::changed`]).
//! - Pieces stand in the page in parts (`parts`); of a long text those that are far from what is seen are not in the page
//!   (`window`).
//! - While the text grows, a marker that is not decided (a fence's opener, `**`, `[text](`) is not shown, and the text it
//!   stands before is plain (`live`).
//! - Raw HTML is text, links lead to http, https, mailto or relative targets only, and no image is loaded without a click
//!   (`write`, `target`). What the server renders passes a sanitiser as well (`wall`).

mod definitions;
#[cfg(any(test, feature = "hydrate"))]
mod grown;
mod live;
mod parse;
mod parts;
mod stream;
mod target;
pub mod view;
#[cfg(any(test, feature = "ssr"))]
mod wall;
#[cfg_attr(
    not(any(test, feature = "hydrate")),
    expect(dead_code, reason = "only the browser leaves something out")
)]
mod window;
mod write;

#[cfg(test)]
mod tests;

pub use stream::{Changes, StreamingMarkdown};
pub use view::{MarkdownText, MarkdownView, ReadText};
pub use window::MOST as MOST_ELEMENTS;

use std::ops::Range;

use definitions::Definitions;
use parse::parse;

/// One top-level piece of a text, rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes in the source, from the start of its first line, without the blank lines after it.
    pub range: Range<usize>,
    /// Its safe HTML: a block element.
    pub html: String,
}

/// Renders a whole text. `id_prefix` goes before the ids of footnotes and must be unique on the page (such as the id of
/// the block); of other characters than ASCII letters, digits, `-` and `_` it keeps a code.
#[must_use]
pub fn render(source: &str, id_prefix: &str) -> Vec<Piece> {
    let prefix = definitions::id_of(id_prefix);
    let empty = Definitions::default();
    let parsed = parse(source, &empty);
    let mut definitions = Definitions::default();
    for definition in &parsed.definitions {
        definitions.define_link(definition);
    }
    for (index, block) in parsed.blocks.iter().enumerate() {
        for label in parsed.footnotes_of(block) {
            definitions.define_footnote(label, index);
        }
    }
    let scope = |piece| write::Scope {
        prefix: &prefix,
        definitions: &definitions,
        piece,
    };
    parsed
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| Piece {
            range: parsed.trimmed_range_of(block, source),
            html: write::write(parsed.events_of(block), source, &scope(index), None).html,
        })
        .collect()
}

/// How many bytes of a text that broke off are whole: up to the end of its last closed top-level piece. What follows may
/// lie in the middle of a fence or a list.
#[must_use]
pub fn closed_length(source: &str) -> usize {
    let mut text = StreamingMarkdown::new("");
    text.push(source);
    text.pieces().last().map_or(0, |piece| piece.range.end)
}
