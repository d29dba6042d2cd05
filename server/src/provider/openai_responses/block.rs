//! One block on the display side, whose text comes in deltas and then once more as a whole.

use crate::provider::{BlockStart, Position, ProviderEvent};

/// A block that is shown at its first content.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Where it is shown, once it is.
    pub(super) position: Option<Position>,
    /// What was streamed so far.
    pub(super) content: String,
    /// Whether its end was given.
    pub(super) ended: bool,
    /// Whether the whole text contradicts what was streamed.
    pub(super) contradicted: bool,
}

impl Block {
    /// Begins the block, where it is not shown yet.
    pub(super) fn begin(
        &mut self,
        kind: BlockStart,
        positions: &mut Position,
        out: &mut Vec<ProviderEvent>,
    ) -> Position {
        if let Some(position) = self.position {
            return position;
        }
        let position = *positions;
        *positions += 1;
        self.position = Some(position);
        out.push(ProviderEvent::BlockStart { position, kind });
        position
    }

    /// Adds text of a block of this kind.
    pub(super) fn show(
        &mut self,
        kind: BlockStart,
        text: &str,
        positions: &mut Position,
        out: &mut Vec<ProviderEvent>,
    ) {
        if text.is_empty() || self.ended {
            return;
        }
        let position = self.begin(kind, positions, out);
        self.content.push_str(text);
        out.push(ProviderEvent::Delta {
            position,
            text: text.to_owned(),
        });
    }

    /// Adds arguments; they are held until the block is shown.
    pub(super) fn show_arguments(&mut self, json: &str, out: &mut Vec<ProviderEvent>) {
        if json.is_empty() || self.ended {
            return;
        }
        self.content.push_str(json);
        if let Some(position) = self.position {
            out.push(ProviderEvent::ArgumentsDelta {
                position,
                json: json.to_owned(),
            });
        }
    }

    /// What the whole text adds to what was streamed. Where it says something else, a contradiction is told, once.
    pub(super) fn rest(&mut self, whole: &str, out: &mut Vec<ProviderEvent>) -> Option<String> {
        if whole.is_empty() || whole == self.content {
            return None;
        }
        if !self.ended
            && let Some(rest) = whole.strip_prefix(self.content.as_str())
        {
            return Some(rest.to_owned());
        }
        if let Some(position) = self.position.filter(|_| !self.contradicted) {
            self.contradicted = true;
            out.push(ProviderEvent::Contradiction {
                position,
                text: whole.to_owned(),
            });
        }
        None
    }

    /// Ends the block, where it is shown and open.
    pub(super) fn end(&mut self, out: &mut Vec<ProviderEvent>) {
        if let Some(position) = self.position.filter(|_| !self.ended) {
            self.ended = true;
            out.push(ProviderEvent::BlockEnd { position });
        }
    }
}
