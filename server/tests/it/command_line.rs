//! The binary as a process: its exit statuses and what it says.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::digest::digest;
use protocol::id::{RunId, SessionId};
use serde_json::{Value, json};
use server::store::test_support::TestDatabase;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::oneshot;

use crate::harness::{PATIENCE, TestServer, client};
use crate::provider::{KEY_VARIABLE, PROVIDER_KEY, providers};

/// The binary with an environment of its own.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runloom"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env(KEY_VARIABLE, PROVIDER_KEY)
        .stdin(Stdio::null());
    command
}

fn url(options: &PgConnectOptions) -> String {
    options.to_url_lossy().to_string()
}

/// A server in a process of its own.
pub(crate) struct Process {
    child: Child,
    pub(crate) base: String,
    http: reqwest::Client,
    folder: tempfile::TempDir,
}

impl Process {
    /// Starts `runloom serve` with these providers; returns when it listens.
    pub(crate) async fn serve(database: &TestDatabase, provider: &str, more_config: &str) -> Self {
        Self::serve_on(&database.options, provider, more_config).await
    }

    /// The same over a connection that is made in a certain way.
    pub(crate) async fn serve_on(database: &PgConnectOptions, provider: &str, more_config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("runloom.toml");
        std::fs::write(&config, format!("{more_config}{}", providers(provider, "", ""))).unwrap();
        let mut child = command(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&config)
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .env("DATABASE_URL", url(database))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (found, listening) = oneshot::channel();
        std::thread::spawn(move || {
            let mut found = Some(found);
            let mut said = String::new();
            for line in lines.map_while(Result::ok) {
                said.push_str(&line);
                said.push('\n');
                if let Some((_, base)) = line.split_once("serves ")
                    && let Some(found) = found.take()
                {
                    let _ = found.send(base.trim().to_owned());
                }
            }
            if found.is_some() {
                panic!("it does not serve: {said}");
            }
        });
        let base = tokio::time::timeout(PATIENCE, listening).await.unwrap().unwrap();
        Self {
            child,
            base,
            http: client(),
            folder,
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.base)).json(&body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    }

    /// Queues a run in a session.
    pub(crate) async fn submit(&self, session: &SessionId, prompt: &str) -> RunId {
        self.submit_body(session, json!({ "prompt": prompt })).await
    }

    /// Queues a run in a session, as this body says.
    pub(crate) async fn submit_body(&self, session: &SessionId, body: Value) -> RunId {
        let run = self.post(&format!("/api/sessions/{session}/runs"), body).await;
        run["run_id"].as_str().unwrap().parse().unwrap()
    }

    /// Creates a session.
    pub(crate) async fn session(&self) -> SessionId {
        let session = self.post("/api/sessions", json!({})).await;
        session["session_id"].as_str().unwrap().parse().unwrap()
    }

    /// Queues a run in a session of its own.
    pub(crate) async fn run(&self, prompt: &str) -> RunId {
        self.submit(&self.session().await, prompt).await
    }

    pub(crate) async fn session_of(&self, run: &RunId) -> SessionId {
        let answer = self
            .http
            .get(format!("{}/api/runs/{run}/snapshot", self.base))
            .send()
            .await
            .unwrap();
        let snapshot: Value = answer.json().await.unwrap();
        snapshot["run"]["session_id"].as_str().unwrap().parse().unwrap()
    }

    /// Its data folder, which outlives it as long as this value does.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// SIGKILL: it can do nothing more.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its exit status, once it has ended; none when a signal ended it.
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not end");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
async fn ran(mut command: Command) -> (Option<i32>, String, String) {
    let output: Output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_prints_the_digest_that_a_viewer_computes() {
    let server = TestServer::start().await;
    let seen = server.finish("Call several tools at once", "anthropic").await;
    let folder = tempfile::tempdir().unwrap();
    let mut verify = command(folder.path());
    verify
        .args(["verify", seen.run().run_id.as_str()])
        .env("DATABASE_URL", url(&server.database.options));
    let (code, stdout, stderr) = ran(verify).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.contains(&format!("digest  {}\n", digest(&seen))),
        "{stdout}"
    );
    assert!(stdout.contains(&format!("seq     {}\n", seen.seq())), "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_tells_a_record_that_was_changed() {
    let server = TestServer::start().await;
    let seen = server.finish("max_tokens", "anthropic").await;
    sqlx::query("update content_parts set bytes = overlay(bytes placing 'X'::bytea from 3)")
        .execute(server.execution.store().pool())
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut verify = command(folder.path());
    verify
        .args(["verify", seen.run().run_id.as_str()])
        .env("DATABASE_URL", url(&server.database.options));
    let (code, stdout, _) = ran(verify).await;
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("does not have the hash that closed it"),
        "{stdout}"
    );
    assert!(
        stdout.contains("the rows and the folded journal differ"),
        "{stdout}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_of_a_run_that_does_not_exist_fails() {
    let database = TestDatabase::new().await;
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &'static str, arguments: &[&str]| {
        let mut command = command(folder.path());
        command
            .arg(name)
            .args(arguments)
            .env("DATABASE_URL", url(&database.options));
        ran(command)
    };
    assert_eq!(run("migrate", &[]).await.0, Some(0));
    let (code, _, stderr) = run("verify", &["run_0000000000000000000000"]).await;
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("there is no run run_0000000000000000000000"),
        "{stderr}"
    );
    let (code, _, stderr) = run("verify", &["nonsense"]).await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("run_"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_leaves_by_export_and_comes_into_another_database_by_import() {
    let server = TestServer::start().await;
    let seen = server.finish("Call several tools at once", "anthropic").await;
    let other = TestDatabase::new().await;
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &'static str, arguments: Vec<String>, database: &PgConnectOptions| {
        let mut command = command(folder.path());
        command
            .arg(name)
            .args(arguments)
            .env("DATABASE_URL", url(database));
        ran(command)
    };
    let id = seen.run().run_id.to_string();
    let (code, file, stderr) = run("export", vec![id.clone()], &server.database.options).await;
    assert_eq!(code, Some(0), "{stderr}");
    let (code, words, _) = run(
        "export",
        vec![id.clone(), "--format".to_owned(), "markdown".to_owned()],
        &server.database.options,
    )
    .await;
    assert!(code == Some(0) && words.contains("## Prompt"), "{words}");
    let path = folder.path().join("run.ndjson");
    std::fs::write(&path, file).unwrap();
    let path = path.display().to_string();
    let (code, stdout, stderr) = run("import", vec![path.clone()], &other.options).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(&format!("run     {id} imported\n")), "{stdout}");
    assert!(
        stdout.contains(&format!("digest  {}\n", digest(&seen))),
        "{stdout}"
    );
    let (_, stdout, _) = run("import", vec![path], &other.options).await;
    assert!(stdout.contains("was here already"), "{stdout}");
    let (code, stdout, _) = run("verify", vec![id], &other.options).await;
    assert_eq!(code, Some(0), "{stdout}");

    let (code, _, stderr) = run(
        "export",
        vec!["run_0000000000000000000000".to_owned()],
        &other.options,
    )
    .await;
    assert!(code == Some(1) && stderr.contains("there is no run"), "{stderr}");
    let nonsense = folder.path().join("nonsense");
    std::fs::write(&nonsense, "a,b").unwrap();
    let (code, _, stderr) = run("import", vec![nonsense.display().to_string()], &other.options).await;
    assert!(
        code == Some(1) && stderr.contains("no record that can be imported"),
        "{stderr}"
    );
    let (code, _, stderr) = run("import", vec!["/nowhere".to_owned()], &other.options).await;
    assert!(code == Some(1) && stderr.contains("/nowhere"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_in_the_configuration_ends_the_start_with_file_key_and_what_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("runloom.toml");
    std::fs::write(&config, "[server]\nlisten = \"127.0.0.1:0\"\ncolour = \"red\"\n").unwrap();
    let mut serve = command(folder.path());
    serve.args(["serve", "--config"]).arg(&config);
    let (code, _, stderr) = ran(serve).await;
    assert_eq!(code, Some(2), "{stderr}");
    for part in ["runloom.toml", "server", "colour", "workspace"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let mut serve = command(folder.path());
    serve.arg("--nonsense");
    assert_eq!(ran(serve).await.0, Some(2));
    let mut help = command(folder.path());
    help.arg("--help");
    let (code, stdout, _) = ran(help).await;
    assert_eq!(code, Some(0));
    for part in ["serve", "migrate", "simulate", "verify", "DATABASE_URL"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}
