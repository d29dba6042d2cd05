//! Gemini, as `streamGenerateContent` with server-sent events.

mod decoder;
mod partial_arguments;
mod record;
mod request;
mod server_part;
mod usage;

pub use decoder::Decoder;
pub use request::build_request;
