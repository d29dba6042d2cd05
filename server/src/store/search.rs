//! Searching all that the page of a session could show: rows, texts in pieces, and the ends that are in the journal alone.
//!
//! What is searched is read as it is needed, in the order of the page: of many short texts some at once, of a long one a
//! few pieces at a time. So a search holds little, stops where it has enough, and goes on from there when it is asked to.

mod items;
mod scan;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use protocol::id::{RunId, SessionId};
use protocol::search::{SearchAnswer, SearchField, SearchHit, Writing, pattern};
use sqlx::PgConnection;
use tokio::sync::Semaphore;

use self::items::{Item, Source};
use self::scan::{Engine, Found, Scan};
use super::content::{self, PART_BYTES};
use super::{Store, StoreError, runs};

/// Short texts that are read at once: so many of them, and so many bytes.
const TEXTS_AT_ONCE: usize = 400;
const BYTES_AT_ONCE: u64 = 1024 * 1024;

/// After so long a search answers with what it has found; it goes on from there when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest time of one statement. Milliseconds.
const STATEMENT: &str = "set local statement_timeout = 10000";

/// So many searches are made at once; others wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// What is searched for.
#[derive(Debug, Clone)]
pub struct SearchWish<'a> {
    /// The words, which [`protocol::search::query`] has passed.
    pub query: &'a str,
    /// The `next` of the answer before.
    pub after: Option<&'a str>,
    /// The most hits.
    pub most: usize,
}

/// Why a search was not made.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no such session.
    #[error("there is no such session")]
    NoSession,
    /// `after` is no place of this session.
    #[error("{0:?} is not a place in this session: take it from the field `next` of an answer")]
    NoPlace(String),
    /// The words cannot be searched for.
    #[error("{0}")]
    Words(String),
    /// It took too long.
    #[error("the search took too long")]
    TooLong,
    /// The database failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for SearchError {
    fn from(error: StoreError) -> Self {
        match &error {
            // The time of a statement was up.
            StoreError::Database(sqlx::Error::Database(cause))
                if cause.code().as_deref() == Some("57014") =>
            {
                Self::TooLong
            }
            _ => Self::Store(error),
        }
    }
}

impl From<sqlx::Error> for SearchError {
    fn from(error: sqlx::Error) -> Self {
        StoreError::from(error).into()
    }
}

/// Where a search goes on: a text, and a byte in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    run_id: RunId,
    key: String,
    field: SearchField,
    offset: u64,
}

impl Place {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let place = Self {
            run_id: parts.next()?.parse().ok()?,
            key: parts.next()?.to_owned(),
            field: SearchField::from_word(parts.next()?)?,
            offset: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(place)
    }

    fn write(run_id: &RunId, item: &Item, offset: u64) -> String {
        format!("{run_id}.{}.{}.{offset}", item.key, item.field.as_str())
    }
}

/// A search that is being made.
struct Search {
    engines: [(Writing, Engine); 3],
    most: usize,
    until: Instant,
    answer: SearchAnswer,
}

impl Search {
    fn new(wish: &SearchWish<'_>) -> Result<Self, SearchError> {
        let engine = |writing| {
            let engine = Engine::new(&pattern(wish.query, writing)).map_err(SearchError::Words)?;
            Ok::<_, SearchError>((writing, engine))
        };
        Ok(Self {
            engines: [
                engine(Writing::Plain)?,
                engine(Writing::Markdown)?,
                engine(Writing::Json)?,
            ],
            most: wish.most,
            until: Instant::now() + PATIENCE,
            answer: SearchAnswer::default(),
        })
    }

    fn engine(&self, writing: Writing) -> &Engine {
        let [(_, plain), others @ ..] = &self.engines;
        let found = others.iter().find(|(known, _)| *known == writing);
        found.map_or(plain, |(_, engine)| engine)
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Takes in what was found in a text. Breaks where there is enough; then the search goes on from here.
    fn take(&mut self, run_id: &RunId, item: &Item, found: Found) -> ControlFlow<()> {
        if self.answer.hits.len() >= self.most {
            self.answer.next = Some(Place::write(run_id, item, found.offset));
            return ControlFlow::Break(());
        }
        self.answer.hits.push(SearchHit {
            run_id: run_id.clone(),
            node_id: item.node_id.clone(),
            attempt_id: item.attempt_id.clone(),
            block_id: item.block_id.clone(),
            message_id: item.message_id.clone(),
            field: item.field,
            offset: found.offset,
            bytes: found.bytes,
            before: found.before,
            found: found.text,
            after: found.after,
        });
        ControlFlow::Continue(())
    }

    /// A text that is at hand, from a byte on.
    fn text(&mut self, run_id: &RunId, item: &Item, text: &[u8], from: u64) -> ControlFlow<()> {
        let mut scan = Scan::new(0, from);
        let found = scan.push(self.engine(item.field.writing()), text, true);
        for found in found {
            self.take(run_id, item, found)?;
        }
        ControlFlow::Continue(())
    }
}

impl Store {
    /// Finds a text in all that the page of a session could show.
    ///
    /// # Errors
    /// When it cannot be searched for, or took too long.
    pub async fn search(
        &self,
        session: &SessionId,
        wish: &SearchWish<'_>,
    ) -> Result<SearchAnswer, SearchError> {
        let _turn = AT_ONCE.acquire().await.map_err(|_| SearchError::TooLong)?;
        let mut search = Search::new(wish)?;
        let runs = self.runs_of(session).await?;
        let Some(runs) = runs else {
            return Err(SearchError::NoSession);
        };
        let no_place = || SearchError::NoPlace(wish.after.unwrap_or_default().chars().take(100).collect());
        let mut place = match wish.after {
            None => None,
            Some(text) => Some(Place::read(text).ok_or_else(no_place)?),
        };
        let first = match &place {
            None => 0,
            Some(place) => runs
                .iter()
                .position(|run| *run == place.run_id)
                .ok_or_else(no_place)?,
        };
        for run_id in runs.get(first..).unwrap_or_default() {
            let mut moment = self.moment().await?;
            sqlx::query(STATEMENT).execute(&mut *moment).await?;
            let Some(state) = runs::outline(&mut moment, run_id).await? else {
                continue;
            };
            let items = items::of(&state);
            drop(state);
            let (from, offset) = match place.take() {
                None => (0, 0),
                Some(place) => {
                    let known = |item: &Item| item.field == place.field && item.key == place.key;
                    let index = items.iter().position(known).ok_or_else(no_place)?;
                    (index, place.offset)
                }
            };
            let items = items.get(from..).unwrap_or_default();
            if self
                .search_run(&mut moment, &mut search, run_id, items, offset)
                .await?
                .is_break()
            {
                break;
            }
        }
        Ok(search.answer)
    }

    /// The runs of a session in order; none when there is no such session.
    async fn runs_of(&self, session: &SessionId) -> Result<Option<Vec<RunId>>, StoreError> {
        let rows: Vec<(Option<String>,)> = sqlx::query_as(
            "select r.run_id from sessions s left join runs r using (session_id) where s.session_id = $1 order by r.ordinal",
        )
        .bind(session.as_str())
        .fetch_all(self.pool())
        .await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let runs = rows.into_iter().filter_map(|(run,)| run);
        let runs = runs.map(|run| run.parse().map_err(|error| StoreError::row("runs", &run, error)));
        runs.collect::<Result<_, _>>().map(Some)
    }

    /// The texts of a run; of the first from a byte on.
    async fn search_run(
        &self,
        moment: &mut PgConnection,
        search: &mut Search,
        run_id: &RunId,
        items: &[Item],
        offset: u64,
    ) -> Result<ControlFlow<()>, SearchError> {
        let mut place = 0;
        let mut offset = Some(offset);
        while let Some(item) = items.get(place) {
            if place > 0 && search.is_late() {
                search.answer.next = Some(Place::write(run_id, item, 0));
                return Ok(ControlFlow::Break(()));
            }
            let rest = items.get(place..).unwrap_or_default();
            let short = short(rest);
            let flow = if short == 0 {
                place += 1;
                self.search_long(search, run_id, item, offset.take().unwrap_or(0))
                    .await?
            } else {
                place += short;
                let group = rest.get(..short).unwrap_or_default();
                search_short(moment, search, run_id, group, offset.take().unwrap_or(0)).await?
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A text of which a few pieces are read at a time.
    async fn search_long(
        &self,
        search: &mut Search,
        run_id: &RunId,
        item: &Item,
        offset: u64,
    ) -> Result<ControlFlow<()>, SearchError> {
        let kept = match &item.source {
            Source::Given(_) => None,
            Source::Block(id, _) => self.content_of_block(id).await?,
            Source::Output(id, channel, _) => self.content_of_output(id, *channel).await?,
        };
        let Some(kept) = kept else {
            return Ok(ControlFlow::Continue(()));
        };
        let total = kept.bytes();
        // What stands before is a part of the excerpt.
        let begin = offset.saturating_sub(scan::EXCERPT as u64).min(total);
        let mut scan = Scan::new(begin, offset);
        let mut read = begin;
        let pieces = kept.range(begin..total);
        futures::pin_mut!(pieces);
        while let Some(piece) = pieces.try_next().await? {
            read += piece.len() as u64;
            let found = scan.push(search.engine(item.field.writing()), &piece, read >= total);
            for found in found {
                if search.take(run_id, item, found).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if read < total && search.is_late() {
                search.answer.next = Some(Place::write(run_id, item, scan.from()));
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// How many of the first texts are read at once; none when the first one is long.
fn short(items: &[Item]) -> usize {
    let mut bytes = 0;
    let within = |item: &&Item| {
        bytes += item.bytes();
        !item.is_long() && bytes <= BYTES_AT_ONCE
    };
    let count = items.iter().take(TEXTS_AT_ONCE).take_while(within).count();
    match items.first() {
        // One that is at hand may have any length.
        Some(item) if !item.is_long() => count.max(1),
        _ => 0,
    }
}

/// Texts of one piece each, or at hand.
async fn search_short(
    moment: &mut PgConnection,
    search: &mut Search,
    run_id: &RunId,
    items: &[Item],
    offset: u64,
) -> Result<ControlFlow<()>, SearchError> {
    let subjects: Vec<String> = items.iter().filter_map(Item::subject).collect();
    let texts = if subjects.is_empty() {
        std::collections::HashMap::new()
    } else {
        content::beginnings(moment, &subjects, PART_BYTES).await?
    };
    for (place, item) in items.iter().enumerate() {
        let from = if place == 0 { offset } else { 0 };
        let flow = match (&item.source, item.subject()) {
            (Source::Given(text), _) => search.text(run_id, item, text.as_bytes(), from),
            (_, Some(subject)) => match texts.get(&(subject, item.channel().to_owned())) {
                Some(text) => search.text(run_id, item, text, from),
                None => ControlFlow::Continue(()),
            },
            (_, None) => ControlFlow::Continue(()),
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}
