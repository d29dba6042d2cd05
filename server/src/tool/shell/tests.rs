//! What a command gives back, how it ends, and that nothing of it is left.

use serde_json::json;

use super::*;
use crate::tool::test_support::{Folder, RecordedProgress, call, quiet_context};

async fn run(folder: &Folder, command: &str) -> Result<ToolOutput, ToolError> {
    call(
        &Shell::new(Arc::clone(&folder.workspace)),
        json!({ "command": command }),
    )
    .await
}

/// Waits until no process of this id lives.
async fn is_gone(id: &str) {
    let path = format!("/proc/{}", id.trim());
    let gone = async {
        // What was killed may wait for somebody to ask how it ended.
        while std::fs::read_to_string(format!("{path}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_both_its_outputs_come_in_order() {
    let folder = Folder::new();
    folder.write("a.txt", "text");
    let output = run(&folder, "ls; echo größe >&2; pwd; cat").await.unwrap();
    let root = folder.workspace.root().display();
    assert_eq!(output.text, format!("a.txt\ngröße\n{root}\n"));
    assert_eq!(output.exit_code, Some(0));
}

#[tokio::test]
async fn a_command_that_fails_says_its_exit_code() {
    let folder = Folder::new();
    let output = run(&folder, "printf out; exit 3").await.unwrap();
    assert_eq!(output.text, "out\n[The command ended with exit code 3.]\n");
    assert_eq!(output.exit_code, Some(3));
    let killed = run(&folder, "kill -TERM $$").await.unwrap();
    assert_eq!(killed.exit_code, Some(128 + 15));
    let missing = run(&folder, "no-such-command").await.unwrap();
    assert_eq!(missing.exit_code, Some(127));
}

#[tokio::test]
async fn the_environment_of_the_server_is_not_handed_on() {
    let folder = Folder::new();
    let output = run(&folder, "env").await.unwrap();
    // A test runs with variables of its own.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    assert!(!output.text.contains("CARGO"), "{}", output.text);
    assert!(output.text.contains("PATH="), "{}", output.text);
}

#[tokio::test]
async fn what_a_command_writes_is_shown_while_it_runs_and_a_long_output_keeps_its_end() {
    let folder = Folder::new();
    let progress = Arc::new(RecordedProgress::default());
    let context = ToolContext {
        progress: Arc::clone(&progress) as Arc<dyn ToolProgress>,
        ..quiet_context()
    };
    let command = "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo the end";
    let tool = Shell::new(Arc::clone(&folder.workspace));
    let output = tool.call(json!({ "command": command }), &context).await.unwrap();
    assert!(output.text.starts_with("[The first 1.9 MiB are left out.]\nxxx"));
    assert!(output.text.ends_with("x\nthe end\n"));
    assert!(output.text.len() < LARGEST_OUTPUT + 100);
    let shown = progress.log.lock().unwrap().len();
    assert!((LARGEST_LOG..LARGEST_LOG + 64 * 1024).contains(&shown), "{shown}");
}

#[tokio::test]
async fn binary_output_is_text_with_marks_and_no_cut_character() {
    let folder = Folder::new();
    let output = run(&folder, "printf 'a\\377b\\0c\\033[31m'").await.unwrap();
    assert_eq!(output.text, "a\u{fffd}b\0c\u{1b}[31m");
}

#[tokio::test]
async fn a_cancelled_command_is_killed_with_all_that_it_started() {
    let folder = Folder::new();
    let context = quiet_context();
    let tool = Shell::new(Arc::clone(&folder.workspace));
    let command = "sleep 1000 & echo $! > child; echo $$ > parent; mv parent ready; wait";
    let running = tool.call(json!({ "command": command }), &context);
    let cancelling = async {
        while !folder.path("ready").exists() {
            tokio::task::yield_now().await;
        }
        context.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(running, cancelling);
    assert_eq!(ended, Err(ToolError::cancelled()));
    for file in ["child", "ready"] {
        is_gone(&std::fs::read_to_string(folder.path(file)).unwrap()).await;
    }
}

#[tokio::test]
async fn a_command_whose_call_is_dropped_is_killed() {
    let folder = Folder::new();
    let context = quiet_context();
    let tool = Shell::new(Arc::clone(&folder.workspace));
    let running = tool.call(
        json!({ "command": "echo $$ > id; mv id ready; sleep 1000" }),
        &context,
    );
    tokio::select! {
        ended = running => panic!("{ended:?}"),
        () = async {
            while !folder.path("ready").exists() {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    is_gone(&std::fs::read_to_string(folder.path("ready")).unwrap()).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it_and_is_not_waited_for() {
    let folder = Folder::new();
    let begun = std::time::Instant::now();
    let output = run(&folder, "sleep 1000 & echo $! > child; echo done")
        .await
        .unwrap();
    assert_eq!((output.text.as_str(), output.exit_code), ("done\n", Some(0)));
    is_gone(&std::fs::read_to_string(folder.path("child")).unwrap()).await;
    assert!(begun.elapsed() < Duration::from_secs(100));
}

#[tokio::test]
async fn a_command_that_takes_longer_than_it_may_is_stopped() {
    let folder = Folder::new();
    let tool = Shell::new(Arc::clone(&folder.workspace));
    let arguments = json!({ "command": "echo $$ > id; sleep 1000", "timeout": 1 });
    let error = call(&tool, arguments).await.unwrap_err();
    assert_eq!(error.code, "timed_out");
    is_gone(&std::fs::read_to_string(folder.path("id")).unwrap()).await;
}

#[tokio::test]
async fn a_wrong_command_is_refused() {
    let tool = Shell::new(Arc::clone(&Folder::new().workspace));
    for arguments in [
        json!({}),
        json!({ "command": " " }),
        json!({ "command": "a\0b" }),
        json!({ "command": "x".repeat(LONGEST_COMMAND + 1) }),
        json!({ "command": "ls", "timeout": 0 }),
        json!({ "command": ["ls"] }),
    ] {
        let error = tool.check(&arguments).unwrap_err();
        assert_eq!(error.code, "invalid_arguments");
    }
}
