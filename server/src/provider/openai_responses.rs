//! OpenAI Responses and what is compatible with it. Nothing is stored at the provider: every request holds the whole
//! conversation.

mod block;
mod decoder;
mod item;
mod record;
mod request;
mod server_item;
mod usage;

pub use decoder::Decoder;
pub use request::build_request;
