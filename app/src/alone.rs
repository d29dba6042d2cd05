//! One run as one HTML document that needs no server, no script and nothing beside it: the content component of the page,
//! drawn with everything open.

use leptos::prelude::*;
use protocol::fold::RunState;
use protocol::model::Timestamp;

use crate::content::run_view::RunView;
use crate::data::clock::PageClock;
use crate::data::expansion::Expansion;
use crate::data::live::Live;
use crate::data::run_store::RunStore;
use crate::shell::keys::Overlay;
use crate::ui::IconSprite;
use crate::ui::alone::Alone;

/// Nothing may be loaded, and nothing may run.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// What only a page with a server can do is not shown.
const STYLE: &str = "html,body{height:auto;overflow:visible}.alone{box-sizing:border-box;width:100%;max-width:860px;margin:0 auto;padding:24px 16px}\
    .alone button{pointer-events:none}.alone .codeblock button,.alone form,.alone .nodefoot:empty{display:none}\
    .alone .pre{max-height:none;overflow:auto}.alone .row__acts{display:none}";

/// The document of a run of which all content is at hand, as it was at a time.
pub fn document(title: &str, state: RunState, style: &str, now: Timestamp) -> String {
    let owner = Owner::new();
    owner.with(|| {
        provide_context(Alone);
        let clock = PageClock::standing_at(now);
        provide_context(clock);
        provide_context(Live::new(clock));
        provide_context(Expansion::all_open());
        provide_context(Overlay::new());
        // A style sheet cannot end its own element.
        let style = format!("{}{STYLE}", style.replace("</", "<\\/"));
        let title = match title.trim() {
            "" => "A run".to_owned(),
            title => title.to_owned(),
        };
        let page = view! {
            <html lang="en">
                <head>
                    <meta charset="utf-8"/>
                    <meta http-equiv="Content-Security-Policy" content=POLICY/>
                    <meta name="viewport" content="width=device-width, initial-scale=1"/>
                    <meta name="color-scheme" content="light dark"/>
                    <meta name="referrer" content="no-referrer"/>
                    <title>{format!("{title} · Runloom")}</title>
                    <style inner_html=style></style>
                </head>
                <body>
                    <main class="alone content" id="main">
                        <h1 class="page__h">{title}</h1>
                        <RunView run=RunStore::new(state) number=Signal::stored(1) folded=false/>
                    </main>
                    <IconSprite/>
                </body>
            </html>
        };
        format!("<!doctype html>{}", page.to_html())
    })
}
