//! A fresh database for each test, on one PostgreSQL for each test process.
//!
//! With `RUNLOOM_TEST_DATABASE_URL` that server is used and each test's database is dropped at its end. Without it an
//! embedded PostgreSQL is started in a temporary folder by the first test that asks, ends with the process, and is
//! removed then.

#![expect(clippy::expect_used, reason = "a test without its database cannot go on")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::sync::OnceCell;

use super::data_dir::DataDir;
use super::embedded::{Durability, EmbeddedOptions, EmbeddedPostgres};

static SERVER: OnceCell<Server> = OnceCell::const_new();
static NUMBER: AtomicU32 = AtomicU32::new(0);

struct Server {
    /// Reaches a database in which databases can be made.
    admin: PgConnectOptions,
    owned: Option<Owned>,
}

/// Never dropped: both end with the process.
struct Owned {
    _postgres: EmbeddedPostgres,
    _cleaner: Child,
}

/// An empty database of one test.
#[derive(Debug)]
pub struct TestDatabase {
    /// How to connect to it.
    pub options: PgConnectOptions,
    /// Where to drop it, when its server outlives the test process.
    dropped_at: Option<PgConnectOptions>,
    name: String,
}

impl TestDatabase {
    /// Makes an empty database.
    ///
    /// # Panics
    /// When there is no PostgreSQL to make it in.
    pub async fn new() -> Self {
        let server = SERVER.get_or_init(Server::start).await;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("runloom_test_{}_{number}", std::process::id());
        let mut connection = server
            .admin
            .connect()
            .await
            .expect("a connection to make a database");
        // An earlier process with this number may have been killed before it could drop its own.
        for statement in [
            format!("drop database if exists {name}"),
            format!("create database {name} template template0"),
        ] {
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut connection)
                .await
                .expect("a database for the test");
        }
        connection.close().await.expect("the connection closes");
        let dropped_at = server.owned.is_none().then(|| server.admin.clone());
        Self {
            options: server.admin.clone().database(&name),
            dropped_at,
            name,
        }
    }

    /// A pool of a few connections to it.
    ///
    /// # Panics
    /// When it cannot be reached.
    pub async fn pool(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(5)
            .connect_with(self.options.clone())
            .await
            .expect("a pool")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some(admin) = self.dropped_at.take() else {
            return;
        };
        let statement = format!("drop database if exists {} with (force)", self.name);
        // The test's runtime is about to end: a thread with one of its own does it. What fails is left to the server.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(async {
                let mut connection = admin.connect().await.ok()?;
                sqlx::query(AssertSqlSafe(statement))
                    .execute(&mut connection)
                    .await
                    .ok()
            })
        });
        let _ = thread.join();
    }
}

impl Server {
    async fn start() -> Self {
        match std::env::var("RUNLOOM_TEST_DATABASE_URL") {
            Ok(url) if !url.is_empty() => {
                let admin = PgConnectOptions::from_str(&url)
                    .expect("RUNLOOM_TEST_DATABASE_URL is a postgres:// address");
                Self { admin, owned: None }
            }
            _ => Self::start_embedded().await,
        }
    }

    async fn start_embedded() -> Self {
        let folder = temporary_folder();
        let data_dir = DataDir::open(&folder).expect("a temporary data folder");
        let cleaner = remove_at_exit(data_dir.path());
        let lock = data_dir.lock("tests").expect("the lock of a new folder");
        let options = EmbeddedOptions {
            durability: Durability::Throwaway,
            max_connections: 300,
            ..EmbeddedOptions::from_environment()
        };
        let postgres = EmbeddedPostgres::start(&lock, &options)
            .await
            .expect("an embedded PostgreSQL");
        let admin = postgres.connect_options().clone();
        Self {
            admin,
            owned: Some(Owned {
                _postgres: postgres,
                _cleaner: cleaner,
            }),
        }
    }
}

/// The path of a folder that does not exist yet and that PostgreSQL's user will be able to reach.
pub fn temporary_folder() -> PathBuf {
    std::env::temp_dir().join(format!("runloom-test-{}", uuid::Uuid::now_v7().simple()))
}

/// A process that waits for this one to end (its end of the pipe closes), then for the database, then removes the
/// folder. The embedded database ends by its own tie to this process.
fn remove_at_exit(folder: &Path) -> Child {
    use std::os::unix::process::CommandExt;

    const SCRIPT: &str = r#"
        cat >/dev/null
        n=0
        while [ -e "$1/postgres/data/postmaster.pid" ] && [ "$n" -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
        rm -rf -- "$1"
    "#;
    Command::new("sh")
        .args(["-c", SCRIPT, "sh"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh")
}
