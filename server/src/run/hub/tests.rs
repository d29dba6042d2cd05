use super::*;
use uuid::Uuid;

fn frame(text: &str) -> ServerFrame {
    ServerFrame::Error {
        run_id: None,
        code: "test".to_owned(),
        detail: text.to_owned(),
    }
}

fn hub_and_channel() -> (Hub, Arc<Channel>) {
    let hub = Hub::default();
    let channel = hub.channel(&RunId::from_uuid(Uuid::from_u128(1)));
    (hub, channel)
}

#[tokio::test(start_paused = true)]
async fn a_viewer_gets_every_frame_after_its_subscription_in_order() {
    let (_hub, channel) = hub_and_channel();
    channel.publish(&frame("before"), None);
    let mut subscription = channel.subscribe();
    for number in 0..3 {
        channel.publish(&frame(&number.to_string()), Some((number, number)));
    }
    for number in 0..3 {
        let Delivery::Frame(frame) = subscription.next().await else {
            panic!("lagged")
        };
        assert_eq!(frame.first_seq, Some(number));
    }
}

#[tokio::test(start_paused = true)]
async fn a_viewer_too_many_bytes_behind_is_told_and_goes_on_from_now() {
    let (_hub, channel) = hub_and_channel();
    let mut slow = channel.subscribe();
    let text = "x".repeat(64 * 1024);
    for _ in 0..70 {
        channel.publish(&frame(&text), None);
    }
    assert!(matches!(slow.next().await, Delivery::Lagged));
    channel.publish(&frame("now"), None);
    let Delivery::Frame(now) = slow.next().await else {
        panic!("lagged")
    };
    assert!(String::from_utf8_lossy(&now.json).contains("now"));
}

#[tokio::test(start_paused = true)]
async fn a_viewer_too_long_behind_is_told() {
    let (_hub, channel) = hub_and_channel();
    let mut slow = channel.subscribe();
    channel.publish(&frame("old"), None);
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(matches!(slow.next().await, Delivery::Lagged));
}

#[test]
fn a_channel_that_nobody_holds_is_forgotten() {
    let hub = Hub::default();
    for number in 0..1_000_u128 {
        drop(hub.channel(&RunId::from_uuid(Uuid::from_u128(number))));
    }
    assert!(lock(&hub.channels).len() <= 66);
}

fn entry(seq: u64) -> Entry {
    Entry {
        run_id: RunId::from_uuid(Uuid::from_u128(1)),
        generation: 1,
        seq,
        at: 0,
        op: protocol::op::Op::Withheld(protocol::op::Withheld::default()),
    }
}

fn stream(n: u64, state: protocol::state::StreamActivity) -> StreamState {
    let run_id = RunId::from_uuid(Uuid::from_u128(1));
    StreamState {
        node_id: NodeId::root(&run_id),
        run_id,
        attempt_id: protocol::id::AttemptId::from_uuid(Uuid::from_u128(2)),
        state,
        n,
        last_byte_at: None,
        last_content_at: None,
        tokens_per_second: None,
        clock: None,
        since: None,
        until: None,
        attempt_number: None,
        attempts_max: None,
        reason: None,
        to: None,
    }
}

/// The first and last `seq` of the frames that wait.
fn waiting(subscription: &mut Subscription) -> Vec<(Option<u64>, Option<u64>)> {
    std::iter::from_fn(|| match subscription.take() {
        Some(Delivery::Frame(frame)) => Some((frame.first_seq, frame.last_seq)),
        Some(Delivery::Lagged) => panic!("lagged"),
        None => None,
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn each_op_is_published_once_whoever_comes_with_it() {
    let (_hub, channel) = hub_and_channel();
    let mut subscription = channel.subscribe();
    assert_eq!(channel.publish_after(4), 4);
    assert_eq!(channel.publish_after(9), 4, "the first viewer's word counts");
    assert_eq!(
        channel.publish_after(2),
        4,
        "who has read less is told what is not published any more"
    );
    channel.publish_ops((3..=6).map(entry));
    channel.publish_ops((5..=6).map(entry));
    channel.publish_ops((5..=8).map(entry));
    assert_eq!(
        waiting(&mut subscription),
        [(Some(5), Some(6)), (Some(7), Some(8))]
    );
    assert_eq!(channel.last_seq(), Some(8));
}

#[tokio::test(start_paused = true)]
async fn a_channel_has_one_reader_and_only_where_nobody_here_writes_it_is_read() {
    let (hub, channel) = hub_and_channel();
    assert_eq!(hub.read_channels().len(), 0, "nobody reads it yet");
    let alarm = channel.become_reader().expect("the first one");
    assert!(channel.become_reader().is_none());
    assert_eq!(hub.read_channels().len(), 1);
    let ownership = channel.own();
    let second = channel.own();
    assert_eq!(hub.read_channels().len(), 0);
    drop(ownership);
    assert!(channel.is_owned(), "by the second one");
    drop(second);
    alarm.notified().await;
    assert_eq!(hub.read_channels().len(), 1);
    drop(channel);
    tokio::time::timeout(Duration::from_secs(1), alarm.notified())
        .await
        .expect("the reader learns that nobody holds the channel any more");
}

#[tokio::test(start_paused = true)]
async fn what_a_foreign_stream_does_is_shown_when_it_is_newer_and_the_run_is_not_written_here() {
    use protocol::state::StreamActivity::{Settled, Silent, Streaming};
    let (hub, channel) = hub_and_channel();
    let run = channel.run_id().clone();
    let shown = |hub: &Hub| hub.streams(&run).first().map(|stream| (stream.n, stream.state));
    channel.set_foreign_stream(stream(2, Streaming));
    channel.set_foreign_stream(stream(1, Silent));
    assert_eq!(shown(&hub), Some((2, Streaming)));
    let ownership = channel.own();
    assert_eq!(shown(&hub), None, "a new owner begins with nothing");
    channel.set_foreign_stream(stream(3, Settled));
    assert_eq!(shown(&hub), None);
    drop(ownership);
}

#[tokio::test(start_paused = true)]
async fn the_same_state_again_and_again_goes_out_once_in_two_seconds_and_a_change_at_once() {
    use protocol::state::StreamActivity::{Settled, Silent, Streaming};
    let (hub, channel) = hub_and_channel();
    let next = async || {
        let states = tokio::time::timeout(Duration::ZERO, hub.outgoing().next()).await;
        states.map(|states| states.iter().map(|stream| stream.n).collect::<Vec<_>>())
    };
    for n in 1..=3 {
        channel.set_stream(stream(n, Streaming));
    }
    assert_eq!(next().await, Ok(vec![3]), "only the latest");
    channel.set_stream(stream(4, Streaming));
    assert!(next().await.is_err());
    channel.set_stream(stream(5, Silent));
    assert_eq!(next().await, Ok(vec![5]));
    tokio::time::advance(Duration::from_secs(3)).await;
    channel.set_stream(stream(6, Silent));
    assert_eq!(next().await, Ok(vec![6]));
    channel.set_stream(stream(7, Settled));
    assert_eq!(next().await, Ok(vec![7]));
}
