//! The whole server as its users have it: real HTTP, a real WebSocket, a real PostgreSQL, and the simulator as the
//! provider behind real HTTP. One module for each behaviour; `harness` says how a test is written.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a value that is not there is a failure, and its place says which"
)]

mod access;
mod api_document;
mod approving;
mod attempts;
mod cancelling;
mod catching_up;
mod client_frames;
mod code_mode;
mod command_line;
mod context;
mod disconnects;
mod durable_snapshot;
mod endings;
mod exchange;
mod file_tools;
mod harness;
mod heartbeat;
mod highlight;
mod importing;
mod inner_models;
mod kill_matrix;
mod kill_postgres;
mod lagging;
mod large;
mod limits;
mod listing;
mod mcp;
mod odd_text;
mod owner_gone;
mod page;
mod parallel_calls;
mod provider;
mod provider_failures;
mod proxy;
mod ranges;
mod recorder;
mod recorder_outage;
mod refreshing;
mod regenerating;
mod rejected;
mod replaying;
mod resuming;
mod retention;
mod rotation;
mod search;
mod several_servers;
mod states;
mod stopping;
mod tool_settlement;
mod transcripts;
mod viewer;
mod watching_elsewhere;
mod whole_run;
mod windows;
mod wire_size;
