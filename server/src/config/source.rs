//! Where settings come from, and how they are laid over each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::error::ConfigError;
use super::keys::{KeyKind, keys};
use super::settings::Settings;

const PREFIX: &str = "RUNLOOM_";

/// Variables with our prefix that are no settings: the token, the file, and those of the build and the scripts.
const OTHER_VARIABLES: [&str; 5] = [
    "RUNLOOM_TOKEN",
    "RUNLOOM_CONFIG",
    "RUNLOOM_SITE",
    "RUNLOOM_BINARY",
    "RUNLOOM_WASM_FALLBACK",
];
/// Variables of the tests.
const TEST_PREFIX: &str = "RUNLOOM_TEST_";

/// What the command line says about settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--config FILE`
    pub config: Option<PathBuf>,
    /// `--listen ADDR`
    pub listen: Option<SocketAddr>,
    /// `--data-dir DIR`
    pub data_dir: Option<PathBuf>,
}

/// The text of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its absolute path; relative folders in it are relative to its folder.
    pub path: PathBuf,
    /// What stands in it.
    pub text: String,
}

/// Everything that the configuration is made of.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The file, when there is one.
    pub file: Option<ConfigFile>,
    /// The environment. Never printed: it holds keys.
    pub environment: BTreeMap<String, String>,
    /// The flags.
    pub flags: Flags,
    /// What relative folders in variables and flags are relative to.
    pub current_dir: PathBuf,
    /// Whether the process may do everything: decides the default data folder.
    pub is_root: bool,
}

impl Inputs {
    /// Collects the inputs from the process and reads the file that `--config` or `RUNLOOM_CONFIG` names.
    ///
    /// # Errors
    /// When the file or the current folder cannot be read.
    pub fn collect(flags: &Flags) -> Result<Self, ConfigError> {
        let current_dir = std::env::current_dir().map_err(|error| ConfigError::Unreadable {
            path: PathBuf::from("."),
            reason: error.to_string(),
        })?;
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named = flags
            .config
            .clone()
            .or_else(|| set(&environment, "RUNLOOM_CONFIG").map(PathBuf::from));
        let file = named
            .map(|path| {
                let path = current_dir.join(path);
                match std::fs::read_to_string(&path) {
                    Ok(text) => Ok(ConfigFile { path, text }),
                    Err(error) => Err(ConfigError::Unreadable {
                        path,
                        reason: error.to_string(),
                    }),
                }
            })
            .transpose()?;
        let is_root = nix::unistd::geteuid().is_root();
        Ok(Self {
            file,
            environment,
            flags: flags.clone(),
            current_dir,
            is_root,
        })
    }

    /// The value of a variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        set(&self.environment, name)
    }
}

fn set<'a>(environment: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    environment
        .get(name)
        .map(String::as_str)
        .filter(|value| !value.is_empty())
}

/// The settings as written, and where each stands.
pub(super) struct Sourced {
    pub(super) settings: Settings,
    figment: Figment,
}

impl Sourced {
    /// Where the key stands, in words. Elements of a list come from where the list comes from.
    pub(super) fn origin(&self, key: &str) -> String {
        let mut path = key.split('[').next().unwrap_or(key);
        loop {
            if let Some(data) = self.figment.find_metadata(path) {
                return data.name.to_string();
            }
            match path.rsplit_once('.') {
                Some((parent, _)) => path = parent,
                None => return "the defaults".to_owned(),
            }
        }
    }

    /// Whether the key stands in the file, so that folders in it are relative to that.
    pub(super) fn is_from_file(&self, key: &str) -> bool {
        self.figment
            .find_metadata(key)
            .is_some_and(|data| data.name.starts_with(FILE_ORIGIN))
    }
}

const FILE_ORIGIN: &str = "file ";

/// Reads all layers.
pub(super) fn settings(inputs: &Inputs) -> Result<Sourced, ConfigError> {
    let mut figment = Figment::new();
    if let Some(file) = &inputs.file {
        figment = figment.merge(file_layer(file)?);
    }
    if let Some(url) = inputs.variable("DATABASE_URL") {
        figment = figment.merge(Layer::one(
            "environment variable DATABASE_URL",
            "server.database_url",
            url.into(),
        ));
    }
    for layer in environment_layers(&inputs.environment)? {
        figment = figment.merge(layer);
    }
    if let Some(listen) = inputs.flags.listen {
        figment = figment.merge(Layer::one(
            "flag --listen",
            "server.listen",
            listen.to_string().into(),
        ));
    }
    if let Some(folder) = &inputs.flags.data_dir {
        let Some(folder) = folder.to_str() else {
            return Err(ConfigError::Setting {
                origin: "flag --data-dir".to_owned(),
                key: "server.data_dir".to_owned(),
                found: folder.display().to_string(),
                expected: "a path that is valid UTF-8".to_owned(),
            });
        };
        figment = figment.merge(Layer::one("flag --data-dir", "server.data_dir", folder.into()));
    }
    let settings = figment.extract::<Settings>().map_err(ConfigError::from_figment)?;
    Ok(Sourced { settings, figment })
}

fn file_layer(file: &ConfigFile) -> Result<Layer, ConfigError> {
    let origin = format!("{FILE_ORIGIN}{}", file.path.display());
    let table: toml::Table = toml::from_str(&file.text).map_err(|error| ConfigError::Syntax {
        origin: origin.clone(),
        message: syntax_message(&file.text, &error),
    })?;
    let value = Value::serialize(&table).map_err(ConfigError::from_figment)?;
    Ok(Layer {
        origin,
        data: value.into_dict().unwrap_or_default(),
    })
}

/// Where and what, without the line itself: it may hold a password.
fn syntax_message(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |start_of_line| start_of_line.chars().count())
        + 1;
    format!(
        "line {line}, column {column}: {}",
        error.message().replace('\n', "; ")
    )
}

/// One layer for each variable, so that an error can name it.
fn environment_layers(environment: &BTreeMap<String, String>) -> Result<Vec<Layer>, ConfigError> {
    let known = keys();
    let mut layers = Vec::new();
    for (variable, text) in environment {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        let is_other = OTHER_VARIABLES.contains(&variable.as_str()) || variable.starts_with(TEST_PREFIX);
        if is_other || text.is_empty() {
            continue;
        }
        let key = name.to_ascii_lowercase().replace("__", ".");
        let value = match known.get(&key) {
            Some(KeyKind::Text) => Value::from(text.as_str()),
            Some(KeyKind::Toml) => toml_value(text)?,
            None => {
                return Err(ConfigError::Variable {
                    variable: variable.clone(),
                    found: format!("a name that stands for the unknown setting `{key}`"),
                    expected: nearest(variable, known.keys()),
                });
            }
        };
        layers.push(Layer::one(
            &format!("environment variable {variable}"),
            &key,
            value,
        ));
    }
    Ok(layers)
}

/// A value as TOML writes it; what is no TOML is a text, and then of the wrong type with a clear message.
fn toml_value(text: &str) -> Result<Value, ConfigError> {
    let table: toml::Table = match toml::from_str(&format!("value = {text}")) {
        Ok(table) => table,
        Err(_) => return Ok(Value::from(text)),
    };
    match table.get("value") {
        Some(value) => Value::serialize(value).map_err(ConfigError::from_figment),
        None => Ok(Value::from(text)),
    }
}

/// The names of the settings that could be meant.
fn nearest<'a>(variable: &str, keys: impl Iterator<Item = &'a String>) -> String {
    let names = keys.filter(|key| !key.contains("[]")).map(|key| variable_of(key));
    let last = |name: &str| {
        name.rsplit("__")
            .next()
            .unwrap_or(name)
            .trim_start_matches(PREFIX)
            .to_owned()
    };
    let wanted = last(variable);
    let (same_end, rest): (Vec<_>, Vec<_>) = names.partition(|name| last(name) == wanted);
    let names = if same_end.is_empty() { rest } else { same_end };
    match names.as_slice() {
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// The variable of a key: `server.listen` is `RUNLOOM_SERVER__LISTEN`.
pub(super) fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replace('.', "__"))
}

/// Some settings that come from one place.
struct Layer {
    origin: String,
    data: Dict,
}

impl Layer {
    fn one(origin: &str, key: &str, value: Value) -> Self {
        let mut parts = key.rsplit('.');
        let last = parts.next().unwrap_or(key);
        let mut data = Dict::from([(last.to_owned(), value)]);
        for part in parts {
            data = Dict::from([(part.to_owned(), Value::from(data))]);
        }
        Self {
            origin: origin.to_owned(),
            data,
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Map::from([(Profile::Default, self.data.clone())]))
    }
}
