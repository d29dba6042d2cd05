//! The contract `execution_stream.v1`: its wire forms, the rules of the fold, the digest, and the page that tells them.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a value that is not there is a failure, and its place says which"
)]

mod answer;
mod digest;
mod documentation;
mod fold_rules;
mod fuzz;
mod history;
mod ops;
mod properties;
mod retold;
mod support;
mod window;
