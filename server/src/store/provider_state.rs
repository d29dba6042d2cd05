//! What a provider wants back with the next request. It is in no op, snapshot, page or export.

use protocol::id::{AttemptId, NodeId, RunId};
use sqlx::types::Json;

use super::rows::AsJson;
use super::{Store, StoreError};
use crate::provider::Replay;

impl Store {
    /// Keeps one round as its provider sent it.
    pub async fn put_replay(
        &self,
        run_id: &RunId,
        node_id: &NodeId,
        attempt_id: &AttemptId,
        round: u32,
        replay: &Replay,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "insert into provider_state (attempt_id, round, run_id, node_id, state) values ($1, $2, $3, $4, $5)
             on conflict (attempt_id, round) do update set state = excluded.state",
        )
        .bind(attempt_id.as_str())
        .bind(round as i32)
        .bind(run_id.as_str())
        .bind(node_id.as_str())
        .bind(AsJson(replay))
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// The rounds of a run as their provider sent them.
    pub async fn replays_of_run(&self, run_id: &RunId) -> Result<Vec<(AttemptId, u32, Replay)>, StoreError> {
        let rows: Vec<(String, i32, Json<Replay>)> =
            sqlx::query_as("select attempt_id, round, state from provider_state where run_id = $1 order by attempt_id, round")
                .bind(run_id.as_str())
                .fetch_all(self.pool())
                .await?;
        rows.into_iter()
            .map(|(attempt, round, Json(replay))| {
                let attempt = attempt
                    .parse()
                    .map_err(|error| StoreError::row("provider_state", &attempt, error))?;
                Ok((attempt, round as u32, replay))
            })
            .collect()
    }
}
