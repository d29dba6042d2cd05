//! Reading a range of one text, piece by piece.

use std::ops::Range;

use bytes::Bytes;
use futures::Stream;
use protocol::id::{BlockId, NodeId, RunId};
use protocol::op::Op;
use protocol::state::{BlockStatus, Channel};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::postgres::PgPool;
use sqlx::types::Json;

use super::PART_BYTES;
use crate::store::{Store, StoreError};

/// Pieces that are read at once.
const PARTS_AT_ONCE: u64 = 8;

/// Ops that are read at once while the end of a text that grows is looked for.
const OPS_AT_ONCE: i64 = 200;

/// How long a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Length {
    /// It is closed.
    Closed {
        /// Bytes.
        bytes: u64,
        /// The hash of the whole, where it is known.
        sha256: Option<String>,
    },
    /// It still grows: so far.
    Open {
        /// Bytes.
        bytes: u64,
    },
}

/// A text as it is kept. It holds no more than what its pieces do not hold yet.
#[derive(Debug, Clone)]
pub struct Kept {
    pool: PgPool,
    subject: String,
    channel: &'static str,
    length: Length,
    /// What comes after the pieces.
    tail: Bytes,
}

impl Kept {
    /// How long it is.
    pub fn length(&self) -> &Length {
        &self.length
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        match self.length {
            Length::Closed { bytes, .. } | Length::Open { bytes } => bytes,
        }
    }

    /// A range of its bytes, which has to lie within it: a few pieces at a time.
    pub fn range(self, range: Range<u64>) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
        let in_parts = self.bytes().saturating_sub(self.tail.len() as u64);
        futures::stream::try_unfold((self, range), move |(kept, mut range)| async move {
            if range.start >= range.end {
                return Ok(None);
            }
            let read = if range.start < in_parts {
                kept.parts(&range).await?
            } else {
                let at = |place: u64| usize::try_from(place.saturating_sub(in_parts)).unwrap_or(usize::MAX);
                let end = at(range.end).min(kept.tail.len());
                kept.tail.slice(at(range.start).min(end)..end)
            };
            if read.is_empty() {
                let problem = format!("byte {} is not there", range.start);
                return Err(StoreError::row("content_parts", &kept.subject, problem));
            }
            range.start += read.len() as u64;
            Ok(Some((read, (kept, range))))
        })
    }

    /// The beginning of a range, as far as it lies in a few pieces.
    async fn parts(&self, range: &Range<u64>) -> Result<Bytes, StoreError> {
        let part = PART_BYTES as u64;
        let first = range.start / part;
        let last = (range.end.saturating_sub(1) / part).min(first + PARTS_AT_ONCE - 1);
        let rows: Vec<(Vec<u8>,)> = sqlx::query_as(
            "select bytes from content_parts
             where subject = $1 and channel = $2 and part between $3 and $4 order by part",
        )
        .bind(&self.subject)
        .bind(self.channel)
        .bind(i32::try_from(first).unwrap_or(i32::MAX))
        .bind(i32::try_from(last).unwrap_or(i32::MAX))
        .fetch_all(&self.pool)
        .await?;
        let bytes = Bytes::from(rows.into_iter().flat_map(|(bytes,)| bytes).collect::<Vec<u8>>());
        let base = first * part;
        let at = |place: u64| {
            usize::try_from(place.saturating_sub(base))
                .unwrap_or(usize::MAX)
                .min(bytes.len())
        };
        Ok(bytes.slice(at(range.start)..at(range.end)))
    }
}

impl Store {
    /// The content of a block; none when there is no such block.
    pub async fn content_of_block(&self, block_id: &BlockId) -> Result<Option<Kept>, StoreError> {
        let mut moment = self.moment().await?;
        let row: Option<(String, i64, String, Option<String>)> =
            sqlx::query_as("select run_id, seq, status, sha256 from blocks where block_id = $1")
                .bind(block_id.as_str())
                .fetch_optional(&mut *moment)
                .await?;
        let Some((run_id, seq, status, sha256)) = row else {
            return Ok(None);
        };
        let is_open = status == BlockStatus::Streaming.as_str();
        let reading = Reading {
            subject: block_id.as_str(),
            channel: "content",
            open_since: is_open.then_some(seq),
            run_id: parse(&run_id)?,
        };
        let piece = |op: Op| match op {
            Op::BlockDelta(op) if op.block_id == *block_id => Some((op.offset, op.delta)),
            _ => None,
        };
        Ok(Some(self.kept(&mut moment, reading, sha256, piece).await?))
    }

    /// What a channel of a node holds; none when there is no such node.
    pub async fn content_of_output(
        &self,
        node_id: &NodeId,
        channel: Channel,
    ) -> Result<Option<Kept>, StoreError> {
        let mut moment = self.moment().await?;
        let row: Option<(String, i64, Option<i64>, Json<Value>)> =
            sqlx::query_as("select run_id, seq, finished_at, outputs from nodes where node_id = $1")
                .bind(node_id.as_str())
                .fetch_optional(&mut *moment)
                .await?;
        let Some((run_id, seq, finished_at, Json(outputs))) = row else {
            return Ok(None);
        };
        let sha256 = outputs
            .get(channel.as_str())
            .and_then(|output| output.get("sha256"));
        let sha256 = sha256.and_then(Value::as_str).map(str::to_owned);
        let reading = Reading {
            subject: node_id.as_str(),
            channel: channel.as_str(),
            open_since: finished_at.is_none().then_some(seq),
            run_id: parse(&run_id)?,
        };
        let piece = |op: Op| match op {
            Op::NodeOutput(op) if op.node_id == *node_id && op.channel == channel => {
                Some((op.offset, op.text))
            }
            _ => None,
        };
        Ok(Some(self.kept(&mut moment, reading, sha256, piece).await?))
    }

    async fn kept(
        &self,
        connection: &mut PgConnection,
        reading: Reading<'_>,
        sha256: Option<String>,
        piece: impl Fn(Op) -> Option<(u64, String)>,
    ) -> Result<Kept, StoreError> {
        let last: Option<(i32, i32)> = sqlx::query_as(
            "select part, octet_length(bytes) from content_parts
             where subject = $1 and channel = $2 order by part desc limit 1",
        )
        .bind(reading.subject)
        .bind(reading.channel)
        .fetch_optional(&mut *connection)
        .await?;
        let in_parts = last.map_or(0, |(part, bytes)| part as u64 * PART_BYTES as u64 + bytes as u64);
        let (length, tail) = match reading.open_since {
            None => (
                Length::Closed {
                    bytes: in_parts,
                    sha256,
                },
                Bytes::new(),
            ),
            Some(since) => {
                let tail = tail(connection, &reading.run_id, since, in_parts, piece).await?;
                (
                    Length::Open {
                        bytes: in_parts + tail.len() as u64,
                    },
                    tail,
                )
            }
        };
        Ok(Kept {
            pool: self.pool().clone(),
            subject: reading.subject.to_owned(),
            channel: reading.channel,
            length,
            tail,
        })
    }
}

/// What is to be read.
struct Reading<'a> {
    subject: &'a str,
    channel: &'static str,
    run_id: RunId,
    /// The op that began it, while it is open.
    open_since: Option<i64>,
}

fn parse(run_id: &str) -> Result<RunId, StoreError> {
    run_id
        .parse()
        .map_err(|error| StoreError::row("runs", run_id, error))
}

/// The end of a text that grows, from byte `base` on: its last ops, read backwards as far as they are needed.
async fn tail(
    connection: &mut PgConnection,
    run_id: &RunId,
    since: i64,
    base: u64,
    piece: impl Fn(Op) -> Option<(u64, String)>,
) -> Result<Bytes, StoreError> {
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut before = i64::MAX;
    'ops: loop {
        let rows: Vec<(i64, Json<Op>)> = sqlx::query_as(
            "select seq, op from ops where run_id = $1 and seq < $2 and seq > $3 order by seq desc limit $4",
        )
        .bind(run_id.as_str())
        .bind(before)
        .bind(since)
        .bind(OPS_AT_ONCE)
        .fetch_all(&mut *connection)
        .await?;
        if rows.is_empty() {
            break;
        }
        for (seq, Json(op)) in rows {
            before = seq;
            if let Some((offset, text)) = piece(op) {
                found.push((offset, text));
                if offset <= base {
                    break 'ops;
                }
            }
        }
    }
    let mut bytes: Vec<u8> = Vec::new();
    for (offset, text) in found.into_iter().rev() {
        // What overlaps is the same.
        let known = (base + bytes.len() as u64).saturating_sub(offset);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        bytes.extend_from_slice(text.as_bytes().get(known..).unwrap_or_default());
    }
    Ok(bytes.into())
}
