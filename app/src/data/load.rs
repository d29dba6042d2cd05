//! A page's data: from the port on the server, over HTTP in the browser. What the server loaded is written into the
//! page and used again by the browser, so that both render the same tree and nothing is fetched twice.

use std::sync::Arc;

use leptos::prelude::*;
use protocol::api::Problem;
use protocol::id::SessionId;

use super::port::{Lead, SessionPage, SessionQuery, SessionsPage};
use crate::content::words::line;

/// Something that was loaded, or why it was not.
pub type Loaded<T> = Result<Arc<T>, Problem>;

/// A problem that arose in the page itself.
pub fn problem(code: &str, detail: impl Into<String>) -> Problem {
    Problem {
        kind: "about:blank".to_owned(),
        title: "Not possible".to_owned(),
        status: 0,
        code: code.to_owned(),
        detail: detail.into(),
    }
}

/// The list of sessions for a query that may change.
pub fn sessions(query: impl Fn() -> SessionQuery + Send + Sync + 'static) -> Resource<Loaded<SessionsPage>> {
    #[cfg(feature = "hydrate")]
    {
        Resource::new_blocking(query, |query| {
            send_wrapper::SendWrapper::new(
                async move { super::api::sessions_page(query).await.map(Arc::new) },
            )
        })
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let data = use_context::<super::port::Data>();
        Resource::new_blocking(query, move |query| {
            let data = data.clone();
            async move {
                match data {
                    Some(data) => data.0.sessions(query).await.map(Arc::new),
                    None => Err(no_port()),
                }
            }
        })
    }
}

/// A session by the id in the address, which may change, with the place that it leads to.
pub fn session(
    address: impl Fn() -> (String, Lead) + Send + Sync + 'static,
) -> Resource<Loaded<SessionPage>> {
    fn parse(id: &str) -> Result<SessionId, Problem> {
        id.parse().map_err(|_| Problem {
            status: 404,
            title: "Not Found".to_owned(),
            // An address may be as long as its sender likes.
            ..problem(
                "session_not_found",
                format!("There is no session {:?}.", line(id, 60)),
            )
        })
    }
    #[cfg(feature = "hydrate")]
    {
        Resource::new_blocking(address, |(id, lead)| {
            send_wrapper::SendWrapper::new(async move {
                super::api::session_page(parse(&id)?, lead).await.map(Arc::new)
            })
        })
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let data = use_context::<super::port::Data>();
        Resource::new_blocking(address, move |(id, lead)| {
            let data = data.clone();
            async move {
                let id = parse(&id)?;
                match data {
                    Some(data) => data.0.session(id, lead).await.map(Arc::new),
                    None => Err(no_port()),
                }
            }
        })
    }
}

#[cfg(not(feature = "hydrate"))]
fn no_port() -> Problem {
    Problem {
        status: 500,
        ..problem("internal", "The page was rendered without access to data.")
    }
}
