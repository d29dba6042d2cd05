//! The run that the page is about, as a file: a menu of links, which works without script.

use leptos::prelude::*;

use crate::data::session_store::SessionStore;
use crate::ui::dynamic::{dynamic, dynamic_view, memo};
use crate::ui::{Icon, IconName};

/// The forms, each with what it is for.
const FORMS: [(&str, &str, &str); 3] = [
    ("html", "HTML", "one page that reads anywhere"),
    ("markdown", "Markdown", "for people"),
    ("json", "JSON lines", "can be imported again"),
];

/// The button and its menu; nothing while there is no run.
#[component]
pub fn ExportMenu(
    /// The open session.
    session: SessionStore,
) -> impl IntoView {
    let run = memo(move || session.current().map(|run| run.run_id().clone()));
    dynamic_view(move || {
        run.with(Option::is_some).then(|| {
            let links: Vec<_> = FORMS
                .into_iter()
                .map(|(form, name, purpose)| {
                    let href = dynamic(move || {
                        run.with(|run| {
                            run.as_ref()
                                .map(|run| format!("/api/runs/{run}/export?format={form}"))
                        })
                    });
                    view! {
                        <a class="menu__item" href=href download=true rel="external">
                            <span>{name}</span>
                            <span class="muted">{purpose}</span>
                        </a>
                    }
                })
                .collect();
            view! {
                <button type="button" class="btn btn--quiet not-phone" popovertarget="export">
                    <Icon icon=IconName::Export/>
                    "Export"
                </button>
                <div class="menu" id="export" popover="auto" role="group" aria-label="Export the run">
                    {links}
                </div>
            }
        })
    })
}
