//! Providers that a well-known environment variable configures without a file.
//!
//! The models are a dated table: as published by the providers in November 2026. Ids, context windows and reply
//! lengths change; a `[[providers]]` section in the file takes its place as a whole. The first model of a provider
//! serves every role.

use super::settings::{ModelSettings, ProviderSettings};
use super::stall::{ModelClass, StallConfig};
use crate::provider::ProviderKind;

struct KnownProvider {
    id: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    key_variable: &'static str,
    models: &'static [KnownModel],
}

struct KnownModel {
    id: &'static str,
    class: ModelClass,
    /// Tokens.
    context: u64,
    /// Tokens; below what the model can do, so that one reply stays readable and payable.
    max_tokens: u32,
}

const KNOWN: [KnownProvider; 3] = [
    KnownProvider {
        id: "anthropic",
        kind: ProviderKind::Anthropic,
        base_url: "https://api.anthropic.com",
        key_variable: "ANTHROPIC_API_KEY",
        models: &[
            KnownModel {
                id: "claude-sonnet-5-5",
                class: ModelClass::Thinking,
                context: 1_000_000,
                max_tokens: 64_000,
            },
            KnownModel {
                id: "claude-opus-5-5",
                class: ModelClass::Thinking,
                context: 1_000_000,
                max_tokens: 64_000,
            },
            KnownModel {
                id: "claude-haiku-4-5",
                class: ModelClass::Action,
                context: 200_000,
                max_tokens: 32_000,
            },
        ],
    },
    KnownProvider {
        id: "openai",
        kind: ProviderKind::OpenaiChat,
        base_url: "https://api.openai.com/v1",
        key_variable: "OPENAI_API_KEY",
        models: &[
            KnownModel {
                id: "gpt-5.5",
                class: ModelClass::Thinking,
                context: 1_000_000,
                max_tokens: 64_000,
            },
            KnownModel {
                id: "gpt-5.4-mini",
                class: ModelClass::Action,
                context: 400_000,
                max_tokens: 32_000,
            },
        ],
    },
    KnownProvider {
        id: "gemini",
        kind: ProviderKind::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_variable: "GEMINI_API_KEY",
        models: &[
            KnownModel {
                id: "gemini-3.8-flash",
                class: ModelClass::Thinking,
                context: 1_000_000,
                max_tokens: 64_000,
            },
            KnownModel {
                id: "gemini-3.5-flash-lite",
                class: ModelClass::Action,
                context: 1_000_000,
                max_tokens: 32_000,
            },
        ],
    },
];

/// The providers whose key `is_set`, as if they stood in the file.
pub(super) fn configured(is_set: impl Fn(&str) -> bool) -> Vec<ProviderSettings> {
    KNOWN
        .iter()
        .filter(|known| is_set(known.key_variable))
        .map(KnownProvider::settings)
        .collect()
}

impl KnownProvider {
    fn settings(&self) -> ProviderSettings {
        let models = self.models.iter().map(|model| ModelSettings {
            id: model.id.to_owned(),
            class: model.class,
            context: model.context,
            max_tokens: Some(model.max_tokens),
            price: None,
            stall: StallConfig::default(),
        });
        ProviderSettings {
            id: self.id.to_owned(),
            kind: self.kind,
            base_url: self.base_url.to_owned(),
            api_key_env: self.key_variable.to_owned(),
            models: models.collect(),
            stall: StallConfig::default(),
            reasoning: protocol::state::Retention::Saved,
        }
    }
}
