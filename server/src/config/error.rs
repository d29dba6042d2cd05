//! What is said about a setting that is wrong.

use std::path::PathBuf;

use figment::error::{Actual, Kind, OneOf};

/// Why the configuration cannot be used. The text names the place, the key, what was found and what is expected, and
/// never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file that was asked for cannot be read.
    #[error("cannot read the configuration file {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The text is not TOML.
    #[error("{origin} is not valid TOML\n  {message}")]
    Syntax {
        /// Where it stands, such as `file /etc/runloom.toml`.
        origin: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A setting is wrong.
    #[error("wrong setting `{key}` in {origin}\n  found:    {found}\n  expected: {expected}")]
    Setting {
        /// Where it stands, such as `file /etc/runloom.toml` or `environment variable RUNLOOM_SERVER__LISTEN`.
        origin: String,
        /// The key, such as `providers[0].models[1].id`.
        key: String,
        /// What stands there.
        found: String,
        /// What can stand there.
        expected: String,
    },
    /// The environment holds a variable that is wrong.
    #[error("wrong environment variable {variable}\n  found:    {found}\n  expected: {expected}")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong with it.
        found: String,
        /// What it can be.
        expected: String,
    },
    /// The server would be open to the network without sign-in.
    #[error(
        "refusing to listen on {listen} without a token: whoever reaches this address could read every run and run tools\n  \
         either set RUNLOOM_TOKEN to a secret of at least {minimum} characters (for instance from `openssl rand -hex 32`)\n  \
         or listen on this machine only: server.listen = \"127.0.0.1:{port}\""
    )]
    OpenWithoutToken {
        /// The address that was asked for.
        listen: String,
        /// Its port.
        port: u16,
        /// The least length of a token.
        minimum: usize,
    },
}

impl ConfigError {
    /// The first error that figment found, in our words.
    pub(super) fn from_figment(error: figment::Error) -> Self {
        let origin = error
            .metadata
            .as_ref()
            .map_or_else(|| "the defaults".to_owned(), |data| data.name.to_string());
        let mut path = error.path;
        let (found, expected) = match error.kind {
            Kind::UnknownField(name, known) => (format!("an unknown key `{name}`"), OneOf(known).to_string()),
            Kind::UnknownVariant(name, known) => (format!("{name:?}"), OneOf(known).to_string()),
            Kind::MissingField(name) => {
                path.push(name.to_string());
                ("nothing".to_owned(), "this key; it has no default".to_owned())
            }
            Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
                (describe(&found), plain(&expected))
            }
            other => (
                other.to_string(),
                "a value of the type in docs/configuration.md".to_owned(),
            ),
        };
        let key = key_of(&path);
        let found = if key.ends_with("database_url") {
            "a value that is not shown".to_owned()
        } else {
            found
        };
        Self::Setting {
            origin,
            key,
            found,
            expected,
        }
    }
}

/// `["providers", "0", "id"]` as `providers[0].id`.
fn key_of(path: &[String]) -> String {
    let mut key = String::new();
    for part in path {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            key.push_str(&format!("[{part}]"));
        } else {
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(part);
        }
    }
    key
}

/// A value as a person would name it.
fn describe(value: &Actual) -> String {
    match value {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(value) => value.to_string(),
        Actual::Signed(value) => value.to_string(),
        Actual::Float(value) => value.to_string(),
        Actual::Char(value) => format!("the text {:?}", value.to_string()),
        Actual::Str(value) => format!("the text {value:?}"),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// The words of serde for what it expects, as a person would say them.
fn plain(expected: &str) -> String {
    match expected {
        "u16" | "u32" | "u64" | "usize" => "a whole number, not negative".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}
