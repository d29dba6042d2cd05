use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use insta::assert_snapshot;

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
    assert_eq!(ids, ["anthropic", "openai"]);
    assert_eq!(config.roles.chat.len(), 2);
    assert_eq!(config.roles.chat[0].model, config.providers[0].models[0].id);
    assert!(!config.demo);
    assert_eq!(
        config.notices,
        ["GEMINI_API_KEY is set, but there is no adapter for Gemini yet: it is not used"]
    );
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
fn a_server_that_others_can_reach_needs_a_token() {
    let open = "[server]\nlisten = \"0.0.0.0:3000\"";
    assert_snapshot!(refusal(open, &[]), @r#"
        refusing to listen on 0.0.0.0:3000 without a token: whoever reaches this address could read every run and run tools
          either set RUNLOOM_TOKEN to a secret of at least 16 characters (for instance from `openssl rand -hex 32`)
          or listen on this machine only: server.listen = "127.0.0.1:3000"
        "#);
    assert!(refusal("[server]\nlisten = \"[::]:3000\"", &[]).contains("refusing to listen"));
    assert!(
        config(open, &[("RUNLOOM_TOKEN", "0123456789abcdef")])
            .server
            .token
            .is_some()
    );
    assert!(
        config("[server]\nlisten = \"[::1]:3000\"", &[])
            .server
            .token
            .is_none()
    );
    assert_snapshot!(refusal("", &[("RUNLOOM_TOKEN", "short")]), @r#"
        wrong environment variable RUNLOOM_TOKEN
          found:    a token of 5 characters
          expected: at least 16 printable ASCII characters without spaces, for instance from `openssl rand -hex 32`
        "#);
    assert_snapshot!(refusal("", &[("RUNLOOM_TOKEN", "0123456789 abcdef")]), @r#"
        wrong environment variable RUNLOOM_TOKEN
          found:    a token with a character that an HTTP header cannot carry
          expected: at least 16 printable ASCII characters without spaces, for instance from `openssl rand -hex 32`
        "#);
    assert_snapshot!(refusal("[server]\ntoken = \"0123456789abcdef\"", &[]), @r#"
        wrong setting `server.token` in file /etc/runloom/runloom.toml
          found:    an unknown key `token`
          expected: one of `listen`, `data_dir`, `database_url`, `workspace`, `grace_seconds`
        "#);
}

#[test]
fn unknown_keys_are_named_with_those_that_exist() {
    assert_snapshot!(refusal("[server]\nlisten_on = \"127.0.0.1:3000\"", &[]), @r#"
        wrong setting `server.listen_on` in file /etc/runloom/runloom.toml
          found:    an unknown key `listen_on`
          expected: one of `listen`, `data_dir`, `database_url`, `workspace`, `grace_seconds`
        "#);
    assert_snapshot!(refusal("[sever]\nlisten = \"127.0.0.1:3000\"", &[]), @r#"
        wrong setting `sever` in file /etc/runloom/runloom.toml
          found:    an unknown key `sever`
          expected: one of `server`, `log`, `providers`, `roles`, `limits`
        "#);
    assert_snapshot!(refusal("", &[("RUNLOOM_LISTEN", "127.0.0.1:3000")]), @r#"
        wrong environment variable RUNLOOM_LISTEN
          found:    a name that stands for the unknown setting `listen`
          expected: RUNLOOM_SERVER__LISTEN
        "#);
    let misspelt = LOCAL.replace("max_tokens", "max_token");
    assert_snapshot!(refusal(&misspelt, &[]), @r#"
        wrong setting `providers[0].models[0].max_token` in file /etc/runloom/runloom.toml
          found:    an unknown key `max_token`
          expected: one of `id`, `class`, `context`, `max_tokens`, `price`, `stall`
        "#);
}

#[test]
fn wrong_types_are_named_with_what_stands_there() {
    assert_snapshot!(refusal("[limits]\nrounds_per_node = \"many\"", &[]), @r#"
        wrong setting `limits.rounds_per_node` in file /etc/runloom/runloom.toml
          found:    the text "many"
          expected: a whole number, not negative
        "#);
    assert_snapshot!(refusal("", &[("RUNLOOM_LIMITS__ROUNDS_PER_NODE", "many")]), @r#"
        wrong setting `limits.rounds_per_node` in environment variable RUNLOOM_LIMITS__ROUNDS_PER_NODE
          found:    the text "many"
          expected: a whole number, not negative
        "#);
    assert_snapshot!(refusal("[limits]\ndepth = -1", &[]), @r#"
        wrong setting `limits.depth` in file /etc/runloom/runloom.toml
          found:    -1
          expected: a whole number, not negative
        "#);
    assert_snapshot!(refusal("[server]\nlisten = 3000", &[]), @r#"
        wrong setting `server.listen` in file /etc/runloom/runloom.toml
          found:    3000
          expected: a text in quotes
        "#);
    assert_snapshot!(refusal("server = 1", &[]), @r#"
        wrong setting `server` in file /etc/runloom/runloom.toml
          found:    1
          expected: a table
        "#);
    assert_snapshot!(refusal("[roles]\nchat = \"local/small\"", &[]), @r#"
        wrong setting `roles.chat` in file /etc/runloom/runloom.toml
          found:    the text "local/small"
          expected: a list
        "#);
    assert_snapshot!(refusal("[server]\ndatabase_url = 12345", &[]), @r#"
        wrong setting `server.database_url` in file /etc/runloom/runloom.toml
          found:    a value that is not shown
          expected: a text in quotes
        "#);
}

#[test]
fn broken_toml_is_named_with_line_and_column_but_not_quoted() {
    let broken = "[server]\ndatabase_url = postgres://ada:hidden@db\n";
    assert_snapshot!(refusal(broken, &[]), @"
    file /etc/runloom/runloom.toml is not valid TOML
      line 2, column 16: string values must be quoted, expected literal string
    ");
}

#[test]
fn wrong_values_are_named_with_what_is_possible() {
    assert_snapshot!(refusal("[server]\nlisten = \"localhost:3000\"", &[]), @r#"
        wrong setting `server.listen` in file /etc/runloom/runloom.toml
          found:    "localhost:3000"
          expected: an IP address and a port, such as "127.0.0.1:3000" or "[::1]:3000"
        "#);
    assert_snapshot!(refusal("", &[("RUNLOOM_SERVER__LISTEN", "3000")]), @r#"
        wrong setting `server.listen` in environment variable RUNLOOM_SERVER__LISTEN
          found:    "3000"
          expected: an IP address and a port, such as "127.0.0.1:3000" or "[::1]:3000"
        "#);
    assert_snapshot!(refusal("[server]\ndatabase_url = \"mysql://ada:hidden@db\"", &[]), @r#"
        wrong setting `server.database_url` in file /etc/runloom/runloom.toml
          found:    a value that is not shown, because it may hold a password
          expected: an address such as "postgres://user:password@host:5432/database"; empty for the embedded PostgreSQL
        "#);
    assert_snapshot!(refusal("[log]\nfilter = \"server=loud\"", &[]), @r#"
        wrong setting `log.filter` in file /etc/runloom/runloom.toml
          found:    "server=loud" (error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5)
          expected: levels for modules, such as "info" or "warn,server=debug"
        "#);
    assert_snapshot!(refusal("[log]\nformat = \"xml\"", &[]), @r#"
        wrong setting `log.format` in file /etc/runloom/runloom.toml
          found:    "xml"
          expected: `text` or `json`
        "#);
    assert_snapshot!(refusal("[limits]\nrounds_per_node = 0", &[]), @r#"
        wrong setting `limits.rounds_per_node` in file /etc/runloom/runloom.toml
          found:    0
          expected: a whole number from 1 to 10000
        "#);
    assert_snapshot!(refusal("", &[("RUNLOOM_LIMITS__RUN_SECONDS", "0")]), @r#"
        wrong setting `limits.run_seconds` in environment variable RUNLOOM_LIMITS__RUN_SECONDS
          found:    0
          expected: a whole number from 1 to 31622400
        "#);
    assert_snapshot!(refusal("[limits]\ncost = -1.5", &[]), @r#"
        wrong setting `limits.cost` in file /etc/runloom/runloom.toml
          found:    -1.5
          expected: an amount above 0; leave it out for no limit
        "#);
}

#[test]
fn wrong_providers_are_named() {
    let changed = |from: &str, to: &str| refusal(&LOCAL.replacen(from, to, 1), &[]);
    assert_snapshot!(changed("openai_chat", "openai"), @r#"
        wrong setting `providers[0].kind` in file /etc/runloom/runloom.toml
          found:    "openai"
          expected: one of `anthropic`, `openai_chat`, `openai_responses`, `gemini`
        "#);
    assert_snapshot!(changed("openai_chat", "gemini"), @r#"
        wrong setting `providers[0].kind` in file /etc/runloom/runloom.toml
          found:    "gemini", for which there is no adapter yet
          expected: `anthropic`, `openai_chat` or `openai_responses`
        "#);
    assert_snapshot!(changed("http://127.0.0.1:9555/v1/", "127.0.0.1:9555"), @r#"
        wrong setting `providers[0].base_url` in file /etc/runloom/runloom.toml
          found:    "127.0.0.1:9555"
          expected: an address such as "https://api.example.com/v1", without user, query or fragment
        "#);
    assert_snapshot!(changed("http://", "http://ada:hidden@"), @r#"
        wrong setting `providers[0].base_url` in file /etc/runloom/runloom.toml
          found:    an address with a user or a password in it
          expected: an address such as "https://api.example.com/v1", without user, query or fragment
        "#);
    assert_snapshot!(changed("base_url =", "api_key_env = \"NO_SUCH_KEY\"\nbase_url ="), @r#"
        wrong setting `providers[0].api_key_env` in file /etc/runloom/runloom.toml
          found:    "NO_SUCH_KEY", and the environment has no such variable, or it is empty
          expected: the name of a variable that holds the key; leave it out for an endpoint that wants none
        "#);
    assert_snapshot!(changed("id = \"vendor/large\", ", ""), @r#"
        wrong setting `providers[0].models[0].id` in file /etc/runloom/runloom.toml
          found:    nothing
          expected: this key; it has no default
        "#);
    assert_snapshot!(changed("id = \"small\"", "id = \"vendor/large\""), @r#"
        wrong setting `providers[0].models[1].id` in file /etc/runloom/runloom.toml
          found:    "vendor/large", which an earlier model of this provider has
          expected: each model once
        "#);
    assert_snapshot!(changed("max_tokens = 4000", "max_tokens = 40000"), @r#"
        wrong setting `providers[0].models[0].max_tokens` in file /etc/runloom/runloom.toml
          found:    40000
          expected: a whole number from 1 to 32000
        "#);
    assert_snapshot!(changed("no_byte = 45", "no_byte = 0"), @r#"
        wrong setting `providers[0].stall.no_byte` in file /etc/runloom/runloom.toml
          found:    0
          expected: a whole number from 1 to 86400
        "#);
    assert_snapshot!(changed("class = \"action\"", "class = \"fast\""), @r#"
        wrong setting `providers[0].models[1].class` in file /etc/runloom/runloom.toml
          found:    "fast"
          expected: `thinking` or `action`
        "#);
    assert_snapshot!(changed("output = 2.5", "output = -2.5"), @r#"
        wrong setting `providers[0].models[1].price.output` in file /etc/runloom/runloom.toml
          found:    -2.5
          expected: a price per million tokens, not negative
        "#);
    assert_snapshot!(refusal(&format!("{LOCAL}{LOCAL}"), &[]), @r#"
        wrong setting `providers[1].id` in file /etc/runloom/runloom.toml
          found:    "local", which an earlier provider has
          expected: an id of its own for each provider
        "#);
    assert_snapshot!(refusal("[[providers]]\nid = \"a\"\nkind = \"anthropic\"\nbase_url = \"http://localhost\"", &[]), @r#"
        wrong setting `providers[0].models` in file /etc/runloom/runloom.toml
          found:    no model
          expected: at least one, such as { id = "some-model", class = "thinking", context = 200000 }
        "#);
}

#[test]
fn roles_name_models_that_exist() {
    let role = |name: &str| {
        refusal(
            &format!("roles.chat = [\"local/small\", \"{name}\"]\n{LOCAL}"),
            &[],
        )
    };
    assert_snapshot!(role("remote/small"), @r#"
        wrong setting `roles.chat[1]` in file /etc/runloom/runloom.toml
          found:    "remote/small", but there is no provider "remote"
          expected: a model of one of the providers: local
        "#);
    assert_snapshot!(role("local/none"), @r#"
        wrong setting `roles.chat[1]` in file /etc/runloom/runloom.toml
          found:    "local/none", but the provider "local" has no model "none"
          expected: one of its models: vendor/large, small
        "#);
    assert_snapshot!(role("small"), @r#"
        wrong setting `roles.chat[1]` in file /etc/runloom/runloom.toml
          found:    "small"
          expected: "PROVIDER/MODEL", both as they stand under providers
        "#);
    assert_snapshot!(refusal("roles.chat = [\"local/small\"]", &[]), @r#"
        wrong setting `roles.chat[0]` in file /etc/runloom/runloom.toml
          found:    "local/small", but there is no provider "local"
          expected: a model of one of the providers: none is configured
        "#);
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
