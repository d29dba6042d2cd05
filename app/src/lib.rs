//! The page of Runloom.

pub mod markdown;
pub mod ui;
