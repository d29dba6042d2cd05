//! All scenarios, and which of them serves a request.

use std::sync::Arc;

use rust_embed::RustEmbed;
use serde::Serialize;

use super::failure::Failure;
use super::parameters::Parameters;
use super::scenario::{Scenario, ScenarioError};

#[derive(RustEmbed)]
#[folder = "src/simulator/scenarios"]
struct ScenarioFiles;

/// A scenario as it is offered to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScenarioInfo {
    /// Its name; as a model name or as the whole prompt it picks the scenario.
    pub name: String,
    /// A short title.
    pub title: String,
    /// What a viewer should see.
    pub description: String,
    /// A prompt that picks it.
    pub prompt: String,
    /// One short line about it, where the page offers it as a sample.
    pub sample: Option<String>,
    /// Its parameters and their defaults, as `name=value`.
    pub parameters: Vec<String>,
    /// Its gates.
    pub gates: Vec<String>,
}

/// The scenarios of one simulator, in the order in which they are offered.
#[derive(Debug, Clone)]
pub(super) struct Catalogue {
    scenarios: Vec<Arc<Scenario>>,
}

/// The built-in scenarios, or what is wrong with each file that cannot be used.
pub(super) fn built_in() -> Vec<Result<Scenario, ScenarioError>> {
    ScenarioFiles::iter()
        .filter(|path| path.ends_with(".toml"))
        .filter_map(|path| Some((ScenarioFiles::get(&path)?, path)))
        .map(|(file, path)| {
            let source = std::str::from_utf8(&file.data).map_err(|error| ScenarioError {
                file: path.to_string(),
                problem: format!("is not UTF-8: {error}"),
            })?;
            Scenario::parse(&path, source)
        })
        .collect()
}

impl Catalogue {
    /// The built-in scenarios and `more`, which replace built-in ones of the same name.
    pub(super) fn new(more: Vec<Scenario>) -> Self {
        let mut scenarios: Vec<Arc<Scenario>> = Vec::new();
        for scenario in built_in() {
            match scenario {
                Ok(scenario) if more.iter().any(|other| other.name == scenario.name) => {}
                Ok(scenario) => scenarios.push(Arc::new(scenario)),
                // A test holds that this never happens; the others still serve.
                Err(error) => tracing::error!(
                    scenario.file = error.file,
                    "a built-in scenario is left out: {error}"
                ),
            }
        }
        scenarios.extend(more.into_iter().map(Arc::new));
        scenarios.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        Self { scenarios }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Scenario>> {
        self.scenarios.iter()
    }

    pub(super) fn infos(&self) -> Vec<ScenarioInfo> {
        self.iter()
            .map(|scenario| ScenarioInfo {
                name: scenario.name.clone(),
                title: scenario.title.clone(),
                description: scenario.description.trim().to_owned(),
                prompt: scenario.prompt.clone(),
                sample: scenario.sample.clone(),
                parameters: scenario
                    .parameters
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect(),
                gates: scenario.gates().into_iter().map(str::to_owned).collect(),
            })
            .collect()
    }

    /// Prompts with titles, for the echo.
    pub(super) fn samples(&self) -> Vec<(String, String)> {
        self.iter()
            .filter(|scenario| !scenario.matching.default)
            .map(|scenario| (scenario.prompt.clone(), scenario.title.clone()))
            .collect()
    }

    /// The scenario for a model and a prompt, with its parameters. A model name counts first, then a prompt that is a
    /// scenario's name with parameters, then the longest phrase that the prompt contains, then the default.
    pub(super) fn pick(&self, model: &str, prompt: &str) -> Result<(Arc<Scenario>, Parameters), Failure> {
        let read = |scenario: &Arc<Scenario>, text: &str| {
            Parameters::read(&scenario.name, &scenario.parameters, text)
                .map(|parameters| (scenario.clone(), parameters))
                .map_err(|error| Failure::invalid(error.to_string()))
        };
        if let Some(scenario) = self.by_model(model) {
            // The prompt may set numbers, too, when it is a command.
            let command = self
                .by_command(prompt)
                .filter(|other| other.name == scenario.name);
            return read(scenario, if command.is_some() { prompt } else { model });
        }
        if let Some(scenario) = self.by_command(prompt) {
            return read(scenario, prompt);
        }
        match self
            .by_phrase(prompt)
            .or_else(|| self.iter().find(|scenario| scenario.matching.default))
        {
            Some(scenario) => read(scenario, ""),
            None => Err(Failure::new(404, "no scenario serves this prompt")),
        }
    }

    fn by_model(&self, model: &str) -> Option<&Arc<Scenario>> {
        let name = model.split_whitespace().next()?;
        self.iter().find(|scenario| {
            scenario.name == name || scenario.matching.models.iter().any(|model| model == name)
        })
    }

    fn by_command(&self, prompt: &str) -> Option<&Arc<Scenario>> {
        let mut words = prompt.split_whitespace();
        let name = words.next()?;
        if words.any(|word| !word.contains('=')) {
            return None;
        }
        self.iter()
            .find(|scenario| scenario.name.eq_ignore_ascii_case(name))
    }

    fn by_phrase(&self, prompt: &str) -> Option<&Arc<Scenario>> {
        let prompt = prompt.to_lowercase();
        let phrases = self.iter().flat_map(|scenario| {
            let own = std::iter::once(&scenario.prompt);
            own.chain(&scenario.matching.phrases)
                .map(move |phrase| (scenario, phrase.to_lowercase()))
        });
        phrases
            .filter(|(_, phrase)| contains_words(&prompt, phrase))
            .max_by_key(|(_, phrase)| phrase.len())
            .map(|(scenario, _)| scenario)
    }
}

/// Whether `text` contains `phrase` with no letter or digit directly before or after it.
fn contains_words(text: &str, phrase: &str) -> bool {
    let edge = |character: Option<char>| character.is_none_or(|character| !character.is_alphanumeric());
    text.match_indices(phrase).any(|(start, found)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text
            .get(start + found.len()..)
            .and_then(|after| after.chars().next());
        edge(before) && edge(after)
    })
}

/// The table of `docs/scenarios.md`.
pub fn markdown_table() -> String {
    let mut table = String::from(
        "| Scenario | Prompt | What a viewer should see | Parameters | Gates |\n|---|---|---|---|---|\n",
    );
    let list = |items: &[String]| {
        items
            .iter()
            .map(|item| format!("`{item}`"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for info in Catalogue::new(Vec::new()).infos() {
        let description = info.description.split_whitespace().collect::<Vec<_>>().join(" ");
        table.push_str(&format!(
            "| `{}`: {} | `{}` | {} | {} | {} |\n",
            info.name,
            info.title,
            info.prompt,
            description.replace('|', "\\|"),
            list(&info.parameters),
            list(&info.gates)
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(model: &str, prompt: &str) -> String {
        Catalogue::new(Vec::new())
            .pick(model, prompt)
            .unwrap()
            .0
            .name
            .clone()
    }

    #[test]
    fn every_scenario_file_is_good() {
        let all = built_in();
        assert!(all.len() >= 20, "only {} scenarios", all.len());
        for scenario in all {
            if let Err(error) = scenario {
                panic!("{error}");
            }
        }
    }

    #[test]
    fn every_sample_prompt_picks_its_scenario() {
        let catalogue = Catalogue::new(Vec::new());
        for info in catalogue.infos() {
            assert_eq!(
                picked("demo", &info.prompt),
                info.name,
                "by prompt {}",
                info.prompt
            );
            assert_eq!(picked("demo", &info.name), info.name, "by name in the prompt");
            assert_eq!(picked(&info.name, "anything"), info.name, "by model");
        }
    }

    #[test]
    fn the_default_serves_what_no_other_takes() {
        assert_eq!(picked("demo", "What is the capital of France?"), "echo");
        assert_eq!(picked("demo", "slow cooking recipes"), "echo");
        assert_eq!(picked("demo", "unwelcome"), "echo");
    }

    #[test]
    fn a_prompt_and_a_model_name_set_parameters() {
        let catalogue = Catalogue::new(Vec::new());
        let (scenario, parameters) = catalogue.pick("demo", "load rate=100 seconds=10").unwrap();
        assert_eq!(scenario.name, "load");
        assert_eq!(parameters.number("rate"), 100.0);
        let (_, parameters) = catalogue.pick("load rate=7 seconds=2 id=x", "go").unwrap();
        assert_eq!(
            (parameters.number("rate"), parameters.id.as_deref()),
            (7.0, Some("x"))
        );
        let failure = catalogue.pick("demo", "load speed=1").unwrap_err();
        assert_eq!(failure.status, 400);
        assert!(
            failure.message.contains("no parameter `speed`"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn the_document_lists_every_scenario_as_its_file_says_it() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scenarios.md");
        let document = std::fs::read_to_string(path).unwrap();
        let (begin, end) = ("<!-- begin scenarios -->\n", "<!-- end scenarios -->");
        let start = document.find(begin).expect("the mark before the table") + begin.len();
        let length = document[start..].find(end).expect("the mark after the table");
        if std::env::var_os("RUNLOOM_UPDATE_DOCS").is_some() {
            let updated = format!(
                "{}{}{}",
                &document[..start],
                markdown_table(),
                &document[start + length..]
            );
            std::fs::write(path, updated).unwrap();
            return;
        }
        assert_eq!(
            &document[start..start + length],
            markdown_table(),
            "docs/scenarios.md differs; RUNLOOM_UPDATE_DOCS=1 with this test writes the table anew"
        );
    }
}
