//! The command line: its commands and flags, and nothing of what they do.
//!
//! Exit status: 0 when the command did what it was asked, 1 when it failed, 2 when the command line or the
//! configuration is wrong.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::Flags;
use crate::exchange::ExportFormat;
use crate::simulator::Speed;

/// Exit status of a command that failed.
pub const EXIT_FAILURE: u8 = 1;
/// Exit status when the command line or the configuration is wrong; the one that clap uses.
pub const EXIT_USAGE: u8 = 2;

/// The command line of `runloom`.
#[derive(Debug, Parser)]
#[command(
    name = "runloom",
    version,
    about = "Shows live what LLM agents do, and keeps the record.",
    long_about = "Shows live what LLM agents do, and keeps the record.\n\nWithout a command it serves: `runloom` is `runloom serve`. \
                  Without a configuration file the defaults hold; without a provider key the built-in demo answers.",
    after_long_help = AFTER_HELP,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

const AFTER_HELP: &str = "\
Settings: flags come before environment variables, these before the file, this before the defaults. Every key of the \
file has a variable: RUNLOOM_, then the key in capitals with `__` for each dot, such as RUNLOOM_SERVER__LISTEN for \
server.listen. docs/configuration.md lists them all.

Other variables:
  RUNLOOM_TOKEN        the token that people and API clients must show; needed off loopback
  DATABASE_URL         use this PostgreSQL instead of the embedded one
  PG_BIN               folder of the PostgreSQL programs for the embedded one
  ANTHROPIC_API_KEY,
  OPENAI_API_KEY,
  GEMINI_API_KEY       configure their provider when the file has none

Exit status: 0 done, 1 failed, 2 wrong command line or configuration.";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Command {
    /// Serve the page and the API, and execute runs (the default)
    Serve(ServeArguments),
    /// Bring the database to this version's tables, then end
    Migrate(ConfigArguments),
    /// Serve the provider simulator: the real wire formats over HTTP, with scripted replies and faults
    Simulate(SimulateArguments),
    /// Fold a recorded run again and compare its digest with the stored one
    Verify(VerifyArguments),
    /// Write the whole record of a run to standard output
    Export(ExportArguments),
    /// Take in a record: an export, a legacy record, or a session log of another program
    Import(ImportArguments),
}

/// Where the configuration comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ConfigArguments {
    /// The configuration file, in TOML; without one the defaults hold [env: RUNLOOM_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder of the transcripts and the embedded database [env: RUNLOOM_SERVER__DATA_DIR] [default:
    /// ~/.local/share/runloom, as root /var/lib/runloom]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Flags of `serve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ServeArguments {
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// The IP address and port to listen on; off loopback only with RUNLOOM_TOKEN [env: RUNLOOM_SERVER__LISTEN]
    /// [default: 127.0.0.1:3000]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
}

/// Flags of `simulate`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SimulateArguments {
    /// The IP address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3100")]
    pub listen: SocketAddr,
    /// How much faster than real time the replies come: 2 halves every delay, 0.5 doubles
    /// it, 0 or max leaves none
    #[arg(long, value_name = "X", default_value = "1")]
    pub speed: Speed,
}

/// Arguments of `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct VerifyArguments {
    /// Id of the run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// Arguments of `export`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ExportArguments {
    /// Id of the run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What to write: json can be imported again, markdown and html are for people
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub format: ExportFormat,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// Arguments of `import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ImportArguments {
    /// The file; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArguments,
}

impl Cli {
    /// What is to be done; `serve` where no command is given.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

impl From<ConfigArguments> for Flags {
    fn from(arguments: ConfigArguments) -> Self {
        Self {
            config: arguments.config,
            listen: None,
            data_dir: arguments.data_dir,
        }
    }
}

impl From<ServeArguments> for Flags {
    fn from(arguments: ServeArguments) -> Self {
        Self {
            listen: arguments.listen,
            ..arguments.config.into()
        }
    }
}

/// Reads the command line of the process. A wrong one ends the process with [`EXIT_USAGE`] and says what is wrong;
/// `--help` and `--version` end it with 0.
pub fn parse() -> Cli {
    Cli::parse()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    fn command(arguments: &[&str]) -> Command {
        let all = std::iter::once("runloom").chain(arguments.iter().copied());
        Cli::try_parse_from(all)
            .expect("a right command line")
            .into_command()
    }

    fn refusal(arguments: &[&str]) -> clap::Error {
        let all = std::iter::once("runloom").chain(arguments.iter().copied());
        Cli::try_parse_from(all).expect_err("a wrong command line")
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command_with_the_same_flags() {
        let flags = [
            "--config",
            "a.toml",
            "--listen",
            "127.0.0.1:4000",
            "--data-dir",
            "/data",
        ];
        let named: Vec<&str> = std::iter::once("serve").chain(flags).collect();
        assert_eq!(command(&flags), command(&named));
        let Command::Serve(arguments) = command(&flags) else {
            panic!("serve")
        };
        assert_eq!(
            Flags::from(arguments),
            Flags {
                config: Some("a.toml".into()),
                listen: Some(([127, 0, 0, 1], 4000).into()),
                data_dir: Some("/data".into())
            }
        );
        assert_eq!(command(&[]), Command::Serve(ServeArguments::default()));
    }

    #[test]
    fn simulate_listens_on_loopback_at_real_time_by_default() {
        let expected = SimulateArguments {
            listen: ([127, 0, 0, 1], 3100).into(),
            speed: Speed::REAL,
        };
        assert_eq!(command(&["simulate"]), Command::Simulate(expected));
    }

    #[test]
    fn wrong_command_lines_end_with_the_usage_status() {
        for arguments in [
            &["serve", "--listen", "localhost"][..],
            &["simulate", "--speed", "-1"],
            &["simulate", "--speed", "inf"],
            &["verify"],
            &["export"],
            &["export", "run_1", "--format", "pdf"],
            &["import"],
            &["unknown"],
            &["--listen", "127.0.0.1:1", "migrate"],
        ] {
            assert_eq!(
                refusal(arguments).exit_code(),
                i32::from(EXIT_USAGE),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn help_names_the_variable_of_every_setting_flag() {
        let help = refusal(&["serve", "--help"]).to_string();
        for variable in [
            "RUNLOOM_CONFIG",
            "RUNLOOM_SERVER__LISTEN",
            "RUNLOOM_SERVER__DATA_DIR",
        ] {
            assert!(help.contains(variable), "{help}");
        }
    }
}
