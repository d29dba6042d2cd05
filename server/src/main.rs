//! The binary `runloom`: reads the command line and the configuration, and does what they say.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::Context as _;
use futures::TryStreamExt as _;
use protocol::api::Outcome;
use protocol::id::RunId;
use server::cli::{
    Command, ConfigArguments, EXIT_FAILURE, EXIT_USAGE, ExportArguments, ImportArguments, SimulateArguments,
    VerifyArguments, parse,
};
use server::clock::{Clock as _, SystemClock};
use server::config::{Config, Flags, LogConfig, LogFormat};
use server::exchange::import::import;
use server::exchange::{ExportFormat, export};
use server::simulator::{self, Simulator, SimulatorOptions};
use server::store::Store;
use server::store::data_dir::DataDir;
use server::store::embedded::{EmbeddedOptions, EmbeddedPostgres};
use server::verify::verify;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let command = parse().into_command();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    match runtime.block_on(run(command)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

#[expect(clippy::print_stderr, reason = "this is where a command says why it failed")]
fn failed(error: &anyhow::Error) -> ExitCode {
    // Some errors tell their cause themselves: nothing is said twice.
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !words.contains(&cause) {
            if !words.is_empty() {
                words.push_str(": ");
            }
            words.push_str(&cause);
        }
    }
    eprintln!("runloom: {words}");
    ExitCode::from(EXIT_FAILURE)
}

/// Reads the configuration; a wrong one is said and ends the process with its own status.
#[expect(
    clippy::print_stderr,
    reason = "this is where a command says what is wrong with its configuration"
)]
fn configuration(flags: impl Into<Flags>) -> Result<Config, ExitCode> {
    match Config::load(&flags.into()) {
        Ok(config) => {
            log(&config.log);
            Ok(config)
        }
        Err(error) => {
            eprintln!("runloom: {error}");
            Err(ExitCode::from(EXIT_USAGE))
        }
    }
}

fn log(config: &LogConfig) {
    // PostgreSQL's notices, such as that a table is there already, are no news.
    let directives = format!("sqlx::postgres::notice=warn,{}", config.filter);
    let filter = EnvFilter::try_new(directives).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match config.format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.init(),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => match configuration(arguments) {
            Ok(config) => {
                let stop = on_signal()?;
                server::serve::serve(config, stop).await?;
                Ok(ExitCode::SUCCESS)
            }
            Err(code) => Ok(code),
        },
        Command::Migrate(arguments) => match configuration(arguments) {
            Ok(config) => {
                let (store, embedded) = open_store(&config, "runloom migrate").await?;
                store.migrate().await?;
                close_store(store, embedded).await;
                Ok(ExitCode::SUCCESS)
            }
            Err(code) => Ok(code),
        },
        Command::Simulate(arguments) => simulate(arguments).await,
        Command::Verify(arguments) => verify_run(arguments).await,
        Command::Export(arguments) => export_run(arguments).await,
        Command::Import(arguments) => import_file(arguments).await,
    }
}

/// Ends with the first Ctrl-C or SIGTERM; the second one ends the process.
fn on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let token = stop.clone();
    tokio::spawn(async move {
        for time in 0.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if time > 0 {
                tracing::warn!("asked to stop again: ending at once");
                std::process::exit(130);
            }
            token.cancel();
        }
    });
    Ok(stop)
}

async fn open_store(config: &Config, purpose: &str) -> anyhow::Result<(Store, Option<EmbeddedPostgres>)> {
    if let Some(url) = &config.server.database_url {
        return Ok((
            Store::connect(url.expose().parse().context("DATABASE_URL cannot be read")?).await?,
            None,
        ));
    }
    let data_dir = DataDir::open(&config.server.data_dir)?;
    let embedded =
        EmbeddedPostgres::connect_or_start(&data_dir, purpose, &EmbeddedOptions::from_environment()).await?;
    let store = Store::connect(embedded.connect_options().clone()).await?;
    Ok((store, Some(embedded)))
}

async fn close_store(store: Store, embedded: Option<EmbeddedPostgres>) {
    store.close().await;
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
}

#[expect(clippy::print_stdout, reason = "what the command is for")]
async fn verify_run(arguments: VerifyArguments) -> anyhow::Result<ExitCode> {
    let run_id: RunId = arguments.run.parse()?;
    let (store, embedded) = match open_existing(arguments.config, "runloom verify").await? {
        Ok(opened) => opened,
        Err(code) => return Ok(code),
    };
    let verified = verify(&store, &run_id).await;
    close_store(store, embedded).await;
    let verified = verified?.with_context(|| format!("there is no run {run_id}"))?;
    println!("run     {run_id}");
    println!("seq     {}", verified.seq);
    println!("digest  {}", verified.rows);
    for problem in &verified.problems {
        println!("problem {problem}");
    }
    if verified.problems.is_empty() {
        println!("result  the journal and the rows agree");
        Ok(ExitCode::SUCCESS)
    } else {
        println!(
            "result  {} problems; the journal's digest is {}",
            verified.problems.len(),
            verified.journal
        );
        Ok(ExitCode::from(EXIT_FAILURE))
    }
}

/// The store of a configuration where there is one already; else the exit status of a wrong configuration.
async fn open_existing(
    arguments: ConfigArguments,
    purpose: &str,
) -> anyhow::Result<Result<(Store, Option<EmbeddedPostgres>), ExitCode>> {
    let config = match configuration(arguments) {
        Ok(config) => config,
        Err(code) => return Ok(Err(code)),
    };
    if config.server.database_url.is_none() && !config.server.data_dir.join("postgres").is_dir() {
        anyhow::bail!(
            "there is no Runloom database in {}; another folder: --data-dir DIR",
            config.server.data_dir.display()
        );
    }
    Ok(Ok(open_store(&config, purpose).await?))
}

async fn export_run(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let run_id: RunId = arguments.run.parse()?;
    let (store, embedded) = match open_existing(arguments.config, "runloom export").await? {
        Ok(opened) => opened,
        Err(code) => return Ok(code),
    };
    let written = write_record(&store, &run_id, arguments.format).await;
    close_store(store, embedded).await;
    written?;
    Ok(ExitCode::SUCCESS)
}

async fn write_record(store: &Store, run_id: &RunId, format: ExportFormat) -> anyhow::Result<()> {
    let pieces = export(store, run_id, format, SystemClock.now_ms()).await?;
    let mut pieces = pieces.with_context(|| format!("there is no run {run_id}"))?;
    let mut out = tokio::io::BufWriter::new(tokio::io::stdout());
    while let Some(piece) = pieces.try_next().await? {
        out.write_all(&piece).await.context("standard output")?;
    }
    out.flush().await.context("standard output")
}

#[expect(clippy::print_stdout, reason = "what the command is for")]
async fn import_file(arguments: ImportArguments) -> anyhow::Result<ExitCode> {
    let file: Box<dyn tokio::io::AsyncRead + Send + Unpin> = if arguments.file.as_os_str() == "-" {
        Box::new(tokio::io::stdin())
    } else {
        let file = tokio::fs::File::open(&arguments.file).await;
        Box::new(file.with_context(|| arguments.file.display().to_string())?)
    };
    let config = match configuration(arguments.config) {
        Ok(config) => config,
        Err(code) => return Ok(code),
    };
    let (store, embedded) = open_store(&config, "runloom import").await?;
    let reader = tokio::io::BufReader::new(file);
    let taken = async {
        store.migrate().await?;
        anyhow::Ok(import(&store, reader, SystemClock.now_ms()).await?)
    };
    let taken = taken.await;
    close_store(store, embedded).await;
    let taken = taken?;
    println!("format  {}", taken.format);
    println!("session {}", taken.session_id);
    for run in &taken.runs {
        let outcome = match run.outcome {
            Outcome::Imported => "imported",
            Outcome::Known => "was here already",
            Outcome::Native => "was executed here: its own record stays",
            Outcome::Cut => "imported as far as the file goes: it was cut off",
        };
        println!("run     {} {outcome}", run.run_id);
        println!("digest  {}", run.digest);
        if run.quarantined > 0 {
            println!(
                "problem {} records could not be taken; the run's page tells each",
                run.quarantined
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn simulate(arguments: SimulateArguments) -> anyhow::Result<ExitCode> {
    log(&LogConfig {
        filter: "info".to_owned(),
        format: LogFormat::Text,
    });
    let stop = on_signal()?;
    let listener = tokio::net::TcpListener::bind(arguments.listen)
        .await
        .with_context(|| {
            format!(
                "{} cannot be listened on; another address: --listen ADDR",
                arguments.listen
            )
        })?;
    let address = listener.local_addr()?;
    tracing::info!(
        "the simulator serves Anthropic Messages at http://{address} and Chat Completions at http://{address}/v1"
    );
    let simulator = Simulator::new(SimulatorOptions {
        speed: arguments.speed,
        ..SimulatorOptions::default()
    });
    simulator::serve(listener, simulator, stop).await?;
    Ok(ExitCode::SUCCESS)
}
