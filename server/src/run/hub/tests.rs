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
