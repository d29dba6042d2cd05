//! The HTTP calls of the page. On the server they do not exist: there a page's own forms do the same.

#[cfg(feature = "hydrate")]
pub use browser::*;

#[cfg(feature = "hydrate")]
mod browser {
    use futures::future::{try_join, try_join_all};
    use gloo_net::http::{Request, RequestBuilder, Response};
    use protocol::api::{
        CreateRun, CreateSession, Problem, RunCreated, SessionCreated, SessionList, SessionSummary,
    };
    use protocol::id::{NodeId, RunId, SessionId};
    use protocol::snapshot::Snapshot;
    use protocol::state::Channel;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::data::load::problem;
    use crate::data::port::{SessionPage, SessionQuery, SessionsPage, Setup};

    fn unreachable_server(error: &gloo_net::Error) -> Problem {
        problem(
            "network",
            format!("The server cannot be reached ({error}). Nothing was lost: try again."),
        )
    }

    async fn checked(response: Response) -> Result<Response, Problem> {
        if response.ok() {
            return Ok(response);
        }
        let status = response.status();
        Err(response.json::<Problem>().await.unwrap_or_else(|_| Problem {
            status,
            ..problem(
                "http",
                format!("The server answered {status} {}.", response.status_text()),
            )
        }))
    }

    async fn answer<T: DeserializeOwned>(response: Result<Response, gloo_net::Error>) -> Result<T, Problem> {
        let response = checked(response.map_err(|error| unreachable_server(&error))?).await?;
        response
            .json()
            .await
            .map_err(|error| problem("answer", format!("The server's answer cannot be read: {error}")))
    }

    async fn get<T: DeserializeOwned>(path: &str) -> Result<T, Problem> {
        answer(Request::get(path).send().await).await
    }

    async fn post<B: Serialize, T: DeserializeOwned>(
        request: RequestBuilder,
        body: &B,
    ) -> Result<T, Problem> {
        let request = request.json(body).map_err(|error| unreachable_server(&error))?;
        answer(request.send().await).await
    }

    /// Creates a session.
    pub async fn create_session(body: &CreateSession) -> Result<SessionCreated, Problem> {
        post(Request::post("/api/sessions"), body).await
    }

    /// Creates a run. The same `key` gives the same run, so that repeating the call is harmless.
    pub async fn create_run(session: &SessionId, body: &CreateRun, key: &str) -> Result<RunCreated, Problem> {
        let request = Request::post(&format!("/api/sessions/{session}/runs")).header("Idempotency-Key", key);
        post(request, body).await
    }

    /// Stops a run. Repeating it is harmless.
    pub async fn cancel_run(run: &RunId) -> Result<(), Problem> {
        command(&format!("/api/runs/{run}/cancel")).await
    }

    /// Asks for what an address stands for, without a body. Repeating it is harmless.
    pub async fn command(path: &str) -> Result<(), Problem> {
        let response = Request::post(path).send().await;
        checked(response.map_err(|error| unreachable_server(&error))?)
            .await
            .map(drop)
    }

    /// What can be started.
    pub async fn setup() -> Result<Setup, Problem> {
        get("/api/setup").await
    }

    /// One page of the list of sessions.
    pub async fn sessions(query: &SessionQuery) -> Result<SessionList, Problem> {
        let fields = [
            ("query", query.search.as_deref()),
            ("status", query.status.map(crate::data::port::RunFilter::as_str)),
            ("before", query.before.as_deref()),
        ];
        let fields: Vec<(&str, &str)> = fields
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect();
        answer(Request::get("/api/sessions").query(fields).send().await).await
    }

    /// The state of a run.
    pub async fn snapshot(run: &RunId) -> Result<Snapshot, Problem> {
        get(&format!("/api/runs/{run}/snapshot")).await
    }

    /// What the page of the sessions shows.
    pub async fn sessions_page(query: SessionQuery) -> Result<SessionsPage, Problem> {
        let (list, setup) = try_join(sessions(&query), setup()).await?;
        Ok(SessionsPage { list, setup })
    }

    /// What the page of a session shows.
    pub async fn session_page(session: SessionId) -> Result<SessionPage, Problem> {
        let path = format!("/api/sessions/{session}");
        let (summary, setup) = try_join(get::<SessionSummary>(&path), setup()).await?;
        let snapshots = try_join_all(summary.runs.iter().map(|run| snapshot(&run.run_id))).await?;
        Ok(SessionPage {
            summary,
            snapshots,
            setup,
        })
    }

    /// A part of what a channel of a node holds, from a byte on: at most `length` bytes, cut at a character.
    pub async fn output_part(
        node: &NodeId,
        channel: Channel,
        from: u64,
        length: u64,
    ) -> Result<String, Problem> {
        let last = from.saturating_add(length).saturating_sub(1);
        let response = Request::get(&format!("/api/nodes/{node}/output?channel={channel}"))
            .header("Range", &format!("bytes={from}-{last}"))
            .send()
            .await;
        let response = checked(response.map_err(|error| unreachable_server(&error))?).await?;
        let bytes = response
            .binary()
            .await
            .map_err(|error| unreachable_server(&error))?;
        // A server that does not know ranges sends the whole.
        let bytes = match (response.status(), usize::try_from(from)) {
            (200, Ok(from)) => bytes.get(from..).unwrap_or_default(),
            _ => bytes.as_slice(),
        };
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned(),
        })
    }

    /// A key that no other request has.
    pub fn idempotency_key() -> String {
        let part = || (js_sys::Math::random() * 2f64.powi(48)) as u64;
        format!(
            "page-{:x}-{:012x}{:012x}",
            js_sys::Date::now() as u64,
            part(),
            part()
        )
    }
}
