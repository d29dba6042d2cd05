//! A run as it was at any op.

use protocol::api::{Mark, MarkKind};
use protocol::fold::RunState;
use protocol::id::RunId;
use protocol::op::Entry;

use super::{Store, StoreError, journal};

/// Ops that are read at a time.
const PAGE: u32 = 2_000;

/// The most marks of a run.
const MOST_MARKS: i64 = 2_000;

impl Store {
    /// The state of a run after an op, folded from its journal; after the last one where it has fewer. Where the journal
    /// is not whole any more the ops are made from the rows. None when there is no such run.
    pub async fn state_at(&self, run_id: &RunId, seq: u64) -> Result<Option<RunState>, StoreError> {
        let (Some(session_id), Some(last)) = (self.session_of(run_id).await?, self.last_seq(run_id).await?)
        else {
            return Ok(None);
        };
        let end = seq.min(last);
        let mut state = RunState::new(run_id.clone(), session_id);
        if journal::count_to(self.pool(), run_id, end).await? < end {
            return self.retold_to(state, end).await.map(Some);
        }
        while state.seq() < end {
            let left = u32::try_from(end - state.seq()).unwrap_or(PAGE);
            let entries = journal::after(self.pool(), run_id, state.seq(), PAGE.min(left)).await?;
            if entries.is_empty() {
                break;
            }
            for entry in &entries {
                state
                    .apply(entry)
                    .map_err(|error| StoreError::row("ops", run_id, error))?;
            }
        }
        Ok(Some(state))
    }

    async fn retold_to(&self, mut state: RunState, end: u64) -> Result<RunState, StoreError> {
        let run_id = state.run().run_id.clone();
        let whole = self.load_run(&run_id).await?;
        for ((at, op), seq) in whole.iter().flat_map(RunState::retold).zip(1..=end) {
            let entry = Entry {
                run_id: run_id.clone(),
                generation: 0,
                seq,
                at,
                op,
            };
            state
                .apply(&entry)
                .map_err(|error| StoreError::row("ops", &run_id, error))?;
        }
        Ok(state)
    }

    /// What stands out in a run, in the order of its ops: attempts, calls, stalls, notices.
    pub async fn marks_of(&self, run_id: &RunId) -> Result<Vec<Mark>, StoreError> {
        let rows: Vec<(i64, i64, String, String)> = sqlx::query_as(
            r#"select seq, started_at, 'attempt', 'Attempt ' || (attempt_index + 1) || ': ' || replace(reason, '_', ' ')
                 from attempts where run_id = $1
             union all select seq, announced_at, 'tool', name from nodes
                 where run_id = $1 and kind in ('function', 'code')
             union all select first.seq, first.at, 'stall', 'Attempt ' || (a.attempt_index + 1) || ' stalled'
                 from attempts a cross join lateral (select seq, at from ops
                     where ops.run_id = $1 and ops.seq > a.seq and ops.at >= a.finished_at order by seq limit 1) first
                 where a.run_id = $1 and a.status = 'stalled'
             union all select notices.seq, ops.at, 'notice', replace(substring(notices.body::text from '"code":"([a-z0-9_]+)"'), '_', ' ')
                 from notices join ops on ops.run_id = notices.run_id and ops.seq = notices.seq
                 where notices.run_id = $1 and notices.kind = 'notice'
             order by 1 limit $2"#,
        )
        .bind(run_id.as_str())
        .bind(MOST_MARKS)
        .fetch_all(self.pool())
        .await?;
        Ok(rows
            .into_iter()
            .map(|(seq, at, kind, words)| Mark {
                seq: seq as u64,
                at,
                kind: match kind.as_str() {
                    "attempt" => MarkKind::Attempt,
                    "stall" => MarkKind::Stall,
                    "notice" => MarkKind::Notice,
                    _ => MarkKind::Tool,
                },
                words,
            })
            .collect())
    }
}
