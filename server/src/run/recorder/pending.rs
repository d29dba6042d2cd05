//! Ops of one run that are not committed yet.

use protocol::MAX_OP_TEXT;
use protocol::op::{BlockDelta, NodeOutput, Op};

/// Ops in order; consecutive deltas of one text are one.
#[derive(Debug, Default)]
pub(super) struct Pending {
    ops: Vec<Op>,
    bytes: usize,
    closed: bool,
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
        std::mem::take(&mut self.ops)
    }

    pub(super) fn push(&mut self, op: Op) {
        self.bytes += op.text_bytes();
        match op {
            Op::BlockDelta(delta) => self.push_delta(delta),
            Op::NodeOutput(output) => self.push_output(output),
            op => self.ops.push(op),
        }
    }

    fn push_delta(&mut self, mut next: BlockDelta) {
        if let Some(Op::BlockDelta(last)) = self.ops.last_mut()
            && last.block_id == next.block_id
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
            return;
        }
        let text = std::mem::take(&mut next.delta);
        for (at, piece) in pieces(&text) {
            self.ops.push(Op::BlockDelta(BlockDelta {
                offset: next.offset + at,
                delta: piece.to_owned(),
                ..next.clone()
            }));
        }
    }

    fn push_output(&mut self, mut next: NodeOutput) {
        if let Some(Op::NodeOutput(last)) = self.ops.last_mut()
            && last.node_id == next.node_id
            && last.channel == next.channel
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
            return;
        }
        let text = std::mem::take(&mut next.text);
        for (at, piece) in pieces(&text) {
            self.ops.push(Op::NodeOutput(NodeOutput {
                offset: next.offset + at,
                text: piece.to_owned(),
                ..next.clone()
            }));
        }
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
    use protocol::id::{AttemptId, BlockId};
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
    fn deltas_are_not_merged_over_another_op_or_a_hole() {
        let ops = vec![
            delta(0, 0, "a"),
            delta(1, 0, "b"),
            delta(0, 1, "c"),
            delta(0, 5, "d"),
        ];
        assert_eq!(pushed(ops.clone()), ops);
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
