//! What is said about each kind of wrong setting.

use insta::assert_snapshot;

use super::{LOCAL, config, refusal};

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
          expected: one of `server`, `log`, `providers`, `roles`, `limits`, `recovery`, `tools`, `mcp_servers`
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
    assert_snapshot!(changed("base_url =", "api_key_env = \"sk-a-key-itself\"\nbase_url ="), @r#"
        wrong setting `providers[0].api_key_env` in file /etc/runloom/runloom.toml
          found:    a text that is no name of a variable in the environment (not shown: it may be a key)
          expected: the name of a variable that holds the key; leave it out for an endpoint that wants none
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
