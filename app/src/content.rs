//! The content of a run: what the model wrote and what its tools did, in order.
//!
//! [`LlmNodeContent`](llm_node_content::LlmNodeContent) is the one component for it. Its input is a node's id; all else
//! comes from the run's store, so that a change touches only what shows it.

pub mod approval;
pub mod asking;
pub mod attempt;
pub mod block;
pub mod block_list;
pub mod calls;
pub mod gap;
pub mod go_on;
pub mod group;
pub mod io;
pub mod llm_node_content;
pub mod model_row;
pub mod notice;
pub mod partial_json;
pub mod pieces;
pub mod prompt;
pub mod reasoning;
pub mod record;
pub mod registry;
pub mod run_info;
pub mod run_view;
pub mod scope;
pub mod stop_node;
pub mod tool_row;
pub mod views;
pub mod words;

#[cfg(test)]
#[cfg(feature = "ssr")]
mod tests;
