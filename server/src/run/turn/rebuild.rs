//! Playing the recorded rounds of an attempt again.

use protocol::fold::RunState;
use protocol::id::{AttemptId, NodeId};
use protocol::model::BlockBody;
use protocol::op::Op;
use protocol::state::Retention;

use super::round::Round;
use crate::provider::ProviderEvent;
use crate::run::ops::node_running;
use crate::run::recorder::RunWriter;
use crate::stream::replay;

/// The ops that the execution of these rounds of an attempt has written, or would have; with reasoning that is saved.
/// The state says where a concurrent batch has taken a place between them.
pub(in crate::run) async fn rebuild(
    state: &RunState,
    node_id: &NodeId,
    attempt_id: &AttemptId,
    rounds: Vec<Vec<ProviderEvent>>,
    at: i64,
) -> Vec<Op> {
    let (writer, collected) = RunWriter::collecting(&state.run().run_id);
    let execute = async move {
        let (mut next_index, mut next_ordinal) = (0, 0);
        let count = rounds.len();
        for (events, number) in rounds.into_iter().zip(0_u32..) {
            let is_whole = replay::is_complete(&events);
            let mut round = Round::new(
                &writer,
                node_id,
                attempt_id,
                number,
                next_index,
                next_ordinal,
                Retention::Saved,
            );
            for event in events {
                round.take(event).await;
            }
            if !is_whole {
                break;
            }
            let end = round.complete(at).await;
            (next_index, next_ordinal) = (end.next_index, end.next_ordinal);
            let is_group = |index: u32| {
                let block = state.block_at(attempt_id, index);
                block.is_some_and(|block| matches!(block.body, BlockBody::ParallelGroup { .. }))
            };
            while is_group(next_index) {
                next_index += 1;
            }
            // Where the model was asked again its calls had been run, though nothing says how they ended.
            if (number as usize) + 1 < count {
                for call in end.calls.iter().filter(|call| call.call.parsed.is_ok()) {
                    writer.write(node_running(call.node.id())).await;
                }
            }
        }
    };
    let ((), ops) = tokio::join!(execute, collected.ops());
    ops
}
