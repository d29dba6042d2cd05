//! What is searched and what is shown.

mod places;

use serde_json::json;

use super::*;
use crate::tool::test_support::{Folder, RecordedProgress, call};

async fn search_with(folder: &Folder, arguments: Value) -> Result<String, ToolError> {
    call(&SearchFiles::new(Arc::clone(&folder.workspace)), arguments)
        .await
        .map(|output| output.text)
}

/// The matching lines without the note at the end.
async fn found(folder: &Folder, arguments: Value) -> Vec<String> {
    let text = search_with(folder, arguments).await.unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    assert!(lines.pop().unwrap().starts_with('['), "{text}");
    lines
}

/// Searches on this thread and gives the result and the log.
fn search_logged(folder: &Folder, arguments: Value) -> (Result<ToolOutput, ToolError>, String) {
    let progress = RecordedProgress::default();
    let arguments: Arguments = decode(&arguments).unwrap();
    let result = search(
        &folder.workspace,
        &arguments,
        &progress,
        &CancellationToken::new(),
    );
    (result, progress.log.into_inner().unwrap())
}

#[tokio::test]
async fn lines_are_shown_with_path_and_number_sorted_by_path() {
    let folder = Folder::new();
    folder.write("b.txt", "one needle\r\nnothing\nneedle two\n");
    folder.write("a/deep/größe 🦀.txt", "x\nneedle");
    folder.write("c.txt", "hay\n");
    assert_eq!(
        search_with(&folder, json!({"pattern": "needle"})).await.unwrap(),
        "a/deep/größe 🦀.txt:2: needle\nb.txt:1: one needle\nb.txt:3: needle two\n\
         [3 matching lines; 3 files searched.]\n"
    );
    assert_eq!(
        search_with(&folder, json!({"pattern": "absent"})).await.unwrap(),
        "[No line matches; 3 files searched.]\n"
    );
}

#[tokio::test]
async fn the_end_of_a_line_matches_before_a_carriage_return() {
    let folder = Folder::new();
    folder.write("a", "end\r\nend here\r\n");
    assert_eq!(found(&folder, json!({"pattern": "end$"})).await, ["a:1: end"]);
}

#[tokio::test]
async fn case_counts_unless_told_otherwise() {
    let folder = Folder::new();
    folder.write("a", "Needle\nneedle\n");
    assert_eq!(
        found(&folder, json!({"pattern": "needle"})).await,
        ["a:2: needle"]
    );
    let both = found(&folder, json!({"pattern": "needle", "case_sensitive": false})).await;
    assert_eq!(both, ["a:1: Needle", "a:2: needle"]);
}

#[tokio::test]
async fn a_glob_chooses_files_below_the_searched_directory() {
    let folder = Folder::new();
    for file in ["src/a.rs", "src/deep/b.rs", "src/c.txt", "d.rs", "ignored.rs"] {
        folder.write(file, "needle");
    }
    folder.write(".gitignore", "ignored.rs");
    let with = async |path: &str, glob: &str| {
        found(&folder, json!({"pattern": "needle", "path": path, "glob": glob}))
            .await
            .join(" ")
            .replace(":1: needle", "")
    };
    assert_eq!(with(".", "*.rs").await, "d.rs src/a.rs src/deep/b.rs");
    assert_eq!(with(".", "src/*.{rs,txt}").await, "src/a.rs src/c.txt");
    assert_eq!(with("src", "deep/").await, "src/deep/b.rs");
    assert_eq!(with("src", "!*.rs").await, "src/c.txt");
    assert_eq!(with("src", "/*.rs").await, "src/a.rs");
}

#[tokio::test]
async fn wrong_patterns_and_globs_are_refused_before_the_call() {
    let folder = Folder::new();
    let error = search_with(&folder, json!({"pattern": "(open"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, "invalid_pattern");
    assert!(error.message.contains("unclosed group"), "{}", error.message);
    for pattern in ["a\nb", "a{1000}{1000}{1000}", "\\p{Nonsense}"] {
        let tool = SearchFiles::new(Arc::clone(&folder.workspace));
        assert_eq!(
            tool.check(&json!({ "pattern": pattern })).unwrap_err().code,
            "invalid_pattern",
            "{pattern:?}"
        );
    }
    let error = search_with(&folder, json!({"pattern": "a", "glob": "{a"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, "invalid_pattern");
    assert!(error.message.contains("`glob`"), "{}", error.message);
}

#[tokio::test]
async fn binary_files_are_left_out() {
    let folder = Folder::new();
    folder.write("image", b"needle\0needle");
    folder.write("text", "needle");
    assert_eq!(
        found(&folder, json!({"pattern": "needle"})).await,
        ["text:1: needle"]
    );
}

#[test]
fn a_text_with_a_late_nul_is_searched_up_to_it_and_the_log_says_so() {
    let folder = Folder::new();
    folder.write("log", format!("needle\n{}\0\nneedle\n", "hay\n".repeat(100_000)));
    let (result, log) = search_logged(&folder, json!({"pattern": "needle"}));
    assert!(
        result
            .unwrap()
            .text
            .starts_with("log:1: needle\n[1 matching line;")
    );
    assert_eq!(log, "log was searched up to its first NUL byte only\n");
}

#[test]
fn a_line_that_is_too_long_ends_the_search_of_its_file_only() {
    let folder = Folder::new();
    folder.write("a", format!("needle\n{}", "x".repeat(LONGEST_LINE + 1)));
    folder.write("b", "needle");
    let (result, log) = search_logged(&folder, json!({"pattern": "needle"}));
    assert_eq!(
        result.unwrap().text,
        "a:1: needle\nb:1: needle\n[2 matching lines; 2 files searched.]\n"
    );
    assert!(log.starts_with("a was searched in part only: "), "{log}");
}

#[tokio::test]
async fn a_long_line_is_shown_around_its_match() {
    let folder = Folder::new();
    folder.write(
        "min.js",
        format!("{}needle{}\n", "é".repeat(100_000), "ü".repeat(100_000)),
    );
    let lines = found(&folder, json!({"pattern": "needle"})).await;
    assert!(
        lines[0].starts_with("min.js:1: …é") && lines[0].contains("éneedleü") && lines[0].ends_with("ü…")
    );
    assert!(lines[0].chars().count() < 420);
}

#[tokio::test]
async fn beyond_the_cap_matches_are_counted() {
    let folder = Folder::new();
    folder.write("a", "needle\n".repeat(150));
    folder.write("b", "needle\n".repeat(150));
    let text = search_with(&folder, json!({"pattern": "needle"})).await.unwrap();
    assert_eq!(text.lines().count(), DEFAULT_RESULTS + 1);
    assert!(
        text.contains("\nb:50: needle\n[200 of 300 matching lines shown; 2 files searched. Narrow"),
        "{text}"
    );
    let two = search_with(&folder, json!({"pattern": "needle", "max_results": 2}))
        .await
        .unwrap();
    assert!(
        two.starts_with("a:1: needle\na:2: needle\n[2 of 300 matching lines shown;"),
        "{two}"
    );
    let most = search_with(
        &folder,
        json!({"pattern": "needle", "max_results": 1_000_000_000}),
    )
    .await
    .unwrap();
    assert!(
        most.ends_with("[300 matching lines; 2 files searched.]\n"),
        "{most}"
    );
}

#[tokio::test]
async fn many_long_lines_stay_within_a_bounded_result() {
    let folder = Folder::new();
    folder.write("a", format!("{}\n", "🦀".repeat(500)).repeat(2000));
    let text = search_with(&folder, json!({"pattern": "🦀", "max_results": 2000}))
        .await
        .unwrap();
    assert!(text.len() < 300 * 1024, "{}", text.len());
    assert!(text.contains(" of 2000 matching lines shown"));
}

#[test]
fn what_cannot_be_read_is_counted_and_logged() {
    let folder = Folder::new();
    folder.write("there", "needle");
    let progress = RecordedProgress::default();
    let cancel = CancellationToken::new();
    let matcher = matcher(&decode(&json!({"pattern": "needle"})).unwrap()).unwrap();
    let mut search = Search::new(&folder.workspace, matcher, 10, &progress, &cancel);
    search.one_file(&folder.workspace.resolve("there").unwrap());
    // As when it is removed after the walk saw it.
    search.one_file(&folder.workspace.resolve("removed").unwrap());
    let text = search.into_text();
    assert_eq!(
        text,
        "there:1: needle\n[1 matching line; 1 file searched; 1 could not be read, the log says why.]\n"
    );
    let log = progress.log.into_inner().unwrap();
    assert!(log.starts_with("skipped removed: There is no `removed`"), "{log}");
}

#[tokio::test]
async fn a_missing_path_comes_with_similar_names() {
    let folder = Folder::new();
    folder.write("source/a", "");
    let error = search_with(&folder, json!({"pattern": "a", "path": "sourc"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, "not_found");
    assert!(
        error.message.ends_with("Did you mean `source`?"),
        "{}",
        error.message
    );
}

#[test]
fn a_cancelled_search_ends_before_the_rest_is_searched() {
    let folder = Folder::new();
    for number in 0..5 * FILES_PER_REPORT {
        folder.write(&format!("{number}"), "needle");
    }
    let cancel = CancellationToken::new();
    let progress = RecordedProgress {
        cancel_on_progress: Some(cancel.clone()),
        ..RecordedProgress::default()
    };
    let arguments: Arguments = decode(&json!({"pattern": "needle"})).unwrap();
    assert_eq!(
        search(&folder.workspace, &arguments, &progress, &cancel),
        Err(ToolError::cancelled())
    );
    assert_eq!(*progress.done.lock().unwrap(), [FILES_PER_REPORT]);
}

#[test]
fn a_cancelled_search_ends_inside_of_a_file() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut stream = lines::UntilCancelled::new(std::io::repeat(b'x'), &cancel);
    assert!(stream.read(&mut [0; 8]).is_err());
}
