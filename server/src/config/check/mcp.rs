//! The rules for MCP servers.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::{Check, MOST_STALL_SECONDS};
use crate::config::error::ConfigError;
use crate::config::settings::McpServerSettings;
use crate::provider::Secret;
use crate::tool::mcp::{McpServerConfig, McpTransport};

/// The longest id: names of tools are made with it, and have 64 characters at most.
const LONGEST_ID: usize = 24;

impl Check<'_> {
    pub(super) fn mcp_servers(
        &self,
        written: &[McpServerSettings],
    ) -> Result<Vec<McpServerConfig>, ConfigError> {
        let mut seen = HashSet::new();
        let mut servers = Vec::with_capacity(written.len());
        for (index, server) in written.iter().enumerate() {
            let key = format!("mcp_servers[{index}]");
            let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
            let is_short = (1..=LONGEST_ID).contains(&server.id.len());
            if !is_short || !server.id.chars().all(is_plain) || server.id.contains("__") {
                return self.wrong(
                    &format!("{key}.id"),
                    format!("{:?}", server.id),
                    format!(
                        "1 to {LONGEST_ID} letters, digits, `-` or `_` (not two together), such as \"files\""
                    ),
                );
            }
            if !seen.insert(server.id.as_str()) {
                return self.wrong(
                    &format!("{key}.id"),
                    format!("{:?}, which an earlier MCP server has", server.id),
                    "an id of its own for each MCP server",
                );
            }
            servers.push(McpServerConfig {
                id: server.id.clone(),
                transport: self.transport(&key, server)?,
                start: Duration::from_secs(self.up_to(
                    &format!("{key}.start_seconds"),
                    server.start_seconds,
                    1,
                    MOST_STALL_SECONDS,
                )?),
            });
        }
        Ok(servers)
    }

    fn transport(&self, key: &str, server: &McpServerSettings) -> Result<McpTransport, ConfigError> {
        match (server.command.is_empty(), server.url.is_empty()) {
            (true, true) => self.wrong(
                key,
                "neither `command` nor `url`",
                "`command`, the program and its arguments, or `url`, the address of a server",
            ),
            (false, false) => self.wrong(key, "both `command` and `url`", "one of them"),
            (false, true) => self.stdio(key, server),
            (true, false) => self.http(key, server),
        }
    }

    fn stdio(&self, key: &str, server: &McpServerSettings) -> Result<McpTransport, ConfigError> {
        if server.command.first().is_some_and(String::is_empty)
            || server.command.iter().any(|part| part.contains('\0'))
        {
            return self.wrong(
                &format!("{key}.command"),
                "an empty program, or a NUL character",
                "the program and its arguments, such as [\"npx\", \"some-server\"]",
            );
        }
        if !server.token_env.is_empty() {
            return self.wrong(
                &format!("{key}.token_env"),
                "a token for a server that is a process",
                "`env_from`, the names of variables that the process gets",
            );
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        let mut environment = BTreeMap::new();
        for (name, value) in &server.env {
            if !is_name(name) || value.contains('\0') {
                return self.wrong(
                    &format!("{key}.env"),
                    "a name that is none, or a NUL character (not shown)",
                    "names and values of variables, such as { LOG_LEVEL = \"info\" }",
                );
            }
            environment.insert(name.clone(), Secret::new(value.as_str()));
        }
        for name in &server.env_from {
            let Some(value) = self.inputs.variable(name) else {
                return self.wrong(
                    &format!("{key}.env_from"),
                    format!("{name:?}, and the environment has no such variable, or it is empty"),
                    "names of variables of the server's own environment",
                );
            };
            environment.insert(name.clone(), Secret::new(value));
        }
        Ok(McpTransport::Stdio {
            command: server.command.clone(),
            environment,
        })
    }

    fn http(&self, key: &str, server: &McpServerSettings) -> Result<McpTransport, ConfigError> {
        let is_http = reqwest::Url::parse(&server.url)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.password().is_none());
        if !is_http {
            return self.wrong(
                &format!("{key}.url"),
                "a value that is not shown, because it may hold a password",
                "an address such as \"https://host/mcp\"; a token is named by `token_env`",
            );
        }
        if !server.env.is_empty() || !server.env_from.is_empty() {
            return self.wrong(
                key,
                "an environment for a server that is reached by `url`",
                "`env` and `env_from` together with `command` only",
            );
        }
        let token = match server.token_env.as_str() {
            "" => None,
            name => match self.inputs.variable(name) {
                Some(value) => Some(Secret::new(value)),
                None => {
                    return self.wrong(
                        &format!("{key}.token_env"),
                        "a text that names no variable of the environment, or an empty one (not shown: it may be a token)",
                        "the name of a variable that holds the token",
                    );
                }
            },
        };
        Ok(McpTransport::Http {
            url: server.url.clone(),
            token,
        })
    }
}
