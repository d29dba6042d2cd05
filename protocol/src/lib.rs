//! `execution_stream.v1`: the contract between execution, storage, browser and every other client.
//!
//! Types and pure rules only: no I/O, no clock, no randomness, and nothing that does not build for wasm32. What is
//! written here is written nowhere else: execution, storage, server rendering and the browser all use the one
//! [`fold`], and all compute the one [`digest`].
//!
//! | module | holds |
//! |---|---|
//! | [`id`] | ids of things: opaque text with a prefix |
//! | [`state`] | the states that things can be in |
//! | [`op`] | ops and their envelope, the journal's unit |
//! | [`model`] | things as the fold holds them and as a snapshot shows them |
//! | [`snapshot`] | the state of a run at one `seq`, and its parts on the wire |
//! | [`fold`] | the only reducer |
//! | [`digest`] | the proof that two records are equal |
//! | [`frame`] | what goes over the WebSocket |
//! | [`search`] | searching the content of a session |
//! | [`api`] | bodies of the HTTP calls |

pub mod api;
pub mod digest;
pub mod fold;
pub mod frame;
pub mod id;
pub mod model;
pub mod op;
pub mod search;
pub mod snapshot;
pub mod state;

/// The version of the protocol that this crate speaks. A reader that meets another one stops with a clear message.
///
/// 1: the first version.
pub const SCHEMA_VERSION: u32 = 1;

/// The most bytes of text that one op may carry; longer text is several ops.
pub const MAX_OP_TEXT: usize = 16 * 1024;

/// The most bytes of text, before escaping, that one WebSocket frame may carry.
pub const MAX_FRAME_TEXT: usize = 64 * 1024;

/// The most bytes of a closed content that a snapshot always holds whole; of a longer one a window holds a beginning of
/// at most so many bytes.
pub const PREVIEW_BYTES: usize = 32 * 1024;

/// The most bytes that a prompt may have.
pub const MAX_PROMPT: usize = 1024 * 1024;

/// Fields that this version does not know, kept so that nothing is lost.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// Reads a JSON text by way of [`serde_json::Value`], so that the page has one reader for each type and not one for texts
/// besides.
///
/// # Errors
/// The text is not JSON, or not of this type.
pub fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::from_str(text)?)
}
