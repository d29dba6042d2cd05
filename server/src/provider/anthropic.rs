//! Anthropic Messages and what is compatible with it.

mod decoder;
mod display;
mod request;
mod usage;
mod wire_block;

pub use decoder::Decoder;
pub use request::build_request;
