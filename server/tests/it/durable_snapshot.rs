//! `nodes.metadata.stream.snapshot`: a model node's content, kept beside rows and journal.

use protocol::digest::sha256;
use protocol::fold::RunState;
use protocol::model::{Attempt, Block, BlockBody};
use protocol::state::NodeKind;
use serde_json::Value;
use server::store::batch::durable::WHOLE_BYTES;

use crate::harness::TestServer;
use crate::states::text;

/// The durable snapshot of the run's model node.
async fn durable(server: &TestServer, state: &RunState) -> Value {
    let node = state
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Model)
        .unwrap();
    let (metadata,): (String,) = sqlx::query_as("select metadata::text from nodes where node_id = $1")
        .bind(node.node_id.as_str())
        .fetch_one(server.execution.store().pool())
        .await
        .unwrap();
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["stream"]["snapshot"].clone()
}

fn read<T: serde::de::DeserializeOwned>(snapshot: &Value, name: &str) -> Vec<T> {
    serde_json::from_value(snapshot[name].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_written_at_the_end_of_a_round_and_of_the_attempt() {
    let server = TestServer::start().await;
    server.provider.arm("welcome:after-search").await;
    let run = server.run("Show me what Runloom does", "anthropic").await;
    let mut viewer = server.watch(&run).await;
    server.provider.reached("welcome:after-search").await;
    let calls = |state: &RunState| {
        let ended =
            |node: &&protocol::model::Node| node.kind == NodeKind::Function && node.state.end().is_some();
        state.nodes().iter().filter(ended).count()
    };
    let seen = viewer.until(&run, |state| calls(state) == 2).await.clone();
    let after_rounds = durable(&server, &seen).await;
    let blocks: Vec<Block> = read(&after_rounds, "blocks");
    let tool_refs = blocks
        .iter()
        .filter(|block| matches!(block.body, BlockBody::ToolRef(_)));
    assert_eq!(tool_refs.count(), 2, "both rounds that have ended are in it");
    for block in &blocks {
        assert_eq!(Some(block), seen.block(&block.block_id));
    }

    server.provider.open("welcome:after-search").await;
    let seen = viewer.until_end(&run).await.clone();
    let whole = durable(&server, &seen).await;
    assert_eq!(whole["schema_version"], 1);
    let expected: Vec<&Block> = seen.blocks_of(&seen.attempts()[0].attempt_id).collect();
    assert_eq!(
        read::<Block>(&whole, "blocks").iter().collect::<Vec<_>>(),
        expected
    );
    assert_eq!(read::<Attempt>(&whole, "attempts"), seen.attempts());
    server.assert_same(&seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_for_which_there_is_no_room_stands_in_it_by_length_and_hash() {
    let server = TestServer::start().await;
    let seen = server.finish("long characters=60000", "openai").await;
    let whole = text(&seen);
    assert!(whole.len() > WHOLE_BYTES);
    let snapshot = durable(&server, &seen).await;
    assert!(snapshot.to_string().len() < WHOLE_BYTES);
    let blocks: Vec<Block> = read(&snapshot, "blocks");
    let content = blocks.last().unwrap().body.content().unwrap();
    let reference = content.content_ref.as_ref().unwrap();
    assert_eq!(reference.bytes, whole.len() as u64);
    assert_eq!(reference.sha256, sha256(whole.as_bytes()));
}
