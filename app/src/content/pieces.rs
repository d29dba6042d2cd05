//! The rest of a long text behind its beginning, piece by piece: loaded when it is asked for, and dropped when it is far
//! away, so that neither the page nor its memory grows with the text. Everything that was dropped can be loaded again.

#[cfg(feature = "hydrate")]
mod browser;

use std::sync::Arc;

use leptos::prelude::*;
use protocol::state::Channel;

#[cfg(feature = "hydrate")]
use crate::data::guide::Guide;
use crate::ui::dynamic::{dynamic, dynamic_list, dynamic_view, handler, memo};
use crate::ui::format;

/// How a text is cut and how much of it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Where pieces end.
    pub cut: Cut,
    /// Bytes of one piece.
    pub step: u64,
    /// So many pieces are in the page at once.
    pub most: usize,
}

/// Where a piece of a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// At the end of a line, where there is one.
    Line,
    /// At the end of a paragraph, else of a line.
    Paragraph,
}

/// Markdown, of which each piece makes many elements.
pub const MARKDOWN: Measure = Measure {
    cut: Cut::Paragraph,
    step: 16 * 1024,
    most: 1,
};

/// Plain text.
pub const PLAIN: Measure = Measure {
    cut: Cut::Line,
    step: 128 * 1024,
    most: 4,
};

/// Plain text of which each line may make elements, or have its colours.
pub const CODE: Measure = Measure {
    cut: Cut::Line,
    step: 32 * 1024,
    most: 8,
};

/// How much of a text, the end of which is not here, makes a piece: it ends in the second half of the text.
pub fn cut(text: &str, at: Cut) -> usize {
    let half = text.len() / 2;
    let paragraph = text.rfind("\n\n").map(|end| end + 2).filter(|&end| end > half);
    let line = text.rfind('\n').map(|end| end + 1).filter(|&end| end > half);
    let wanted = match at {
        Cut::Paragraph => paragraph.or(line),
        Cut::Line => line,
    };
    wanted.unwrap_or(text.len())
}

/// Where a piece begins that is read from somewhere within: after the first end of a paragraph or line, at most so far in.
#[cfg_attr(
    not(any(feature = "hydrate", test)),
    expect(dead_code, reason = "only the browser goes into the middle of a text")
)]
fn first_cut(text: &str, at: Cut, most: usize) -> usize {
    let text = text.get(..text.floor_char_boundary(most)).unwrap_or(text);
    let paragraph = text.find("\n\n").map(|end| end + 2);
    let line = text.find('\n').map(|end| end + 1);
    let wanted = match at {
        Cut::Paragraph => paragraph.or(line),
        Cut::Line => line,
    };
    wanted.unwrap_or(0)
}

/// Gives text from a byte on that is in the page already; none where it has to be fetched.
pub type Local = Arc<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// Draws a piece that begins at a byte.
pub type Draw = Arc<dyn Fn(u64, String) -> AnyView + Send + Sync>;

/// What is loaded of a text. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Pieces {
    address: StoredValue<String>,
    /// How much stands before the first piece, and how much there is.
    extent: Signal<(u64, u64)>,
    local: StoredValue<Option<Local>>,
    measure: Measure,
    /// The pieces in the page, each with its first byte.
    shown: RwSignal<Vec<(u64, String)>>,
    /// Where pieces begin, as far as they were ever loaded.
    starts: StoredValue<Vec<u64>>,
    is_busy: RwSignal<bool>,
    failed: RwSignal<Option<String>>,
}

impl Pieces {
    /// Nothing is loaded yet. `address` gives the whole and any range of it; `extent` says how much stands before the
    /// first piece, and how much there is.
    pub fn new(address: String, extent: Signal<(u64, u64)>, measure: Measure) -> Self {
        Self {
            address: StoredValue::new(address),
            extent,
            local: StoredValue::new(None),
            measure,
            shown: RwSignal::new(Vec::new()),
            starts: StoredValue::new(Vec::new()),
            is_busy: RwSignal::new(false),
            failed: RwSignal::new(None),
        }
    }

    /// The same, for a text that is in the page as a whole or in part.
    pub fn with_local(self, local: Local) -> Self {
        self.local.set_value(Some(local));
        self
    }

    /// The byte after the last one in the page.
    fn end(self) -> u64 {
        let end = self
            .shown
            .with(|shown| shown.last().map(|(start, text)| start + text.len() as u64));
        end.unwrap_or_else(|| self.extent.get().0)
    }

    /// The bytes between the beginning of the text and the first piece in the page.
    fn dropped(self) -> u64 {
        let first = self.shown.with(|shown| shown.first().map(|(start, _)| *start));
        first.map_or(0, |first| first.saturating_sub(self.extent.get().0))
    }

    /// Loads the piece after the last one.
    fn later(self) {
        let start = untrack(|| self.end());
        self.load(start, false);
    }

    /// Loads the piece before the first one again, or for the first time where a place far inside was gone to.
    fn earlier(self) {
        let first = self
            .shown
            .with_untracked(|shown| shown.first().map(|(start, _)| *start));
        let Some(first) = first else { return };
        let known = self
            .starts
            .with_value(|starts| starts.iter().rev().find(|start| **start < first).copied());
        match known.filter(|start| first - start <= self.measure.step) {
            Some(start) => self.load(start, true),
            None => self.load_before(first),
        }
    }

    /// Follows where the page is led: a place of this text is loaded.
    pub fn follow(self, subject: String, channel: Option<Channel>) -> Self {
        #[cfg(feature = "hydrate")]
        {
            let guide = Guide::use_context();
            crate::ui::dynamic::effect(move || {
                if let Some(place) = guide.place_in(&subject, channel) {
                    untrack(|| self.go(guide, place.offset));
                }
            });
        }
        #[cfg(not(feature = "hydrate"))]
        let _ = (self, subject, channel);
        self
    }

    /// Takes in a piece, and drops what is furthest from it.
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser loads")
    )]
    fn take(self, start: u64, text: String, is_before: bool) {
        self.starts.update_value(|starts| {
            if let Err(place) = starts.binary_search(&start) {
                starts.insert(place, start);
            }
        });
        let most = self.measure.most;
        self.shown.update(|shown| {
            if is_before {
                shown.insert(0, (start, text));
                shown.truncate(most);
            } else {
                shown.push((start, text));
                if shown.len() > most {
                    shown.remove(0);
                }
            }
        });
    }

    #[cfg(not(feature = "hydrate"))]
    fn load(self, _: u64, _: bool) {
        let _ = self.local;
    }

    #[cfg(not(feature = "hydrate"))]
    fn load_before(self, _: u64) {}
}

/// The pieces that are in the page, with a way back to those that were dropped.
#[component]
pub fn PieceList(
    /// What is loaded.
    pieces: Pieces,
    /// Draws one of them.
    draw: Draw,
) -> impl IntoView {
    let dropped = memo(move || pieces.dropped());
    let back = dynamic_view(move || {
        (dropped.get() > 0).then(|| {
            view! {
                <span class="io__more">
                    <span class="num">{dynamic(move || format!("{} before this", format::bytes(dropped.get())))}</span>
                    <button type="button" class="btn btn--sm" on:click=handler(move |_| pieces.earlier())>
                        "Show earlier part"
                    </button>
                </span>
            }
        })
    });
    view! {
        {back}
        {dynamic_list(move || pieces.shown.get(), |(start, _)| *start, move |(start, text)| draw(start, text))}
    }
}

/// How much is shown of how much, and the ways to the rest.
#[component]
pub fn PieceControls(
    /// What is loaded.
    pieces: Pieces,
) -> impl IntoView {
    let words = dynamic(move || {
        let (end, (before, total)) = (pieces.end(), pieces.extent.get());
        let dropped = pieces.dropped();
        if dropped > 0 {
            let from = format::bytes(before + dropped);
            format!("{from} to {} of {}", format::bytes(end), format::bytes(total))
        } else {
            format!("{} of {}", format::bytes(end), format::bytes(total))
        }
    });
    let has_more = memo(move || pieces.end() < pieces.extent.get().1);
    let address = pieces.address.get_value();
    let more = dynamic_view(move || {
        has_more.get().then(|| {
            view! {
                <button
                    type="button"
                    class="btn btn--sm"
                    aria-busy=dynamic(move || pieces.is_busy.get().to_string())
                    on:click=handler(move |_| pieces.later())
                >
                    "Load more"
                </button>
            }
        })
    });
    view! {
        <div class="io__more">
            <span class="num">{words}</span>
            {dynamic_view(move || pieces.failed.get().map(|failed| view! { <span role="alert">{failed}</span> }))}
            {more}
            <a class="btn btn--quiet btn--sm" href=address.clone() target="_blank" rel="external">"Open whole"</a>
            <a class="btn btn--quiet btn--sm" href=address.clone() download=true rel="external">"Download"</a>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_ends_at_a_paragraph_or_line_of_its_second_half() {
        assert_eq!(cut("one\n\ntwo\n\nth", Cut::Paragraph), 10);
        assert_eq!(cut("one\n\ntwo two\nth", Cut::Paragraph), 13);
        assert_eq!(cut("one\n\ntwo two\nth", Cut::Line), 13);
        assert_eq!(cut("o\nlong long line", Cut::Line), 16);
        assert_eq!(cut("", Cut::Paragraph), 0);
    }

    #[test]
    fn a_piece_from_the_middle_begins_after_an_end_before_its_place() {
        assert_eq!(first_cut("x\none\n\ntwo", Cut::Paragraph, 9), 7);
        assert_eq!(first_cut("x\none\n\ntwo", Cut::Line, 9), 2);
        assert_eq!(first_cut("x\none\n\ntwo", Cut::Paragraph, 6), 2);
        assert_eq!(first_cut("éé\n", Cut::Line, 1), 0);
    }
}
