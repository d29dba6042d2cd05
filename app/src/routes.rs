//! The pages.

pub mod not_found;
pub mod session;
pub mod sessions;
