//! The component: server-rendered whole, then grown in the browser.
//!
//! The page's HTML is one `div.md` with a `div.md__piece` for each closed piece, several of them in each `div.md__part`, and
//! a `div.md__tail` for the rest. The view tree knows only the root, so hydration touches nothing within; from then on
//! closed pieces are appended to the DOM and the tail is set, at most once a frame. Of a long text the parts that are far
//! from what is seen leave the DOM, and come again (`browser::page`).

#[cfg(not(feature = "ssr"))]
use std::borrow::Cow;
use std::sync::Arc;

use leptos::ev::MouseEvent;
use leptos::html::Div;
use leptos::prelude::*;

use super::parts::Parts;
#[cfg(feature = "ssr")]
use super::wall::passed;
use super::{Piece, StreamingMarkdown};
use crate::ui::dynamic::dynamic;

/// Gives the whole text so far to its callback, and subscribes the effect that calls it to the text's changes.
pub type ReadText = Arc<dyn Fn(&mut dyn FnMut(&str)) + Send + Sync>;

/// A text that may still grow, as Markdown. `id_prefix` must be unique on the page; `mini` is the smaller type of inner
/// levels.
#[component]
pub fn MarkdownView(
    /// Goes before the ids within, such as the block's id.
    #[prop(into)]
    id_prefix: String,
    /// The text so far.
    read: ReadText,
    /// Whether the text has ended.
    #[prop(into)]
    finished: Signal<bool>,
    /// One step smaller.
    #[prop(optional)]
    mini: bool,
) -> impl IntoView {
    let mut text = StreamingMarkdown::new(&id_prefix);
    let is_finished = finished.get_untracked();
    untrack(|| read(&mut |whole| drop(text.sync(whole, is_finished))));
    let html = markup(&mut text);
    let root = NodeRef::<Div>::new();
    #[cfg(feature = "hydrate")]
    browser::follow(root, text, read, finished);
    view! {
        <div
            class="md"
            class:md--mini=mini
            class:md--live=dynamic(move || !finished.get())
            node_ref=root
            on:click=clicked
            inner_html=html
        ></div>
    }
}

/// A whole text as Markdown, which does not change.
#[component]
pub fn MarkdownText(
    /// Goes before the ids within.
    #[prop(into)]
    id_prefix: String,
    /// The text.
    #[prop(into)]
    source: String,
    /// One step smaller.
    #[prop(optional)]
    mini: bool,
) -> impl IntoView {
    let mut text = StreamingMarkdown::new(&id_prefix);
    text.sync(&source, true);
    view! { <div class="md" class:md--mini=mini on:click=clicked inner_html=markup(&mut text)></div> }
}

/// What stands within the root.
fn markup(text: &mut StreamingMarkdown) -> String {
    let tail = text.tail_html();
    let length: usize = text.pieces().iter().map(|piece| piece.html.len() + 36).sum();
    let mut html = String::with_capacity(length + tail.len() + 64);
    for part in Parts::of(text.pieces()).all() {
        html.push_str("<div class=\"md__part\">");
        push_pieces(
            &mut html,
            text.pieces().get(part.pieces.clone()).unwrap_or_default(),
        );
        html.push_str("</div>");
    }
    html.push_str("<div class=\"md__tail\">");
    html.push_str(&passed(&tail));
    html.push_str("</div>");
    html
}

fn push_pieces(html: &mut String, pieces: &[Piece]) {
    for piece in pieces {
        html.push_str("<div class=\"md__piece\">");
        html.push_str(&passed(&piece.html));
        html.push_str("</div>");
    }
}

/// The browser does without the second wall.
#[cfg(not(feature = "ssr"))]
fn passed(html: &str) -> Cow<'_, str> {
    Cow::Borrowed(html)
}

/// One handler for all pieces: copies a code block, or puts an image in the place of its chip.
#[cfg(feature = "hydrate")]
fn clicked(event: MouseEvent) {
    browser::clicked(&event);
}

#[cfg(not(feature = "hydrate"))]
fn clicked(_: MouseEvent) {}

#[cfg(feature = "hydrate")]
mod browser;

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn the_server_renders_a_wrapper_for_each_piece_and_one_for_the_tail() {
        let owner = Owner::new();
        let html = owner.with(|| {
            let read: ReadText = Arc::new(|give| give("# A\n\nb **c"));
            view! { <MarkdownView id_prefix="b1" read finished=Signal::stored(false)/> }.to_html()
        });
        let within = "<div class=\"md__part\"><div class=\"md__piece\"><h2>A</h2></div></div><div class=\"md__tail\"><p>b c</p></div></div>";
        assert!(
            html.starts_with("<div class=\"md ") && html.contains("md--live\">"),
            "{html}"
        );
        assert!(html.ends_with(within), "{html}");
    }

    #[test]
    fn a_finished_text_has_no_tail_and_no_caret() {
        let owner = Owner::new();
        let html = owner.with(|| view! { <MarkdownText id_prefix="b1" source="a **b**"/> }.to_html());
        assert!(
            html.contains(
                "<div class=\"md__part\"><div class=\"md__piece\"><p>a <strong>b</strong></p></div></div><div class=\"md__tail\"></div>"
            ),
            "{html}"
        );
        assert!(!html.contains("md--live"), "{html}");
    }
}
