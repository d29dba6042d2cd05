//! What is on the display side: positions, and the run of text that is open.

use crate::provider::{BlockStart, Position, ProviderEvent};

/// Gives positions in the order in which blocks become visible.
#[derive(Debug, Default)]
pub(super) struct Display {
    next_position: Position,
    /// The open run of text.
    text: Option<Position>,
}

impl Display {
    pub(super) fn new_position(&mut self) -> Position {
        let position = self.next_position;
        self.next_position += 1;
        position
    }

    /// Adds to the open run of text, or begins one.
    pub(super) fn show_text(&mut self, text: &str, out: &mut Vec<ProviderEvent>) {
        if text.is_empty() {
            return;
        }
        let position = self.text.unwrap_or_else(|| self.begin(BlockStart::Text, out));
        self.text = Some(position);
        out.push(ProviderEvent::Delta {
            position,
            text: text.to_owned(),
        });
    }

    /// Ends the run of text, where one is open.
    pub(super) fn end_text(&mut self, out: &mut Vec<ProviderEvent>) {
        if let Some(position) = self.text.take() {
            out.push(ProviderEvent::BlockEnd { position });
        }
    }

    /// Adds to the reasoning at `shown`, or begins a block of it.
    pub(super) fn show_reasoning(
        &mut self,
        shown: Option<Position>,
        text: &str,
        out: &mut Vec<ProviderEvent>,
    ) -> Position {
        let position = shown.unwrap_or_else(|| self.begin(BlockStart::Reasoning, out));
        out.push(ProviderEvent::Delta {
            position,
            text: text.to_owned(),
        });
        position
    }

    /// Begins a block of this kind.
    pub(super) fn begin(&mut self, kind: BlockStart, out: &mut Vec<ProviderEvent>) -> Position {
        let position = self.new_position();
        out.push(ProviderEvent::BlockStart { position, kind });
        position
    }
}
