//! Ops of one run that are not committed yet.

use std::collections::HashMap;

use protocol::MAX_OP_TEXT;
use protocol::id::{BlockId, NodeId};
use protocol::op::{BlockDelta, NodeOutput, Op};
use protocol::state::Channel;

/// Ops in order. Deltas of one text are one op, also where deltas of other texts stand between them: those do not
/// touch each other, so that parallel streams cost their viewers no more than the same streams apart. Any other op
/// stays where it is, and nothing is moved over it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    ops: Vec<Op>,
    /// Where the newest delta of a text is, of those after the last op of another kind.
    newest: HashMap<Text, usize>,
    bytes: usize,
    closed: bool,
}

/// What a delta is appended to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Text {
    Block(BlockId),
    Output(NodeId, Channel),
}

impl Pending {
    /// Bytes of text.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Nothing follows: the run is closed after the next commit.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes all ops.
    pub(super) fn drain(&mut self) -> Vec<Op> {
        self.bytes = 0;
        self.newest.clear();
        std::mem::take(&mut self.ops)
    }

    pub(super) fn push(&mut self, op: Op) {
        self.bytes += op.text_bytes();
        match op {
            Op::BlockDelta(delta) => self.push_delta(delta),
            Op::NodeOutput(output) => self.push_output(output),
            op => {
                self.newest.clear();
                self.ops.push(op);
            }
        }
    }

    fn push_delta(&mut self, mut next: BlockDelta) {
        let text = Text::Block(next.block_id.clone());
        if let Some(Op::BlockDelta(last)) = self.newest_of(&text)
            && last.extra.is_empty()
            && next.extra.is_empty()
            && last.offset + last.delta.len() as u64 == next.offset
            && last.delta.len() + next.delta.len() <= MAX_OP_TEXT
        {
            last.delta.push_str(&next.delta);
            return;
        }
        if next.delta.len() <= MAX_OP_TEXT {
            self.ops.push(Op::BlockDelta(next));
        } else {
            let whole = std::mem::take(&mut next.delta);
            for (at, piece) in pieces(&whole) {
                self.ops.push(Op::BlockDelta(BlockDelta {
                    offset: next.offset + at,
                    delta: piece.to_owned(),
                    ..next.clone()
                }));
            }
        }
        self.newest.insert(text, self.ops.len() - 1);
    }

    fn push_output(&mut self, mut next: NodeOutput) {
        let text = Text::Output(next.node_id.clone(), next.channel);
        if let Some(Op::NodeOutput(last)) = self.newest_of(&text)
            && last.extra.is_empty()
            && next.extra.is_empty()
            && last.offset + last.text.len() as u64 == next.offset
            && last.text.len() + next.text.len() <= MAX_OP_TEXT
        {
            last.text.push_str(&next.text);
            return;
        }
        if next.text.len() <= MAX_OP_TEXT {
            self.ops.push(Op::NodeOutput(next));
        } else {
            let whole = std::mem::take(&mut next.text);
            for (at, piece) in pieces(&whole) {
                self.ops.push(Op::NodeOutput(NodeOutput {
                    offset: next.offset + at,
                    text: piece.to_owned(),
                    ..next.clone()
                }));
            }
        }
        self.newest.insert(text, self.ops.len() - 1);
    }

    /// The newest delta of a text, if another may be joined to it.
    fn newest_of(&mut self, text: &Text) -> Option<&mut Op> {
        let place = *self.newest.get(text)?;
        self.ops.get_mut(place)
    }
}

/// Cuts a text into pieces that one op may carry, each with its place in bytes.
fn pieces(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let (piece, _) = rest.split_at(rest.floor_char_boundary(MAX_OP_TEXT));
        let place = at as u64;
        at += piece.len();
        Some((place, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Extra;
    use protocol::id::{AttemptId, RunId};
    use protocol::op::BlockFinished;
    use protocol::state::BlockStatus;
    use uuid::Uuid;

    fn delta(block: u32, offset: u64, delta: &str) -> Op {
        let attempt = AttemptId::from_uuid(Uuid::from_u128(1));
        let block_id = BlockId::at(&attempt, block);
        Op::BlockDelta(BlockDelta {
            block_id,
            offset,
            delta: delta.to_owned(),
            extra: Extra::new(),
        })
    }

    fn output(offset: u64, text: &str) -> Op {
        Op::NodeOutput(NodeOutput {
            node_id: NodeId::root(&RunId::from_uuid(Uuid::from_u128(2))),
            channel: Channel::Log,
            offset,
            text: text.to_owned(),
            extra: Extra::new(),
        })
    }

    fn pushed(ops: Vec<Op>) -> Vec<Op> {
        let mut pending = Pending::default();
        ops.into_iter().for_each(|op| pending.push(op));
        pending.drain()
    }

    #[test]
    fn consecutive_deltas_of_one_block_are_one_op() {
        assert_eq!(
            pushed(vec![delta(0, 0, "a"), delta(0, 1, "b")]),
            [delta(0, 0, "ab")]
        );
    }

    #[test]
    fn deltas_of_several_texts_are_one_op_each_however_they_alternate() {
        let ops = vec![
            delta(0, 0, "a"),
            delta(1, 0, "b"),
            delta(0, 1, "c"),
            output(0, "x"),
            delta(1, 1, "d"),
            output(1, "y"),
        ];
        assert_eq!(
            pushed(ops),
            [delta(0, 0, "ac"), delta(1, 0, "bd"), output(0, "xy")]
        );
    }

    #[test]
    fn deltas_are_not_merged_over_another_kind_of_op_or_a_hole() {
        let end = Op::BlockFinished(BlockFinished {
            block_id: BlockId::at(&AttemptId::from_uuid(Uuid::from_u128(1)), 1),
            status: BlockStatus::Complete,
            bytes: 1,
            sha256: String::new(),
            extra: Extra::new(),
        });
        let ops = vec![delta(0, 0, "a"), end, delta(0, 1, "c"), delta(0, 5, "d")];
        assert_eq!(pushed(ops.clone()), ops);
        let mut pending = Pending::default();
        pending.push(delta(0, 0, "a"));
        assert_eq!(pending.drain(), [delta(0, 0, "a")]);
        pending.push(delta(0, 1, "b"));
        assert_eq!(pending.drain(), [delta(0, 1, "b")], "over a commit neither");
    }

    #[test]
    fn long_text_is_several_ops_that_end_at_characters() {
        let text = "é".repeat(MAX_OP_TEXT);
        let ops = pushed(vec![delta(0, 0, &format!("a{text}"))]);
        let mut joined = String::new();
        for op in &ops {
            let Op::BlockDelta(op) = op else {
                panic!("another op")
            };
            assert!(op.delta.len() <= MAX_OP_TEXT);
            assert_eq!(op.offset, joined.len() as u64);
            joined.push_str(&op.delta);
        }
        assert_eq!(joined, format!("a{text}"));
    }
}
