//! Which provider and model serve a node.

use std::collections::VecDeque;

use protocol::model::Usage;
use protocol::state::Retention;

use crate::config::{Config, ModelConfig, ModelRef, StallLimits};
use crate::provider::{self, Endpoint};
use crate::stream::StreamLimits;

/// A provider and one of its models.
#[derive(Clone)]
pub struct Target {
    /// Where the model is served.
    pub endpoint: Endpoint,
    /// The model.
    pub model: ModelConfig,
    /// Whether reasoning is kept.
    pub(super) reasoning: Retention,
    stall: StallLimits,
}

/// A wish that the configuration cannot meet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownTarget {
    /// No such provider.
    #[error("there is no provider {found:?}; configured are: {known}")]
    Provider {
        /// What was asked for.
        found: String,
        /// The ids of those that are configured.
        known: String,
    },
    /// No such model.
    #[error("there is no model {found:?}; configured are: {known}")]
    Model {
        /// What was asked for.
        found: String,
        /// `provider/model` of those that are configured.
        known: String,
    },
}

impl Target {
    /// Finds what a request asks for: without a provider and a model the first of the role `chat`; without a model
    /// the first of the provider; without a provider the first that has the model.
    pub fn choose(
        config: &Config,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<Self, UnknownTarget> {
        let all = || {
            config
                .providers
                .iter()
                .flat_map(|provider| provider.models.iter().map(move |model| (provider, model)))
        };
        let unknown_model = |found: &str| UnknownTarget::Model {
            found: found.chars().take(100).collect(),
            known: all()
                .map(|(provider, model)| format!("{}/{}", provider.id, model.id))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let found = match (provider, model) {
            (None, None) => config
                .roles
                .chat
                .first()
                .and_then(|role| config.model(role))
                .or_else(|| all().next())
                .ok_or_else(|| unknown_model("the first"))?,
            (None, Some(model)) => all()
                .find(|(_, known)| known.id == model)
                .ok_or_else(|| unknown_model(model))?,
            (Some(provider), model) => {
                let known = config.provider(provider).ok_or_else(|| UnknownTarget::Provider {
                    found: provider.chars().take(100).collect(),
                    known: config
                        .providers
                        .iter()
                        .map(|provider| provider.id.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                })?;
                let served = match model {
                    None => known.models.first(),
                    Some(model) => known.model(model),
                };
                (
                    known,
                    served.ok_or_else(|| unknown_model(model.unwrap_or("the first")))?,
                )
            }
        };
        let (provider, model) = found;
        Ok(Self {
            endpoint: provider.endpoint(),
            model: model.clone(),
            reasoning: provider.reasoning,
            stall: provider.stall_limits(model),
        })
    }

    /// Finds what serves an inner call: what it asks for, as `PROVIDER/MODEL` or a model alone, else the first of the
    /// role `inner`.
    pub(super) fn inner(config: &Config, wish: Option<&str>) -> Result<Self, UnknownTarget> {
        match wish {
            None => match config.roles.inner.first() {
                Some(role) => Self::choose(config, Some(&role.provider_id), Some(&role.model)),
                None => Self::choose(config, None, None),
            },
            // A model's own name may hold a slash, too.
            Some(wish) => match wish.split_once('/') {
                Some((provider, model)) if config.provider(provider).is_some() => {
                    Self::choose(config, Some(provider), Some(model))
                }
                _ => Self::choose(config, None, Some(wish)),
            },
        }
    }

    /// Those that may take its place: what stands after it in the list of its role.
    pub(super) fn fallbacks(
        &self,
        config: &Config,
        role: &[ModelRef],
        reasoning: Option<Retention>,
    ) -> VecDeque<Self> {
        let is_this = |listed: &&ModelRef| {
            listed.provider_id == self.endpoint.provider_id && listed.model == self.model.id
        };
        let Some(place) = role.iter().position(|listed| is_this(&listed)) else {
            return VecDeque::new();
        };
        let after = role.get(place + 1..).unwrap_or_default().iter();
        after
            .filter_map(|listed| Self::choose(config, Some(&listed.provider_id), Some(&listed.model)).ok())
            .map(|target| target.with_reasoning(reasoning))
            .collect()
    }

    /// Keeps reasoning only where the session wants that, too.
    #[must_use]
    pub(super) fn with_reasoning(mut self, wanted: Option<Retention>) -> Self {
        if wanted == Some(Retention::NotSaved) {
            self.reasoning = Retention::NotSaved;
        }
        self
    }

    /// How long a stream may be silent: `later` for a round after tool results.
    pub(super) fn limits(&self, later: bool) -> StreamLimits {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).ok();
        let first = if later {
            self.stall.next_round
        } else {
            self.stall.first
        };
        StreamLimits {
            first_byte_ms: ms(first.no_byte),
            first_content_ms: ms(first.no_content),
            no_byte_ms: ms(self.stall.streaming.no_byte),
            no_content_ms: ms(self.stall.streaming.no_content),
            ..StreamLimits::thinking()
        }
    }

    /// A provider's count in the protocol's form, with the cost where the price is known.
    pub(super) fn usage(&self, usage: &provider::Usage) -> Usage {
        let input = usage.input_tokens.unwrap_or_default();
        let output = usage.output_tokens.unwrap_or_default();
        let priced = self.model.price.as_ref().map(|price| {
            let read = usage.cache_read_tokens.unwrap_or_default().min(input);
            let written = usage.cache_write_tokens.unwrap_or_default().min(input - read);
            let fresh = (input - read - written) as f64 * price.input;
            let read = read as f64 * price.cache_read.unwrap_or(price.input);
            let written = written as f64 * price.cache_write.unwrap_or(price.input);
            // Prices are for a million tokens.
            (fresh + read + written + output as f64 * price.output) / 1_000_000.0
        });
        Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost: usage.cost.or(priced),
        }
    }
}
