//! What is shown in the place of a page that is not there or cannot be shown.

use leptos::prelude::*;
use leptos_meta::Title;
use protocol::api::Problem;

use crate::shell::focus::Arrival;
use crate::shell::keys::{Keyboard, Page};
use crate::shell::topbar::PlainTopbar;
use crate::ui::{Icon, IconName};

/// An address that leads nowhere.
#[component]
pub fn NotFound() -> impl IntoView {
    let problem = Problem {
        status: 404,
        title: "Not Found".to_owned(),
        ..crate::data::load::problem("not_found", "There is no page at this address.")
    };
    view! { <ProblemPage problem/> }
}

/// Why a page cannot be shown, and the way on.
#[component]
pub fn ProblemPage(
    /// What is wrong.
    problem: Problem,
) -> impl IntoView {
    #[cfg(not(feature = "hydrate"))]
    if let (Some(status), 400..) = (use_context::<crate::data::port::PageStatus>(), problem.status) {
        (status.0)(problem.status);
    }
    Arrival::use_context().arrive("#main");
    let title = if problem.status == 404 {
        "Nothing is here"
    } else {
        "This page cannot be shown"
    };
    view! {
        <Title text=format!("{title} · Runloom")/>
        <PlainTopbar/>
        <main class="page" id="main" tabindex="-1">
            <div class="empty" role="alert" data-code=problem.code>
                <Icon icon=IconName::StateUnresolved/>
                <h1>{title}</h1>
                <span>{problem.detail}</span>
                <a class="btn" href="/">"All sessions"</a>
            </div>
        </main>
        <Keyboard page=Page::Other/>
    }
}
