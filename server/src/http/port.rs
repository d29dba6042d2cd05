//! The port through which the page gets its data while it is rendered on the server.

use app::data::port::{
    DataPort, Earlier, FOUND, Found, Lead, PortFuture, Replay, SessionPage, SessionQuery, SessionsPage,
    WINDOW, window_of,
};
use protocol::fold::RunState;
use protocol::id::SessionId;
use protocol::snapshot::Snapshot;

use super::AppState;
use super::error::ApiError;
use super::search::{self, BESIDE};
use super::{runs, sessions};

/// Reads from this server's own store.
pub(super) struct ServerData(pub(super) AppState);

impl DataPort for ServerData {
    fn sessions(&self, query: SessionQuery) -> PortFuture<SessionsPage> {
        let state = self.0.clone();
        Box::pin(async move {
            let list = sessions::list_sessions(&state, query)
                .await
                .map_err(|error| error.problem())?;
            Ok(SessionsPage {
                list,
                setup: sessions::setup_of(&state),
            })
        })
    }

    fn session(&self, session: SessionId, lead: Lead) -> PortFuture<SessionPage> {
        let state = self.0.clone();
        Box::pin(async move { read(&state, session, lead).await.map_err(|error| error.problem()) })
    }
}

async fn read(state: &AppState, session: SessionId, lead: Lead) -> Result<SessionPage, ApiError> {
    let summary = state.execution.store().session(&session).await?;
    let summary = summary.ok_or_else(|| ApiError::not_found("session", &session))?;
    let count = summary.runs.len();
    let mut snapshots = Vec::with_capacity(count);
    for (place, run) in summary.runs.iter().enumerate() {
        let window = window_of(place, count);
        snapshots.push(runs::load_snapshot(state, &run.run_id, Some(window)).await?);
    }
    let mut place = lead.earlier;
    if let Some(place) = &place {
        add_earlier(state, &mut snapshots, place, WINDOW).await?;
    } else if let Some(thing) = &lead.thing {
        place = add_thing(state, &mut snapshots, thing).await?;
    }
    let mut replay = None;
    if let Some((run_id, seq)) = &lead.moment
        && let Some(snapshot) = snapshots
            .iter_mut()
            .find(|snapshot| snapshot.run.run_id == *run_id)
    {
        *snapshot = runs::load_moment(state, run_id, *seq, true).await?;
        let told = runs::load_marks(state, run_id).await?;
        replay = Some(Replay {
            run_id: told.run_id,
            seq: snapshot.seq,
            last: told.last,
            marks: told.marks,
        });
    }
    let found = match &lead.search {
        Some(query) => {
            let answer = search::find(state, &session, query, None, FOUND).await;
            Some(Found::of(query, answer.map_err(|error| error.problem())))
        }
        None => None,
    };
    Ok(SessionPage {
        summary,
        snapshots,
        place,
        found,
        replay,
        setup: sessions::setup_of(state),
    })
}

/// Adds the blocks before a place to the window of the run that it is in, if any is.
async fn add_earlier(
    state: &AppState,
    snapshots: &mut [Snapshot],
    place: &Earlier,
    most: u32,
) -> Result<(), ApiError> {
    let holder = snapshots.iter_mut().find(|snapshot| {
        let mut attempts = snapshot.attempts.iter();
        attempts.any(|attempt| attempt.attempt_id == place.attempt_id)
    });
    let Some(snapshot) = holder else {
        return Ok(());
    };
    if let Some(earlier) = runs::load_earlier(state, &snapshot.run.run_id, place, most).await? {
        let mut whole = RunState::from_snapshot(snapshot.clone());
        // It is of the same run, and nothing was passed over.
        let _ = whole.add(earlier);
        *snapshot = whole.to_snapshot();
    }
    Ok(())
}

/// Adds what leads to a block or node that no window holds, from the outermost call inwards. Gives the place of the
/// outermost.
async fn add_thing(
    state: &AppState,
    snapshots: &mut [Snapshot],
    thing: &str,
) -> Result<Option<Earlier>, ApiError> {
    let is_there = snapshots.iter().any(|snapshot| {
        let mut nodes = snapshot.nodes.iter();
        let mut blocks = snapshot.blocks.iter();
        nodes.any(|node| node.node_id.as_str() == thing)
            || blocks.any(|block| block.block_id.as_str() == thing)
    });
    if is_there {
        return Ok(None);
    }
    let places = state.execution.store().way_to(thing).await?;
    let mut first = None;
    for (attempt_id, index) in places {
        let before = index.saturating_add(1);
        let place = Earlier { attempt_id, before };
        add_earlier(state, snapshots, &place, BESIDE).await?;
        first = first.or(Some(place));
    }
    Ok(first)
}
