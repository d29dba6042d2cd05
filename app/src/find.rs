//! Searching the content of a session: a bar over the page, and the hits that it leads to.
//!
//! The server searches ([`protocol::search`]), because much of a session is not in the page: closed rows, older attempts,
//! blocks that are not loaded, later pieces of long texts. Going to a hit loads and opens what leads to it
//! ([`crate::data::guide`]); what the user has opened and closed stays as it was chosen.
//!
//! `Ctrl F` opens the bar, since the search of a browser would say of most of a session that it is not there. Within the bar the
//! same key is the browser's, for whoever wants that one. Writing moves nothing: it tells how often a text is found and marks
//! what is in sight; only going to a hit leaves what is being read.

#[cfg(feature = "hydrate")]
mod browser;
pub mod list;
#[cfg(feature = "hydrate")]
mod marks;
#[cfg(test)]
mod tests;

use leptos::html::Input;
use leptos::prelude::*;
use protocol::api::Problem;
use protocol::search::{MAX_QUERY, SearchField, SearchHit};

use crate::data::guide::Guide;
use crate::data::session_store::SessionStore;
use crate::shell::scroll::Follow;
use crate::ui::dynamic::{dynamic, dynamic_view, handler, memo};
use crate::ui::{Icon, IconButton, IconName, format};

/// What is known of the hits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Search {
    /// Nothing was asked.
    #[default]
    None,
    /// The server searches.
    #[cfg_attr(
        not(any(feature = "hydrate", test)),
        expect(dead_code, reason = "only the browser searches")
    )]
    Asked,
    /// It has answered.
    Done,
    /// It could not.
    #[cfg_attr(
        not(any(feature = "hydrate", test)),
        expect(dead_code, reason = "only the browser searches")
    )]
    Failed(String),
}

/// The search of a session's page. A copy is another handle on it.
#[derive(Clone, Copy)]
pub struct Find {
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser searches")
    )]
    session: SessionStore,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser searches")
    )]
    guide: Guide,
    #[cfg_attr(
        not(feature = "hydrate"),
        expect(dead_code, reason = "only the browser searches")
    )]
    follow: Follow,
    field: NodeRef<Input>,
    is_open: RwSignal<bool>,
    /// What stands in the field.
    query: RwSignal<String>,
    search: RwSignal<Search>,
    hits: RwSignal<Vec<SearchHit>>,
    /// Where the server goes on when more is asked for.
    next: RwSignal<Option<String>>,
    /// The place of the hit that was gone to.
    current: RwSignal<Option<usize>>,
    /// What is to be said about the way there.
    note: RwSignal<Option<&'static str>>,
}

impl Find {
    /// Closed, for a session.
    pub fn new(session: SessionStore, guide: Guide, follow: Follow) -> Self {
        let find = Self {
            session,
            guide,
            follow,
            field: NodeRef::new(),
            is_open: RwSignal::new(false),
            query: RwSignal::new(String::new()),
            search: RwSignal::new(Search::None),
            hits: RwSignal::new(Vec::new()),
            next: RwSignal::new(None),
            current: RwSignal::new(None),
            note: RwSignal::new(None),
        };
        #[cfg(feature = "hydrate")]
        browser::start(find);
        find
    }

    /// That of the session in context.
    pub fn use_context() -> Option<Self> {
        use_context()
    }

    /// How many hits there are and which one is shown.
    fn count(self) -> String {
        let hits = self.hits.with(Vec::len);
        let more = self.next.with(Option::is_some);
        self.search
            .with(|search| count(search, hits, more, self.current.get()))
    }

    /// The hit that was gone to.
    fn hit(self) -> Option<SearchHit> {
        let place = self.current.get()?;
        self.hits.with(|hits| hits.get(place).cloned())
    }
}

/// How many hits there are, and which one is shown.
fn count(search: &Search, hits: usize, more: bool, current: Option<usize>) -> String {
    let all = format::count(hits as u64) + if more { "+" } else { "" };
    match (search, hits, current) {
        (Search::None, ..) => String::new(),
        (Search::Failed(why), ..) => why.clone(),
        (Search::Asked, 0, _) => "Searching".to_owned(),
        (Search::Done, 0, _) => "No hits".to_owned(),
        (_, _, Some(place)) => format!("{} of {all}", format::count(place as u64 + 1)),
        (_, 1, None) if !more => "1 hit".to_owned(),
        (_, _, None) => format!("{all} hits"),
    }
}

/// Where a hit stands, in words.
fn place(field: SearchField) -> &'static str {
    match field {
        SearchField::Message => "Prompt",
        SearchField::Text => "Text",
        SearchField::Reasoning => "Reasoning",
        SearchField::Refusal => "Refusal",
        SearchField::Name => "Name",
        SearchField::Title => "Title",
        SearchField::Error => "Error",
        SearchField::Arguments => "Arguments",
        SearchField::Progress => "Progress",
        SearchField::Log => "Log",
        SearchField::Result => "Return value",
        SearchField::Notice => "Notice",
    }
}

/// What stands around a hit, on one line.
fn excerpt(hit: &SearchHit) -> [String; 3] {
    let line = |text: &str| {
        let words: String = text
            .chars()
            .map(|letter| {
                if letter.is_whitespace() || letter.is_control() {
                    ' '
                } else {
                    letter
                }
            })
            .collect();
        words
    };
    let before = line(&hit.before);
    let near = before.char_indices().rev().nth(23).map_or(0, |(place, _)| place);
    let mut near = before.get(near..).unwrap_or(&before).to_owned();
    if near.len() < before.len() {
        near.insert(0, '…');
    }
    [near, line(&hit.found), line(&hit.after)]
}

/// What stands around a hit, with the hit marked.
#[component]
fn Excerpt(hit: SearchHit) -> impl IntoView {
    let [before, found, after] = excerpt(&hit);
    view! {
        <b>{place(hit.field)}</b>
        <span class="find__words">{before}<mark>{found}</mark>{after}</span>
    }
}

/// In the bar at the top: opens the search; without script a form whose answer is a list.
#[component]
pub fn FindForm(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let action = format!("/s/{}", untrack(|| session.session_id()));
    let find = Find::use_context();
    let on_submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        #[cfg(feature = "hydrate")]
        if let Some(find) = find {
            find.open();
        }
        #[cfg(not(feature = "hydrate"))]
        let _ = find;
    };
    view! {
        <form class="findform" role="search" aria-label="Session" method="get" action=action on:submit=handler(on_submit)>
            <input type="search" name="q" maxlength=MAX_QUERY.to_string() aria-label="Search this session" placeholder="Search"/>
            <button
                type="submit"
                class="btn btn--quiet btn--icon"
                aria-label="Search this session"
                title="Search (/ or Ctrl F)"
                aria-keyshortcuts="/ Control+F"
            >
                <Icon icon=IconName::Search/>
            </button>
        </form>
    }
}

/// The bar itself, over the content, while it is open.
#[component]
pub fn FindBar(
    /// What it shows.
    find: Find,
) -> impl IntoView {
    dynamic_view(move || find.is_open.get().then(|| view! { <Bar find/> }))
}

#[component]
fn Bar(find: Find) -> impl IntoView {
    #[cfg(feature = "hydrate")]
    let (on_input, on_key, step, close) = (
        move |_| find.written(),
        move |event| find.key(&event),
        move |by| find.step(by),
        move || find.close(),
    );
    #[cfg(not(feature = "hydrate"))]
    let (on_input, on_key, step, close) = (
        |_: leptos::ev::Event| {},
        |_: leptos::ev::KeyboardEvent| {},
        |_: isize| {},
        || {},
    );
    let is_wrong = memo(move || match find.search.get() {
        Search::Failed(_) => true,
        Search::Done => find.hits.with(Vec::is_empty),
        Search::None | Search::Asked => false,
    });
    let excerpt = dynamic_view(move || {
        let note = dynamic(move || find.note.get());
        find.hit().map(
            |hit| view! { <p class="find__excerpt"><Excerpt hit/><span class="find__note">{note}</span></p> },
        )
    });
    let said = dynamic(move || {
        find.hit()
            .map(|hit| format!(": {}, {}", place(hit.field), excerpt_words(&hit)))
    });
    view! {
        <div class="find" role="search" aria-label="Content" on:keydown=handler(on_key)>
            <div class="find__bar">
                <label class="field find__field" class=("field--bad", move || is_wrong.get())>
                    <Icon icon=IconName::Search small=true/>
                    <span class="sr-only">"Search the content"</span>
                    <input
                        id="find"
                        type="search"
                        autocomplete="off"
                        spellcheck="false"
                        maxlength=MAX_QUERY.to_string()
                        placeholder="Search the content"
                        node_ref=find.field
                        prop:value=move || find.query.get()
                        on:input=handler(on_input)
                    />
                </label>
                <span class="find__count num" role="status">
                    {dynamic(move || find.count())}
                    <span class="sr-only">{said}</span>
                </span>
                <IconButton icon=IconName::Up label="Previous hit".to_owned() small=true on_click=Callback::new(move |_| step(-1))/>
                <IconButton icon=IconName::Down label="Next hit".to_owned() small=true on_click=Callback::new(move |_| step(1))/>
                <IconButton icon=IconName::X label="Close the search".to_owned() small=true on_click=Callback::new(move |_| close())/>
            </div>
            {excerpt}
        </div>
    }
}

fn excerpt_words(hit: &SearchHit) -> String {
    excerpt(hit).concat()
}

/// Why nothing is listed, or how much is.
fn answer_words(query: &str, hits: usize, more: bool, problem: Option<&Problem>) -> String {
    match problem {
        Some(problem) => problem.detail.clone(),
        None => {
            let words = count(&Search::Done, hits, more, None);
            format!("{words} for “{query}”")
        }
    }
}
