//! The rules for providers, their models, and the roles that name them.

use std::collections::HashSet;

use super::{Check, MOST_STALL_SECONDS};
use crate::config::error::ConfigError;
use crate::config::settings::{ModelSettings, PriceSettings, ProviderSettings};
use crate::config::stall::StallConfig;
use crate::config::{ModelConfig, ModelRef, Price, ProviderConfig, Roles};
use crate::provider::Secret;

impl Check<'_> {
    pub(super) fn providers(&self, written: &[ProviderSettings]) -> Result<Vec<ProviderConfig>, ConfigError> {
        let mut seen = HashSet::new();
        let mut providers = Vec::with_capacity(written.len());
        for (index, provider) in written.iter().enumerate() {
            let key = format!("providers[{index}]");
            if provider.id.is_empty() || provider.id.contains(['/', ' ', '\t', '\n']) {
                return self.wrong(
                    &format!("{key}.id"),
                    format!("{:?}", provider.id),
                    "a short name without `/` or spaces, such as \"main\"",
                );
            }
            if !seen.insert(provider.id.as_str()) {
                return self.wrong(
                    &format!("{key}.id"),
                    format!("{:?}, which an earlier provider has", provider.id),
                    "an id of its own for each provider",
                );
            }
            providers.push(self.provider(&key, provider)?);
        }
        Ok(providers)
    }

    fn provider(&self, key: &str, provider: &ProviderSettings) -> Result<ProviderConfig, ConfigError> {
        let api_key = match provider.api_key_env.as_str() {
            "" => None,
            variable => match self.inputs.variable(variable) {
                Some(value) => Some(self.api_key(&format!("{key}.api_key_env"), variable, value)?),
                None => {
                    // Somebody may have put the key itself here.
                    let is_name = variable
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
                    let found = if is_name {
                        format!("{variable:?}, and the environment has no such variable, or it is empty")
                    } else {
                        "a text that is no name of a variable in the environment (not shown: it may be a key)"
                            .to_owned()
                    };
                    return self.wrong(
                        &format!("{key}.api_key_env"),
                        found,
                        "the name of a variable that holds the key; leave it out for an endpoint that wants none",
                    );
                }
            },
        };
        if provider.models.is_empty() {
            return self.wrong(
                &format!("{key}.models"),
                "no model",
                "at least one, such as { id = \"some-model\", class = \"thinking\", context = 200000 }",
            );
        }
        let mut seen = HashSet::new();
        let mut models = Vec::with_capacity(provider.models.len());
        for (index, model) in provider.models.iter().enumerate() {
            let key = format!("{key}.models[{index}]");
            if !seen.insert(model.id.as_str()) {
                return self.wrong(
                    &format!("{key}.id"),
                    format!("{:?}, which an earlier model of this provider has", model.id),
                    "each model once",
                );
            }
            models.push(self.model(&key, model)?);
        }
        Ok(ProviderConfig {
            id: provider.id.clone(),
            kind: provider.kind,
            base_url: self.base_url(&format!("{key}.base_url"), &provider.base_url)?,
            api_key,
            models,
            stall: self.stall(&format!("{key}.stall"), &provider.stall)?,
            reasoning: provider.reasoning,
        })
    }

    fn api_key(&self, key: &str, variable: &str, value: &str) -> Result<Secret, ConfigError> {
        let value = value.trim();
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return self.wrong(
                key,
                format!("{variable:?}, whose value has a character that an HTTP header cannot carry"),
                "a variable that holds a key and nothing else",
            );
        }
        Ok(Secret::new(value))
    }

    fn base_url(&self, key: &str, written: &str) -> Result<String, ConfigError> {
        let expected = "an address such as \"https://api.example.com/v1\", without user, query or fragment";
        let Ok(url) = reqwest::Url::parse(written) else {
            return self.wrong(key, format!("{written:?}"), expected);
        };
        if !url.username().is_empty() || url.password().is_some() {
            return self.wrong(key, "an address with a user or a password in it", expected);
        }
        let is_plain = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_plain || url.query().is_some() || url.fragment().is_some() {
            return self.wrong(key, format!("{written:?}"), expected);
        }
        Ok(url.as_str().trim_end_matches('/').to_owned())
    }

    fn model(&self, key: &str, model: &ModelSettings) -> Result<ModelConfig, ConfigError> {
        if model.id.trim().is_empty() {
            return self.wrong(
                &format!("{key}.id"),
                "an empty text",
                "the model's id as the provider knows it",
            );
        }
        self.up_to(&format!("{key}.context"), model.context, 1, u64::from(u32::MAX))?;
        if let Some(max_tokens) = model.max_tokens {
            self.up_to(
                &format!("{key}.max_tokens"),
                u64::from(max_tokens),
                1,
                model.context,
            )?;
        }
        Ok(ModelConfig {
            id: model.id.clone(),
            class: model.class,
            context: model.context,
            max_tokens: model.max_tokens,
            price: model
                .price
                .map(|price| self.price(&format!("{key}.price"), price))
                .transpose()?,
            stall: self.stall(&format!("{key}.stall"), &model.stall)?,
        })
    }

    fn price(&self, key: &str, price: PriceSettings) -> Result<Price, ConfigError> {
        let PriceSettings {
            input,
            output,
            cache_read,
            cache_write,
        } = price;
        let all = [
            ("input", Some(input)),
            ("output", Some(output)),
            ("cache_read", cache_read),
            ("cache_write", cache_write),
        ];
        for (name, value) in all {
            if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
                let found = value.map(|value| value.to_string()).unwrap_or_default();
                return self.wrong(
                    &format!("{key}.{name}"),
                    found,
                    "a price per million tokens, not negative",
                );
            }
        }
        Ok(Price {
            input,
            output,
            cache_read,
            cache_write,
        })
    }

    fn stall(&self, key: &str, stall: &StallConfig) -> Result<StallConfig, ConfigError> {
        for (name, value) in stall.fields() {
            if let Some(seconds) = value {
                self.up_to(&format!("{key}.{name}"), seconds, 1, MOST_STALL_SECONDS)?;
            }
        }
        Ok(*stall)
    }

    pub(super) fn roles(&self, providers: &[ProviderConfig]) -> Result<Roles, ConfigError> {
        let roles = &self.sourced.settings.roles;
        let mut chat = self.role("roles.chat", &roles.chat, providers)?;
        if chat.is_empty() {
            chat = providers
                .iter()
                .filter_map(|provider| {
                    let model = provider.models.first()?;
                    Some(ModelRef {
                        provider_id: provider.id.clone(),
                        model: model.id.clone(),
                    })
                })
                .collect();
        }
        let mut inner = self.role("roles.inner", &roles.inner, providers)?;
        if inner.is_empty() {
            inner.clone_from(&chat);
        }
        Ok(Roles { chat, inner })
    }

    fn role(
        &self,
        key: &str,
        names: &[String],
        providers: &[ProviderConfig],
    ) -> Result<Vec<ModelRef>, ConfigError> {
        let mut references = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let key = format!("{key}[{index}]");
            let Some((provider_id, model)) = name.split_once('/') else {
                return self.wrong(
                    &key,
                    format!("{name:?}"),
                    "\"PROVIDER/MODEL\", both as they stand under providers",
                );
            };
            let Some(provider) = providers.iter().find(|provider| provider.id == provider_id) else {
                let known = list(providers.iter().map(|provider| provider.id.as_str()));
                return self.wrong(
                    &key,
                    format!("{name:?}, but there is no provider {provider_id:?}"),
                    format!("a model of one of the providers: {known}"),
                );
            };
            if provider.model(model).is_none() {
                let known = list(provider.models.iter().map(|model| model.id.as_str()));
                return self.wrong(
                    &key,
                    format!("{name:?}, but the provider {provider_id:?} has no model {model:?}"),
                    format!("one of its models: {known}"),
                );
            }
            references.push(ModelRef {
                provider_id: provider_id.to_owned(),
                model: model.to_owned(),
            });
        }
        Ok(references)
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none is configured".to_owned()
    } else {
        names.join(", ")
    }
}
