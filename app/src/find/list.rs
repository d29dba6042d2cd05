//! The hits as a list of links, for an address with `?q=`: so the search serves without script.

use leptos::prelude::*;
use protocol::search::{SearchField, SearchHit};

use super::{Excerpt, answer_words};
use crate::data::port::{FOUND, Found};

/// The address of a hit: what it lies in is loaded and open there.
pub(super) fn href(hit: &SearchHit) -> String {
    match (&hit.message_id, &hit.block_id, &hit.node_id) {
        (Some(message), ..) => format!("?run={}#{message}", hit.run_id),
        (_, Some(block), _) => format!("?block={block}#block-{block}"),
        // What a call within a program gave stands in the details.
        (_, None, Some(node)) if hit.field != SearchField::Notice => format!("?node={node}#node-{node}"),
        _ => format!("?run={}#{}", hit.run_id, hit.run_id),
    }
}

/// What was found.
#[component]
pub fn FoundList(
    /// The answer to the words in the address.
    found: Found,
    /// The address without them.
    back: String,
) -> impl IntoView {
    let Found {
        query,
        answer,
        problem,
    } = found;
    let more = answer.next.is_some();
    let words = answer_words(&query, answer.hits.len(), more, problem.as_ref());
    let hits = answer
        .hits
        .into_iter()
        .map(|hit| {
            let href = href(&hit);
            view! { <li><a class="found__hit" href=href rel="external"><Excerpt hit/></a></li> }
        })
        .collect_view();
    let rest = more.then(|| {
        view! { <p class="muted">{format!("These are the first {FOUND}: search for something longer to find the others.")}</p> }
    });
    view! {
        <section class="found" aria-label="Hits">
            <div class="found__head">
                <h2>{words}</h2>
                <a class="btn btn--sm" href=back>"Close the list"</a>
            </div>
            <ol>{hits}</ol>
            {rest}
        </section>
    }
}
