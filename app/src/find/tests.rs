use super::list::href;
use super::*;

fn hit(field: &str, ids: serde_json::Value) -> SearchHit {
    let mut hit = serde_json::json!({
        "run_id": "run_1", "field": field, "offset": 3, "bytes": 2, "before": "a\nb", "found": "c\td", "after": " e",
    });
    let fields = hit.as_object_mut().expect("an object");
    fields.extend(ids.as_object().expect("an object").clone());
    serde_json::from_value(hit).expect("a hit")
}

#[test]
fn the_count_says_what_is_known_of_the_hits() {
    for (search, hits, more, current, words) in [
        (Search::None, 0, false, None, ""),
        (Search::Asked, 0, false, None, "Searching"),
        (Search::Asked, 7, false, Some(2), "3 of 7"),
        (Search::Done, 0, false, None, "No hits"),
        (Search::Done, 1, false, None, "1 hit"),
        (Search::Done, 1, false, Some(0), "1 of 1"),
        (Search::Done, 200, true, Some(199), "200 of 200+"),
        (Search::Done, 1_200, true, None, "1,200+ hits"),
        (Search::Failed("Not now.".to_owned()), 0, false, None, "Not now."),
    ] {
        assert_eq!(count(&search, hits, more, current), words);
    }
}

#[test]
fn an_excerpt_is_one_line_of_which_the_hit_is_in_sight() {
    let plain = hit("text", serde_json::json!({}));
    assert_eq!(excerpt(&plain), ["a b", "c d", " e"].map(str::to_owned));
    let long = SearchHit {
        before: "é".repeat(60),
        ..plain
    };
    assert_eq!(excerpt(&long)[0], format!("…{}", "é".repeat(24)));
}

#[test]
fn the_address_of_a_hit_leads_to_what_it_lies_in() {
    for (field, ids, expected) in [
        (
            "message",
            serde_json::json!({"message_id": "msg_1"}),
            "?run=run_1#msg_1",
        ),
        (
            "result",
            serde_json::json!({"node_id": "exec_1", "block_id": "blk_1", "attempt_id": "att_1"}),
            "?block=blk_1#block-blk_1",
        ),
        (
            "log",
            serde_json::json!({"node_id": "exec_1"}),
            "?node=exec_1#node-exec_1",
        ),
        (
            "notice",
            serde_json::json!({"node_id": "exec_1"}),
            "?run=run_1#run_1",
        ),
        ("error", serde_json::json!({}), "?run=run_1#run_1"),
    ] {
        assert_eq!(href(&hit(field, ids)), expected, "{field}");
    }
}

#[test]
fn every_field_has_words() {
    for field in SearchField::ALL {
        assert!(!place(*field).is_empty());
    }
}
