//! The port through which the page gets its data while it is rendered on the server.

use app::data::port::{DataPort, PortFuture, SessionPage, SessionQuery, SessionsPage};
use protocol::id::SessionId;

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

    fn session(&self, session: SessionId) -> PortFuture<SessionPage> {
        let state = self.0.clone();
        Box::pin(async move { read(&state, session).await.map_err(|error| error.problem()) })
    }
}

async fn read(state: &AppState, session: SessionId) -> Result<SessionPage, ApiError> {
    let summary = state.execution.store().session(&session).await?;
    let summary = summary.ok_or_else(|| ApiError::not_found("session", &session))?;
    let mut snapshots = Vec::with_capacity(summary.runs.len());
    for run in &summary.runs {
        snapshots.push(runs::load_snapshot(state, &run.run_id).await?);
    }
    Ok(SessionPage {
        summary,
        snapshots,
        setup: sessions::setup_of(state),
    })
}
