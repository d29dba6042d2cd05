//! The second wall: a sanitiser that knows only our markup changes nothing of what the filter wrote.

use proptest::prelude::*;

use super::corpus::TEXTS;
use crate::markdown::wall::{passed, wall};
use crate::markdown::{StreamingMarkdown, render};

fn check(wall: &ammonia::Builder<'_>, source: &str) {
    for piece in render(source, "p") {
        assert_eq!(wall.clean(&piece.html).to_string(), piece.html, "{source:?}");
        for forbidden in [
            "<script",
            "<img",
            "<iframe",
            "<svg",
            "<style",
            "<a href=\"javascript",
            "<a href=\"data",
            "<a href=\"//",
        ] {
            assert!(
                !piece.html.to_ascii_lowercase().contains(forbidden),
                "{forbidden} in {}",
                piece.html
            );
        }
    }
    let mut streaming = StreamingMarkdown::new("p");
    for (at, character) in source.char_indices() {
        streaming.push(&source[at..at + character.len_utf8()]);
        let tail = streaming.tail_html();
        assert_eq!(
            wall.clean(&tail).to_string(),
            tail,
            "the tail at {:?}",
            &source[..at]
        );
    }
}

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "</p></div></main><style>*{display:none}</style>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<?php echo 1 ?> <![CDATA[<b>]]> <!DOCTYPE html>",
    "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](<javascript:alert(1)>)",
    "[x](java&#115;cript:alert(1)) [x](javascript&colon;alert(1)) [x](java&Tab;script:x) [x](&#1;javascript:x)",
    "[x](java\\script:alert(1)) [x](java%0ascript:alert(1)) [x](\u{1}javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=) [x](vbscript:x) [x](file:///etc/passwd) [x](blob:x)",
    "[x](//evil.example) [x](/\\evil.example) [x](\\\\evil.example) [x](< //evil.example>) [x](http:evil.example)",
    "<javascript:alert(1)> <data:text/html,x> <x@y.example?subject=&quot;>",
    "![x](javascript:alert(1)) ![x](data:image/svg+xml,<svg/onload=alert(1)>) ![\"onerror=alert(1)](x)",
    "![x](x \"\\\" onerror=alert(1) x=\\\"\")",
    "[x](/a\"onmouseover=alert(1)) [x](</a\" onmouseover=\"alert(1)>) [x](/a 'b\"onmouseover=\"c')",
    "[a]: javascript:alert(1)\n\n[a] ![a] [b][a]",
    "[a]: </x\" onclick=\"y> 'z\" onclick=\"w'\n\n[a]",
    "```\"><script>alert(1)</script>\ncode</code></pre><script>\n```",
    "``` x\"onmouseover=alert(1)\ncode\n```",
    "`</code><script>alert(1)</script>`",
    "[^\"><script>]: x\n\ny[^\"><script>]",
    "[^a b\u{a0}<]: x\n\ny[^A B\u{a0}<] [z[^a b\u{a0}<]](/u)",
    "| <script> | `|` |\n|---|---|\n| \"><img> | </table><script> |",
    "[a [b](/c) d](/e) [![i](/j)](/k) ![a [b](/c)](/d) [<https://x.example>](/y)",
    "# </h2><script>\n\n- </li></ul><b>\n\n> </blockquote>",
    "a\u{0}b\u{1b}[31m\u{7f}\u{a0}\r c\rd &#0; &#x1b; &nbsp; &#13; &lt;script&gt;",
    "\u{202e}evil \u{2066}x [x](/\u{202e}y) [x](https://e\u{200b}vil.example)",
    "<textarea><b> <title> <noscript> <plaintext> <xmp> <template>",
    "**a <b** c> *d <e* f=\"*\"> _g [h_](/i) _j_",
    "***a **b *c **d *e **f *g** h* i** j* k** l* m** n*",
    "- [x] <input autofocus onfocus=alert(1)>\n- [ ] b",
    "<a><a><a> [x](/y)</a> <p> <li> <td> <tr> <option> <frameset>",
    "<https://x.example/\"onclick=\"alert(1)> <https://x.example/'<b>'> <mailto:a@b.example>",
    "[x](https://user:pass@evil.example) [x](https://) [x](https:///x) [x](mailto:) [x]() [x](#)",
];

#[test]
fn a_sanitiser_changes_nothing() {
    let wall = wall();
    for source in HOSTILE.iter().chain(TEXTS) {
        check(&wall, source);
        check(&wall, &["- > 1. ", source].concat());
    }
}

#[test]
fn a_sanitiser_changes_nothing_of_hostile_texts_in_a_row() {
    let wall = wall();
    for pair in HOSTILE.windows(2) {
        for piece in render(&pair.concat(), "p")
            .into_iter()
            .chain(render(&pair.join("\n"), "p"))
        {
            assert_eq!(wall.clean(&piece.html).to_string(), piece.html, "{pair:?}");
        }
    }
}

#[test]
fn the_wall_stops_what_it_should() {
    let cleaned = passed("<img src=x onerror=y><a href=\"javascript:x\">a</a><script>b</script>");
    assert_eq!(cleaned, "<a>a</a>");
}

// PROPTEST_CASES sets the count for long runs.
proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sanitiser_changes_nothing_of_any_mixture(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<", ">", "\"", "'", "&", "#", "[", "]", "(", ")", "!", "*", "_", "`", "~~", "|", "\n", "\n\n", "- ", "> ", "javascript:", "//", "\\",
            "<script", "<a href=", "</p>", "<b>", "x", " ", "data:", "https://", "\u{0}", "\u{a0}", "\r", "[^1]", "[^1]: ", "[r]", "[r]: ", "```", "&#106;",
            "<!--", "-->", "|-|", "\t", "    ", "<x y=", "mailto:a@b", "[x](https://", "a.b", ":8", "1.", "%", "@", "0x", "..", "[x](", "<https://",
        ]), 0..40)
    ) {
        let source = parts.concat();
        let wall = wall();
        for piece in render(&source, "p") {
            prop_assert_eq!(wall.clean(&piece.html).to_string(), piece.html);
        }
    }
}
