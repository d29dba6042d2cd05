//! What the pieces look like.

use crate::markdown::render;

fn html(source: &str) -> String {
    render(source, "p").into_iter().map(|piece| piece.html).collect()
}

#[test]
fn pieces_are_the_lines_of_their_blocks() {
    let source = "# A\n\n  b\n\n- c\n\n[r]: /u\n\nd [r]";
    let pieces = render(source, "p");
    let texts: Vec<&str> = pieces.iter().map(|piece| &source[piece.range.clone()]).collect();
    assert_eq!(texts, ["# A", "  b", "- c", "d [r]"]);
}

#[test]
fn headings_start_at_the_second_level() {
    assert_eq!(html("# a\n## b\n###### c"), "<h2>a</h2><h3>b</h3><h6>c</h6>");
}

#[test]
fn a_code_block_has_its_language_a_copy_button_and_a_focusable_body() {
    assert_eq!(
        html("```rust,ignore\nlet a = \"<b>\";\n\n```"),
        "<figure class=\"codeblock\"><figcaption class=\"codeblock__head\"><span>rust</span>\
         <button type=\"button\" class=\"btn btn--quiet btn--sm\" data-copy=\"code\">Copy</button></figcaption>\
         <pre class=\"pre\" tabindex=\"0\" role=\"group\" aria-label=\"rust code\">\
         <code>let a = \"&lt;b&gt;\";\n</code></pre></figure>"
    );
}

#[test]
fn a_table_scrolls_by_itself() {
    assert_eq!(
        html("|a|b|\n|-|-:|\n|c|d|"),
        "<div class=\"md__scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><thead><tr><th>a</th>\
         <th class=\"md__right\">b</th></tr></thead><tbody><tr><td>c</td><td class=\"md__right\">d</td></tr></tbody></table></div>"
    );
    assert!(!html("|a|\n|-|\n").contains("tbody"));
}

#[test]
fn tasks_are_boxes_that_cannot_be_changed() {
    assert_eq!(
        html("- [x] a\n- [ ] b"),
        "<ul class=\"md__tasks\"><li><input type=\"checkbox\" disabled=\"\" checked=\"\" aria-label=\"done\">a</li>\
         <li><input type=\"checkbox\" disabled=\"\" aria-label=\"open\">b</li></ul>"
    );
}

#[test]
fn links_give_nothing_away_and_leave_in_a_new_tab() {
    assert_eq!(
        html("[a](https://x.example \"t\") [b](/y)"),
        "<p><a href=\"https://x.example\" rel=\"noopener noreferrer\" target=\"_blank\" title=\"t\">a</a> \
         <a href=\"/y\" rel=\"noopener noreferrer\">b</a></p>"
    );
}

#[test]
fn an_image_is_a_link_until_it_is_clicked() {
    let image = html("![the *alt*](https://x.example/i.png)");
    assert_eq!(
        image,
        "<p><a class=\"md__image\" data-src=\"https://x.example/i.png\" href=\"https://x.example/i.png\" \
         rel=\"noopener noreferrer\" target=\"_blank\"><b>Image</b> the alt</a></p>"
    );
    assert_eq!(
        html("![a](data:image/png;base64,AAAA)"),
        "<p><span class=\"md__image\"><b>Image</b> a</span></p>"
    );
}

#[test]
fn raw_html_is_text() {
    assert_eq!(html("a <b>c</b>"), "<p>a &lt;b&gt;c&lt;/b&gt;</p>");
    assert_eq!(
        html("<div>\n*a*\n</div>\n"),
        "<p class=\"md__html\">&lt;div&gt;\n*a*\n&lt;/div&gt;</p>"
    );
}

#[test]
fn footnotes_of_different_texts_have_different_ids() {
    let source = "a[^x y].\n\n[^x y]: b\n\n[^x y]: again";
    let of = |prefix| {
        render(source, prefix)
            .into_iter()
            .map(|piece| piece.html)
            .collect::<String>()
    };
    let (one, other) = (of("one"), of("two"));
    assert!(
        one.contains("href=\"#one-note-.e5.x.02.y\"") && one.contains("id=\"one-note-.e5.x.02.y\""),
        "{one}"
    );
    assert_eq!(one.matches(" id=").count(), 1, "{one}");
    assert!(other.contains("#two-note-"), "{other}");
}

#[test]
fn one_tilde_is_text() {
    assert_eq!(html("~a~ ~~b~~"), "<p>~a~ <del>b</del></p>");
}

#[test]
fn lists_start_where_they_say() {
    assert_eq!(html("3. a\n4. b"), "<ol start=\"3\"><li>a</li><li>b</li></ol>");
}

#[test]
fn too_deep_nesting_loses_boxes_and_no_text() {
    let source = format!("{}end", "> ".repeat(5000));
    let html = html(&source);
    assert!(html.contains("end"));
    assert!(html.matches("<blockquote>").count() < 60);
}
