//! The server of Runloom: it executes runs, writes them down and serves them.
//!
//! Dependencies between the modules point one way: `http` → `exchange`, `run`, `store`; `exchange` → `run`, `store`; `run` → `stream`, `tool`, `store`;
//! `stream` → `provider`. `provider` and `tool` know neither axum nor sqlx. Only `run::recorder` writes ops; `exchange` writes those of runs
//! that come from elsewhere.

pub mod cli;
pub mod clock;
pub mod config;
pub mod exchange;
pub mod highlight;
pub mod http;
pub mod provider;
pub mod run;
pub mod serve;
pub mod simulator;
pub mod store;
pub mod stream;
pub mod tool;
pub mod verify;
