//! A run as one HTML document, drawn by the page's own content component.

use bytes::Bytes;
use protocol::id::RunId;

use crate::http::assets::asset;
use crate::store::{Store, StoreError};

/// The document of a run as it is now; none when there is no such run. All of the run is in memory while it is drawn.
pub async fn document(store: &Store, run_id: &RunId, now: i64) -> Result<Option<Bytes>, StoreError> {
    let Some((session, _)) = store.heads_of(run_id).await? else {
        return Ok(None);
    };
    let Some(state) = store.load_run(run_id).await? else {
        return Ok(None);
    };
    let style = asset("/pkg/runloom.css")
        .map(|asset| asset.bytes)
        .unwrap_or_default();
    let drawn = tokio::task::spawn_blocking(move || {
        let style = String::from_utf8_lossy(&style);
        app::alone::document(&session.title, state, &style, now)
    });
    let html = drawn
        .await
        .map_err(|error| StoreError::row("runs", run_id, error))?;
    Ok(Some(html.into()))
}
