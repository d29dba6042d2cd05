//! Playing the recorded rounds of an attempt again.

use protocol::id::{AttemptId, NodeId, RunId};
use protocol::op::Op;
use protocol::state::Retention;

use super::round::Round;
use crate::provider::ProviderEvent;
use crate::run::ops::node_running;
use crate::run::recorder::RunWriter;
use crate::stream::replay;

/// The ops that the execution of these rounds of an attempt has written, or would have; with reasoning that is saved.
pub(in crate::run) async fn rebuild(
    run_id: &RunId,
    node_id: &NodeId,
    attempt_id: &AttemptId,
    rounds: Vec<Vec<ProviderEvent>>,
    at: i64,
) -> Vec<Op> {
    let (writer, collected) = RunWriter::collecting(run_id);
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
