//! Loading pieces in the browser: one after another, or the one in which a place lies.

use leptos::prelude::*;

use super::{Measure, Pieces, cut, first_cut};
use crate::data::api;
use crate::data::guide::Guide;

/// Of a piece that holds a place so much stands before it: a quarter.
const LEAD: u64 = 4;

impl Pieces {
    pub(super) fn load(self, start: u64, is_before: bool) {
        let Measure { cut: at, step, .. } = self.measure;
        // A piece that is loaded again ends where the next one begins.
        let next = self
            .starts
            .with_value(|starts| starts.iter().find(|known| **known > start).copied())
            .filter(|next| next - start <= step);
        let length = next.map_or(step, |next| next - start);
        let total = self.extent.get_untracked().1;
        let piece = move |text: &str| {
            let is_last = start + text.len() as u64 >= total;
            if is_last || next.is_some() {
                text.len()
            } else {
                cut(text, at)
            }
        };
        self.fetch(start, length, move |start, text| {
            let end = piece(&text);
            self.take(start, text.get(..end).unwrap_or(&text).to_owned(), is_before);
        });
    }

    /// Loads what stands before a byte that no piece was loaded up to.
    pub(super) fn load_before(self, end: u64) {
        let Measure { cut: at, step, .. } = self.measure;
        let begin = self.extent.get_untracked().0;
        let start = end.saturating_sub(step).max(begin);
        self.fetch(start, end - start, move |start, text| {
            let from = if start <= begin {
                0
            } else {
                first_cut(&text, at, text.len() / 2)
            };
            let text = text.get(from..).unwrap_or_default().to_owned();
            self.take(start + from as u64, text, true);
        });
    }

    /// Shows the piece in which a byte lies; what else was shown goes.
    pub(super) fn go(self, guide: Guide, offset: u64) {
        let (begin, total) = self.extent.get_untracked();
        let is_shown = self.shown.with_untracked(|shown| {
            let holds =
                |(start, text): &(u64, String)| (*start..*start + text.len() as u64).contains(&offset);
            shown.iter().any(holds)
        });
        if offset < begin || offset >= total {
            return;
        }
        if is_shown {
            let first = self
                .shown
                .with_untracked(|shown| shown.first().map(|(start, _)| *start));
            guide.leave_out(begin, first.unwrap_or(begin));
            return;
        }
        let Measure { cut: at, step, .. } = self.measure;
        guide.wait();
        let start = offset.saturating_sub(step / LEAD).max(begin);
        self.fetch(start, step, move |start, text| {
            let before = usize::try_from(offset.saturating_sub(start)).unwrap_or(0);
            let from = if start <= begin {
                0
            } else {
                first_cut(&text, at, before)
            };
            let rest = text.get(from..).unwrap_or_default();
            let start = start + from as u64;
            let is_last = start + rest.len() as u64 >= total;
            let end = if is_last { rest.len() } else { cut(rest, at) };
            let piece = rest.get(..end).unwrap_or(rest).to_owned();
            self.shown.set(Vec::new());
            self.take(start, piece, false);
            guide.leave_out(begin, start);
        });
    }

    /// Text from a byte on, from the page itself where it is there. It may begin a few bytes later, at a character.
    fn fetch(self, start: u64, length: u64, then: impl FnOnce(u64, String) + 'static) {
        if self.is_busy.get_untracked() {
            return;
        }
        let local = self.local.get_value().and_then(|local| {
            let mut starts = (0..4).map(|back| start.saturating_sub(back));
            starts.find_map(|start| Some((start, local(start)?)))
        });
        if let Some((start, text)) = local {
            let end = usize::try_from(length).unwrap_or(usize::MAX);
            let end = text.floor_char_boundary(end);
            return then(start, text.get(..end).unwrap_or(&text).to_owned());
        }
        self.is_busy.set(true);
        let address = self.address.get_value();
        leptos::task::spawn_local(async move {
            let loaded = api::content_part(&address, start, length).await;
            // The row may have been closed meanwhile.
            if self.is_busy.try_set(false).is_some() {
                return;
            }
            match loaded {
                Ok((_, text)) if text.is_empty() => {
                    self.failed.set(Some("There is nothing more yet.".to_owned()));
                }
                Ok((start, text)) => {
                    self.failed.set(None);
                    then(start, text);
                }
                Err(problem) => self.failed.set(Some(problem.detail)),
            }
        });
    }
}
