//! From settings as written to a [`Config`]: every rule that a type cannot hold.

mod mcp;
mod providers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ConfigError;
use super::settings::{LimitSettings, RecoverySettings};
use super::source::{Inputs, Sourced};
use super::{Config, Limits, LogConfig, Recovery, RetryPolicy, ServerConfig, ToolsConfig, known_models};
use crate::provider::Secret;
use crate::tool::CodeLimits;

const MINIMUM_TOKEN_LENGTH: usize = 16;
/// A day: longer limits in seconds are typing errors, and would overflow deadlines at some size.
const MOST_STALL_SECONDS: u64 = 24 * 60 * 60;
/// More retries than that are a typing error.
const MOST_RETRIES: usize = 20;
/// 64 GiB: more for one program is a typing error.
const MOST_CODE_MIB: u64 = 64 * 1024;
/// A year.
const MOST_SECONDS: u64 = 366 * 24 * 60 * 60;

/// The settings with their inputs, so that every error can say where its key stands.
struct Check<'a> {
    inputs: &'a Inputs,
    sourced: &'a Sourced,
}

pub(super) fn config(inputs: &Inputs, sourced: Sourced) -> Result<Config, ConfigError> {
    let check = Check {
        inputs,
        sourced: &sourced,
    };
    let mut notices = Vec::new();
    let server = check.server()?;
    let log = check.log()?;

    let mut written = sourced.settings.providers.clone();
    if written.is_empty() {
        written = known_models::configured(|variable| inputs.variable(variable).is_some());
    }
    let providers = check.providers(&written)?;
    let roles = check.roles(&providers)?;
    let limits = check.limits(&sourced.settings.limits)?;
    let recovery = check.recovery(&sourced.settings.recovery)?;
    let mcp_servers = check.mcp_servers(&sourced.settings.mcp_servers)?;
    let demo = providers.is_empty();
    if demo {
        notices.push("no provider is configured: the built-in simulator answers as `demo`".to_owned());
    }
    Ok(Config {
        server,
        log,
        providers,
        roles,
        limits,
        recovery,
        tools: ToolsConfig {
            mode: sourced.settings.tools.mode,
            run_code: sourced.settings.tools.run_code,
            fetch_url: sourced.settings.tools.fetch_url,
            shell: sourced.settings.tools.shell,
            approval: sourced.settings.tools.approval.clone(),
        },
        mcp_servers,
        demo,
        notices,
    })
}

impl Check<'_> {
    fn wrong<T>(
        &self,
        key: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Result<T, ConfigError> {
        Err(ConfigError::Setting {
            origin: self.sourced.origin(key),
            key: key.to_owned(),
            found: found.into(),
            expected: expected.into(),
        })
    }

    fn server(&self) -> Result<ServerConfig, ConfigError> {
        let server = &self.sourced.settings.server;
        let Ok(listen) = server.listen.parse::<SocketAddr>() else {
            return self.wrong(
                "server.listen",
                format!("{:?}", server.listen),
                "an IP address and a port, such as \"127.0.0.1:3000\" or \"[::1]:3000\"",
            );
        };
        let token = self.token()?;
        if !listen.ip().to_canonical().is_loopback() && token.is_none() {
            return Err(ConfigError::OpenWithoutToken {
                listen: listen.to_string(),
                port: listen.port(),
                minimum: MINIMUM_TOKEN_LENGTH,
            });
        }
        let workspace = match server.workspace.as_str() {
            "" => None,
            folder => Some(self.folder("server.workspace", folder)),
        };
        Ok(ServerConfig {
            listen,
            data_dir: self.data_dir(&server.data_dir)?,
            database_url: self.database_url(&server.database_url)?,
            workspace,
            token,
            grace_seconds: self.up_to(
                "server.grace_seconds",
                server.grace_seconds,
                0,
                MOST_STALL_SECONDS,
            )?,
        })
    }

    fn token(&self) -> Result<Option<Secret>, ConfigError> {
        // A variable that is set but empty is a slip that would open the server: not the same as not set.
        let Some(token) = self.inputs.environment.get("RUNLOOM_TOKEN") else {
            return Ok(None);
        };
        let length = token.chars().count();
        let wrong = |found: String| ConfigError::Variable {
            variable: "RUNLOOM_TOKEN".to_owned(),
            found,
            expected: format!(
                "at least {MINIMUM_TOKEN_LENGTH} printable ASCII characters without spaces, \
                 for instance from `openssl rand -hex 32`"
            ),
        };
        if length < MINIMUM_TOKEN_LENGTH {
            return Err(wrong(format!("a token of {length} characters")));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(
                "a token with a character that an HTTP header cannot carry".to_owned(),
            ));
        }
        Ok(Some(Secret::new(token.as_str())))
    }

    fn database_url(&self, url: &str) -> Result<Option<Secret>, ConfigError> {
        if url.is_empty() {
            return Ok(None);
        }
        let is_postgres =
            reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "postgres" | "postgresql"));
        if !is_postgres {
            return self.wrong(
                "server.database_url",
                "a value that is not shown, because it may hold a password",
                "an address such as \"postgres://user:password@host:5432/database\"; empty for the embedded PostgreSQL",
            );
        }
        Ok(Some(Secret::new(url)))
    }

    fn data_dir(&self, written: &str) -> Result<PathBuf, ConfigError> {
        if !written.is_empty() {
            return Ok(self.folder("server.data_dir", written));
        }
        if self.inputs.is_root {
            return Ok(PathBuf::from("/var/lib/runloom"));
        }
        let absolute = |name: &str| {
            self.inputs
                .variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let shared = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        match shared {
            Some(shared) => Ok(shared.join("runloom")),
            None => self.wrong(
                "server.data_dir",
                "nothing, and neither XDG_DATA_HOME nor HOME is set to an absolute path",
                "the folder of the transcripts and the embedded database",
            ),
        }
    }

    /// A folder, made absolute: relative to the file where it stands in one, else to the current folder.
    fn folder(&self, key: &str, written: &str) -> PathBuf {
        let file_folder = self.inputs.file.as_ref().and_then(|file| file.path.parent());
        let base: &Path = match file_folder {
            Some(folder) if self.sourced.is_from_file(key) => folder,
            _ => &self.inputs.current_dir,
        };
        base.join(written)
    }

    fn log(&self) -> Result<LogConfig, ConfigError> {
        let log = &self.sourced.settings.log;
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(&log.filter) {
            return self.wrong(
                "log.filter",
                format!("{:?} ({error})", log.filter),
                "levels for modules, such as \"info\" or \"warn,server=debug\"",
            );
        }
        Ok(LogConfig {
            filter: log.filter.clone(),
            format: log.format,
        })
    }

    fn limits(&self, limits: &LimitSettings) -> Result<Limits, ConfigError> {
        let counts = [
            ("rounds_per_node", limits.rounds_per_node, 10_000),
            ("attempts_per_node", limits.attempts_per_node, 1_000),
            ("depth", limits.depth, 64),
            ("parallel_calls", limits.parallel_calls, 100),
        ];
        for (name, value, most) in counts {
            self.up_to(&format!("limits.{name}"), u64::from(value), 1, most)?;
        }
        self.up_to("limits.run_seconds", limits.run_seconds, 1, MOST_SECONDS)?;
        self.up_to("limits.tool_seconds", limits.tool_seconds, 1, MOST_STALL_SECONDS)?;
        self.up_to(
            "limits.rate_limit_seconds",
            limits.rate_limit_seconds,
            0,
            MOST_SECONDS,
        )?;
        self.up_to(
            "limits.total_tokens",
            limits.total_tokens,
            1,
            i64::MAX.unsigned_abs(),
        )?;
        if let Some(cost) = limits.cost.filter(|cost| !cost.is_finite() || *cost <= 0.0) {
            return self.wrong(
                "limits.cost",
                cost.to_string(),
                "an amount above 0; leave it out for no limit",
            );
        }
        Ok(Limits {
            rounds_per_node: limits.rounds_per_node,
            attempts_per_node: limits.attempts_per_node,
            depth: limits.depth,
            parallel_calls: limits.parallel_calls,
            run_seconds: limits.run_seconds,
            tool_seconds: limits.tool_seconds,
            rate_limit_seconds: limits.rate_limit_seconds,
            total_tokens: limits.total_tokens,
            cost: limits.cost,
            code: self.code(limits)?,
        })
    }

    fn code(&self, limits: &LimitSettings) -> Result<CodeLimits, ConfigError> {
        let bounds = [
            (
                "code_compute_seconds",
                limits.code_compute_seconds,
                MOST_STALL_SECONDS,
            ),
            ("code_seconds", limits.code_seconds, MOST_STALL_SECONDS),
            ("code_memory_mib", limits.code_memory_mib, MOST_CODE_MIB),
            ("code_output_mib", limits.code_output_mib, MOST_CODE_MIB),
            ("code_calls", u64::from(limits.code_calls), 1_000_000),
        ];
        for (name, value, most) in bounds {
            self.up_to(&format!("limits.{name}"), value, 1, most)?;
        }
        let bytes = |mib: u64| usize::try_from(mib * 1024 * 1024).unwrap_or(usize::MAX);
        Ok(CodeLimits {
            compute: Duration::from_secs(limits.code_compute_seconds),
            total: Duration::from_secs(limits.code_seconds),
            memory: bytes(limits.code_memory_mib),
            output: bytes(limits.code_output_mib),
            calls: limits.code_calls,
        })
    }

    fn recovery(&self, recovery: &RecoverySettings) -> Result<Recovery, ConfigError> {
        let jitter = recovery.retry_jitter;
        if !(0.0..=1.0).contains(&jitter) {
            return self.wrong(
                "recovery.retry_jitter",
                jitter.to_string(),
                "a number from 0 to 1",
            );
        }
        if recovery.retry_delays.len() > MOST_RETRIES {
            return self.wrong(
                "recovery.retry_delays",
                format!("{} delays", recovery.retry_delays.len()),
                format!("at most {MOST_RETRIES} delays, one for each retry"),
            );
        }
        if recovery.rate_limit_delays.is_empty() {
            return self.wrong(
                "recovery.rate_limit_delays",
                "[]",
                "at least one delay in seconds; limits.rate_limit_seconds = 0 for no waiting",
            );
        }
        self.up_to("recovery.rotations", u64::from(recovery.rotations), 0, 100)?;
        Ok(Recovery {
            retry: RetryPolicy {
                delays: self.delays("recovery.retry_delays", &recovery.retry_delays)?,
                jitter,
                rate_limit_delays: self.delays("recovery.rate_limit_delays", &recovery.rate_limit_delays)?,
                rotation_delay: self.delay("recovery.rotation_delay", recovery.rotation_delay)?,
                rotations: recovery.rotations,
                cooldown: self.delay("recovery.cooldown", recovery.cooldown)?,
            },
            on_interruption: recovery.on_interruption,
        })
    }

    fn delays(&self, key: &str, seconds: &[f64]) -> Result<Vec<Duration>, ConfigError> {
        seconds.iter().map(|seconds| self.delay(key, *seconds)).collect()
    }

    fn delay(&self, key: &str, seconds: f64) -> Result<Duration, ConfigError> {
        let most = MOST_STALL_SECONDS as f64;
        if (0.0..=most).contains(&seconds) {
            return Ok(Duration::from_secs_f64(seconds));
        }
        self.wrong(
            key,
            seconds.to_string(),
            format!("seconds from 0 to {MOST_STALL_SECONDS}"),
        )
    }

    fn up_to(&self, key: &str, value: u64, least: u64, most: u64) -> Result<u64, ConfigError> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        self.wrong(
            key,
            value.to_string(),
            format!("a whole number from {least} to {most}"),
        )
    }
}
