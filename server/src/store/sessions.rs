//! Sessions and their lists.

use protocol::api::{RunSummary, SessionKind, SessionList, SessionSettings, SessionSummary};
use protocol::id::SessionId;
use protocol::model::{ErrorInfo, Timestamp, Usage};
use protocol::state::RunStatus;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::types::Json;

use super::rows::AsJson;
use super::wake::{self, WakeUp};
use super::{Store, StoreError};

/// Sessions on one page of the list.
const PAGE: i64 = 50;

/// Sessions that are told to somebody who was away.
pub const MOST_CHANGED: i64 = 200;

/// Which sessions a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// What the title or a prompt holds, without regard to case, or words that were said.
    pub search: Option<String>,
    /// Only sessions whose last run is in one of these states.
    pub statuses: Vec<RunStatus>,
    /// The place after which the page begins, as a list gave it.
    pub before: Option<String>,
}

/// A place in the list that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a place in the list: take it from the field `next` of a list")]
pub struct InvalidPlace(pub String);

/// The key by which the list is ordered: time of the last change, and id.
fn place(text: &str) -> Result<(i64, &str), InvalidPlace> {
    let invalid = || InvalidPlace(text.chars().take(100).collect());
    let (at, id) = text.split_once('.').ok_or_else(invalid)?;
    id.parse::<SessionId>().map_err(|_| invalid())?;
    Ok((at.parse().map_err(|_| invalid())?, id))
}

/// The wake-up of a session that changed.
fn changed(id: &SessionId) -> WakeUp {
    WakeUp {
        sessions: vec![id.clone()],
        ..WakeUp::default()
    }
}

impl Store {
    /// Creates a session.
    pub async fn create_session(
        &self,
        id: &SessionId,
        title: &str,
        kind: SessionKind,
        settings: &SessionSettings,
        created_at: i64,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query(
            "insert into sessions (session_id, title, kind, settings, created_at, updated_at)
             values ($1, $2, $3, $4, $5, $5)",
        )
        .bind(id.as_str())
        .bind(title)
        .bind(kind.as_str())
        .bind(AsJson(settings))
        .bind(created_at)
        .execute(&mut *transaction)
        .await?;
        wake::send(&mut transaction, self.process(), &changed(id)).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Gives a session without a title one.
    pub async fn title_session(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        let titled = sqlx::query("update sessions set title = $2 where session_id = $1 and title = ''")
            .bind(id.as_str())
            .bind(title)
            .execute(&mut *transaction)
            .await?;
        if titled.rows_affected() > 0 {
            wake::send(&mut transaction, self.process(), &changed(id)).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// A session with its runs; none when there is no such session.
    pub async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, StoreError> {
        let row = sqlx::query("select * from sessions where session_id = $1")
            .bind(id.as_str())
            .fetch_optional(self.pool())
            .await?;
        match row {
            None => Ok(None),
            Some(row) => Ok(self.with_runs(vec![row]).await?.pop()),
        }
    }

    /// The sessions that changed at this time or later, newest first: at most [`MOST_CHANGED`].
    pub async fn sessions_changed_since(&self, since: Timestamp) -> Result<Vec<SessionSummary>, StoreError> {
        let rows =
            sqlx::query("select * from sessions where updated_at >= $1 order by updated_at desc limit $2")
                .bind(since)
                .bind(MOST_CHANGED)
                .fetch_all(self.pool())
                .await?;
        self.with_runs(rows).await
    }

    /// One page of the list, newest first.
    pub async fn sessions(
        &self,
        filter: &SessionFilter,
    ) -> Result<Result<SessionList, InvalidPlace>, StoreError> {
        let (before_at, before_id) = match filter.before.as_deref().map(place) {
            None => (i64::MAX, ""),
            Some(Ok(place)) => place,
            Some(Err(invalid)) => return Ok(Err(invalid)),
        };
        let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
        let pattern = filter.search.as_deref().map(|words| {
            let escaped = words
                .replace('\\', "\\\\")
                .replace('%', "\\%")
                .replace('_', "\\_")
                .replace('\0', "");
            format!("%{escaped}%")
        });
        let said = filter.search.as_deref().map(|words| words.replace('\0', ""));
        let mut rows = sqlx::query(
            "select * from sessions s
             where (updated_at, session_id) < ($1, $2)
                 and ($3::text is null or title ilike $3
                     or exists (select 1 from runs r where r.session_id = s.session_id and r.prompt_start ilike $3)
                     or session_id in (select r.session_id from words w join runs r using (run_id) where w.words @@ (
                         select case when numnode(q) > 0 then (q::text || ':*')::tsquery else q end
                         from plainto_tsquery('simple', $6) q)))
                 and (cardinality($4::text[]) = 0
                     or (select status from runs r where r.session_id = s.session_id
                         order by (status in ('running', 'waiting', 'queued')) desc, ordinal desc limit 1) = any($4))
             order by updated_at desc, session_id desc limit $5",
        )
        .bind(before_at)
        .bind(before_id)
        .bind(pattern)
        .bind(statuses)
        .bind(PAGE + 1)
        .bind(said)
        .fetch_all(self.pool())
        .await?;
        let more = rows.len() as i64 > PAGE;
        rows.truncate(PAGE as usize);
        let sessions = self.with_runs(rows).await?;
        let next = sessions
            .last()
            .filter(|_| more)
            .map(|last| format!("{}.{}", last.updated_at, last.session_id));
        Ok(Ok(SessionList { sessions, next }))
    }

    async fn with_runs(&self, rows: Vec<PgRow>) -> Result<Vec<SessionSummary>, StoreError> {
        let mut sessions = rows.iter().map(session).collect::<Result<Vec<_>, _>>()?;
        let ids: Vec<&str> = sessions
            .iter()
            .map(|session| session.session_id.as_str())
            .collect();
        let runs = sqlx::query("select * from runs where session_id = any($1) order by ordinal")
            .bind(ids)
            .fetch_all(self.pool())
            .await?;
        for row in &runs {
            let owner: String = row.try_get("session_id")?;
            let run = run_summary(row)?;
            if let Some(session) = sessions
                .iter_mut()
                .find(|session| session.session_id.as_str() == owner)
            {
                session.runs.push(run);
            }
        }
        Ok(sessions)
    }
}

fn session(row: &PgRow) -> Result<SessionSummary, StoreError> {
    let id: String = row.try_get("session_id")?;
    let kind: String = row.try_get("kind")?;
    Ok(SessionSummary {
        session_id: id
            .parse()
            .map_err(|error| StoreError::row("sessions", &id, error))?,
        title: row.try_get("title")?,
        kind: serde_json::from_value(Value::String(kind))
            .map_err(|error| StoreError::row("sessions", &id, error))?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
        settings: row.try_get::<Json<SessionSettings>, _>("settings")?.0,
        runs: Vec::new(),
    })
}

fn run_summary(row: &PgRow) -> Result<RunSummary, StoreError> {
    let id: String = row.try_get("run_id")?;
    let status: String = row.try_get("status")?;
    Ok(RunSummary {
        run_id: id.parse().map_err(|error| StoreError::row("runs", &id, error))?,
        status: RunStatus::from_word(&status)
            .ok_or_else(|| StoreError::row("runs", &id, format!("unknown status {status:?}")))?,
        prompt: row.try_get("prompt_start")?,
        provider: row.try_get("provider")?,
        model: row.try_get("model")?,
        created_at: row.try_get("created_at")?,
        started_at: row.try_get("started_at")?,
        finished_at: row.try_get("finished_at")?,
        last_seq: row.try_get::<i64, _>("last_seq")? as u64,
        error: row
            .try_get::<Option<Json<ErrorInfo>>, _>("error")?
            .map(|Json(error)| error),
        usage: row
            .try_get::<Option<Json<Usage>>, _>("usage")?
            .map(|Json(usage)| usage),
    })
}
