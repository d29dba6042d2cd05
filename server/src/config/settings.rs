//! The shape of the settings as they are written. Its JSON Schema is the one list of all keys.

use std::collections::BTreeMap;

use protocol::api::{InterruptionPolicy, ToolMode};
use protocol::state::Retention;
use schemars::JsonSchema;
use serde::Deserialize;

use super::stall::{ModelClass, StallConfig};
use crate::provider::ProviderKind;
use crate::tool::Approval;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) server: ServerSettings,
    pub(super) log: LogSettings,
    pub(super) providers: Vec<ProviderSettings>,
    pub(super) roles: RoleSettings,
    pub(super) limits: LimitSettings,
    pub(super) recovery: RecoverySettings,
    pub(super) tools: ToolSettings,
    pub(super) mcp_servers: Vec<McpServerSettings>,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerSettings {
    pub(super) listen: String,
    pub(super) data_dir: String,
    pub(super) database_url: String,
    pub(super) workspace: String,
    pub(super) grace_seconds: u64,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:3000".to_owned(),
            data_dir: String::new(),
            database_url: String::new(),
            workspace: String::new(),
            grace_seconds: 10,
        }
    }
}

/// `[log]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogSettings {
    pub(super) filter: String,
    pub(super) format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            filter: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[[providers]]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderSettings {
    pub(super) id: String,
    #[schemars(with = "String")]
    pub(super) kind: ProviderKind,
    pub(super) base_url: String,
    #[serde(default)]
    pub(super) api_key_env: String,
    #[serde(default)]
    pub(super) models: Vec<ModelSettings>,
    #[serde(default)]
    pub(super) stall: StallConfig,
    #[serde(default = "saved")]
    #[schemars(with = "String")]
    pub(super) reasoning: Retention,
}

fn saved() -> Retention {
    Retention::Saved
}

/// An element of `models`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelSettings {
    pub(super) id: String,
    pub(super) class: ModelClass,
    pub(super) context: u64,
    #[serde(default)]
    pub(super) max_tokens: Option<u32>,
    #[serde(default)]
    pub(super) price: Option<PriceSettings>,
    #[serde(default)]
    pub(super) stall: StallConfig,
}

/// `price` of a model.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceSettings {
    pub(super) input: f64,
    pub(super) output: f64,
    #[serde(default)]
    pub(super) cache_read: Option<f64>,
    #[serde(default)]
    pub(super) cache_write: Option<f64>,
}

/// `[roles]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RoleSettings {
    pub(super) chat: Vec<String>,
    pub(super) inner: Vec<String>,
}

/// `[limits]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitSettings {
    pub(super) rounds_per_node: u32,
    pub(super) attempts_per_node: u32,
    pub(super) depth: u32,
    pub(super) parallel_calls: u32,
    pub(super) run_seconds: u64,
    pub(super) tool_seconds: u64,
    pub(super) rate_limit_seconds: u64,
    pub(super) total_tokens: u64,
    pub(super) cost: Option<f64>,
    pub(super) code_compute_seconds: u64,
    pub(super) code_seconds: u64,
    pub(super) code_memory_mib: u64,
    pub(super) code_output_mib: u64,
    pub(super) code_calls: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            rounds_per_node: 50,
            attempts_per_node: 10,
            depth: 16,
            parallel_calls: 10,
            run_seconds: 4 * 60 * 60,
            tool_seconds: 120,
            rate_limit_seconds: 30 * 60,
            total_tokens: 20_000_000,
            cost: None,
            code_compute_seconds: 60,
            code_seconds: 600,
            code_memory_mib: 256,
            code_output_mib: 64,
            code_calls: 10_000,
        }
    }
}

/// `[tools]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolSettings {
    #[schemars(with = "String")]
    pub(super) mode: ToolMode,
    pub(super) run_code: bool,
    pub(super) fetch_url: bool,
    pub(super) shell: bool,
    pub(super) approval: BTreeMap<String, Approval>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            mode: ToolMode::Both,
            run_code: true,
            fetch_url: true,
            shell: false,
            approval: BTreeMap::new(),
        }
    }
}

/// `[[mcp_servers]]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct McpServerSettings {
    pub(super) id: String,
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) env_from: Vec<String>,
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) token_env: String,
    #[serde(default = "start_seconds")]
    pub(super) start_seconds: u64,
}

fn start_seconds() -> u64 {
    30
}

/// `[recovery]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RecoverySettings {
    pub(super) retry_delays: Vec<f64>,
    pub(super) retry_jitter: f64,
    pub(super) rate_limit_delays: Vec<f64>,
    pub(super) rotation_delay: f64,
    pub(super) rotations: u32,
    pub(super) cooldown: f64,
    #[schemars(with = "String")]
    pub(super) on_interruption: InterruptionPolicy,
}

impl Default for RecoverySettings {
    fn default() -> Self {
        Self {
            retry_delays: vec![2.0, 8.0],
            retry_jitter: 0.25,
            rate_limit_delays: vec![30.0, 60.0, 120.0],
            rotation_delay: 30.0,
            rotations: 3,
            cooldown: 60.0,
            on_interruption: InterruptionPolicy::Leave,
        }
    }
}
