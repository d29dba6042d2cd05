use futures::StreamExt;
use proptest::prelude::*;

use super::*;

fn decode(chunks: &[&[u8]]) -> (Vec<SseItem>, SseTail) {
    let mut decoder = SseDecoder::default();
    let mut items = Vec::new();
    for chunk in chunks {
        items.extend(decoder.push(chunk));
    }
    (items, decoder.finish())
}

fn events(bytes: &[u8]) -> Vec<(Option<String>, String)> {
    let (items, tail) = decode(&[bytes]);
    let tail = match tail {
        SseTail::Event(event) => Some(event),
        SseTail::Clean | SseTail::Cut { .. } => None,
    };
    items
        .into_iter()
        .filter_map(|item| match item {
            SseItem::Event(event) => Some(event),
            SseItem::Comment { .. } | SseItem::TooLarge { .. } => None,
        })
        .chain(tail)
        .map(|event| (event.event, event.data))
        .collect()
}

fn pair(event: Option<&str>, data: &str) -> (Option<String>, String) {
    (event.map(str::to_owned), data.to_owned())
}

const STREAM: &str =
    "event: a\ndata: {\"x\":1}\n\n: note\n\ndata:two\ndata: lines 😀\n\ndata: after\nevent: late\n\n";

#[test]
fn every_framing_of_a_stream_gives_the_same_events() {
    let expected = vec![
        pair(Some("a"), "{\"x\":1}"),
        pair(None, "two\nlines 😀"),
        pair(Some("late"), "after"),
    ];
    let variants = [
        STREAM.to_owned(),
        STREAM.replace('\n', "\r\n"),
        STREAM.replace('\n', "\r"),
        format!("\u{feff}{STREAM}"),
        STREAM.replace(": ", ":"),
        STREAM.replace("\n\n", "\nid: 7\nretry: 10\nunknown: x\nname-only\n\n"),
        STREAM.replace("\n\n", "\n\n: keep-alive\n:\n\n\n"),
    ];
    for variant in variants {
        assert_eq!(events(variant.as_bytes()), expected, "{variant:?}");
    }
}

#[test]
fn comments_are_handed_on_with_their_text() {
    let (items, tail) = decode(&[b": OPENROUTER PROCESSING\n\n:\n:  two spaces\n"]);
    let texts: Vec<_> = ["OPENROUTER PROCESSING", "", " two spaces"]
        .into_iter()
        .map(|text| SseItem::Comment {
            text: text.to_owned(),
        })
        .collect();
    assert_eq!((items, tail), (texts, SseTail::Clean));
}

#[test]
fn a_byte_order_mark_may_be_split_and_half_a_mark_is_content() {
    let (items, _) = decode(&[b"\xEF", b"\xBB", b"\xBFdata: 1\n\n"]);
    assert!(
        matches!(&items[..], [SseItem::Event(event)] if event.data == "1"),
        "{items:?}"
    );
    let (items, _) = decode(&[b"\xEF", b"\xBBdata: 1\n\ndata: 2\n\n"]);
    assert!(
        matches!(&items[..], [SseItem::Event(event)] if event.data == "2"),
        "{items:?}"
    );
}

#[test]
fn an_unterminated_last_event_is_kept_when_it_is_whole_and_else_reported_as_cut() {
    for whole in [
        "data: {\"a\":1}",
        "data: {\"a\":1}\n",
        "data: [DONE] ",
        "event: x\ndata: {\"a\":\ndata: 1}",
    ] {
        assert!(
            matches!(decode(&[whole.as_bytes()]).1, SseTail::Event(_)),
            "{whole:?}"
        );
    }
    for cut in [
        "data: {\"a\":",
        "data: {\"a\":\n",
        "event: x",
        "dat",
        "event: x\n",
    ] {
        assert!(
            matches!(decode(&[cut.as_bytes()]).1, SseTail::Cut { .. }),
            "{cut:?}"
        );
    }
    for clean in ["", "data: 1\n\n", ": comment", "data: 1\r\n\r\n"] {
        assert_eq!(decode(&[clean.as_bytes()]).1, SseTail::Clean, "{clean:?}");
    }
}

#[test]
fn an_event_over_the_limit_stops_the_stream_with_a_clear_item() {
    let mut decoder = SseDecoder::with_limit(16);
    let mut items = decoder.push(b"data: small\n\ndata: 0123456789");
    items.extend(decoder.push(b"0123456789"));
    items.extend(decoder.push(b"\n\ndata: later\n\n"));
    assert!(
        matches!(&items[..], [SseItem::Event(event), SseItem::TooLarge { limit: 16 }] if event.data == "small"),
        "{items:?}"
    );
}

#[test]
fn bytes_that_are_no_text_do_not_end_the_stream() {
    let (items, _) = decode(&[b"data: a\xFFb\n\ndata: next\n\n"]);
    assert!(
        matches!(&items[..], [SseItem::Event(one), SseItem::Event(two)] if one.data == "a\u{fffd}b" && two.data == "next"),
        "{items:?}"
    );
}

#[test]
fn the_cost_of_a_large_event_in_small_chunks_is_linear() {
    // A decoder that scans its buffer again for each chunk needs half a minute for this; ours well below a second.
    let event = [b"data: \"".as_slice(), &vec![b'x'; 16 * 1024 * 1024], b"\"\n\n"].concat();
    let began = std::time::Instant::now();
    let mut decoder = SseDecoder::default();
    let count: usize = event.chunks(1024).map(|chunk| decoder.push(chunk).len()).sum();
    assert_eq!(count, 1);
    assert!(
        began.elapsed() < std::time::Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

/// Streams made of the pieces that matter, in any order and also malformed.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data".to_vec()),
        Just(b"event".to_vec()),
        Just(b":".to_vec()),
        Just(b": ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"data: x\n\n".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just("é😀".as_bytes().to_vec()),
        Just(b"\xFF\x00".to_vec()),
        "[a-z{}\" ]{0,5}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn items_are_the_same_for_every_way_of_cutting(bytes in stream_bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let whole = decode(&[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&decode(&single), &whole);
        for cut in 0..=bytes.len() {
            prop_assert_eq!(&decode(&[&bytes[..cut], &bytes[cut..]]), &whole);
        }
        let mut positions: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        positions.extend([0, bytes.len()]);
        positions.sort_unstable();
        let pieces: Vec<&[u8]> = positions.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&decode(&pieces), &whole);
    }

    /// The second decoder swallows comments, drops an unterminated last event and counts no bytes; the events that
    /// both give must be equal. Left out are bytes that are no UTF-8, which it reports as errors, and a line that is
    /// only the word `event`, which it ignores where the standard takes an empty name.
    #[test]
    fn a_second_decoder_gives_the_same_events(text in stream_bytes().prop_filter("text", |bytes| {
        std::str::from_utf8(bytes).is_ok_and(|text| !text.split(['\r', '\n']).any(|line| line.trim_start_matches('\u{feff}') == "event"))
    })) {
        let (items, _) = decode(&[&text]);
        let ours: Vec<(String, String)> = items
            .into_iter()
            .filter_map(|item| match item {
                SseItem::Event(event) => Some((event.event.unwrap_or_default(), event.data)),
                SseItem::Comment { .. } | SseItem::TooLarge { .. } => None,
            })
            .collect();
        let chunks: Vec<bytes::Bytes> = text.chunks(7).map(bytes::Bytes::copy_from_slice).collect();
        let source = futures::stream::iter(chunks.into_iter().map(Ok::<_, std::convert::Infallible>));
        let theirs: Vec<(String, String)> = futures::executor::block_on(
            sseer::event_stream::EventStream::new(source)
                .map(|event| event.map(|event| (event.event.to_string(), event.data.to_string())).unwrap_or_default())
                .collect(),
        );
        let named: Vec<(String, String)> = theirs
            .into_iter()
            .map(|(name, data)| (if name == "message" { String::new() } else { name }, data))
            .collect();
        prop_assert_eq!(ours, named);
    }
}
