//! `runloom serve`: everything put together, and taken apart again in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use leptos::config::LeptosOptions;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clock::{SharedClock, SystemClock};
use crate::config::{Config, ModelClass, ModelConfig, ModelRef, ProviderConfig, StallConfig};
use crate::http::access::Access;
use crate::http::stream::Heartbeat;
use crate::http::{AppState, router};
use crate::provider::{ProviderClient, ProviderKind, install_crypto_provider};
use crate::run::{Execution, Services};
use crate::simulator::{self, Simulator, SimulatorOptions, sample_workspace};
use crate::store::Store;
use crate::store::data_dir::DataDir;
use crate::store::embedded::{EmbeddedOptions, EmbeddedPostgres};
use crate::stream::{ProviderHealth, RandomJitter, TranscriptStore};
use crate::tool::fetch_url::FetchUrl;
use crate::tool::run_code::RunCode;
use crate::tool::shell::Shell;
use crate::tool::{ToolRegistry, Workspace, mcp};

/// How long connections get to end once no run executes any more.
const CLOSING: Duration = Duration::from_secs(2);

/// The id of the demo provider and of its model.
const DEMO: &str = "demo";

/// The one that goes on where the first stalls: the same simulator.
const DEMO_SPARE: &str = "demo-spare";

/// Serves until `stop` is cancelled. Says on the log where it listens.
pub async fn serve(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    serve_and_tell(config, stop, |_| {}).await
}

/// The same; `listening` is told the address once requests are taken.
pub async fn serve_and_tell(
    mut config: Config,
    stop: CancellationToken,
    listening: impl FnOnce(SocketAddr) + Send,
) -> anyhow::Result<()> {
    install_crypto_provider();
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    let clock: SharedClock = Arc::new(SystemClock);
    let data_dir = DataDir::open(&config.server.data_dir)?;
    let lock = data_dir.lock(&format!("serving {}", config.server.listen))?;
    // The address is taken first: a second server then says so before it touches anything.
    let listener = TcpListener::bind(config.server.listen).await.with_context(|| {
        format!(
            "{} cannot be listened on; another address: --listen ADDR",
            config.server.listen
        )
    })?;
    let address = listener.local_addr()?;
    lock.describe(&format!("serving {address}"))?;

    let (embedded, options) = match &config.server.database_url {
        Some(url) => (
            None,
            url.expose()
                .parse::<PgConnectOptions>()
                .context("DATABASE_URL cannot be read")?,
        ),
        None => {
            let embedded = EmbeddedPostgres::start(&lock, &EmbeddedOptions::from_environment()).await?;
            let options = embedded.connect_options().clone();
            (Some(embedded), options)
        }
    };
    let store = Store::open(options)
        .await
        .context("the database cannot be used")?;

    let demo_stop = CancellationToken::new();
    let demo = match config.demo {
        true => Some(start_demo(&mut config, Arc::clone(&clock), demo_stop.clone()).await?),
        false => None,
    };
    let (workspace, workspace_name) = open_workspace(&config, &data_dir)?;
    let transcripts = data_dir.path().to_owned();
    let services = Services {
        client: ProviderClient::new(Arc::clone(&clock))?,
        transcripts: TranscriptStore::new(&transcripts),
        tools: tools(&config, Arc::new(workspace))?,
        health: ProviderHealth::new(config.recovery.retry.cooldown),
        config: Arc::new(config),
        store: store.clone(),
        clock,
        jitter: Arc::new(RandomJitter),
    };
    // With the embedded database the lock proves that no other server lives.
    let execution = Execution::start(services, embedded.is_some()).await?;
    let config = Arc::clone(&execution.services().config);
    let state = AppState {
        execution: Arc::clone(&execution),
        simulator: demo,
        access: Arc::new(Access::new(config.server.token.clone())),
        leptos: LeptosOptions::builder()
            .output_name("runloom")
            .site_pkg_dir("pkg")
            .site_addr(address)
            .build(),
        workspace_name: workspace_name.into(),
        heartbeat: Heartbeat::default(),
    };
    let closing = CancellationToken::new();
    let server =
        axum::serve(listener, router(state)).with_graceful_shutdown(closing.clone().cancelled_owned());
    let server = tokio::spawn(server.into_future());
    tracing::info!("Runloom serves http://{address}");
    listening(address);

    stop.cancelled().await;
    tracing::info!(
        "stopping: no new runs; those that execute get {} s",
        config.server.grace_seconds
    );
    execution.shut_down().await;
    closing.cancel();
    demo_stop.cancel();
    let abort = server.abort_handle();
    if tokio::time::timeout(CLOSING, server).await.is_err() {
        // Viewers keep their sockets open; they connect again when the server is back.
        abort.abort();
    }
    drop(execution);
    store.close().await;
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
    drop(lock);
    tracing::info!("stopped");
    Ok(())
}

/// The tools that the configuration wants.
fn tools(config: &Config, workspace: Arc<Workspace>) -> anyhow::Result<ToolRegistry> {
    let mut tools = ToolRegistry::built_in(Arc::clone(&workspace));
    if config.tools.fetch_url {
        tools.register(Arc::new(
            FetchUrl::new().context("the HTTP client of fetch_url cannot start")?,
        ))?;
    }
    if config.tools.shell {
        tools.register(Arc::new(Shell::new(workspace)))?;
    }
    if config.tools.run_code {
        tools.register(Arc::new(RunCode::new(config.limits.code.clone())))?;
    }
    mcp::attach(&mut tools, &config.mcp_servers);
    Ok(tools)
}

/// Without a configured provider the simulator answers, over real HTTP on loopback, as provider `demo`.
async fn start_demo(
    config: &mut Config,
    clock: SharedClock,
    stop: CancellationToken,
) -> anyhow::Result<Arc<Simulator>> {
    let mut options = SimulatorOptions {
        clock,
        ..SimulatorOptions::default()
    };
    // Browser tests do not want to wait for the tour.
    if let Ok(speed) = std::env::var("RUNLOOM_TEST_DEMO_SPEED") {
        options.speed = speed.parse()?;
    }
    let simulator = Simulator::new(options);
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .context("the demo provider cannot listen on loopback")?;
    let address = listener.local_addr()?;
    let served = Arc::clone(&simulator);
    tokio::spawn(async move {
        if let Err(error) = simulator::serve(listener, served, stop).await {
            tracing::error!(%error, "the demo provider has stopped");
        }
    });
    // Two, so that one can take the place of the other.
    for id in [DEMO, DEMO_SPARE] {
        config.providers.push(ProviderConfig {
            id: id.to_owned(),
            kind: ProviderKind::Anthropic,
            base_url: format!("http://{address}"),
            api_key: None,
            models: vec![ModelConfig {
                id: DEMO.to_owned(),
                class: ModelClass::Thinking,
                context: 200_000,
                max_tokens: None,
                price: None,
                stall: StallConfig::default(),
            }],
            stall: StallConfig::default(),
            reasoning: protocol::state::Retention::Saved,
        });
        let role = ModelRef {
            provider_id: id.to_owned(),
            model: DEMO.to_owned(),
        };
        config.roles.chat.push(role.clone());
        config.roles.inner.push(role);
    }
    Ok(simulator)
}

/// The folder that tools see, with the name that people see: the sample workspace is a project called Acorn.
fn open_workspace(config: &Config, data_dir: &DataDir) -> anyhow::Result<(Workspace, String)> {
    let folder: PathBuf = match &config.server.workspace {
        Some(folder) => folder.clone(),
        None => {
            let folder = data_dir.private_folder("workspace")?;
            sample_workspace::unpack(&folder).context("the sample workspace cannot be unpacked")?;
            folder
        }
    };
    let workspace = Workspace::open(&folder).with_context(|| {
        format!(
            "the workspace {} cannot be opened (server.workspace)",
            folder.display()
        )
    })?;
    let name = match &config.server.workspace {
        Some(_) => folder.file_name().map_or_else(
            || "workspace".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
        None => "acorn".to_owned(),
    };
    Ok((workspace, name))
}
