//! What the simulator remembers for tests: requests as received, connections and how they ended, send times.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::wire::WireFormat;
use crate::clock::SharedClock;

const REQUESTS_KEPT: usize = 200;
const REQUEST_BYTES_KEPT: usize = 32 * 1024 * 1024;
const CONNECTIONS_KEPT: usize = 1000;
const LOADS_KEPT: usize = 512;

/// Headers that are never kept.
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
];

/// A request as it was received.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestRecord {
    /// Its number, counted from 1.
    pub number: u64,
    /// When it came, milliseconds since the epoch.
    pub at_ms: i64,
    /// The path.
    pub path: String,
    /// The wire format of that path.
    pub format: WireFormat,
    /// Headers without those that carry a key.
    pub headers: BTreeMap<String, String>,
    /// The JSON body; a text when it is no JSON.
    pub body: Value,
    /// The status that it was answered with.
    pub status: u16,
    /// The scenario that served it.
    pub scenario: Option<String>,
    /// Which round of the scenario, counted from 0.
    pub round: Option<usize>,
    /// Why it was refused.
    pub error: Option<String>,
}

/// How a connection's reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionEnd {
    /// The scenario came to its regular end, or to an end that it meant to have.
    Complete,
    /// The scenario broke the connection.
    Cut,
    /// The client closed the connection before the end.
    ClientClosed,
    /// The simulator was stopped.
    Shutdown,
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionRecord {
    /// The number of its request.
    pub request: u64,
    /// The scenario.
    pub scenario: String,
    /// Which round of it, counted from 0.
    pub round: usize,
    /// When it began, milliseconds since the epoch.
    pub opened_at_ms: i64,
    /// When it ended; empty while it is open.
    pub ended_at_ms: Option<i64>,
    /// How it ended; empty while it is open.
    pub end: Option<ConnectionEnd>,
}

/// All connections that are still remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionReport {
    /// How many replies are open now.
    pub open: usize,
    /// How many replies, since the start, ended because the client closed the connection.
    pub client_closed: u64,
    /// The replies, oldest first.
    pub connections: Vec<ConnectionRecord>,
}

/// The send times of one load stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadRecord {
    /// The id that it is kept under.
    pub id: String,
    /// Deltas per second.
    pub rate: f64,
    /// How many deltas the whole stream has.
    pub count: usize,
    /// When each delta was handed to the socket: milliseconds since the epoch with a fraction, by index.
    pub sent_ms: Vec<f64>,
}

#[derive(Default)]
struct Records {
    requests: VecDeque<(RequestRecord, usize)>,
    request_bytes: usize,
    connections: BTreeMap<u64, ConnectionRecord>,
    client_closed: u64,
    loads: BTreeMap<String, LoadRecord>,
    load_order: VecDeque<String>,
}

/// The memory of a simulator. All of it is bounded; the oldest goes first.
pub(super) struct Ledger {
    clock: SharedClock,
    records: Mutex<Records>,
    changes: watch::Sender<u64>,
}

/// One open reply. Dropped without [`Connection::finish`], it counts as closed by the client.
pub(super) struct Connection {
    ledger: Arc<Ledger>,
    request: u64,
    finished: bool,
}

impl Connection {
    pub(super) fn finish(mut self, end: ConnectionEnd) {
        self.finished = true;
        self.ledger.end_connection(self.request, end);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.finished {
            self.ledger
                .end_connection(self.request, ConnectionEnd::ClientClosed);
        }
    }
}

impl Ledger {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            records: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Keeps a request; `size` is the length of its body in bytes.
    pub(super) fn record_request(&self, record: RequestRecord, size: usize) {
        let mut records = self.lock();
        records.request_bytes += size;
        records.requests.push_back((record, size));
        while records.requests.len() > REQUESTS_KEPT
            || (records.request_bytes > REQUEST_BYTES_KEPT && records.requests.len() > 1)
        {
            if let Some((_, size)) = records.requests.pop_front() {
                records.request_bytes -= size;
            }
        }
    }

    /// The last requests, oldest first.
    pub(super) fn requests(&self, limit: usize) -> Vec<RequestRecord> {
        let records = self.lock();
        let skip = records.requests.len().saturating_sub(limit);
        records
            .requests
            .iter()
            .skip(skip)
            .map(|(record, _)| record.clone())
            .collect()
    }

    pub(super) fn open_connection(
        self: &Arc<Self>,
        request: u64,
        scenario: &str,
        round: usize,
    ) -> Connection {
        let record = ConnectionRecord {
            request,
            scenario: scenario.to_owned(),
            round,
            opened_at_ms: self.now_ms(),
            ended_at_ms: None,
            end: None,
        };
        {
            let mut records = self.lock();
            records.connections.insert(request, record);
            if records.connections.len() > CONNECTIONS_KEPT {
                let oldest = records
                    .connections
                    .iter()
                    .find(|(_, record)| record.end.is_some())
                    .map(|(id, _)| *id);
                if let Some(oldest) = oldest {
                    records.connections.remove(&oldest);
                }
            }
        }
        self.changed();
        Connection {
            ledger: self.clone(),
            request,
            finished: false,
        }
    }

    fn end_connection(&self, request: u64, end: ConnectionEnd) {
        let now = self.now_ms();
        {
            let mut records = self.lock();
            if end == ConnectionEnd::ClientClosed {
                records.client_closed += 1;
            }
            if let Some(record) = records.connections.get_mut(&request) {
                record.ended_at_ms = Some(now);
                record.end = Some(end);
            }
        }
        self.changed();
    }

    pub(super) fn connections(&self) -> ConnectionReport {
        let records = self.lock();
        let connections: Vec<ConnectionRecord> = records.connections.values().cloned().collect();
        ConnectionReport {
            open: connections.iter().filter(|record| record.end.is_none()).count(),
            client_closed: records.client_closed,
            connections,
        }
    }

    /// Waits until no reply is open.
    pub(super) async fn until_idle(&self) {
        let mut changes = self.changes.subscribe();
        while self.connections().open > 0 {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) fn begin_load(&self, id: &str, rate: f64, count: usize) {
        let mut records = self.lock();
        let load = LoadRecord {
            id: id.to_owned(),
            rate,
            count,
            sent_ms: Vec::with_capacity(count),
        };
        if records.loads.insert(id.to_owned(), load).is_none() {
            records.load_order.push_back(id.to_owned());
        }
        if records.load_order.len() > LOADS_KEPT
            && let Some(oldest) = records.load_order.pop_front()
        {
            records.loads.remove(&oldest);
        }
    }

    pub(super) fn stamp_load(&self, id: &str) {
        // Finer than the clock that the record uses: the bench subtracts times of one host.
        let now_ms = jiff::Timestamp::now().as_nanosecond() as f64 / 1e6;
        if let Some(load) = self.lock().loads.get_mut(id) {
            load.sent_ms.push(now_ms);
        }
    }

    pub(super) fn load(&self, id: &str) -> Option<LoadRecord> {
        self.lock().loads.get(id).cloned()
    }

    pub(super) fn load_ids(&self) -> Vec<String> {
        self.lock().load_order.iter().cloned().collect()
    }
}

/// The headers that may be kept.
pub(super) fn public_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()))
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect()
}
