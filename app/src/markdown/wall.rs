//! The second wall of the server: what the writer wrote goes through a sanitiser that knows only our markup.
//!
//! It changes nothing of it (the tests hold that over hostile texts). Should the writer ever let something through, the
//! page is served without it, and the log says so. The browser does without this wall: it would double the page's code.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

static WALL: LazyLock<ammonia::Builder<'static>> = LazyLock::new(wall);

/// The HTML as it passed: as it is, unless the writer has a fault.
pub(super) fn passed(html: &str) -> Cow<'_, str> {
    let cleaned = WALL.clean(html).to_string();
    if cleaned == html {
        return Cow::Borrowed(html);
    }
    leptos::logging::error!(
        "a piece of Markdown held markup that may not be served and was cleaned ({} of {} bytes are left)",
        cleaned.len(),
        html.len()
    );
    Cow::Owned(cleaned)
}

/// A sanitiser that lets through what the writer writes, and nothing else.
pub(super) fn wall() -> ammonia::Builder<'static> {
    let mut wall = ammonia::Builder::empty();
    wall.add_tags([
        "a",
        "b",
        "blockquote",
        "br",
        "button",
        "code",
        "del",
        "div",
        "em",
        "figcaption",
        "figure",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "input",
        "li",
        "ol",
        "p",
        "pre",
        "span",
        "strong",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]);
    for (tag, attributes) in [
        ("a", &["class", "data-src", "href", "rel", "target", "title"][..]),
        ("button", &["class", "data-copy"]),
        ("div", &["aria-label", "class", "id", "role", "tabindex"]),
        ("figcaption", &["class"]),
        ("figure", &["class"]),
        ("input", &["aria-label", "checked", "disabled"]),
        ("ol", &["class", "start"]),
        ("p", &["class"]),
        ("pre", &["aria-label", "class", "role", "tabindex"]),
        ("span", &["class"]),
        ("sup", &["class"]),
        ("td", &["class"]),
        ("th", &["class"]),
        ("ul", &["class"]),
    ] {
        wall.add_tag_attributes(tag, attributes);
    }
    wall.add_tag_attribute_values("button", "type", ["button"]);
    wall.add_tag_attribute_values("input", "type", ["checkbox"]);
    wall.url_schemes(HashSet::from(["http", "https", "mailto"]));
    wall.url_relative(ammonia::UrlRelative::PassThrough);
    wall.link_rel(None);
    wall
}
