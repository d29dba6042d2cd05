//! The port through which the page gets its data while it is rendered on the server.

use app::data::port::{
    DataPort, Earlier, PortFuture, SessionPage, SessionQuery, SessionsPage, WINDOW, window_of,
};
use protocol::fold::RunState;
use protocol::id::SessionId;
use protocol::snapshot::Snapshot;

use super::AppState;
use super::error::ApiError;
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

    fn session(&self, session: SessionId, earlier: Option<Earlier>) -> PortFuture<SessionPage> {
        let state = self.0.clone();
        Box::pin(async move {
            read(&state, session, earlier)
                .await
                .map_err(|error| error.problem())
        })
    }
}

async fn read(
    state: &AppState,
    session: SessionId,
    earlier: Option<Earlier>,
) -> Result<SessionPage, ApiError> {
    let summary = state.execution.store().session(&session).await?;
    let summary = summary.ok_or_else(|| ApiError::not_found("session", &session))?;
    let count = summary.runs.len();
    let mut snapshots = Vec::with_capacity(count);
    for (place, run) in summary.runs.iter().enumerate() {
        let window = window_of(place, count);
        snapshots.push(runs::load_snapshot(state, &run.run_id, Some(window)).await?);
    }
    if let Some(place) = &earlier {
        add_earlier(state, &mut snapshots, place).await?;
    }
    Ok(SessionPage {
        summary,
        snapshots,
        setup: sessions::setup_of(state),
    })
}

/// Adds the blocks before a place to the window of the run that it is in, if any is.
async fn add_earlier(state: &AppState, snapshots: &mut [Snapshot], place: &Earlier) -> Result<(), ApiError> {
    let holder = snapshots.iter_mut().find(|snapshot| {
        let mut attempts = snapshot.attempts.iter();
        attempts.any(|attempt| attempt.attempt_id == place.attempt_id)
    });
    let Some(snapshot) = holder else {
        return Ok(());
    };
    if let Some(earlier) = runs::load_earlier(state, &snapshot.run.run_id, place, WINDOW).await? {
        let mut whole = RunState::from_snapshot(snapshot.clone());
        // It is of the same run, and nothing was passed over.
        let _ = whole.add(earlier);
        *snapshot = whole.to_snapshot();
    }
    Ok(())
}
