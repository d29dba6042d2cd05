//! Where the page's data come from and where they are kept while it is open.
//!
//! | module | holds |
//! |---|---|
//! | [`port`] | what the server puts into context |
//! | [`load`] | a page's data: from the port on the server, over HTTP in the browser |
//! | [`api`] | the HTTP calls that change something, and those that read |
//! | [`run_store`] | the state of one run, readable piece by piece |
//! | [`session_store`] | the runs of the session that is open |
//! | [`connection`] | the rules of the one WebSocket, without I/O |
//! | [`live`] | the WebSocket itself |
//! | [`clock`] | the server's clock, as the page knows it |
//! | [`guide`] | where the page is led, also to what is not loaded |
//! | [`expansion`] | which rows the user has opened or closed |
//! | [`selection`] | which node is selected |

pub mod api;
pub mod clock;
pub mod connection;
pub mod expansion;
pub mod guide;
pub mod live;
pub mod load;
pub mod port;
pub mod run_store;
pub mod selection;
pub mod session_store;
