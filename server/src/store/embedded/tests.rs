//! Every test runs a real PostgreSQL in a folder of its own.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use sqlx::PgConnection;

use super::leftover::wait_until;
use super::user::RunAs;
use super::*;
use crate::store::test_support::temporary_folder;

/// A data folder that PostgreSQL's user can reach, removed at the end.
struct Folder {
    data_dir: DataDir,
    top: PathBuf,
}

impl Folder {
    fn new() -> Self {
        Self::below("data")
    }

    fn below(path: &str) -> Self {
        let top = temporary_folder();
        std::fs::create_dir(&top).expect("a folder");
        Self {
            data_dir: DataDir::open(&top.join(path)).expect("a data folder"),
            top,
        }
    }

    fn layout(&self) -> Layout {
        Layout::new(&self.data_dir)
    }

    fn process(&self) -> PidFile {
        PidFile::read(&self.layout().data).expect("a running PostgreSQL")
    }

    async fn start(&self) -> EmbeddedPostgres {
        self.try_start().await.expect("a running PostgreSQL")
    }

    async fn try_start(&self) -> Result<EmbeddedPostgres, EmbeddedError> {
        self.start_with(&options()).await
    }

    async fn start_with(&self, options: &EmbeddedOptions) -> Result<EmbeddedPostgres, EmbeddedError> {
        let lock = self.data_dir.lock("a test")?;
        EmbeddedPostgres::start(&lock, options).await
    }

    /// A server in another process; returns when its database is ready.
    fn start_elsewhere(&self, tie: &str) -> Child {
        // Not `current_exe`: a build that runs meanwhile may have replaced the file.
        let mut child = Command::new("/proc/self/exe")
            .args([
                "--exact",
                "store::embedded::tests::server_in_another_process",
                "--ignored",
                "--nocapture",
            ])
            .env("RUNLOOM_TEST_DATA_DIR", self.data_dir.path())
            .env("RUNLOOM_TEST_TIE", tie)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("another process");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        assert!(
            lines
                .map_while(Result::ok)
                .any(|line| line.contains("database ready")),
            "it starts"
        );
        child
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.top) {
            eprintln!("{} is left: {error}", self.top.display());
        }
    }
}

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        patience: Duration::ZERO,
        ..EmbeddedOptions::from_environment()
    }
}

async fn connect(postgres: &EmbeddedPostgres) -> PgConnection {
    postgres.connect_options().connect().await.expect("a connection")
}

async fn show(connection: &mut PgConnection, setting: &str) -> String {
    sqlx::query_scalar("select current_setting($1)")
        .bind(setting)
        .fetch_one(connection)
        .await
        .expect("a setting")
}

async fn write_row(postgres: &EmbeddedPostgres) {
    let mut connection = connect(postgres).await;
    sqlx::raw_sql("create table kept (word text); insert into kept values ('still here')")
        .execute(&mut connection)
        .await
        .expect("a row");
}

async fn read_row(postgres: &EmbeddedPostgres) -> String {
    sqlx::query_scalar("select word from kept")
        .fetch_one(&mut connect(postgres).await)
        .await
        .expect("the row")
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it exists").permissions().mode() & 0o7777
}

fn kill_now(child: &mut Child) {
    child.kill().expect("a kill -9");
    child.wait().expect("its end");
}

#[tokio::test]
async fn the_first_start_creates_a_durable_database_that_the_next_start_finds() {
    let folder = Folder::new();
    let durable = EmbeddedOptions::from_environment();
    let postgres = folder.start_with(&durable).await.expect("a running PostgreSQL");
    assert!(postgres.is_own());
    let mut connection = connect(&postgres).await;
    for (setting, value) in [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("listen_addresses", ""),
        ("unix_socket_permissions", "0700"),
        ("server_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("max_connections", "50"),
    ] {
        assert_eq!(show(&mut connection, setting).await, value, "{setting}");
    }
    write_row(&postgres).await;
    drop(connection);
    postgres.stop().await;
    assert!(
        PidFile::read(&folder.layout().data).is_none(),
        "nothing runs after the stop"
    );

    let postgres = folder.start_with(&durable).await.expect("a running PostgreSQL");
    assert_eq!(read_row(&postgres).await, "still here");
    postgres.stop().await;
}

#[tokio::test]
async fn only_the_right_user_with_the_password_gets_in() {
    let folder = Folder::new();
    let postgres = folder.start().await;
    let layout = folder.layout();
    let socket_folder = postgres.connect_options().get_socket().expect("a socket").clone();
    let run_as = RunAs::decide(&layout.data).expect("a user");
    for path in [&layout.folder, &layout.data, &socket_folder] {
        assert_eq!(
            (mode(path), path.metadata().expect("it exists").uid()),
            (0o700, run_as.uid.as_raw()),
            "{path:?}"
        );
    }
    assert_eq!(mode(&layout.password), 0o600);
    assert_eq!(
        layout.password.metadata().expect("a file").uid(),
        nix::unistd::geteuid().as_raw()
    );
    assert_eq!(mode(&layout.log), 0o600);
    let error = postgres
        .connect_options()
        .clone()
        .password("guess")
        .connect()
        .await
        .expect_err("a wrong password");
    assert!(
        error.to_string().contains("password authentication failed"),
        "{error}"
    );
    postgres.stop().await;
}

#[tokio::test]
async fn a_database_that_is_killed_is_started_again_and_pools_reconnect() {
    let folder = Folder::new();
    let postgres = folder.start().await;
    write_row(&postgres).await;
    let pool = sqlx::postgres::PgPoolOptions::new()
        .connect_with(postgres.connect_options().clone())
        .await
        .expect("a pool");
    let before = folder.process().pid;
    let mut starts = postgres.supervisor.as_ref().expect("our own").starts();
    kill(before, Signal::SIGKILL).expect("a kill -9");
    starts
        .wait_for(|starts| *starts == 2)
        .await
        .expect("a second start");
    assert_ne!(folder.process().pid, before);
    // The pool finds its idle connection broken, and makes another.
    let word: String = sqlx::query_scalar("select word from kept")
        .fetch_one(&pool)
        .await
        .expect("the row");
    assert_eq!(word, "still here");
    pool.close().await;
    postgres.stop().await;
}

#[tokio::test]
async fn a_database_that_outlived_its_killed_server_is_taken_over() {
    let folder = Folder::new();
    let mut server = folder.start_elsewhere("no");
    let beside = EmbeddedPostgres::connect_or_start(&folder.data_dir, "a test", &options())
        .await
        .expect("the running one");
    assert!(!beside.is_own());
    write_row(&beside).await;
    beside.stop().await;
    let before = folder.process();
    kill_now(&mut server);
    assert!(
        before.is_alive(&folder.layout().data),
        "without the tie it lives on"
    );
    let postgres = folder.start().await;
    assert_ne!(folder.process().pid, before.pid);
    assert_eq!(read_row(&postgres).await, "still here");
    postgres.stop().await;
}

#[tokio::test]
async fn the_database_ends_with_its_killed_server() {
    let folder = Folder::new();
    let mut server = folder.start_elsewhere("yes");
    let process = folder.process();
    let data = folder.layout().data;
    kill_now(&mut server);
    assert!(
        wait_until(Duration::from_secs(30), || !process.is_alive(&data)),
        "it ends"
    );
    folder.start().await.stop().await;
}

#[tokio::test]
async fn the_start_after_both_were_killed_recovers() {
    let folder = Folder::new();
    let mut server = folder.start_elsewhere("no");
    let beside = EmbeddedPostgres::connect_or_start(&folder.data_dir, "a test", &options())
        .await
        .expect("the running one");
    write_row(&beside).await;
    // A backend has a client when its parent dies.
    let mut client = connect(&beside).await;
    kill(folder.process().pid, Signal::SIGKILL).expect("a kill -9");
    kill_now(&mut server);
    let postgres = folder.start().await;
    assert!(
        sqlx::query("select 1").execute(&mut client).await.is_err(),
        "the old backend is gone"
    );
    assert_eq!(read_row(&postgres).await, "still here");
    postgres.stop().await;
}

/// Not a test: the server of the tests above, in a process that they kill.
#[tokio::test]
#[ignore = "run by other tests"]
async fn server_in_another_process() {
    let Some(path) = std::env::var_os("RUNLOOM_TEST_DATA_DIR") else {
        return;
    };
    let end_with_parent = std::env::var("RUNLOOM_TEST_TIE").is_ok_and(|tie| tie == "yes");
    let data_dir = DataDir::open(Path::new(&path)).expect("the data folder");
    let lock = data_dir.lock("a server to be killed").expect("the lock");
    let options = EmbeddedOptions {
        end_with_parent,
        ..options()
    };
    let _postgres = EmbeddedPostgres::start(&lock, &options)
        .await
        .expect("a running PostgreSQL");
    println!("database ready");
    // Until it is killed; or the test is over, however it ended.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[tokio::test]
async fn a_pid_file_whose_number_another_process_got_is_no_obstacle() {
    let folder = Folder::new();
    folder.start().await.stop().await;
    let layout = folder.layout();
    let run_as = RunAs::decide(&layout.data).expect("a user");
    let mut other = run_as
        .command(Path::new("/bin/sleep"), Path::new("/"))
        .arg("1000")
        .spawn()
        .expect("a process");
    let text = format!(
        "{}\n{}\n1780000000\n5432\n/nowhere\n\n  1   4294967295\nready\n",
        other.id(),
        layout.data.display()
    );
    std::fs::write(layout.data.join("postmaster.pid"), text).expect("a stale pid file");
    let postgres = folder.start().await;
    assert!(
        other.try_wait().expect("its state").is_none(),
        "the other process is left alone"
    );
    postgres.stop().await;
    kill_now(&mut other);
}

#[tokio::test]
async fn an_unfinished_first_start_begins_anew() {
    let folder = Folder::new();
    let layout = folder.layout();
    let unfinished = layout.folder.join("data.new-1");
    std::fs::create_dir_all(unfinished.join("base")).expect("a folder");
    folder.start().await.stop().await;
    assert!(!unfinished.exists());
}

#[tokio::test]
async fn data_of_another_version_are_named_and_left_alone() {
    let folder = Folder::new();
    folder.start().await.stop().await;
    let file = folder.layout().data.join("PG_VERSION");
    let version = std::fs::read_to_string(&file).expect("its version");
    std::fs::write(&file, "12\n").expect("another version");
    let message = folder.try_start().await.expect_err("a mismatch").to_string();
    assert!(
        message.contains("was made by PostgreSQL 12") && message.contains(version.trim()),
        "{message}"
    );
    std::fs::write(&file, version).expect("its version");
    folder.start().await.stop().await;
}

#[tokio::test]
async fn a_lost_password_is_named_and_nothing_is_made_anew() {
    let folder = Folder::new();
    folder.start().await.stop().await;
    let file = folder.layout().password;
    std::fs::remove_file(&file).expect("a lost file");
    let message = folder.try_start().await.expect_err("no password").to_string();
    assert!(message.contains("postgres.password"), "{message}");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_start_that_fails_shows_the_end_of_the_log() {
    let folder = Folder::new();
    folder.start().await.stop().await;
    let file = folder.layout().data.join("postgresql.conf");
    std::fs::write(&file, "no_such_setting = 1\n").expect("a broken setting");
    let message = folder
        .try_start()
        .await
        .expect_err("a broken setting")
        .to_string();
    assert!(
        message.contains("no_such_setting") && message.contains("postgres.log"),
        "{message}"
    );
    folder
        .data_dir
        .lock("a test")
        .expect("the folder is free after a failed start");
}

#[tokio::test]
async fn a_deep_data_folder_gets_a_short_private_socket_folder() {
    let folder = Folder::below(&"deep/".repeat(20));
    let postgres = folder.start().await;
    let socket_folder = postgres.connect_options().get_socket().expect("a socket").clone();
    assert!(!socket_folder.starts_with(folder.data_dir.path()));
    assert_eq!(mode(&socket_folder), 0o700);
    let beside = EmbeddedPostgres::connect_or_start(&folder.data_dir, "a test", &options())
        .await
        .expect("the running one");
    assert!(!beside.is_own());
    postgres.stop().await;
    assert!(!socket_folder.exists());
}

#[test]
fn a_link_or_a_foreign_folder_is_not_taken_for_the_socket() {
    let top = tempfile::tempdir().expect("a folder");
    let run_as = RunAs::decide(&top.path().join("data")).expect("a user");
    let link = top.path().join("link");
    std::os::unix::fs::symlink(top.path(), &link).expect("a link");
    assert!(layout::private_folder(&link, &run_as).is_err());
    if nix::unistd::geteuid().is_root() {
        let foreign = top.path().join("foreign");
        std::fs::create_dir(&foreign).expect("a folder");
        std::os::unix::fs::chown(&foreign, Some(12345), None).expect("another owner");
        assert!(layout::private_folder(&foreign, &run_as).is_err());
    }
}

#[tokio::test]
async fn commands_use_the_running_database_or_start_it_for_themselves() {
    let folder = Folder::new();
    let own = EmbeddedPostgres::connect_or_start(&folder.data_dir, "runloom verify", &options())
        .await
        .expect("started");
    assert!(own.is_own());
    let message = folder
        .data_dir
        .lock("serving")
        .expect_err("held meanwhile")
        .to_string();
    assert!(message.contains("runloom verify"), "{message}");
    let other = EmbeddedPostgres::connect_or_start(&folder.data_dir, "x", &options())
        .await
        .expect("the running one");
    assert!(!other.is_own());
    other.stop().await;
    write_row(&own).await;
    own.stop().await;

    let lock = folder.data_dir.lock("serving elsewhere").expect("free again");
    let error = EmbeddedPostgres::connect_or_start(&folder.data_dir, "x", &options())
        .await
        .expect_err("held");
    assert!(error.to_string().contains("serving elsewhere"), "{error}");
    drop(lock);
}

#[tokio::test]
async fn a_closed_folder_above_is_named_with_what_to_do() {
    if !nix::unistd::geteuid().is_root() {
        // An ordinary user's PostgreSQL runs as that user, who can pass wherever this process can.
        return;
    }
    let folder = Folder::new();
    std::fs::set_permissions(&folder.top, std::fs::Permissions::from_mode(0o700)).expect("chmod");
    let message = folder.try_start().await.expect_err("a closed folder").to_string();
    let top = folder.top.canonicalize().expect("a path");
    assert!(
        message.contains(&format!("cannot pass the folder {}", top.display())),
        "{message}"
    );
    assert!(message.contains("chmod o+x"), "{message}");
}

#[tokio::test]
async fn each_test_gets_an_empty_database_of_its_own() {
    use crate::store::test_support::TestDatabase;

    let (one, two) = tokio::join!(TestDatabase::new(), TestDatabase::new());
    let (first, second) = tokio::join!(one.pool(), two.pool());
    sqlx::raw_sql("create table only_here ()")
        .execute(&first)
        .await
        .expect("a table");
    let tables = "select count(*) from pg_tables where tablename = 'only_here'";
    let count: i64 = sqlx::query_scalar(tables)
        .fetch_one(&second)
        .await
        .expect("a count");
    assert_eq!(count, 0);
}
