//! The HTTP calls of the page. On the server they do not exist: there a page's own forms do the same.

#[cfg(feature = "hydrate")]
pub use browser::*;

#[cfg(feature = "hydrate")]
mod browser {
    use futures::future::{try_join, try_join_all};
    use gloo_net::http::{Request, RequestBuilder, Response};
    use protocol::api::{
        AnswerApproval, CreateRun, CreateSession, HighlightText, Highlighted, Problem, RunCreated, RunDigest,
        RunMarks, SessionCreated, SessionList, SessionSummary,
    };
    use protocol::fold::RunState;
    use protocol::id::{NodeId, RunId, SessionId};
    use protocol::op::Entry;
    use protocol::search::{SearchAnswer, WayTo};
    use protocol::snapshot::Snapshot;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::data::connection::UNREACHABLE;
    use crate::data::load::problem;
    use crate::data::port::{
        Earlier, FOUND, Found, Lead, Replay, SessionPage, SessionQuery, SessionsPage, Setup, WINDOW,
        window_of,
    };

    fn unreachable_server(error: &gloo_net::Error) -> Problem {
        match error {
            // The browser does not say more than that it could not be fetched, each in its own words.
            gloo_net::Error::JsError(_) => problem(
                UNREACHABLE,
                "The server cannot be reached. Nothing was lost: try again.",
            ),
            error => problem("request", format!("The request could not be made: {error}.")),
        }
    }

    async fn checked(response: Response) -> Result<Response, Problem> {
        if response.ok() {
            return Ok(response);
        }
        let status = response.status();
        let said = read::<Problem>(&response).await;
        Err(said.unwrap_or_else(|_| Problem {
            status,
            ..problem(
                "http",
                format!("The server answered {status} {}.", response.status_text()),
            )
        }))
    }

    async fn answer<T: DeserializeOwned>(response: Result<Response, gloo_net::Error>) -> Result<T, Problem> {
        let response = checked(response.map_err(|error| unreachable_server(&error))?).await?;
        read(&response)
            .await
            .map_err(|error| problem("answer", format!("The server's answer cannot be read: {error}")))
    }

    async fn read<T: DeserializeOwned>(response: &Response) -> Result<T, gloo_net::Error> {
        let text = response.text().await?;
        protocol::from_json(&text).map_err(gloo_net::Error::SerdeError)
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

    /// Answers a call that waits for a person. Repeating it is harmless.
    pub async fn answer_approval(node: &NodeId, body: &AnswerApproval) -> Result<(), Problem> {
        let request = Request::post(&format!("/api/nodes/{node}/approval")).json(body);
        let response = request.map_err(|error| unreachable_server(&error))?.send().await;
        checked(response.map_err(|error| unreachable_server(&error))?)
            .await
            .map(drop)
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

    /// A window of a run: about `most` of its newest blocks.
    pub async fn window(run: &RunId, most: u32) -> Result<Snapshot, Problem> {
        get(&format!("/api/runs/{run}/snapshot?window={most}")).await
    }

    /// Blocks before a place, at most `most`, with what they called.
    pub async fn earlier(run: &RunId, place: &Earlier, most: u32) -> Result<Snapshot, Problem> {
        let Earlier { attempt_id, before } = place;
        get(&format!(
            "/api/runs/{run}/snapshot?window={most}&attempt={attempt_id}&before={before}"
        ))
        .await
    }

    /// A run as it was after an op; of longer texts a beginning.
    pub async fn moment(run: &RunId, seq: u64) -> Result<Snapshot, Problem> {
        get(&format!("/api/runs/{run}/snapshot?window={WINDOW}&at={seq}")).await
    }

    /// Ops of a run after one, at most `most`.
    pub async fn ops(run: &RunId, after: u64, most: u32) -> Result<Vec<Entry>, Problem> {
        let path = format!("/api/runs/{run}/ops?after={after}&limit={most}");
        let response = Request::get(&path).send().await;
        let response = checked(response.map_err(|error| unreachable_server(&error))?).await?;
        let text = response
            .text()
            .await
            .map_err(|error| unreachable_server(&error))?;
        text.lines()
            .map(|line| Entry::from_json(line).map_err(|error| problem("answer", error.to_string())))
            .collect()
    }

    /// The digest of a whole run.
    pub async fn run_digest(run: &RunId) -> Result<RunDigest, Problem> {
        get(&format!("/api/runs/{run}/digest")).await
    }

    /// What the page of the sessions shows.
    pub async fn sessions_page(query: SessionQuery) -> Result<SessionsPage, Problem> {
        let (list, setup) = try_join(sessions(&query), setup()).await?;
        Ok(SessionsPage { list, setup })
    }

    /// What the page of a session shows.
    pub async fn session_page(session: SessionId, lead: Lead) -> Result<SessionPage, Problem> {
        let path = format!("/api/sessions/{session}");
        let (summary, setup) = try_join(get::<SessionSummary>(&path), setup()).await?;
        let count = summary.runs.len();
        let windows = summary
            .runs
            .iter()
            .enumerate()
            .map(|(place, run)| window(&run.run_id, window_of(place, count)));
        let mut snapshots = try_join_all(windows).await?;
        let mut added = Vec::new();
        if let Some(place) = &lead.earlier {
            let mut holders = snapshots.iter();
            let holder = holders.find(|snapshot| {
                let mut attempts = snapshot.attempts.iter();
                attempts.any(|attempt| attempt.attempt_id == place.attempt_id)
            });
            if let Some(snapshot) = holder {
                added.push(earlier(&snapshot.run.run_id, place, WINDOW).await?);
            }
        } else if let Some(thing) = &lead.thing {
            // Where it leads nowhere, the page says so.
            added.extend(
                way(&summary.session_id, thing)
                    .await
                    .into_iter()
                    .flat_map(|way| way.windows),
            );
        }
        for older in added {
            let mut known = snapshots.iter_mut();
            if let Some(snapshot) = known.find(|snapshot| snapshot.run.run_id == older.run.run_id) {
                let mut state = RunState::from_snapshot(snapshot.clone());
                // Both are of the same run, and nothing came in between.
                let _ = state.add(older);
                *snapshot = state.to_snapshot();
            }
        }
        let mut replay = None;
        if let Some((run, seq)) = &lead.moment
            && let Some(snapshot) = snapshots.iter_mut().find(|snapshot| snapshot.run.run_id == *run)
        {
            *snapshot = moment(run, *seq).await?;
            let told = get::<RunMarks>(&format!("/api/runs/{run}/marks")).await?;
            replay = Some(Replay {
                run_id: told.run_id,
                seq: snapshot.seq,
                last: told.last,
                marks: told.marks,
            });
        }
        let found = match &lead.search {
            Some(query) => {
                let answer = search(&summary.session_id, query, None, FOUND).await;
                Some(Found::of(query, answer))
            }
            None => None,
        };
        Ok(SessionPage {
            summary,
            snapshots,
            place: lead.earlier,
            found,
            replay,
            setup,
        })
    }

    /// What is found in a session, from a place on.
    pub async fn search(
        session: &SessionId,
        query: &str,
        after: Option<&str>,
        most: u32,
    ) -> Result<SearchAnswer, Problem> {
        let most = most.to_string();
        let mut fields = vec![("q", query), ("limit", most.as_str())];
        fields.extend(after.map(|after| ("after", after)));
        let path = format!("/api/sessions/{session}/search");
        answer(Request::get(&path).query(fields).send().await).await
    }

    /// What leads to a block or a node.
    pub async fn way(session: &SessionId, thing: &str) -> Result<WayTo, Problem> {
        let path = format!("/api/sessions/{session}/way");
        answer(Request::get(&path).query([("to", thing)]).send().await).await
    }

    /// The words of a text's language, or what a pattern matches in it.
    pub async fn highlight(body: &HighlightText) -> Result<Highlighted, Problem> {
        post(Request::post("/api/highlight"), body).await
    }

    /// A part of a text, from a byte on: at most `length` bytes, cut at characters. It begins where it says.
    pub async fn content_part(address: &str, from: u64, length: u64) -> Result<(u64, String), Problem> {
        let last = from.saturating_add(length).saturating_sub(1);
        let response = Request::get(address)
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
        // The rest of a character that begins before.
        let rest = bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
        let bytes = bytes.get(rest..).unwrap_or_default();
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned(),
        };
        Ok((from + rest as u64, text))
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
