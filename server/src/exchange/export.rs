//! A run as JSON lines: one that says what it is, its ops in the envelope of the journal, one that closes it.
//!
//! The journal is read a page at a time, so a run of any size takes the same memory. Where it is not whole any more the
//! ops are made from the rows.

use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use protocol::digest::digest;
use protocol::id::RunId;
use protocol::op::Entry;
use serde::Serialize;

use super::{Begin, End};
use crate::store::{Store, StoreError, journal};

/// Ops that are read at a time.
const PAGE: u32 = 500;

/// The lines of a run, as it is now; none when there is no such run.
pub async fn lines(
    store: &Store,
    run_id: &RunId,
) -> Result<Option<impl Stream<Item = Result<Bytes, StoreError>> + Send + use<>>, StoreError> {
    let Some((session, run)) = store.heads_of(run_id).await? else {
        return Ok(None);
    };
    let Some(now) = store.run_digest(run_id).await? else {
        return Ok(None);
    };
    let begin = line(&Begin::new(session, run))?;
    let is_whole = journal::count_to(store.pool(), run_id, now.seq).await? == now.seq;
    let (ops, end) = if is_whole {
        let ops = from_journal(store.clone(), run_id.clone(), now.seq).boxed();
        (ops, End::new(now.seq, now.digest))
    } else {
        let state = store
            .load_run(run_id)
            .await?
            .ok_or_else(|| StoreError::row("runs", run_id, "it is gone"))?;
        let entries: Vec<Entry> = state
            .retold()
            .into_iter()
            .zip(1..)
            .map(|((at, op), seq)| Entry {
                run_id: run_id.clone(),
                generation: state.generation(),
                seq,
                at,
                op,
            })
            .collect();
        let end = End::new(entries.len() as u64, digest(&state));
        let ops = futures::stream::iter(entries).map(|entry| line(&entry)).boxed();
        (ops, end)
    };
    let end = line(&end)?;
    let begin = futures::stream::once(async move { Ok(begin) });
    Ok(Some(
        begin
            .chain(ops)
            .chain(futures::stream::once(async move { Ok(end) })),
    ))
}

fn from_journal(
    store: Store,
    run_id: RunId,
    end: u64,
) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
    futures::stream::try_unfold((store, run_id, 0), move |(store, run_id, known)| async move {
        if known >= end {
            return Ok(None);
        }
        let left = u32::try_from(end - known).unwrap_or(PAGE);
        let entries = journal::after(store.pool(), &run_id, known, PAGE.min(left)).await?;
        let Some(last) = entries.last().map(|entry| entry.seq) else {
            return Err(StoreError::row("ops", &run_id, "ops went away meanwhile"));
        };
        let mut page = BytesMut::new();
        for entry in &entries {
            page.put(line(entry)?);
        }
        Ok(Some((page.freeze(), (store, run_id, last))))
    })
    .into_stream()
}

fn line<T: Serialize>(value: &T) -> Result<Bytes, StoreError> {
    let mut line = serde_json::to_vec(value).map_err(|error| StoreError::row("ops", "export", error))?;
    line.push(b'\n');
    Ok(line.into())
}
