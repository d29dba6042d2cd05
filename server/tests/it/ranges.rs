//! One content whole, or a range of its bytes.

use protocol::state::{Channel, NodeKind};
use reqwest::header::{ACCEPT_RANGES, CONTENT_RANGE, RANGE};

use crate::harness::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn contents_outputs_and_transcripts_are_given_whole_and_by_range() {
    let server = TestServer::start().await;
    let seen = server.finish("Call several tools at once", "anthropic").await;
    let block = &seen.blocks()[0];
    let content = block.body.content().unwrap().text.clone();
    let node = seen
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Function)
        .unwrap();
    let output = node.outputs[&Channel::Result].text.clone();
    let run = &seen.run().run_id;
    let model = seen
        .nodes()
        .iter()
        .find(|node| node.kind == NodeKind::Model)
        .unwrap();
    let transcript = format!("/api/runs/{run}/transcripts/chat/{}.ndjson", model.node_id);
    let things = [
        (format!("/api/blocks/{}/content", block.block_id), content),
        (
            format!("/api/nodes/{}/output?channel=result", node.node_id),
            output,
        ),
        (transcript.clone(), server.text(&transcript).await),
    ];
    for (path, whole) in things {
        let answer = server.get(&path).await;
        assert_eq!(answer.headers()[ACCEPT_RANGES], "bytes");
        assert_eq!(answer.text().await.unwrap(), whole, "{path}");
        let ask = async |range: &str| {
            let request = server
                .http
                .get(format!("{}{path}", server.base))
                .header(RANGE, range);
            request.send().await.unwrap()
        };
        let length = whole.len();
        for (range, from, to) in [
            ("bytes=0-4".to_owned(), 0, 5),
            ("bytes=5-".to_owned(), 5, length),
            ("bytes=-7".to_owned(), length - 7, length),
            (format!("bytes=3-{}", length * 2), 3, length),
        ] {
            let answer = ask(&range).await;
            assert_eq!(answer.status(), 206, "{path} {range}");
            let told = format!("bytes {from}-{}/{length}", to - 1);
            assert_eq!(answer.headers()[CONTENT_RANGE].to_str().unwrap(), told);
            assert_eq!(
                answer.bytes().await.unwrap(),
                whole.as_bytes()[from..to],
                "{path} {range}"
            );
        }
        let beyond = ask(&format!("bytes={length}-")).await;
        assert_eq!(beyond.status(), 416);
        assert_eq!(
            beyond.headers()[CONTENT_RANGE].to_str().unwrap(),
            format!("bytes */{length}")
        );
        assert_eq!(ask("lines=1-2").await.status(), 200);
    }
    let arguments = server
        .text(&format!("/api/nodes/{}/output?channel=arguments", node.node_id))
        .await;
    assert_eq!(arguments, r#"{"path": "README.md"}"#);
    assert_eq!(
        server
            .text(&format!("/api/nodes/{}/output?channel=log", node.node_id))
            .await,
        ""
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_content_that_still_grows_is_given_as_far_as_it_is() {
    let server = TestServer::start().await;
    server.provider.arm("slow:middle").await;
    let run = server.run("slow", "openai").await;
    let mut viewer = server.watch(&run).await;
    let block = viewer.until_text(&run, "takes its time. ").await.blocks()[0]
        .block_id
        .clone();
    let content = server.text(&format!("/api/blocks/{block}/content")).await;
    assert_eq!(content, "This answer takes its time. ");
    server.provider.open("slow:middle").await;
    viewer.until_end(&run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ops_are_read_in_pages() {
    let server = TestServer::start().await;
    let seen = server.finish("Call several tools at once", "openai").await;
    let run = &seen.run().run_id;
    let all = server.ops(run).await;
    let mut read: Vec<protocol::op::Entry> = Vec::new();
    loop {
        let after = read.len();
        let page = server
            .text(&format!("/api/runs/{run}/ops?after={after}&limit=7"))
            .await;
        let count = page.lines().count();
        assert!(count <= 7);
        read.extend(page.lines().map(|line| serde_json::from_str(line).unwrap()));
        if count == 0 {
            break;
        }
    }
    assert_eq!(read, all);
    assert_eq!(
        all.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        (1..=seen.seq()).collect::<Vec<_>>()
    );
    assert_eq!(
        server
            .text(&format!("/api/runs/{run}/ops?after=18446744073709551615"))
            .await,
        ""
    );
}
