//! The rules for a text that grows.

use proptest::prelude::*;

use super::corpus::{TEXTS, all};
use super::rules::{Look, grow, grow_looking, sizes};
use crate::markdown::{StreamingMarkdown, render};

#[test]
fn the_rules_hold_at_every_prefix_and_the_pieces_end_as_those_of_the_whole() {
    for text in all() {
        grow(&text, [1]);
    }
}

#[test]
fn the_rules_hold_for_deltas_of_any_sizes() {
    for (place, text) in all().enumerate() {
        for size in [2, 3, 7, 64] {
            grow(&text, [size]);
        }
        for seed in 0..3 {
            grow(&text, sizes(place as u64 * 3 + seed));
        }
    }
}

#[test]
fn texts_after_one_another_end_as_the_whole() {
    for (index, first) in TEXTS.iter().enumerate() {
        for second in TEXTS.iter().skip(index % 3).step_by(3) {
            grow(&[*first, second].join("\n\n"), [11]);
        }
    }
}

#[test]
fn a_closed_piece_is_rendered_again_once_for_each_definition_that_it_waits_for_and_never_else() {
    let text = "[a] and [b] and [a].\n\n[a] alone.\n\nNone.\n\n[a]: /a\n\nBetween.\n\n[b]: /b\n\n[a] [b]\n\n[a]: /again\n";
    assert_eq!(grow(text, [1]), 3);
    assert_eq!(
        grow(
            "A text **without** any `[reference]`.\n\n- list\n\n```\n[code]: /u\n```\n\nend\n",
            [1]
        ),
        0
    );
}

#[test]
fn a_whole_that_is_synced_by_prefixes_ends_the_same() {
    for text in TEXTS {
        let mut streaming = StreamingMarkdown::new("p");
        for (at, _) in text.char_indices() {
            assert!(!streaming.sync(&text[..at], false).restarted);
        }
        streaming.sync(text, true);
        assert_eq!(streaming.pieces(), render(text, "p"));
        assert!(streaming.is_finished());
    }
}

#[test]
fn a_text_that_is_no_continuation_starts_over() {
    let mut streaming = StreamingMarkdown::new("p");
    streaming.sync("one\n\ntwo\n\nthree", false);
    let changes = streaming.sync("other\n\ntext\n\nend", false);
    assert!(changes.restarted);
    assert_eq!(changes.closed, 0..2);
    assert_eq!(streaming.source(), "other\n\ntext\n\nend");
}

#[test]
fn a_text_that_differs_in_its_middle_starts_over_at_its_end() {
    let text = |middle: &str| ["start. ".repeat(200).as_str(), middle, &" end.".repeat(200)].concat();
    let mut streaming = StreamingMarkdown::new("p");
    streaming.sync(&text("one"), false);
    assert!(streaming.sync(&text("two"), true).restarted);
    assert_eq!(streaming.source(), text("two"));
}

fn shown(streaming: &mut StreamingMarkdown) -> String {
    let mut html: String = streaming
        .pieces()
        .iter()
        .map(|piece| piece.html.as_str())
        .collect();
    html.push_str(&streaming.tail_html());
    html
}

/// The names of the elements at the top.
fn blocks(html: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut depth = 0;
    for tag in html.split('<').skip(1) {
        let name = tag.split([' ', '>']).next().unwrap_or_default();
        if name.starts_with('/') {
            depth -= 1;
            continue;
        }
        if depth == 0 {
            names.push(name);
        }
        if !matches!(name, "br" | "hr" | "input") {
            depth += 1;
        }
    }
    assert_eq!(depth, 0, "{html}");
    names
}

#[test]
fn a_block_changes_its_kind_only_when_a_line_ends_and_only_the_last_does() {
    for text in all() {
        let mut streaming = StreamingMarkdown::new("p");
        let mut before = String::new();
        for (at, character) in text.char_indices() {
            streaming.push(&text[at..at + character.len_utf8()]);
            let now = shown(&mut streaming);
            let (old, new) = (blocks(&before), blocks(&now));
            let kept = if character == '\n' {
                old.len().saturating_sub(1)
            } else {
                old.len()
            };
            assert!(
                new.starts_with(&old[..kept]),
                "{old:?} became {new:?} after {:?}",
                &text[..at]
            );
            before = now;
        }
    }
}

/// The tail while a text grows, after its last character.
fn tail_of(text: &str) -> String {
    let mut streaming = StreamingMarkdown::new("p");
    for (at, character) in text.char_indices() {
        streaming.push(&text[at..at + character.len_utf8()]);
    }
    streaming.tail_html()
}

#[test]
fn an_undecided_marker_is_not_shown_and_changes_no_block() {
    let same = [
        "-", "- ", "*", "+", "1", "1.", "1. ", "#", "## ", ">", "```", "```ru", "~~~", "---", "===", "=",
        "|", "|--", "> -", "- - ", "***", "__",
    ];
    for marker in same {
        assert_eq!(tail_of(&["text\n", marker].concat()), "<p>text</p>", "{marker:?}");
        assert_eq!(tail_of(marker), "", "{marker:?}");
    }
}

#[test]
fn an_open_marker_leaves_its_text_plain() {
    let cases = [
        ("a **b c", "<p>a b c</p>"),
        ("a *b", "<p>a b</p>"),
        ("a **b*", "<p>a b</p>"),
        ("a **b**", "<p>a b</p>"),
        ("a **b** ", "<p>a <strong>b</strong></p>"),
        ("a ~~b", "<p>a b</p>"),
        ("a ~5", "<p>a ~5</p>"),
        ("a __b_c", "<p>a b_c</p>"),
        ("a `b **c** d", "<p>a b **c** d</p>"),
        ("**a `b", "<p>a b</p>"),
        ("a [b", "<p>a b</p>"),
        ("a [b]", "<p>a b</p>"),
        ("a [b](", "<p>a b</p>"),
        ("a [b](https://x.exa", "<p>a b</p>"),
        ("a [*b*](https://x.exa", "<p>a <em>b</em></p>"),
        ("a [b](u \"ti", "<p>a b</p>"),
        ("a [b] c", "<p>a [b] c</p>"),
        ("a ![b](https://x", "<p>a b</p>"),
        ("a <di", "<p>a di</p>"),
        ("a <div cl", "<p>a &lt;div cl</p>"),
        ("a <https://x", "<p>a https://x</p>"),
        ("a &am", "<p>a</p>"),
        ("2 * 3", "<p>2 * 3</p>"),
        ("snake_case", "<p>snake_case</p>"),
        ("| a | b", "<p> a  b</p>"),
        ("| a | b |\n|--", "<p> a  b </p>"),
        ("| a | b |\nc", "<p>| a | b |\nc</p>"),
        ("- **a", "<ul><li>a</li></ul>"),
        ("> `a", "<blockquote><p>a</p></blockquote>"),
        ("# a *b", "<h2>a b</h2>"),
        ("[a", ""),
        ("[a]: b", ""),
        ("- [", ""),
        ("text\n**b", "<p>text\nb</p>"),
    ];
    for (text, expected) in cases {
        assert_eq!(tail_of(text), expected, "{text:?}");
    }
}

#[test]
fn a_marker_that_never_closed_is_shown_when_its_paragraph_ends() {
    let mut streaming = StreamingMarkdown::new("p");
    streaming.push("a **b [c\n");
    assert_eq!(streaming.tail_html(), "<p>a b c</p>");
    streaming.push("\n");
    assert_eq!(shown(&mut streaming), "<p>a **b [c</p>");
}

#[test]
fn a_footnote_that_starts_within_another_is_one_when_it_is_rendered_again() {
    for text in [
        "[^1]: n\n\n    [^1]: n",
        "[^1]: n\n\n\t[^2]: m [^1] [^3]\n\n[^3]: o\n",
    ] {
        grow(text, [1]);
    }
}

#[test]
fn only_the_open_tail_is_parsed_again() {
    let cost = |paragraphs: usize| {
        let mut streaming = StreamingMarkdown::new("p");
        let paragraph =
            "A paragraph of **some** words, with `code` in it and [a link](https://a.example).\n\n";
        for _ in 0..paragraphs {
            for start in (0..paragraph.len()).step_by(4) {
                streaming.push(&paragraph[start..(start + 4).min(paragraph.len())]);
                let _ = streaming.tail_html();
            }
        }
        streaming.parsed_bytes() / paragraphs as u64
    };
    let (short, long) = (cost(10), cost(500));
    assert!(
        long <= short + short / 5,
        "{long} bytes a paragraph in a long text, {short} in a short one"
    );
}

#[test]
fn lines_of_an_open_code_block_close_nothing_and_are_not_parsed() {
    let mut streaming = StreamingMarkdown::new("p");
    streaming.push("```rust\n");
    let before = streaming.parsed_bytes();
    for _ in 0..1000 {
        streaming.push("let a = 1; // a line\n");
    }
    assert_eq!(streaming.parsed_bytes(), before);
    assert_eq!(streaming.pieces().len(), 0);
    streaming.push("```\n");
    assert_eq!(streaming.pieces().len(), 1);
}

fn snippets() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "a", "b c", " ", "\n", "\n\n", "  ", "    ", "*", "**", "_", "`", "```", "~~", "[", "]", "(", ")",
        "![", "](u)", "[r]", "[r]: /u", "[^1]", "[^1]: n", "<", ">", "> ", "- ", "1. ", "# ", "|", "|-|",
        "| a |", "---", "===", "\\", "&", "&amp;", "<b>", "<!--", "-->", "<div>", "é", "漢", "\t", "\"", ":",
        "!", "- [ ] ", "\r\n",
    ]);
    prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
}

// PROPTEST_CASES sets the count for long runs.
proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_in_any_deltas_ends_as_the_whole(text in snippets(), sizes in prop::collection::vec(1usize..9, 0..80)) {
        grow_looking(&text, Look::Nothing, sizes.into_iter().chain([5]));
    }
}
