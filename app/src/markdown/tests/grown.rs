//! What was added to the tail's HTML.

use super::corpus::TEXTS;
use crate::markdown::StreamingMarkdown;
use crate::markdown::grown::{Added, added};
use crate::markdown::write::unescape;

#[test]
fn text_at_the_end_is_added_where_it_stands() {
    let cases = [
        ("<p>a</p>", "<p>a b</p>", Some((1, " b", ""))),
        ("<p>a</p>", "<p>a &lt;<br>b</p>", Some((1, " &lt;", "<br>b"))),
        (
            "<p>a <em>b</em></p>",
            "<p>a <em>b</em> c</p>",
            Some((1, " c", "")),
        ),
        (
            "<p>a <em>b</em></p>",
            "<p>a <em>b c</em></p>",
            Some((2, " c", "")),
        ),
        ("<p>a</p>", "<p>a</p><hr><p>b</p>", Some((0, "", "<hr><p>b</p>"))),
        ("", "<p>a</p>", Some((0, "", "<p>a</p>"))),
        (
            "<ul><li>a</li></ul>",
            "<ul><li>a</li><li>b</li></ul>",
            Some((1, "", "<li>b</li>")),
        ),
        ("<p>a b</p>", "<p>a <strong>b</strong></p>", None),
        ("<p>a</p>", "<h2>a</h2>", None),
        ("<p>a b</p>", "<p>a</p>", None),
        ("<ul><li>a</li></ul>", "<ul><li><p>a</p></li></ul>", None),
    ];
    for (old, new, expected) in cases {
        let expected = expected.map(|(depth, text, markup)| Added { depth, text, markup });
        assert_eq!(added(old, new), expected, "{old} to {new}");
    }
}

/// The start of the last tag's content so many levels down, and where that content ends.
fn end_of(html: &str, depth: usize) -> usize {
    let mut end = html.len();
    for _ in 0..depth {
        end = html[..end].rfind("</").expect("there are so many levels");
        assert!(html[end..].matches('<').count() <= depth);
    }
    end
}

#[test]
fn what_was_added_makes_the_new_of_the_old_and_most_of_a_text_comes_so() {
    let (mut all, mut grown) = (0, 0);
    for text in TEXTS {
        let mut streaming = StreamingMarkdown::new("p");
        let mut old = String::new();
        for (at, character) in text.char_indices() {
            let closed = streaming.push(&text[at..at + character.len_utf8()]).closed;
            let new = streaming.tail_html();
            if closed.is_empty() && old != new {
                all += 1;
                if let Some(added) = added(&old, &new) {
                    grown += 1;
                    let (head, closers) = old.split_at(end_of(&old, added.depth));
                    assert_eq!([head, added.text, added.markup, closers].concat(), new);
                }
            }
            old = new;
        }
    }
    assert!(grown * 10 > all * 8, "{grown} of {all}");
}

#[test]
fn escaped_text_is_read_as_it_was_written() {
    let text = "a < b > c & d &amp; \u{a0} \"e\" &lt;";
    let mut streaming = StreamingMarkdown::new("p");
    streaming.push(&["```\n", text, "\n```\n"].concat());
    let html = &streaming.pieces()[0].html;
    let code = html
        .split_once("<code>")
        .and_then(|(_, rest)| rest.split_once("</code>"));
    assert_eq!(code.map(|(code, _)| unescape(code)), Some(text.to_owned()));
}
