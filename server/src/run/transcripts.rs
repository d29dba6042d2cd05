//! Where the transcripts of a run are: files beside its owner while it executes, in the database once it is over.

use protocol::id::RunId;

use super::Services;
use crate::store::StoreError;
use crate::stream::{Transcript, TranscriptError};

/// Why a transcript cannot be moved.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveError {
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens a transcript for writing. One of a run that was over and goes on again is brought back first.
pub(super) async fn open(services: &Services, run_id: &RunId, stream: &str) -> Result<Transcript, MoveError> {
    let files = &services.transcripts;
    let _no_move = files.no_move().await;
    if !files.exists(run_id.as_str(), stream).await?
        && let Some(text) = services.store.transcript(run_id, stream).await?
    {
        files.restore(run_id.as_str(), stream, text).await?;
    }
    Ok(files
        .open(run_id.as_str(), stream, services.clock.clone())
        .await?)
}

/// Moves the transcripts of a run that is over into the database. Those that cannot be moved stay where they are.
/// `goes_on` says whether the run executes again by now.
pub(super) async fn store(services: &Services, run_id: &RunId, goes_on: impl Fn() -> bool) {
    let files = &services.transcripts;
    let moved = async {
        for file in files.list(run_id.as_str()).await? {
            let _alone = files.moving().await;
            if goes_on() {
                break;
            }
            let text = files.recorded(run_id.as_str(), &file.stream).await?;
            services.store.put_transcript(run_id, &file.stream, text).await?;
            files.remove(run_id.as_str(), &file.stream).await?;
        }
        Ok::<_, MoveError>(())
    };
    if let Err(error) = moved.await {
        tracing::warn!(run.id = %run_id, %error, "the transcripts stay in the data folder");
    }
}

/// Moves what an earlier server left in the data folder of runs that are over.
pub(super) async fn store_left(services: &Services, executes: impl Fn(&RunId) -> bool) {
    let runs = match services.transcripts.runs().await {
        Ok(runs) => runs,
        Err(error) => return tracing::warn!(%error, "the transcripts cannot be listed"),
    };
    for run_id in runs.iter().filter_map(|name| name.parse::<RunId>().ok()) {
        match services.store.run_status(&run_id).await {
            Ok(Some(status)) if status.is_final() && !executes(&run_id) => {
                store(services, &run_id, || executes(&run_id)).await;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(run.id = %run_id, %error, "the run cannot be looked at"),
        }
    }
}
