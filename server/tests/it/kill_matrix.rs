//! kill -9 of a server at every kind of moment: the next one has all that a viewer saw, nothing runs any more, and
//! everybody who reads it reads the same.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::digest::digest;
use protocol::fold::RunState;
use protocol::state::{AttemptStatus, BlockStatus, Channel, NodeStatus, RunStatus};
use server::simulator::Scenario;
use server::store::test_support::TestDatabase;

use crate::command_line::Process;
use crate::harness::{Dice, PATIENCE, Setup, TestServer, is_long};
use crate::owner_gone::assert_kept;
use crate::provider::{Provider, scenario};
use crate::proxy::Proxy;
use crate::states::{assert_equal, end, text};
use crate::viewer::Viewer;
use crate::watching_elsewhere::beside;

/// A moment of a run.
pub(crate) struct Point {
    pub(crate) name: &'static str,
    pub(crate) prompt: &'static str,
    /// Where its stream stands.
    pub(crate) gate: Option<&'static str>,
    /// What a viewer has seen by then.
    pub(crate) enough: fn(&RunState) -> bool,
}

/// The moments of which issues speak: before the first byte, in each kind of content, in and between tools.
pub(crate) const POINTS: &[Point] = &[
    Point {
        name: "before the first byte",
        prompt: "slow",
        gate: Some("slow:begin"),
        enough: |state| state.attempts().len() == 1,
    },
    Point {
        name: "in reasoning",
        prompt: "welcome",
        gate: Some("welcome:reasoning"),
        enough: |state| {
            state
                .blocks()
                .iter()
                .any(|block| block.body.kind() == "reasoning")
        },
    },
    Point {
        name: "in text",
        prompt: "welcome",
        gate: Some("welcome:middle"),
        enough: |state| text(state).contains("what went on before the"),
    },
    Point {
        name: "in arguments",
        prompt: "long_arguments",
        gate: None,
        enough: |state| {
            let arguments = |node: &protocol::model::Node| {
                let output = node.outputs.get(&Channel::Arguments);
                node.state.status() == NodeStatus::Pending
                    && output.is_some_and(|output| output.text.len() > 20)
            };
            state.nodes().iter().any(arguments)
        },
    },
    Point {
        name: "with a tool running",
        prompt: "long_tool",
        gate: None,
        enough: |state| {
            let is_running = |node: &protocol::model::Node| {
                node.name == "search_files" && node.state.status() == NodeStatus::Running
            };
            state.nodes().iter().any(is_running)
        },
    },
    Point {
        name: "in an inner model",
        prompt: "nested levels=3",
        gate: Some("nested:bottom"),
        enough: |state| text(state).contains("It is about Acorn, "),
    },
    Point {
        name: "in a concurrent batch",
        prompt: "asking",
        gate: Some("reader:middle"),
        enough: |state| text(state).contains("The log is read once, "),
    },
    Point {
        name: "between tools",
        prompt: "welcome",
        gate: Some("welcome:after-list"),
        enough: |state| text(state).contains("a toy key-value store in Python. "),
    },
];

/// Scenarios with a call whose arguments take long, and with one that itself takes long.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let head = |name: &str| {
        format!(
            "name = \"{name}\"\norder = 900\ntitle = \"x\"\ndescription = \"x\"\nprompt = \"{name}\"\n[[turns]]\n"
        )
    };
    let arguments = format!(
        "{}[[turns.steps]]\nstep = \"tool_call\"\nname = \"read_file\"\n\
         arguments = '{{\"path\": \"README.md\", \"note\": \"{}\"}}'\nrate = 20\nchunk = 4\n\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"So much for that.\"\n",
        head("long_arguments"),
        "words and ".repeat(100),
    );
    let tool = format!(
        "{}[[turns.steps]]\nstep = \"tool_call\"\nname = \"search_files\"\n\
         arguments = '{{\"pattern\": \"[a-z]+ [A-Z]+[0-9]\", \"case_sensitive\": false}}'\n\
         [[turns]]\n[[turns.steps]]\nstep = \"text\"\ntext = \"Nothing there.\"\n",
        head("long_tool"),
    );
    vec![
        scenario("long_arguments", &arguments),
        scenario("long_tool", &tool),
    ]
}

/// A scenario of so many parts of one text, a gate after each.
pub(crate) fn in_parts(count: u32) -> Scenario {
    let mut source =
        "name = \"parts\"\norder = 900\ntitle = \"x\"\ndescription = \"x\"\nprompt = \"parts\"\n[[turns]]\n"
            .to_owned();
    for number in 0..count {
        source.push_str(&format!(
            "[[turns.steps]]\nstep = \"text\"\ntext = \"Part {number} is whole.\"\nchunk = 100\n\
             [[turns.steps]]\nstep = \"gate\"\nname = \"parts:{number}\"\n"
        ));
    }
    scenario("parts", &source)
}

/// A workspace in which a search takes its time.
pub(crate) fn large_workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("README.md"), "# Large\n").unwrap();
    let lines = "words and words and words, none of them with a number after a capital\n".repeat(3_000);
    for number in 0..300 {
        std::fs::write(folder.path().join(format!("{number}.txt")), &lines).unwrap();
    }
    folder
}

fn nothing_runs(state: &RunState) {
    assert!(state.run().status.is_final());
    assert!(state.nodes().iter().all(|node| node.state.status().is_final()));
    assert!(
        state
            .attempts()
            .iter()
            .all(|attempt| attempt.state.status().is_final())
    );
    assert!(state.blocks().iter().all(|block| block.state.status().is_final()));
}

/// What has to hold once the owner is gone: for a viewer who stayed, after a refresh, and on a second server.
async fn check(
    what: &str,
    database: &Arc<TestDatabase>,
    provider: &Provider,
    data: PathBuf,
    seen: &RunState,
) -> RunState {
    let server = TestServer::start_with(Setup {
        database: Some(Arc::clone(database)),
        provider: Some(provider.clone()),
        data: Some(data),
        ..Setup::default()
    })
    .await;
    let run = seen.run().run_id.clone();
    let mut stayed = Viewer::connect(&server.base).await;
    stayed.resume(seen.clone()).await;
    let after = stayed.until_end(&run).await.clone();
    if end(&after).0 == RunStatus::Succeeded {
        // It was over before the kill, or it had not begun and was executed afterwards.
        let had_not_begun = seen.run().status == RunStatus::Queued;
        assert!(had_not_begun || after.generation() == seen.generation(), "{what}");
    } else {
        assert_eq!(
            end(&after),
            (RunStatus::Interrupted, Some("owner_gone")),
            "{what}"
        );
        assert_eq!(after.generation(), 2, "{what}");
        assert_eq!(
            after
                .notices()
                .iter()
                .filter(|notice| notice.code == "taken_over")
                .count(),
            1
        );
        assert_eq!(
            after.attempts().last().map(|attempt| attempt.state.status()),
            Some(AttemptStatus::Interrupted)
        );
        assert_kept(seen, &after);
    }
    nothing_runs(&after);
    assert_equal(&after, &server.ended(&run).await);
    let second = beside(&server, Setup::default()).await;
    assert_equal(&after, &second.ended(&run).await);
    let digests = [
        server.assert_same(&after).await,
        second.assert_same(&after).await,
        digest(&after),
    ];
    assert!(
        digests.iter().all(|other| *other == digests[0]),
        "{what}: {digests:?}"
    );
    // A test makes many of them.
    server.stop().await;
    second.stop().await;
    after
}

fn config(workspace: &tempfile::TempDir) -> String {
    format!("[server]\nworkspace = \"{}\"\n", workspace.path().display())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_at_any_kind_of_moment_loses_nothing_that_was_seen() {
    let workspace = large_workspace();
    for point in POINTS {
        let provider = Provider::start_at("20".parse().unwrap(), scenarios()).await;
        let database = Arc::new(TestDatabase::new().await);
        // A search needs a large workspace; the tour expects the sample.
        let more = if point.prompt == "long_tool" {
            config(&workspace)
        } else {
            String::new()
        };
        let mut process = Process::serve(&database, &provider.base, &more).await;
        if let Some(gate) = point.gate {
            provider.arm(gate).await;
        }
        let run = process.run(point.prompt).await;
        let mut viewer = Viewer::connect(&process.base).await;
        viewer.subscribe(&run, 0).await;
        let seen = viewer.until(&run, point.enough).await.clone();
        process.kill();
        let after = check(point.name, &database, &provider, process.data_dir(), &seen).await;
        assert_eq!(end(&after).0, RunStatus::Interrupted, "{}", point.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_at_a_random_moment_loses_nothing_that_was_seen() {
    let (count, seed) = if is_long() { (50, 1) } else { (3, 2) };
    let mut dice = Dice::new(seed);
    for number in 0..count {
        let provider = Provider::start_at("20".parse().unwrap(), Vec::new()).await;
        let database = Arc::new(TestDatabase::new().await);
        let mut process = Process::serve(&database, &provider.base, "").await;
        let run = process.run("welcome").await;
        let mut viewer = Viewer::connect(&process.base).await;
        viewer.subscribe(&run, 0).await;
        let at = 1 + dice.below(60);
        let is_there = |state: &RunState| state.seq() >= at || state.run().status.is_final();
        let seen = viewer.until(&run, is_there).await.clone();
        process.kill();
        let what = format!("kill {number} of seed {seed}, after op {at}");
        check(&what, &database, &provider, process.data_dir(), &seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_during_a_commit_loses_nothing_and_doubles_nothing() {
    let provider = Provider::start(Vec::new()).await;
    let database = Arc::new(TestDatabase::new().await);
    let proxy = Proxy::start(database.options.clone()).await;
    let mut process = Process::serve_on(&proxy.options, &provider.base, "").await;
    provider.arm("welcome:middle").await;
    let run = process.run("welcome").await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    let seen = viewer.until_text(&run, "what went on before the").await.clone();
    proxy.lose_next_commit();
    provider.open("welcome:middle").await;
    proxy.until_commit_is_lost().await;
    process.kill();
    check("during a commit", &database, &provider, process.data_dir(), &seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_received_and_not_saved_when_the_server_was_killed_is_taken_from_the_transcript() {
    let provider = Provider::start(vec![in_parts(3)]).await;
    let database = Arc::new(TestDatabase::new().await);
    let proxy = Proxy::start(database.options.clone()).await;
    let mut process = Process::serve_on(&proxy.options, &provider.base, "").await;
    provider.arm("parts:0").await;
    provider.arm("parts:1").await;
    let run = process.run("parts").await;
    let mut viewer = Viewer::connect(&process.base).await;
    viewer.subscribe(&run, 0).await;
    let seen = viewer.until_text(&run, "Part 0 is whole.").await.clone();
    // From now on nothing can be saved, and what comes is only in the transcript.
    proxy.cut();
    provider.open("parts:0").await;
    let data = process.data_dir();
    let folder = data.join(format!("transcripts/{run}/chat"));
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let written = async {
        while !std::fs::read_to_string(&file)
            .unwrap()
            .contains("Part 1 is whole.")
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.unwrap();
    process.kill();
    let after = check("while nothing could be saved", &database, &provider, data, &seen).await;
    assert_eq!(text(&seen), "Part 0 is whole.");
    assert_eq!(text(&after), "Part 0 is whole.Part 1 is whole.");
    assert_eq!(after.blocks().last().unwrap().state.status(), BlockStatus::Cut);
}
