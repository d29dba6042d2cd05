//! What the connection is told, and what it asks for.

use protocol::api::SessionSummary;
use protocol::frame::{ClientFrame, OpsFrame, ServerFrame};
use protocol::id::RunId;
use protocol::model::{StreamState, Timestamp};
use protocol::snapshot::Snapshot;

use crate::data::run_store::Resync;

/// The code of a problem that is over when the server is reached again.
pub const UNREACHABLE: &str = "network";

/// How the page is connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// Nothing is followed yet, or the first connection is being made.
    #[default]
    Connecting,
    /// What is shown is up to date.
    Live,
    /// The connection was lost at this time; it is being made again.
    Reconnecting {
        /// By the browser's clock.
        since: i64,
    },
    /// The browser has had no network since this time.
    Offline {
        /// By the browser's clock.
        since: i64,
    },
}

impl ConnectionState {
    /// Whether what is shown may be old, since the connection was lost.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Reconnecting { .. } | Self::Offline { .. })
    }

    /// The word in `data-connection`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Live => "live",
            Self::Reconnecting { .. } => "reconnecting",
            Self::Offline { .. } => "offline",
        }
    }
}

/// What happens to the connection.
#[derive(Debug)]
pub enum Input {
    /// A run is to be followed from after this `seq`.
    Follow(RunId, u64),
    /// A run is no longer followed.
    Unfollow(RunId),
    /// Changes of sessions are followed, from this time by the server's clock; or not any more.
    FollowSessions(Option<Timestamp>),
    /// The socket is open.
    Opened,
    /// The socket is closed, or could not be opened.
    Closed,
    /// A frame came.
    Frame(Box<ServerFrame>),
    /// A frame came that cannot be read.
    Unreadable(String),
    /// Everything up to this `seq` is in the run's state.
    TakenIn(RunId, u64),
    /// The run's state needs something before it can go on.
    Missing(RunId, Resync),
    /// The browser has a network again, or its page is seen again.
    Awake,
    /// The browser has lost its network.
    Offline,
    /// The time that was asked for has come.
    Time,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Open a socket.
    Open,
    /// Close the socket; nothing more is wanted from it.
    Close,
    /// Send a frame.
    Send(ClientFrame),
    /// Take ops into their run's state, then say how that went.
    Take(OpsFrame),
    /// Put a snapshot in the place of a run's state, then say what is known.
    Replace(Box<Snapshot>, bool),
    /// Take in what a live stream is doing.
    Stream(StreamState),
    /// A session changed.
    Session(Box<SessionSummary>),
    /// Fetch the whole state of a run over HTTP, put it in the place of the known one, then follow the run again.
    Fetch(RunId),
    /// The server's clock read this when the frame was sent.
    ServerTime(i64),
    /// Show an error.
    Report(Problem),
    /// Show how the page is connected.
    Show(ConnectionState),
}

/// An error of the stream, for the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The run that it is about.
    pub run: Option<RunId>,
    /// A stable code in snake case.
    pub code: String,
    /// In plain words.
    pub detail: String,
}
