//! Wake-ups between servers on one database: rows are the truth, a wake-up only says where to look.
//!
//! A wake-up is a `NOTIFY` on one channel, sent in the transaction that wrote what it is about, so nobody hears of
//! what is not there. Each names the process that sent it, since a process hears its own. One that is lost costs
//! nothing but time: after every new connection everything counts as woken.

use protocol::id::{RunId, SessionId};
use protocol::model::StreamState;
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{PgConnection, PgPool};

use super::{Store, StoreError};

/// The channel of all servers.
const CHANNEL: &str = "runloom";

/// The most bytes of one message: PostgreSQL takes less than 8,000.
const MAX_MESSAGE: usize = 7_900;

/// What changed, for the other servers on the same database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WakeUp {
    /// Runs with new ops, each with its last `seq`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<(RunId, u64)>,
    /// Sessions whose summary changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionId>,
    /// Runs for which a command was left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<RunId>,
    /// What live streams are doing; not part of the record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamState>,
    /// A run may be claimed that could not be before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queue: bool,
}

/// A wake-up with its sender.
#[derive(Debug, Serialize, Deserialize)]
struct Message {
    from: String,
    #[serde(flatten)]
    wake_up: WakeUp,
}

/// What a listener hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Another server changed something.
    WakeUp(WakeUp),
    /// Something changed, but not what: all of it counts as woken.
    Anything,
}

impl WakeUp {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Messages of at most [`MAX_MESSAGE`] bytes that together say this. A single thing that is too long is left out:
    /// whoever misses it finds it by the next look at the rows.
    fn messages(&self, from: &str) -> Vec<String> {
        let mut parts = Vec::new();
        let mut open = WakeUp {
            queue: self.queue,
            ..Self::default()
        };
        // The sender, the names of the fields and the brackets.
        let frame = from.len() + 120;
        let mut bytes = frame;
        let mut make_room = |open: &mut WakeUp, more: usize| {
            if bytes + more > MAX_MESSAGE && !open.is_empty() {
                parts.push(std::mem::take(open));
                bytes = frame;
            }
            let fits = bytes + more <= MAX_MESSAGE;
            bytes += if fits { more } else { 0 };
            fits
        };
        for run in &self.runs {
            if make_room(&mut open, run.0.as_str().len() + 26) {
                open.runs.push(run.clone());
            }
        }
        for session in &self.sessions {
            if make_room(&mut open, session.as_str().len() + 3) {
                open.sessions.push(session.clone());
            }
        }
        for run in &self.commands {
            if make_room(&mut open, run.as_str().len() + 3) {
                open.commands.push(run.clone());
            }
        }
        for stream in &self.streams {
            let length = serde_json::to_string(stream).map_or(usize::MAX / 2, |json| json.len());
            if make_room(&mut open, length + 1) {
                open.streams.push(stream.clone());
            }
        }
        if !open.is_empty() {
            parts.push(open);
        }
        parts
            .into_iter()
            .filter_map(|wake_up| {
                let from = from.to_owned();
                serde_json::to_string(&Message { from, wake_up }).ok()
            })
            .collect()
    }
}

/// Sends a wake-up with the transaction of this connection, or at once where it has none. `from` is
/// [`Store::process`].
pub async fn send(connection: &mut PgConnection, from: &str, wake_up: &WakeUp) -> Result<(), StoreError> {
    let messages = wake_up.messages(from);
    if messages.is_empty() {
        return Ok(());
    }
    sqlx::query("select pg_notify($1, message) from unnest($2::text[]) as message")
        .bind(CHANNEL)
        .bind(messages)
        .execute(connection)
        .await?;
    Ok(())
}

/// A connection of its own that hears the wake-ups of the other servers.
pub struct Listener {
    process: String,
    listener: PgListener,
}

impl Listener {
    /// The next thing that another server says; an error when the connection is lost, after which it is of no use any
    /// more.
    pub async fn hear(&mut self) -> Result<Heard, StoreError> {
        loop {
            let Some(notification) = self.listener.try_recv().await? else {
                return Err(StoreError::Database(sqlx::Error::Io(
                    std::io::ErrorKind::ConnectionAborted.into(),
                )));
            };
            match serde_json::from_str::<Message>(notification.payload()) {
                Ok(message) if message.from == self.process => {}
                Ok(message) => return Ok(Heard::WakeUp(message.wake_up)),
                // Another version wrote it.
                Err(_) => return Ok(Heard::Anything),
            }
        }
    }
}

impl Store {
    /// Sends a wake-up by itself.
    pub async fn wake_others(&self, wake_up: &WakeUp) -> Result<(), StoreError> {
        let mut connection = self.pool().acquire().await?;
        send(&mut connection, self.process(), wake_up).await
    }

    /// Begins to listen, on a connection of its own. What happened before is not heard.
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        let own: PgPool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(std::time::Duration::from_secs(10))
            .connect_lazy_with(self.pool().connect_options().as_ref().clone());
        let mut listener = PgListener::connect_with(&own).await?;
        // Whoever listens has to know of each gap.
        listener.eager_reconnect(false);
        listener.ignore_pool_close_event(true);
        listener.listen(CHANNEL).await?;
        Ok(Listener {
            process: self.process().to_owned(),
            listener,
        })
    }

    /// The last `seq` of those of these runs that exist.
    pub async fn last_seqs(&self, runs: &[RunId]) -> Result<Vec<(RunId, u64)>, StoreError> {
        let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
        let rows: Vec<(String, i64)> =
            sqlx::query_as("select run_id, last_seq from runs where run_id = any($1)")
                .bind(ids)
                .fetch_all(self.pool())
                .await?;
        rows.into_iter()
            .map(|(id, seq)| {
                let run = id.parse().map_err(|error| StoreError::row("runs", &id, error))?;
                Ok((run, seq as u64))
            })
            .collect()
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::id::{AttemptId, NodeId};
    use protocol::state::StreamActivity;
    use uuid::Uuid;

    fn stream(number: u128, reason: Option<String>) -> StreamState {
        StreamState {
            run_id: RunId::from_uuid(Uuid::from_u128(number)),
            node_id: NodeId::root(&RunId::from_uuid(Uuid::from_u128(number))),
            attempt_id: AttemptId::from_uuid(Uuid::from_u128(number)),
            state: StreamActivity::Streaming,
            n: u64::MAX,
            last_byte_at: Some(i64::MAX),
            last_content_at: Some(i64::MAX),
            tokens_per_second: Some(f64::MAX),
            clock: None,
            since: None,
            until: None,
            attempt_number: None,
            attempts_max: None,
            reason,
            to: None,
        }
    }

    fn joined(messages: &[String]) -> WakeUp {
        let mut all = WakeUp::default();
        for message in messages {
            assert!(message.len() < 8_000, "{}", message.len());
            let part: Message = serde_json::from_str(message).expect("a message");
            assert_eq!(part.from, "process");
            all.runs.extend(part.wake_up.runs);
            all.sessions.extend(part.wake_up.sessions);
            all.commands.extend(part.wake_up.commands);
            all.streams.extend(part.wake_up.streams);
            all.queue |= part.wake_up.queue;
        }
        all
    }

    #[test]
    fn a_long_wake_up_is_several_messages_that_together_say_all_of_it() {
        let run = |number| RunId::from_uuid(Uuid::from_u128(u128::MAX - number));
        let wake_up = WakeUp {
            runs: (0..1_000).map(|number| (run(number), u64::MAX)).collect(),
            sessions: (0..1_000)
                .map(|number| SessionId::from_uuid(Uuid::from_u128(u128::MAX - number)))
                .collect(),
            commands: (0..1_000).map(run).collect(),
            streams: (0..100).map(|number| stream(number, None)).collect(),
            queue: true,
        };
        assert_eq!(joined(&wake_up.messages("process")), wake_up);
    }

    #[test]
    fn what_fits_into_one_message_is_one_and_nothing_is_none() {
        let wake_up = WakeUp {
            queue: true,
            ..WakeUp::default()
        };
        assert_eq!(wake_up.messages("process").len(), 1);
        assert_eq!(joined(&wake_up.messages("process")), wake_up);
        assert_eq!(WakeUp::default().messages("process"), Vec::<String>::new());
    }

    #[test]
    fn a_thing_that_is_longer_than_a_message_is_left_out_and_the_rest_is_said() {
        let wake_up = WakeUp {
            streams: vec![
                stream(1, None),
                stream(2, Some("x".repeat(8_000))),
                stream(3, None),
            ],
            ..WakeUp::default()
        };
        assert_eq!(
            joined(&wake_up.messages("process")).streams,
            [stream(1, None), stream(3, None)]
        );
    }
}
