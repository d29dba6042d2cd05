//! Ids of elements that are unique on the page, also where a node is shown twice: in the content and in the details.

use leptos::prelude::*;

/// Where content is drawn. In context below the details panel.
#[derive(Debug, Clone, Copy)]
pub struct Scope(pub &'static str);

/// An id within the place where content is drawn.
pub fn scoped(id: impl std::fmt::Display) -> String {
    match use_context::<Scope>() {
        Some(Scope(scope)) => format!("{scope}-{id}"),
        None => id.to_string(),
    }
}
