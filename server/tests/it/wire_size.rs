//! What goes over a viewer's socket for each byte of content.

use std::time::Duration;

use protocol::Extra;
use protocol::id::{AttemptId, BlockId, NodeId, OccurrenceId};
use protocol::model::{BlockBody, Content, StreamState};
use protocol::op::{AttemptStarted, BlockDelta, BlockStarted, NodeStarted, Op};
use protocol::state::{AttemptReason, Executor, NodeKind, StreamActivity};
use server::run::hub::Delivery;
use server::store::test_support::TestDatabase;
use uuid::Uuid;

use crate::recorder::Owner;

const STREAMS: u64 = 10;
const TOKENS: u64 = 200;
const TOKEN: Duration = Duration::from_millis(10);
const TEXT: &str = "abc ";
/// A frame of up to 64 KiB that a server sends has this much around it (RFC 6455 §5.2).
const HEAD: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn ten_streams_of_one_run_cost_at_most_ten_bytes_for_each_byte_of_content() {
    let database = TestDatabase::new().await;
    let owner = Owner::new("a", database.options.clone()).await;
    let run = owner.queue().await;
    let (writer, _) = owner.begin().await;
    let mut streams = Vec::new();
    for ordinal in 0..u32::try_from(STREAMS).unwrap() {
        let root = NodeId::root(&run);
        let occurrence = OccurrenceId::inner_model_call(&root, ordinal);
        let node_id = NodeId::model(&root, &occurrence);
        let attempt_id = AttemptId::from_uuid(Uuid::now_v7());
        let block_id = BlockId::at(&attempt_id, 0);
        let started = Op::NodeStarted(NodeStarted {
            node_id: node_id.clone(),
            parent_id: Some(root),
            after: Vec::new(),
            kind: NodeKind::Model,
            name: "agent".to_owned(),
            title: String::new(),
            ordinal,
            executor: Executor::Runloom,
            occurrence_id: None,
            extra: Extra::new(),
        });
        let attempt = Op::AttemptStarted(AttemptStarted {
            node_id: node_id.clone(),
            attempt_id: attempt_id.clone(),
            attempt_index: 0,
            reason: AttemptReason::Initial,
            provider: "p".to_owned(),
            model: "m".to_owned(),
            continues_attempt_id: None,
            kept: None,
            extra: Extra::new(),
        });
        let block = Op::BlockStarted(BlockStarted {
            node_id: node_id.clone(),
            attempt_id: attempt_id.clone(),
            block_id: block_id.clone(),
            block_index: 0,
            round: 0,
            body: BlockBody::Text(Content::default()),
            extra: Extra::new(),
        });
        for op in [started, attempt, block] {
            writer.write(op).await;
        }
        streams.push((node_id, attempt_id, block_id));
    }
    writer.flush().await.unwrap();

    // Live: a viewer who is there from the first byte of content on.
    let channel = owner.hub.channel(&run);
    let mut viewer = channel.subscribe();
    let mut clock = tokio::time::interval(TOKEN);
    for token in 0..TOKENS {
        clock.tick().await;
        for (node_id, attempt_id, block_id) in &streams {
            // Each stream says once a second where it is.
            if token % 100 == 0 {
                channel.set_stream(StreamState {
                    run_id: run.clone(),
                    node_id: node_id.clone(),
                    attempt_id: attempt_id.clone(),
                    state: StreamActivity::Streaming,
                    n: 1_790_000_000_000 + token,
                    last_byte_at: Some(1_790_000_000_000),
                    last_content_at: Some(1_790_000_000_000),
                    tokens_per_second: Some(99.4),
                    clock: None,
                    since: None,
                    until: None,
                    attempt_number: None,
                    attempts_max: None,
                    reason: None,
                    to: None,
                });
            }
            let delta = Op::BlockDelta(BlockDelta {
                block_id: block_id.clone(),
                offset: token * TEXT.len() as u64,
                delta: TEXT.to_owned(),
                extra: Extra::new(),
            });
            writer.write(delta).await;
        }
    }
    let last = writer.flush().await.unwrap();
    let (mut bytes, mut seen) = (0, 0);
    while seen < last {
        let Delivery::Frame(frame) = viewer.next().await else {
            panic!("too far behind")
        };
        bytes += HEAD + frame.json.len();
        seen = frame.last_seq.unwrap_or(seen);
    }
    let content = usize::try_from(STREAMS * TOKENS).unwrap() * TEXT.len();
    let ratio = bytes as f64 / content as f64;
    assert!(ratio <= 10.0, "{bytes} bytes for {content}: {ratio:.2}");
    // So many bytes of content for each op that a slower pace would not be the load that is meant.
    assert!(ratio > 5.0, "everything came in one frame: {ratio:.2}");
}
