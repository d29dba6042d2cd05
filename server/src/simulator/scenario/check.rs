//! Reading a scenario file, and what is refused beyond its shape.

use std::collections::BTreeMap;

use super::{HttpErrorStep, Scenario, ScenarioError, Step, TextStep, ToolCallStep, Turn};

impl Scenario {
    /// Reads one file. `file` is its name with extension, for messages and to check the scenario's name.
    pub fn parse(file: &str, source: &str) -> Result<Self, ScenarioError> {
        let fail = |problem: String| ScenarioError {
            file: file.to_owned(),
            problem,
        };
        let scenario: Self = toml::from_str(source).map_err(|error| fail(error.to_string()))?;
        scenario.check(file).map_err(fail)?;
        Ok(scenario)
    }

    fn check(&self, file: &str) -> Result<(), String> {
        let stem = file.trim_end_matches(".toml");
        if self.name != stem {
            return Err(format!(
                "`name` is `{}`, expected `{stem}`, the name of the file",
                self.name
            ));
        }
        for (key, value) in [
            ("title", &self.title),
            ("description", &self.description),
            ("prompt", &self.prompt),
        ] {
            if value.trim().is_empty() {
                return Err(format!("`{key}` is empty, expected a text"));
            }
        }
        for (key, value) in &self.parameters {
            check_number(&format!("parameters.{key}"), *value, true)?;
        }
        if self.turns.is_empty() {
            return Err("`turns` is empty, expected at least one turn".to_owned());
        }
        if let Some(bottom) = &self.bottom {
            check_parameter("bottom.parameter", &bottom.parameter, &self.parameters)?;
            if bottom.turns.is_empty() {
                return Err("`bottom.turns` is empty, expected at least one turn".to_owned());
            }
        }
        let below = self
            .bottom
            .iter()
            .flat_map(|bottom| bottom.turns.iter().enumerate());
        let all = self.turns.iter().enumerate().map(|numbered| ("turns", numbered));
        for (list, (turn_index, turn)) in all.chain(below.map(|numbered| ("bottom.turns", numbered))) {
            turn.check(&self.parameters)
                .map_err(|(step, problem)| format!("{list}[{turn_index}].steps[{step}]: {problem}"))?;
            for (index, again) in turn.again.iter().enumerate() {
                let place = format!("{list}[{turn_index}].again[{index}]");
                if !again.again.is_empty() {
                    return Err(format!(
                        "{place}.again: expected none; list it in `{list}[{turn_index}].again`"
                    ));
                }
                again
                    .check(&self.parameters)
                    .map_err(|(step, problem)| format!("{place}.steps[{step}]: {problem}"))?;
            }
        }
        Ok(())
    }

    /// The names of all gates, in order of their first appearance.
    pub fn gates(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let below = self.bottom.iter().flat_map(|bottom| &bottom.turns);
        let turns = self
            .turns
            .iter()
            .chain(below)
            .flat_map(|turn| std::iter::once(turn).chain(&turn.again));
        for step in turns.flat_map(|turn| &turn.steps) {
            if let Step::Gate(gate) = step
                && !names.contains(&gate.name.as_str())
            {
                names.push(gate.name.as_str());
            }
        }
        names
    }
}

impl Turn {
    /// Where the answer is an HTTP error: the steps before it, which delay the answer, and the error.
    pub fn http_error(&self) -> Option<(&[Step], &HttpErrorStep)> {
        match self.steps.split_last() {
            Some((Step::HttpError(error), before)) => Some((before, error)),
            _ => None,
        }
    }

    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), (usize, String)> {
        let last = self
            .steps
            .len()
            .checked_sub(1)
            .ok_or((0, "missing, expected at least one step".to_owned()))?;
        let answers_error = self.http_error().is_some();
        for (index, step) in self.steps.iter().enumerate() {
            step.check(parameters).map_err(|problem| (index, problem))?;
            if index < last && step.is_final() {
                return Err((index, "ends the turn, expected it to be the last step".to_owned()));
            }
            let before = self.steps.get(..index).unwrap_or_default();
            let on_tool = matches!(before.last(), Some(Step::ToolCall(_) | Step::TextOnOpenTool(_)));
            if matches!(step, Step::TextOnOpenTool(_)) && !on_tool {
                return Err((
                    index,
                    "stands alone, expected it directly after `tool_call`".to_owned(),
                ));
            }
            if answers_error && index < last && !matches!(step, Step::Gate(_) | Step::Silence(_)) {
                return Err((
                    index,
                    "comes before `http_error`, expected only `gate` or `silence`".to_owned(),
                ));
            }
        }
        Ok(())
    }
}

impl Step {
    fn is_final(&self) -> bool {
        matches!(
            self,
            Self::HttpError(_)
                | Self::ErrorEvent(_)
                | Self::Stop(_)
                | Self::Cut(_)
                | Self::EndWithoutTerminal(_)
        )
    }

    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), String> {
        match self {
            Self::Reasoning(text) | Self::Text(text) | Self::Refusal(text) => text.check(parameters),
            Self::ToolCall(call) => call.check(parameters),
            Self::Silence(silence) => {
                if let Some(parameter) = &silence.parameter {
                    check_parameter("parameter", parameter, parameters)?;
                }
                check_number("seconds", silence.seconds, false)?;
                check_number("ping_seconds", silence.ping_seconds, false)
            }
            Self::Stop(stop) => check_number("keep_open_seconds", stop.keep_open_seconds, false),
            Self::HttpError(error) if !(400..=599).contains(&error.status) => {
                Err(format!("`status` is {}, expected 400 to 599", error.status))
            }
            Self::Gate(gate) if gate.name.is_empty() || gate.name.contains(['/', '?', '#', ' ']) => {
                Err(format!(
                    "`name` is `{}`, expected a text that can stand in an address",
                    gate.name
                ))
            }
            _ => Ok(()),
        }
    }
}

impl TextStep {
    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), String> {
        check_number("rate", self.rate, true)?;
        if let Some(missing) = self.generator.and_then(|generator| {
            generator
                .parameters()
                .iter()
                .find(|name| !parameters.contains_key(**name))
        }) {
            return Err(format!(
                "its generator needs `parameters.{missing}`, which is missing"
            ));
        }
        if self.chunk == 0 {
            return Err("`chunk` is 0, expected at least 1".to_owned());
        }
        match (&self.text, self.generator) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) => Err("has both `text` and `generator`, expected one of them".to_owned()),
            (None, None) => Err("has neither `text` nor `generator`, expected one of them".to_owned()),
        }
    }
}

impl ToolCallStep {
    fn check(&self, parameters: &BTreeMap<String, f64>) -> Result<(), String> {
        if let Some(times) = &self.times {
            check_parameter("times", times, parameters)?;
        }
        check_number("rate", self.rate, true)?;
        if self.chunk == 0 {
            return Err("`chunk` is 0, expected at least 1".to_owned());
        }
        if self.without_id && self.id.is_some() {
            return Err("has both `id` and `without_id`, expected one of them".to_owned());
        }
        Ok(())
    }

    /// The arguments as far as they are sent.
    pub fn sent_arguments(&self) -> &str {
        match self
            .cut_after
            .and_then(|count| self.arguments.char_indices().nth(count))
        {
            Some((end, _)) => self.arguments.get(..end).unwrap_or(&self.arguments),
            None => &self.arguments,
        }
    }
}

fn check_parameter(key: &str, name: &str, parameters: &BTreeMap<String, f64>) -> Result<(), String> {
    match parameters.contains_key(name) {
        true => Ok(()),
        false => Err(format!(
            "`{key}` names `{name}`, expected one of the scenario's parameters"
        )),
    }
}

fn check_number(key: &str, value: f64, above_zero: bool) -> Result<(), String> {
    let good = value.is_finite() && if above_zero { value > 0.0 } else { value >= 0.0 };
    if good {
        return Ok(());
    }
    let expected = if above_zero {
        "a number above 0"
    } else {
        "a number not below 0"
    };
    Err(format!("`{key}` is {value}, expected {expected}"))
}
