//! OpenAI Chat Completions and what is compatible with it.

mod assembly;
mod decoder;
mod message;
mod request;
mod think;
mod usage;

pub use decoder::Decoder;
pub use request::build_request;
