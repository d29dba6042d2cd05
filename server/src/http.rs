//! (to be written)

pub mod assets;
