//! Even load, and when it was sent.

use serde_json::json;

use super::super::{Speed, WireFormat};
use super::client::{read, start};

#[tokio::test]
async fn a_load_stream_keeps_a_send_time_for_each_delta() {
    let running = start(Speed::MAX).await;
    let before = jiff::Timestamp::now().as_millisecond() as f64;
    let reply = read(
        WireFormat::OpenaiChat,
        running
            .ask(WireFormat::OpenaiChat, "load rate=200 seconds=2 id=a.1")
            .await,
    )
    .await;
    let digits: String = reply.text.split_whitespace().collect();
    assert_eq!(digits.len(), 400 * 3);
    let (status, load) = running.get("load/a.1").await;
    assert_eq!(
        (status, &load["count"], &load["rate"]),
        (200, &json!(400), &json!(200.0))
    );
    let sent: Vec<f64> = load["sent_ms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    assert_eq!(sent.len(), 400);
    assert!(sent[0] >= before && sent.is_sorted());
    assert!(
        sent.iter().any(|time| time.fract() != 0.0),
        "finer than a millisecond"
    );

    let reply = read(
        WireFormat::Anthropic,
        running.ask(WireFormat::Anthropic, "load rate=10 seconds=1").await,
    )
    .await;
    assert_eq!(reply.text.len(), 40);
    assert_eq!(running.get("load").await.1, json!(["a.1", "sim1x2"]));
    assert_eq!(running.get("load/unknown").await.0, 404);
    assert_eq!(
        running
            .ask(WireFormat::Anthropic, "load rate=1000 seconds=1000")
            .await
            .status(),
        400
    );
}

#[tokio::test]
async fn a_rate_holds_at_real_speed() {
    let running = start(Speed::REAL).await;
    let prompt = "load rate=200 seconds=0.5 id=r";
    let asked = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() * 1000.0;
    read(
        WireFormat::Anthropic,
        running.ask(WireFormat::Anthropic, prompt).await,
    )
    .await;
    let (_, load) = running.get("load/r").await;
    let sent: Vec<f64> = load["sent_ms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    // Any of them can be late on a busy machine, the first one too; none is ever early.
    assert_eq!(sent.len(), 100);
    for (index, at) in sent.iter().enumerate() {
        let after = at - asked;
        assert!(
            after >= index as f64 * 5.0 - 3.0,
            "delta {index} was sent after {after} ms"
        );
    }
}
