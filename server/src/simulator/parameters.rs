//! The numbers of a scenario that a prompt or a model name may change: `load rate=100 seconds=10`.

use std::collections::BTreeMap;

/// The parameters of one stream: the scenario's defaults with what the request changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parameters {
    numbers: BTreeMap<String, f64>,
    /// The name under which the bench asks for send times, when the request gave one.
    pub(super) id: Option<String>,
}

/// A `name=value` that the scenario does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ParameterError(String);

impl Parameters {
    /// Reads every `name=value` word of `text` over the defaults. Other words are left alone.
    pub(super) fn read(
        scenario: &str,
        defaults: &BTreeMap<String, f64>,
        text: &str,
    ) -> Result<Self, ParameterError> {
        let mut parameters = Self {
            numbers: defaults.clone(),
            id: None,
        };
        for (name, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
            if name == "id" && !defaults.is_empty() {
                parameters.id = Some(id(value)?);
                continue;
            }
            let Some(number) = parameters.numbers.get_mut(name) else {
                let known: Vec<&str> = defaults.keys().map(String::as_str).collect();
                return Err(ParameterError(format!(
                    "the scenario `{scenario}` has no parameter `{name}`; it has: {}",
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                )));
            };
            *number = match value.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => value,
                _ => {
                    return Err(ParameterError(format!(
                        "`{name}={value}` in the scenario `{scenario}`: expected a number above 0"
                    )));
                }
            };
        }
        Ok(parameters)
    }

    /// The number of that name; 0 when the scenario has none.
    pub(super) fn number(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }

    /// A text with `{name}` replaced by the number of that name, and `{name-1}` by one less.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, number) in &self.numbers {
            filled = filled
                .replace(&format!("{{{name}}}"), &number.to_string())
                .replace(&format!("{{{name}-1}}"), &(number - 1.0).to_string());
        }
        filled
    }

    /// The number of that name as a count.
    pub(super) fn count(&self, name: &str) -> usize {
        self.number(name).clamp(0.0, 100_000_000.0) as usize
    }
}

fn id(value: &str) -> Result<String, ParameterError> {
    let good = !value.is_empty()
        && value.len() <= 64
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if good {
        Ok(value.to_owned())
    } else {
        Err(ParameterError(format!(
            "`id={value}`: expected 1 to 64 letters, digits, `-`, `_` or `.`"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> BTreeMap<String, f64> {
        BTreeMap::from([("rate".to_owned(), 20.0), ("seconds".to_owned(), 5.0)])
    }

    #[test]
    fn a_request_changes_the_defaults_by_name() {
        let parameters = Parameters::read("load", &defaults(), "load rate=100 id=run-1 please").unwrap();
        assert_eq!(parameters.number("rate"), 100.0);
        assert_eq!(parameters.number("seconds"), 5.0);
        assert_eq!(parameters.id.as_deref(), Some("run-1"));
    }

    #[test]
    fn a_text_holds_the_numbers_of_the_request() {
        let parameters = Parameters::read("load", &defaults(), "load rate=12").unwrap();
        assert_eq!(
            parameters.fill("{\"at\": \"load rate={rate-1}\", {seconds} {other}"),
            "{\"at\": \"load rate=11\", 5 {other}"
        );
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let error = |text| {
            Parameters::read("load", &defaults(), text)
                .unwrap_err()
                .to_string()
        };
        assert!(error("load speed=3").contains("no parameter `speed`; it has: rate, seconds"));
        assert!(error("load rate=0").contains("`rate=0`"));
        assert!(error("load id=a/b").contains("`id=a/b`"));
    }
}
