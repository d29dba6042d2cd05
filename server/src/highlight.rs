//! What is what in a text: the words of a language, the matches of a pattern.
//!
//! Places are numbers, never markup: the browser paints them over the text that it has, so neither the text nor its
//! geometry can change by it, and nothing that a model wrote gets through as HTML. A text is read by one thread at a
//! time, for at most [`TIME`] of work, so that no text can keep the server busy; what was found is kept in memory.

mod cache;
mod language;
mod matches;
mod tokens;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use protocol::api::{HighlightText, Highlighted, PlaceClass};
use tokio::sync::Semaphore;

use cache::{Cache, key};

/// So many bytes of answers are kept.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// After so much of a processor's time the rest of a text stays plain.
const TIME: Duration = Duration::from_secs(1);

static KEPT: LazyLock<Mutex<Cache>> = LazyLock::new(|| Mutex::new(Cache::new(KEPT_BYTES)));
static WORKERS: Semaphore = Semaphore::const_new(1);

/// Why nothing was found out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The pattern cannot be searched for.
    #[error("{0}")]
    Pattern(String),
    /// The work broke off.
    #[error("{0}")]
    Broken(String),
}

/// The places of a text.
///
/// # Errors
///
/// Where the pattern is none.
pub async fn places(request: HighlightText) -> Result<Arc<Highlighted>, Failure> {
    let key = key(&request);
    if let Some(known) = kept().get(&key) {
        return Ok(known);
    }
    let _turn = WORKERS.acquire().await;
    // Who waited may have waited for the same text.
    if let Some(known) = kept().get(&key) {
        return Ok(known);
    }
    let found = tokio::task::spawn_blocking(move || find(&request, TIME))
        .await
        .map_err(|error| Failure::Broken(error.to_string()))?;
    let found = found?;
    let answer = Arc::new(found.places);
    // The first texts of a language take longer than later ones: its grammar is read with them.
    if found.is_whole {
        kept().put(key, Arc::clone(&answer));
    }
    Ok(answer)
}

fn kept() -> std::sync::MutexGuard<'static, Cache> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was found of a text.
#[derive(Debug, Default)]
struct Found {
    places: Highlighted,
    /// Whether the time was enough for all of it.
    is_whole: bool,
}

fn find(request: &HighlightText, time: Duration) -> Result<Found, Failure> {
    if let Some(pattern) = &request.pattern {
        let places = matches::places(&request.text, pattern, request.case_sensitive != Some(false));
        return Ok(Found {
            places: places.map_err(Failure::Pattern)?,
            is_whole: true,
        });
    }
    let syntax = request.language.as_deref().and_then(language::syntax);
    Ok(match syntax {
        Some(syntax) => tokens::places(&request.text, syntax, time),
        None => Found {
            is_whole: true,
            ..Found::default()
        },
    })
}

/// Collects places in the order of the text. Neighbours of one class become one.
#[derive(Default)]
struct Places(Highlighted);

impl Places {
    fn add(&mut self, class: PlaceClass, start: usize, length: usize) {
        let (Ok(start), Ok(length)) = (u32::try_from(start), u32::try_from(length)) else {
            return;
        };
        if length == 0 {
            return;
        }
        let places = self.0.places.entry(class).or_default();
        if let [.., last, known] = places.as_mut_slice()
            && *last + *known == start
        {
            *known += length;
        } else {
            places.extend([start, length]);
        }
    }
}

/// Length in UTF-16 code units, as the browser counts.
fn units(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}

#[cfg(test)]
mod tests;
