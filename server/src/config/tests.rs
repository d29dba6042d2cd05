mod messages;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::keys::keys;
use super::source::variable_of;
use super::*;

fn inputs(file: &str, environment: &[(&str, &str)]) -> Inputs {
    let home = [("HOME", "/home/ada")];
    let environment: BTreeMap<String, String> = home
        .iter()
        .chain(environment)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Inputs {
        file: Some(ConfigFile {
            path: PathBuf::from("/etc/runloom/runloom.toml"),
            text: file.to_owned(),
        }),
        environment,
        flags: Flags::default(),
        current_dir: PathBuf::from("/home/ada/project"),
        is_root: false,
    }
}

fn config(file: &str, environment: &[(&str, &str)]) -> Config {
    Config::from_inputs(&inputs(file, environment)).expect("a right configuration")
}

fn refusal(file: &str, environment: &[(&str, &str)]) -> String {
    Config::from_inputs(&inputs(file, environment))
        .expect_err("a wrong configuration")
        .to_string()
}

const LOCAL: &str = r#"
[[providers]]
id = "local"
kind = "openai_chat"
base_url = "http://127.0.0.1:9555/v1/"
models = [
  { id = "vendor/large", class = "thinking", context = 32000, max_tokens = 4000, stall = { no_content = 600 } },
  { id = "small", class = "action", context = 8000, price = { input = 1, output = 2.5 } },
]
[providers.stall]
no_byte = 45
first_token = 300
"#;

#[test]
fn without_anything_the_defaults_serve_the_demo_on_loopback() {
    let config = Config::from_inputs(&Inputs {
        file: None,
        ..inputs("", &[])
    })
    .expect("the defaults");
    assert_eq!(config.server.listen, ([127, 0, 0, 1], 3000).into());
    assert_eq!(
        config.server.data_dir,
        PathBuf::from("/home/ada/.local/share/runloom")
    );
    assert!(config.server.database_url.is_none() && config.server.workspace.is_none());
    assert!(config.server.token.is_none() && config.demo && config.providers.is_empty());
    assert_eq!(config.roles, Roles::default());
    assert_eq!(config.limits.rounds_per_node, 50);
    assert_eq!(
        config.log,
        LogConfig {
            filter: "info".to_owned(),
            format: LogFormat::Text
        }
    );
}

#[test]
fn the_default_data_folder_depends_on_who_runs_it() {
    let root = Inputs {
        is_root: true,
        ..inputs("", &[])
    };
    let data_dir = |inputs: &Inputs| {
        Config::from_inputs(inputs)
            .expect("a right configuration")
            .server
            .data_dir
    };
    assert_eq!(data_dir(&root), PathBuf::from("/var/lib/runloom"));
    assert_eq!(
        data_dir(&inputs("", &[("XDG_DATA_HOME", "/data")])),
        PathBuf::from("/data/runloom")
    );
}

#[test]
fn flags_come_before_variables_before_the_file_before_the_defaults() {
    let file =
        "[server]\nlisten = \"127.0.0.1:1\"\ndata_dir = \"/file\"\nworkspace = \"/file\"\ngrace_seconds = 3";
    let mut inputs = inputs(
        file,
        &[
            ("RUNLOOM_SERVER__LISTEN", "127.0.0.1:2"),
            ("RUNLOOM_SERVER__DATA_DIR", "/env"),
        ],
    );
    inputs.flags.listen = Some(([127, 0, 0, 1], 3).into());
    let server = Config::from_inputs(&inputs)
        .expect("a right configuration")
        .server;
    assert_eq!(server.listen.port(), 3);
    assert_eq!(server.data_dir, PathBuf::from("/env"));
    assert_eq!(server.workspace, Some(PathBuf::from("/file")));
    assert_eq!(server.grace_seconds, 3);
}

#[test]
fn relative_folders_belong_to_where_they_are_written() {
    let file = "[server]\ndata_dir = \"data\"\nworkspace = \"../work\"";
    let server = config(file, &[]).server;
    assert_eq!(server.data_dir, PathBuf::from("/etc/runloom/data"));
    assert_eq!(server.workspace, Some(PathBuf::from("/etc/runloom/../work")));
    let server = config(file, &[("RUNLOOM_SERVER__DATA_DIR", "data")]).server;
    assert_eq!(server.data_dir, PathBuf::from("/home/ada/project/data"));
}

#[test]
fn database_url_overrides_the_file_and_our_variable_overrides_that() {
    let file = "[server]\ndatabase_url = \"postgres://file/db\"";
    let url = |environment: &[(&str, &str)]| {
        config(file, environment)
            .server
            .database_url
            .map(|url| url.expose().to_owned())
            .expect("an address")
    };
    assert_eq!(url(&[]), "postgres://file/db");
    let plain = ("DATABASE_URL", "postgres://plain/db");
    assert_eq!(url(&[plain]), "postgres://plain/db");
    assert_eq!(
        url(&[plain, ("RUNLOOM_SERVER__DATABASE_URL", "postgresql://ours/db")]),
        "postgresql://ours/db"
    );
}

#[test]
fn every_setting_can_come_from_the_environment() {
    let providers = r#"[{ id = "a", kind = "anthropic", base_url = "http://localhost", api_key_env = "KEY",
        models = [{ id = "m", class = "action", context = 1000 }] }]"#;
    let config = config(
        "",
        &[
            ("RUNLOOM_PROVIDERS", providers),
            ("KEY", "secret-key\n"),
            ("RUNLOOM_ROLES__INNER", "[\"a/m\"]"),
            ("RUNLOOM_LIMITS__ROUNDS_PER_NODE", "7"),
            ("RUNLOOM_LIMITS__COST", "2.5"),
            ("RUNLOOM_LOG__FORMAT", "json"),
            ("RUNLOOM_LOG__FILTER", ""),
            ("RUNLOOM_TEST_ANYTHING", "ignored"),
        ],
    );
    assert_eq!(
        config.providers[0].api_key.as_ref().expect("a key").expose(),
        "secret-key"
    );
    assert_eq!(config.roles.inner[0].to_string(), "a/m");
    assert_eq!(
        (config.limits.rounds_per_node, config.limits.cost),
        (7, Some(2.5))
    );
    assert_eq!(
        config.log,
        LogConfig {
            filter: "info".to_owned(),
            format: LogFormat::Json
        }
    );
}

#[test]
fn a_provider_without_a_key_serves_and_fills_the_roles() {
    let config = config(
        LOCAL,
        &[("ANTHROPIC_API_KEY", "not used, the file has a provider")],
    );
    let [provider] = config.providers.as_slice() else {
        panic!("one provider")
    };
    assert_eq!(provider.base_url, "http://127.0.0.1:9555/v1");
    assert!(provider.api_key.is_none() && !config.demo);
    let large = ModelRef {
        provider_id: "local".to_owned(),
        model: "vendor/large".to_owned(),
    };
    assert_eq!(
        config.roles,
        Roles {
            chat: vec![large.clone()],
            inner: vec![large.clone()]
        }
    );
    let (_, model) = config.model(&large).expect("the model of the role");
    assert_eq!(model.max_tokens, Some(4000));
}

#[test]
fn stall_limits_come_from_the_model_then_the_provider_then_the_class() {
    let config = config(LOCAL, &[]);
    let provider = &config.providers[0];
    let clocks = |no_byte, no_content| ClockLimits {
        no_byte: Duration::from_secs(no_byte),
        no_content: Duration::from_secs(no_content),
    };
    assert_eq!(
        provider.stall_limits(&provider.models[0]),
        StallLimits {
            first: clocks(60, 300),
            streaming: clocks(45, 600),
            next_round: clocks(45, 180)
        }
    );
    assert_eq!(
        StallConfig::default().limits(ModelClass::Thinking).streaming,
        clocks(30, 180)
    );
    assert_eq!(
        StallConfig::default().limits(ModelClass::Action).streaming,
        clocks(60, 180)
    );
    assert_eq!(
        StallConfig::default().limits(ModelClass::Action).first,
        clocks(60, 180)
    );
}

#[test]
fn keys_in_known_variables_configure_their_providers() {
    let config = config(
        "",
        &[
            ("OPENAI_API_KEY", "sk-o"),
            ("ANTHROPIC_API_KEY", "sk-a"),
            ("GEMINI_API_KEY", "g"),
        ],
    );
    let ids: Vec<&str> = config
        .providers
        .iter()
        .map(|provider| provider.id.as_str())
        .collect();
    assert_eq!(ids, ["anthropic", "openai", "gemini"]);
    assert_eq!(config.roles.chat.len(), 3);
    assert_eq!(config.roles.chat[0].model, config.providers[0].models[0].id);
    assert!(!config.demo);
    assert!(config.notices.is_empty(), "{:?}", config.notices);
    assert!(
        self::config("", &[("ANTHROPIC_API_KEY", "")]).demo,
        "an empty key is no key"
    );
}

#[test]
fn secrets_are_not_printed() {
    let config = config(
        "[server]\ndatabase_url = \"postgres://ada:hidden@db/x\"",
        &[
            ("RUNLOOM_TOKEN", "0123456789-hidden"),
            ("ANTHROPIC_API_KEY", "sk-hidden"),
        ],
    );
    assert!(!format!("{config:?}").contains("hidden"));
}

#[test]
fn every_key_and_its_variable_stand_in_the_documentation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let documentation = std::fs::read_to_string(path).expect("docs/configuration.md");
    let mut count = 0;
    for key in keys().into_keys() {
        assert!(
            documentation.contains(&format!("`{key}`")),
            "docs/configuration.md lacks the key `{key}`"
        );
        if !key.contains("[]") {
            let variable = variable_of(&key);
            assert!(
                documentation.contains(&format!("`{variable}`")),
                "docs/configuration.md lacks `{variable}`"
            );
        }
        count += 1;
    }
    assert!(count > 40, "the list of keys is whole: {count}");
}
